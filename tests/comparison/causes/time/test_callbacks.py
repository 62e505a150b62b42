"""Python functions that a compiled step calls back. Steps made by hand."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from explained import found, near, only
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline.analysis.callbacks import calls_python

BACK = Row("xla_ffi_python_cpu_callback", "other", 900, known=False)


def test_python_that_a_compiled_step_calls_back() -> None:
    """One call of 900 µs behind the layers, and the 10 µs in which its host dispatches it."""
    one = only(step((*LAYER * 4, BACK)), step())
    assert (one.rule, one.seconds) == ("host-idle", near(910))
    assert "1 call of xla_ffi_python_cpu_callback per step" in one.text
    assert one.label == "Python called back from the step (1 call of xla_ffi_python_cpu_callback)"


@pytest.mark.parametrize(
    ("mechanism", "backend", "caller"),
    [("xla-thunk", "jax", "compiled step"), ("tensorflow-graph", "tensorflow", "graph"), ("eager", "torch", "step")],
)
def test_who_calls_python_back(mechanism: str, backend: str, caller: str) -> None:
    runs = [
        replace(run, profiled=replace(run.profiled, mechanism=mechanism))
        for run in (step((*LAYER * 4, BACK), backend=backend), step(backend=backend))
    ]
    one = only(*runs)
    assert f"Python functions that its {caller} calls back: 1 call of" in one.text
    assert f"take the Python function out of the {caller}: write it" in one.advice
    assert one.label.startswith(f"Python called back from the {caller} (")


def test_an_op_that_is_a_python_function_has_any_name() -> None:
    """Its kind says so; without, it is an op of unknown work."""
    own = Row("mine::op", "other", 900, known=False)
    plain = step((*LAYER * 4, own))
    table = tuple(replace(one, kind="callback") if one.name == own.name else one for one in plain.signatures)
    one = only(replace(plain, signatures=table), step())
    assert (one.rule, one.seconds) == ("host-idle", near(910))
    assert "1 call of mine::op per step" in one.text
    assert only(plain, step()).rule == "unknown-work"


def test_what_the_other_run_does_in_its_place_goes_with_it() -> None:
    """Behind each of four layers 800 µs of a call against 300 of a known op: 4 x 500."""
    called = Row("EagerPyFunc", "other", 800, known=False, block="FFN")
    known = Row("Tanh", "pointwise", 300, bytes=1e6, block="FFN")
    one = found(step((*LAYER, called) * 4), step((*LAYER, known) * 4))["host-idle"]
    assert one.seconds == near(4 * 500)
    assert "4 calls of EagerPyFunc per step, in whose place torch (B) has Tanh" in one.text


def test_what_another_op_takes_in_is_in_the_place_of_the_call_as_well() -> None:
    """TensorFlow takes an activation into the convolution, or together with another one: the same ops either way."""
    convolution = Row("Conv2D + BiasAdd", "contraction", 500, flops=20e6, bytes=0.5e6, block="FFN")
    added = Row("AddV2", "pointwise", 50, bytes=0.3e6, block="FFN")
    called = Row("PyFunc", "other", 800, known=False, block="FFN")
    known = Row("Relu + Tanh", "pointwise", 300, bytes=1e6, block="FFN")
    a = step((change(convolution, name="Conv2D + BiasAdd + Relu"), called, added) * 4, backend="tensorflow")
    b = step((convolution, known, added) * 4, backend="tensorflow")
    assert {rule: one.seconds for rule, one in found(a, b).items()} == {"host-idle": near(4 * 500)}


def test_what_stands_beside_a_call_and_takes_little_of_the_time_there_goes_with_it() -> None:
    """What it needs is made for it in 40 µs (5 % of 840); where that takes 200 µs, a fifth, nobody can say."""
    called = Row("EagerPyFunc", "other", 800, known=False, block="FFN")
    known = Row("Tanh", "pointwise", 300, bytes=1e6, block="FFN")
    other = step((*LAYER, known) * 4)
    for own, seconds in ((40, 4 * (800 + 40 - 300 + 10)), (200, 4 * (800 + 10))):
        made = Row("Sub", "pointwise", own, bytes=1e6, block="FFN")
        assert found(step((*LAYER, made, called) * 4), other)["host-idle"].seconds == near(seconds)


def test_a_call_that_takes_less_than_what_it_replaces_is_no_cause() -> None:
    """Behind each of four layers 300 µs of a call against 800 of a sort: 4 x 500 for the sort, and not for any host."""
    called = Row("xla_ffi_python_cpu_callback", "other", 300, known=False, block="FFN")
    sort = Row("sort", "other", 800, bytes=1e6, block="FFN")
    one = found(step((*LAYER, called) * 4), step((*LAYER, sort) * 4))["unknown-work"]
    assert one.seconds == near(-4 * 500)
    assert "torch (B) spends 2.00 ms more on sort: 4 launches, in whose place torch (A) calls Python back" in one.text
    assert "what that function does" in one.advice


def test_calls_that_both_runs_make_are_no_difference() -> None:
    assert found(step((*LAYER * 4, BACK)), step((*LAYER * 4, BACK))) == {}


def test_an_op_of_known_work_is_what_its_work_is() -> None:
    """Only the name says that it calls Python."""
    known = Row("PyFunc", "pointwise", 900, bytes=1e6)
    assert found(step((*LAYER * 4, known)), step()).keys() != {"host-idle"}


@pytest.mark.parametrize(
    ("name", "python"),
    [
        ("xla_python_cpu_callback", True),
        ("xla_ffi_partitioned_python_gpu_callback", True),
        ("pure_callback", True),
        ("PyFuncStateless", True),
        ("PyFunction.apply", False),
        ("on_load_callback_kernel", False),
        ("python_dispatch", False),
    ],
)
def test_which_ops_call_python(name: str, python: bool) -> None:
    assert calls_python(name) is python
