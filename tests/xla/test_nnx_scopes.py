"""Scopes of flax's nnx modules: named as their callers hold them, while a first step is traced and not after."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")
import jax.numpy as jnp

from roofline.core.step import Step
from roofline.recording.recording import Plan
from roofline.recording.xspace import recorder
from roofline.xla.nnx_scopes import named_layers
from roofline.xla.recorder import JaxRecorder


class Layer(nnx.Module):  # type: ignore[misc,name-defined]
    def __init__(self, rngs: Any) -> None:
        self.mixing, self.norm = nnx.Linear(16, 16, rngs=rngs), nnx.LayerNorm(16, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.norm(self.mixing(x))


class Model(nnx.Module):  # type: ignore[misc,name-defined]
    def __init__(self, rngs: Any) -> None:
        self.layers, self.head = nnx.List([Layer(rngs), Layer(rngs)]), nnx.Linear(16, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def traced(function: Any, x: Any) -> str:
    """A program as it is lowered, with the names of what its ops are from."""
    module: Any = jax.jit(function).lower(x).compiler_ir("stablehlo")
    return str(module.operation.get_asm(enable_debug_info=True))


def test_calls_are_scopes_while_it_is_asked_for() -> None:
    model, x = Model(nnx.Rngs(0)), jnp.ones((4, 16))
    before = Model.__call__
    with named_layers():
        inside = str(
            jax.jit(lambda x: model(x)).lower(x).compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
        )
    after = str(
        jax.jit(lambda x: 1 * model(x)).lower(x).compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
    )
    assert Model.__call__ is before
    for name in ("layers.0/mixing", "layers.1/norm", "head"):
        assert name in inside
        assert name not in after


def test_a_users_training_step_has_blocks_and_phases() -> None:
    model, x = Model(nnx.Rngs(0)), jnp.ones((4, 16))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit  # type: ignore[untyped-decorator]
    def step(model: Any, optimizer: Any) -> Any:
        loss, gradients = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        optimizer.update(model, gradients)
        return loss

    run = Step(run=lambda: step(model, optimizer))
    framework: Any = JaxRecorder().framework(run)
    recording = recorder.record(run, Plan(device="cpu", threads=1, count_only=True), lambda text: None, framework)
    assert {"layers.*/mixing", "layers.*/norm", "head", "optimizer"} <= set(recording.blocks)
    phases = {recording.phases[op.phase] for op in recording.ops}
    assert phases == {"forward", "backward", "optimizer"}
    assert (recording.mode, recording.flags[0]) == ("train", "trains")
