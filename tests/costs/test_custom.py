"""Formulas of ops that are not the framework's own: the user's, and those that come with the package."""

from __future__ import annotations

import pytest

from roofline.core.cost import Cost
from roofline.costs import custom
from roofline.costs.calls import Call, Tensor
from roofline.errors import InputError

X = Tensor((4,), (1,), "float")


@pytest.fixture
def mine():
    yield
    for name in ("_C::rms_norm", "mylib::x"):
        custom._FORMULAS.pop(name, None)


def test_a_users_formula_goes_before_that_of_the_package(mine):
    assert custom.registered("_C::rms_norm")[1] == "normalisation"

    @custom.formula("_C::rms_norm", "other")
    def own(*inputs):
        return Cost(vector_flops=1.0)

    assert custom.registered("_C::rms_norm") == (own, "other")
    custom._FORMULAS.pop("_C::rms_norm", None)
    assert custom.registered("_C::rms_norm")[1] == "normalisation"


def test_the_package_registers_each_op_once():
    assert custom.registered("mylib::x") is None
    custom.formula("mylib::x")(lambda: Cost())
    with pytest.raises(InputError, match="already"):  # as two of the package's would be
        custom.formula("mylib::x")(custom.describe)
    custom._FORMULAS.pop("mylib::x", None)
    assert len({entry.function for entry in custom._SUPPLIED.values()}) > 15


def test_a_formula_that_fails_leaves_the_op_unknown_and_says_why(mine):
    @custom.formula("mylib::x")
    def broken(x):
        raise KeyError("weights")

    found = custom.cost(Call("mylib::x", None, (X,)), *custom.registered("mylib::x"))
    assert found.cost.quality == "unknown"
    assert "does not fit the recorded arguments (KeyError: 'weights')" in found.cost.note
    found = custom.cost(Call("mylib::x", None, (X, X)), *custom.registered("mylib::x"))
    assert "TypeError" in found.cost.note
