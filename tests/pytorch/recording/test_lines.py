"""Which line of the program asked for an op: forward, backward, in a function of one's own, in a repetition."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from roofline.core.step import Step
from roofline.costs.counted import PHASES, Counted
from roofline.pytorch.inductor import dynamo
from roofline.pytorch.recording import lines
from roofline.pytorch.recording.record import eager

PROGRAM = """
import threading, torch
from torch.utils.checkpoint import checkpoint
from functools import partial

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.cos()               # 13

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x)                # 21

layer = Layer()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.ones(2, 4)

def train():
    y = layer(x)
    z = Double.apply(y).exp()               # 29
    z.sum().backward()                      # 30
    optimizer.step(), optimizer.zero_grad() # 31

def repeated():
    y = checkpoint(squared, x.requires_grad_(), use_reentrant=False)
    y.sum().backward()                      # 35

def squared(x):
    return x.sin().cos()                    # 38

def mapped():
    return [*map(torch.neg, [x]), sorted([x], key=partial(torch.sum, dim=None))][0]

def often():
    y = x.neg()                             # 44
    for _ in range(5):
        y = y + 1                           # 46
    return y.abs()                          # 47

traced = torch.jit.trace(layer, x)
compiled = torch.compile(layer, backend="eager")

def scripted():
    return traced(x)                        # 53

def under_dynamo():
    return compiled(x).sin()                # 56

def apart():
    loss = Double.apply(layer(x)).sum()     # 59
    backward = threading.Thread(target=loss.backward)
    backward.start()
    backward.join()
    optimizer.zero_grad()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "program_with_lines.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module("program_with_lines")
    sys.modules.pop("program_with_lines")


def asked(counted: Counted) -> dict[tuple[str, str], set[int | None]]:
    """(phase, op) -> the numbers of the lines that asked for it."""
    numbers: dict[tuple[str, str], set[int | None]] = {}
    for name, phase, op in zip(counted.names_of_ops, counted.phase.tolist(), counted.ops, strict=True):
        file, _, number = (op.line or "").partition(":")
        assert file in ("", "program_with_lines.py")
        numbers.setdefault((PHASES[phase], name.removeprefix("aten::")), set()).add(int(number) if number else None)
    return numbers


def test_lines_of_a_training_step(program: ModuleType) -> None:
    found = asked(eager(Step(run=program.train)))
    assert found["forward", "addmm"] == found["backward", "mm"] == {21}
    assert found["forward", "mul"] == {9}
    assert found["forward", "exp"] == found["backward", "mul"] == {29}
    assert found["backward", "cos"] == {13}
    assert found["forward", "sum"] == {30}
    assert found["optimizer", "add_"] == {31}
    assert sys.gettrace() is None


def test_what_a_checkpoint_repeats_is_of_its_own_line(program: ModuleType) -> None:
    found = asked(eager(Step(run=program.repeated)))
    assert found["forward", "sin"] == found["backward", "sin"] == found["backward", "cos"] == {38}  # sin is run again


def test_what_python_calls_belongs_to_the_line_around_it(program: ModuleType) -> None:
    assert asked(eager(Step(run=program.mapped)))["forward", "neg"] == {41}


def test_lines_that_run_too_often_are_not_known(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_MOST", 3)
    found = asked(eager(Step(run=program.often)))
    assert found == {("forward", "neg"): {44}, ("forward", "add"): {46, None}, ("forward", "abs"): {47}}


def test_on_a_thread_of_the_engine_no_line_runs(program: ModuleType) -> None:
    """As beside a GPU: a backward op has the line of its forward op, or of the call of a function of one's own."""
    found = asked(eager(Step(run=program.apart)))
    assert found["forward", "sum"] == {59}
    assert found["backward", "mm"] == {21}
    assert found["backward", "cos"] == {59}


def test_a_scripted_model_is_of_the_line_that_calls_it(program: ModuleType) -> None:
    assert asked(eager(Step(run=program.scripted)))["forward", "addmm"] == {53}


def test_dynamo_compiles_no_mark(program: ModuleType) -> None:
    step = Step(run=program.under_dynamo)
    step.run()
    with dynamo.watch() as watched:
        found = asked(eager(step))
    assert found["forward", "sin"] == {56}
    assert not {Path(record.co_filename).name for record in watched.records} & {"lines.py", "source_lines.py"}


def test_marks_change_no_op(program: ModuleType) -> None:
    def counted(trace: Callable[..., object] | None) -> Counted:
        sys.settrace(trace)  # a debugger's: then lines are left alone
        try:
            return eager(Step(run=program.train))
        finally:
            sys.settrace(None)

    marked, plain = counted(None), counted(lambda *_: None)
    assert {op.line for op in plain.ops} == {None}
    assert marked.names == plain.names
    assert [op.costed for op in marked.ops] == [op.costed for op in plain.ops]
    assert marked.scopes == plain.scopes
    assert marked.scope.tolist() == plain.scope.tolist()
