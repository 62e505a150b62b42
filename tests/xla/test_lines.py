"""Which line of the program asked for an instruction: by the stacks that JAX keeps, forward and backward."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

jax = pytest.importorskip("jax")

from roofline.xla.hlo import module as hlo
from roofline.xla.lines import by_stack, stack

PROGRAM = """
import functools
import jax, jax.numpy as jnp

def dense(w, x):
    return jnp.tanh(x @ w)                            # 6

def loss(w, x):
    return (dense(w, x) @ x).sum()                    # 9

@jax.jit
def train(w, x):
    gradient = jax.grad(loss)(w, x)                   # 13
    return functools.reduce(jnp.subtract, [w, gradient]) # 14
"""


def test_lines_of_products_and_of_fusions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program_in_jax.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    x = jax.numpy.ones((4, 4))
    compiled = import_module("program_in_jax").train.lower(x, x).compile()
    (program,) = compiled.runtime_executable().hlo_modules()
    module, line = hlo.read(program.as_serialized_hlo_module_proto()), by_stack()
    lines: dict[str, set[str | None]] = {}
    for computation in module.computations:
        for instruction in computation.instructions:
            lines.setdefault(instruction.opcode, set()).add(line(module, instruction))
    assert lines["dot"] == {"program_in_jax.py:6", "program_in_jax.py:9"}
    assert lines["tanh"] == {"program_in_jax.py:6"}
    assert lines["subtract"] >= {"program_in_jax.py:14"}
    sys.modules.pop("program_in_jax")


def test_a_stack_of_a_damaged_program_ends() -> None:
    def frames(*parents: int, location: int = 1) -> SimpleNamespace:
        return SimpleNamespace(
            stack_frames=[SimpleNamespace(file_location_id=location, parent_frame_id=parent) for parent in parents],
            file_locations=[SimpleNamespace(file_name_id=1, line=7)],
            file_names=["a.py"],
        )

    def places(index: object, first: int, source: str = "") -> list[tuple[str, int]]:
        metadata = SimpleNamespace(source_file=source, source_line=3, stack_frame_id=first)
        message = SimpleNamespace(metadata=metadata)
        return list(stack(SimpleNamespace(frames=index), SimpleNamespace(message=message)))  # type: ignore[arg-type]

    assert places(frames(2, 0), 1) == [("a.py", 7)] * 2
    assert places(frames(2, 1), 1) == [("a.py", 7)] * 2  # in a circle
    assert places(frames(9), 1) == [("a.py", 7)]
    for nowhere in (places(frames(0), 5), places(frames(0), -1), places(frames(0, location=4), 1), places(None, 1)):
        assert nowhere == []
    assert places(None, 0, "b.py") == [("b.py", 3)]
