"""What JAX and PyTorch ask for in the same words costs the same in both."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")

import hlo_programs
import jax.numpy as jnp

from roofline.core.step import Step
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count
from roofline.pytorch.recording import counting
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.flops import work

FOURIER = {
    # Of real numbers JAX's transform is a complex one, and PyTorch's a real one.
    "fft": (lambda x: jnp.fft.fft(x.astype(jnp.complex64)), lambda x: torch.fft.fft(x.to(torch.complex64)), (6, 24)),
    "fft2": (lambda x: jnp.fft.ifft2(x + 1j), lambda x: torch.fft.ifft2(x + 1j), (2, 8, 12)),
    "rfft": (jnp.fft.rfft, torch.fft.rfft, (6, 24)),
    "rfftn": (jnp.fft.rfftn, torch.fft.rfftn, (4, 6, 8)),
    "irfft": (jnp.fft.irfft, torch.fft.irfft, (6, 13)),
}


def in_xla(function, *shapes):
    """Works of the ops with `names` in the compiled program."""
    program = hlo_programs.compiled(function, *[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes])
    module = hlo.read(program.proto, "jit")
    return [work(module, each) for each in module.instructions.values() if each.opcode in ("fft", "custom-call")]


def in_torch(function, prefix, *shapes):
    given = [torch.eye(*shape[-2:]).expand(shape).contiguous() for shape in shapes]
    counted = count(counting.record(Step(run=lambda: function(*given))), Engine())
    names = counted.names_of_ops
    return [op.costed.cost for op, name in zip(counted.ops, names, strict=True) if name.startswith(prefix)]


@pytest.mark.parametrize("label", FOURIER)
def test_fourier_transforms(label):
    theirs, ours, shape = FOURIER[label]
    a, b = in_xla(theirs, shape), in_torch(ours, "aten::_fft", shape)
    # torch may do one dimension at a time, as it does for real ones.
    assert sum(one.vector_flops for one in a) == pytest.approx(sum(one.vector_flops for one in b), rel=1e-12)
    assert {one.quality for one in (*a, *b)} == {"assumed"}
