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


#: Functions of both, the shapes of their matrices, and FLOPs.
N = 24
FACTORED = {
    "cholesky": (jnp.linalg.cholesky, torch.linalg.cholesky, [(N, N)], N**3 / 3),
    "cholesky, several": (jnp.linalg.cholesky, torch.linalg.cholesky, [(3, N, N)], 3 * N**3 / 3),
    "triangular solve": (
        lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
        *([(N, N), (N, 5)], N**2 * 5),
    ),
    "triangular solve, from the right": (
        lambda a, b: jax.lax.linalg.triangular_solve(a, b, left_side=False, lower=True),
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, left=False),
        *([(N, N), (5, N)], N**2 * 5),
    ),
    "solve": (jnp.linalg.solve, torch.linalg.solve, [(N, N), (N, 5)], 2 * N**3 / 3 + 2 * N**2 * 5),
    "determinant": (jnp.linalg.det, torch.linalg.det, [(N, N)], 2 * N**3 / 3),
    "slogdet": (lambda a: jnp.linalg.slogdet(a)[1], lambda a: torch.linalg.slogdet(a)[1], [(N, N)], 2 * N**3 / 3),
    "lu": (jax.scipy.linalg.lu, torch.linalg.lu, [(40, N)], 40 * N**2 - N**3 / 3),
    "qr": (jnp.linalg.qr, torch.linalg.qr, [(40, N)], 2 * 2 * N**2 * (40 - N / 3)),
    "qr, all of Q": (
        lambda a: jnp.linalg.qr(a, mode="complete"),
        lambda a: torch.linalg.qr(a, mode="complete"),
        *([(40, N)], 2 * N**2 * (40 - N / 3) + 4 * (40**2 * N - 40 * N**2 + N**3 / 3)),
    ),
    "qr, no Q": (
        lambda a: jnp.linalg.qr(a, mode="r"),
        lambda a: torch.linalg.qr(a, mode="r")[1],
        [(40, N)],
        2 * N**2 * (40 - N / 3),
    ),
}


def in_xla(function, *shapes):
    """Works of the ops with `names` in the compiled program."""
    program = hlo_programs.compiled(function, *[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes])
    module = hlo.read(program.proto, "jit")
    return [work(module, each) for each in module.instructions.values() if each.opcode in ("fft", "custom-call")]


def in_torch(function, prefixes, *shapes):
    given = [torch.eye(*shape[-2:]).expand(shape).contiguous() for shape in shapes]
    counted = count(counting.record(Step(run=lambda: function(*given))), Engine())
    names = counted.names_of_ops
    return [op.costed.cost for op, name in zip(counted.ops, names, strict=True) if name.startswith(prefixes)]


@pytest.mark.parametrize("label", FOURIER)
def test_fourier_transforms(label):
    theirs, ours, shape = FOURIER[label]
    a, b = in_xla(theirs, shape), in_torch(ours, "aten::_fft", shape)
    # torch may do one dimension at a time, as it does for real ones.
    assert sum(one.vector_flops for one in a) == pytest.approx(sum(one.vector_flops for one in b), rel=1e-12)
    assert {one.quality for one in (*a, *b)} == {"assumed"}


@pytest.mark.parametrize("label", FACTORED)
def test_direct_linear_algebra(label):
    theirs, ours, shapes, flops = FACTORED[label]
    for found in (in_xla(theirs, *shapes), in_torch(ours, "aten::", *shapes)):
        assert sum(one.flops for one in found) == pytest.approx(flops, rel=1e-12)
        assert sum(one.model_flops for one in found) == pytest.approx(flops, rel=1e-12)
