"""Three runs with long names, and a standard output that is a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import handmade
import pytest
from msgspec.structs import replace

from roofline.cli.options import terminal
from roofline.core.schema import Profile, Wall, save

#: Kernels that begin alike for longer than any terminal is wide.
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(%s)::{lambda(%s)#1}>(int)"


def traced() -> Profile:
    """The hand-made step with kernels as a GPU's trace names them, each of one op, and a fused op."""
    plain = handmade.profile()
    many = "at::TensorIteratorBase&, " * 12
    names = tuple(GELU % (many, kind) for kind in ("c10::BFloat16", "float", "c10::Half"))
    names = (*names, "Memset (Device)")
    ops = [replace(op, kernels=((number % len(names), 1000),)) for number, op in enumerate(plain.ops)]
    ops[4] = replace(ops[4], constituents=(0, 5))
    return replace(plain, kernels=names, ops=tuple(ops))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """a.json, b.json and c.json: three runs with long names."""
    slow = Wall(steps=tuple(step * 1.3 for step in handmade.profile().wall.steps))
    save(traced(), tmp_path / "a.json")
    save(replace(traced(), backend="jax-with-quite-a-long-name", wall=slow), tmp_path / "b.json")
    save(replace(traced(), backend="jax-with-quite-a-longer-name", wall=slow, batch=8), tmp_path / "c.json")
    return tmp_path


@pytest.fixture
def columns(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes standard output a terminal of so many columns."""

    def set_to(width: int) -> None:
        monkeypatch.setattr(terminal, "_is_terminal", lambda: True)
        monkeypatch.setitem(variables, "COLUMNS", str(width))
        monkeypatch.setitem(variables, "TERM", "xterm")

    return set_to
