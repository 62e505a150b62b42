"""Ops that are Python functions of the user's: what torch keeps of them, and what is saved of a step that has some."""

from __future__ import annotations

import uuid

import pytest

torch = pytest.importorskip("torch")

from roofline.core.vocabulary import CALLBACK
from roofline.costs.calls import Call, Tensor
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.aten.python_ops import is_python_function

#: Of this process alone: a namespace cannot be registered twice.
NAMESPACE = f"roofline_{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def ops():
    """One by `custom_op`, one by `Library.impl`, and one that nobody implements."""

    @torch.library.custom_op(f"{NAMESPACE}::sine", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(__import__("numpy").sin(x.numpy()))

    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    for name in ("cosine", "nobody"):
        library.define(f"{name}(Tensor x) -> Tensor")
    library.impl("cosine", lambda x: x.clone(), "CPU")
    yield
    library._destroy()


@pytest.mark.parametrize(("name", "python"), [("sine", True), ("cosine", True), ("nobody", False), ("", False)])
def test_what_is_a_python_function(ops, name, python):
    assert is_python_function(f"{NAMESPACE}::{name}") is python


def test_ops_of_torch_are_none():
    assert not is_python_function("aten::sin")
    assert not is_python_function("sine")


def test_its_kind_says_that_a_step_waits_for_python(ops):
    x = Tensor((4, 8), (8, 1), "float", 1)
    engine = Engine()
    on_cpu = engine.cost(Call(f"{NAMESPACE}::sine", "", (x,), None))
    assert (on_cpu.kind, on_cpu.cost.quality) == (CALLBACK, "unknown")
    assert engine.cost(Call(f"{NAMESPACE}::nobody", "", (x,), None)).kind == "nobody"
    on_gpu = engine.cost(Call(f"{NAMESPACE}::sine", "", (Tensor((4, 8), (8, 1), "float", 1, device="cuda:0"),), None))
    assert on_gpu.kind == "sine", "there its kernels run, whatever called them"
