"""A step that generates text in JAX: prompt and all new tokens in one program, with room for all keys and values.

The prompt is read in the phase of prefill, which gives the first new token; each further token is a turn of a loop in
the phase of decode. The cache of keys and values has all of its length from the beginning (`static`), since a program
has the shapes of its arrays: each pass of decode attends to all of it, and a mask leaves out what is not written yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array, lax

from roofline.core.step import Step, Workload
from roofline.models._precision import precision
from roofline.models._step import generation_switches, transformer_switches
from roofline.models.jax._layers import Make
from roofline.models.jax._program import Inputs, State
from roofline.models.jax._step import step
from roofline.models.jax._training import Parameters


@dataclass(slots=True)
class Kept:
    """The keys and values of one layer, (batch, length, ...) each, of which `begin` are written. first: none is."""

    keys: Array
    values: Array
    begin: Array
    first: bool

    def written(self, keys: Array, values: Array) -> tuple[Array, Array]:
        """All keys and values, with those of the tokens (batch, tokens, ...) behind the ones before.

        Before the first ones there is nothing to attend to: those alone.
        """
        self.keys = lax.dynamic_update_slice_in_dim(self.keys, keys.astype(self.keys.dtype), self.begin, axis=1)
        self.values = lax.dynamic_update_slice_in_dim(self.values, values.astype(self.values.dtype), self.begin, axis=1)
        return (keys, values) if self.first else (self.keys, self.values)


@dataclass(frozen=True, slots=True)
class Cache:
    """The keys and values of all layers, of which `begin` are there. first: none is yet."""

    layers: tuple[Kept, ...]
    begin: Array
    first: bool = False

    @classmethod
    def of(cls, arrays: list[tuple[Array, Array]], begin: Array, *, first: bool = False) -> Cache:
        """The cache with these arrays; they are replaced in it, not changed."""
        return cls(tuple(Kept(keys, values, begin, first) for keys, values in arrays), begin, first)

    def arrays(self) -> list[tuple[Array, Array]]:
        """Keys and values of each layer."""
        return [(kept.keys, kept.values) for kept in self.layers]

    def seen(self, tokens: int, window: int | None = None) -> Array:
        """What each of `tokens` tokens behind those that are there attends to: boolean, (1, 1, tokens, keys).

        window: to no more than so many, itself included.
        """
        length = tokens if self.first else self.layers[0].keys.shape[1]
        last, keys = (self.begin + jnp.arange(tokens))[:, None], jnp.arange(length)
        mask = keys <= last
        if window is not None and length > window:
            mask &= keys > last - window
        return mask[None, None]


def generation(
    workload: Workload,
    dims: Mapping[str, Any],
    network: Callable[[Mapping[str, Any], Make], nnx.Module],
    *,
    kept: tuple[int, ...],
    attention: str,
    kernel: nnx.Initializer | None = None,
) -> Step:
    """One program that gives each of `batch` prompts of `seq` tokens `new_tokens` more, greedily.

    The network offers `next_logits(input_ids, cache)`. kept: the shape of a token's keys in one layer. attention: the
    form.
    """
    shape, new, asked = (dims["batch"], dims["seq"]), dims["new_tokens"], precision(workload)
    of_layer = ((dims["batch"], dims["seq"] + new, *kept), jnp.dtype(asked.mixed or asked.parameters))

    def empty() -> list[tuple[Array, Array]]:
        return [(jnp.zeros(*of_layer), jnp.zeros(*of_layer)) for _ in range(dims["layers"])]

    def generating(graph: nnx.GraphDef) -> Callable[[State, Parameters, Inputs], Array]:
        @jax.jit
        def generate(state: State, frozen: Parameters, inputs: Inputs) -> Array:
            return generated(nnx.merge(graph, state.parameters, frozen), inputs["input_ids"], new, empty)

        return generate

    return step(
        workload,
        dims,
        network,
        inferring=generating,
        inputs=lambda key: {"input_ids": jax.random.randint(key, shape, 0, dims["vocabulary"], jnp.int32)},
        kernel=kernel,
        switches=transformer_switches(workload, dims, attention=attention, mask="causal")
        | generation_switches(kv_cache="static", passes=new - 1),
    )


def generated(model: Any, prompt: Array, new: int, empty: Callable[[], list[tuple[Array, Array]]]) -> Array:
    """The new tokens (batch, new) behind a prompt (batch, seq). empty: makes a cache with room for all of them."""
    batch, seq = prompt.shape

    def greedy(logits: Array) -> Array:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)

    def turn(number: Array, carried: tuple[Array, list[tuple[Array, Array]]]) -> tuple[Array, Any]:
        tokens, arrays = carried
        cache = Cache.of(arrays, seq + number)
        last = lax.dynamic_slice_in_dim(tokens, number, 1, axis=1)
        token = greedy(model.next_logits(last, cache))
        return lax.dynamic_update_slice_in_dim(tokens, token[:, None], number + 1, axis=1), cache.arrays()

    with jax.named_scope("prefill"):
        cache = Cache.of(empty(), jnp.int32(0), first=True)
        first = greedy(model.next_logits(prompt, cache))
        tokens = jnp.zeros((batch, new), jnp.int32).at[:, 0].set(first)
    with jax.named_scope("decode"):
        tokens, _ = lax.fori_loop(0, new - 1, turn, (tokens, cache.arrays()))
    return tokens
