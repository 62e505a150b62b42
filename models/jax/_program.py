"""What a step in JAX runs: one jitted function of nested dicts of arrays.

This is the form that flax recommends where speed matters: `nnx.jit` walks the modules in Python at every call (7.5 ms
for 100 layers, 0.2 ms this way).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
from flax import nnx
from jax import Array

from roofline.core.step import scope

Inputs = Mapping[str, Array]


class Scaling(NamedTuple):
    """Dynamic loss scaling: the factor, and how many steps in a row had finite gradients."""

    factor: Array
    finite_steps: Array


class State(NamedTuple):
    """What a step reads and a training step changes.

    parameters: those that learn, a nested dict by attribute names; None, only in what a step gives back: unchanged.
    optimizer: the state of optax. scaling: with `--precision mixed-fp16`. key: of the next step's dropout.
    """

    parameters: dict[str, Any] | None
    optimizer: Any = None
    scaling: Scaling | None = None
    key: Array | None = None


def output_of(
    graph: nnx.GraphDef, parameters: dict[str, Any], frozen: dict[str, Any], key: Array | None, inputs: Inputs
) -> Array:
    """What the network makes of `inputs`; key: of its dropout, None drops nothing."""
    # The generator is made here, inside of any derivative, because drawing a number from it changes it.
    random = {} if key is None else {"rngs": nnx.Rngs(dropout=key)}
    return nnx.merge(graph, parameters, frozen)(**inputs, **random)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where inputs are kept and how they come to the device.

    waits: they stay in the host's memory and travel in every step. On a CPU the host is the device: nothing travels.
    """

    device: jax.Device
    waits: bool

    def stored(self, values: Any) -> Any:
        """`values` where they are between steps."""
        return jax.device_get(values) if self.waits else jax.device_put(values, self.device)

    def arrived(self, values: Any) -> Any:
        """`values` on the device."""
        if not self.waits:
            return values
        with scope("input"):
            return jax.device_put(values, self.device)


@dataclass(slots=True, kw_only=True)
class Program:
    """The one jitted function that a step calls, and what it is called with; `Step.model` of these models.

    function: `function(state, frozen, inputs) -> output` or, training, `function(state, frozen, inputs, targets) ->
        (result, state)`. It may take over the memory of `state` (donation), so what a step leaves here is the only
        valid one.
    graph: the structure of the network, for `nnx.merge`.
    inputs, targets: by the names of the network's arguments, where `place` keeps them; other arrays of the same shapes
        may be put here between steps. targets None: nothing is learnt.
    frozen: parameters that do not learn, a nested dict by attribute names; empty where all learn.
    """

    function: Callable[..., Any]
    graph: nnx.GraphDef
    state: State
    inputs: dict[str, Any]
    targets: Any
    place: Placement
    frozen: dict[str, Any] = field(default_factory=dict)
    _output: Callable[..., Array] = field(init=False)

    def __post_init__(self) -> None:
        def forward(parameters: dict[str, Any], frozen: dict[str, Any], key: Array | None, inputs: Inputs) -> Array:
            return output_of(self.graph, parameters, frozen, key, inputs)

        self._output = jax.jit(forward)

    @property
    def parameters(self) -> dict[str, Any]:
        """The present parameters that learn: a nested dict by attribute names."""
        return self.state.parameters

    @parameters.setter
    def parameters(self, new: dict[str, Any]) -> None:
        self.state = self.state._replace(parameters=new)

    def arguments(self) -> tuple[Any, ...]:
        """What the next step gives `function`: `function.lower(*arguments())` is its program."""
        given = self.state, self.frozen, self.place.arrived(self.inputs)
        return given if self.targets is None else (*given, self.place.arrived(self.targets))

    def run(self) -> Any:
        """One step; enqueues it and gives its result, which may not be there yet."""
        if self.targets is None:
            return self.function(*self.arguments())
        result, after = self.function(*self.arguments())
        self.state = after if after.parameters is not None else after._replace(parameters=self.parameters)
        return result

    def forward(self) -> Array:
        """The forward pass alone, in training with dropout; it changes nothing."""
        return self._output(self.parameters, self.frozen, self.state.key, self.place.arrived(self.inputs))

    def network(self) -> nnx.Module:
        """The network with its present parameters."""
        return nnx.merge(self.graph, self.parameters, self.frozen)
