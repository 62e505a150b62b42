"""What Gemma and Mistral share in JAX: RMSNorm, rotary embedding, grouped-query attention, a gated FFN, their layers.

Layers and names are those of Hugging Face's classes, with LoRA as in `models/torch/_lora.py` where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from roofline.models.jax._generate import Cache, Kept
from roofline.models.jax._layers import Make, named
from roofline.models.jax._lora import LoRALinear

#: The longest wavelength of a rotary embedding is 2 pi times this. Su et al. 2021, arXiv 2104.09864, section 3.2.2.
_BASE = 10_000.0

Turns = tuple[Array, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """In what these models differ, beside dimensions.

    activation: of the gate.
    epsilon: of the norms.
    norm_from: what the norms add to their weights, which begin at 1 - norm_from.
    embedding_scale: what the rows of the token table are multiplied with; None: with nothing.
    lora: whether query and value projections have a low-rank update.
    """

    activation: Callable[[Array], Array]
    epsilon: float
    norm_from: int
    embedding_scale: float | None
    lora: bool


class RMSNorm(nnx.Module):
    """x / sqrt(mean(x^2) + epsilon) times the weights, over the last dimension, the division in float32.

    Zhang and Sennrich 2019, arXiv 1910.07467. Where weights are added to 1, the product is in float32 too, as the
    published Gemma has it.
    """

    def __init__(self, width: int, kind: Kind, make: Make) -> None:
        self.weight = nnx.Param(jnp.full(width, 1 - kind.norm_from, make.param_dtype))
        self.epsilon, self.norm_from, self.dtype = kind.epsilon, kind.norm_from, make.dtype

    def __call__(self, hidden: Array) -> Array:
        """(..., width) to the same shape."""
        dtype, wide = self.dtype or hidden.dtype, hidden.astype(jnp.float32)
        normal = wide * jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + self.epsilon)
        if self.norm_from:
            return (normal * (self.norm_from + self.weight[...].astype(jnp.float32))).astype(dtype)
        return normal.astype(dtype) * self.weight[...].astype(dtype)


def turns(positions: Array, width: int, dtype: Any) -> Turns:
    """Cosines and sines (1, tokens, 1, width) of position / base^(2 i / width); both halves of a head turn alike."""
    frequencies = 1.0 / _BASE ** (jnp.arange(0, width, 2, dtype=jnp.float32) / width)
    angles = jnp.tile(positions.astype(jnp.float32)[:, None] * frequencies, 2)[None, :, None, :]
    return jnp.cos(angles).astype(dtype), jnp.sin(angles).astype(dtype)


def turned(heads: Array, by: Turns) -> Array:
    """(batch, seq, heads, width), its pairs (i, i + width / 2) turned by the angles of their positions."""
    cosines, sines = by
    first, second = jnp.split(heads, 2, axis=-1)
    return heads * cosines + jnp.concatenate([-second, first], axis=-1) * sines


class Attention(nnx.Module):
    """Projections, queries and keys turned by their positions, causal attention, output projection.

    A key and a value serve several query heads where there are fewer of them.
    """

    def __init__(self, dims: Mapping[str, Any], kind: Kind, make: Make) -> None:
        hidden, queries, keys = dims["hidden"], dims["heads"] * dims["head"], dims["kv_heads"] * dims["head"]

        def updated(base: nnx.Linear) -> nnx.Module:
            return LoRALinear(base, dims["lora_rank"], dims["lora_alpha"], make) if kind.lora else base

        self.q_proj = updated(make.linear(hidden, queries, bias=False))
        self.k_proj = make.linear(hidden, keys, bias=False)
        self.v_proj = updated(make.linear(hidden, keys, bias=False))
        self.o_proj = make.linear(queries, hidden, bias=False)
        self.width = dims["head"]

    def __call__(self, hidden: Array, by: Turns, mask: Array, kept: Kept | None = None) -> Array:
        """(batch, seq, hidden) to the same shape; mask: boolean, broadcasts to (batch, heads, seq, keys).

        kept: the keys and values of the tokens before, and now of these.
        """
        query, key, value = (
            named(name, getattr(self, name), hidden).reshape(*hidden.shape[:2], -1, self.width)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        query, key = turned(query, by), turned(key, by)
        if kept is not None:
            key, value = kept.written(key, value)
        context = jax.nn.dot_product_attention(query, key, value, mask=mask)
        return named("o_proj", self.o_proj, context.reshape(*hidden.shape[:2], -1))


class MLP(nnx.Module):
    """down(activation(gate(x)) * up(x)). Shazeer 2020, arXiv 2002.05202."""

    def __init__(self, dims: Mapping[str, Any], kind: Kind, make: Make) -> None:
        self.gate_proj = make.linear(dims["hidden"], dims["ffn"], bias=False)
        self.up_proj = make.linear(dims["hidden"], dims["ffn"], bias=False)
        self.down_proj = make.linear(dims["ffn"], dims["hidden"], bias=False)
        self.act_fn = kind.activation

    def __call__(self, hidden: Array) -> Array:
        """(batch, seq, hidden) to the same shape."""
        gate = named("act_fn", self.act_fn, named("gate_proj", self.gate_proj, hidden))
        return named("down_proj", self.down_proj, gate * named("up_proj", self.up_proj, hidden))


class Layer(nnx.Module):
    """One decoder layer, its norms before attention and feed-forward network."""

    def __init__(self, dims: Mapping[str, Any], kind: Kind, make: Make) -> None:
        self.input_layernorm = RMSNorm(dims["hidden"], kind, make)
        self.self_attn = Attention(dims, kind, make)
        self.post_attention_layernorm = RMSNorm(dims["hidden"], kind, make)
        self.mlp = MLP(dims, kind, make)

    def __call__(self, hidden: Array, by: Turns, mask: Array, kept: Kept | None = None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        normal = named("input_layernorm", self.input_layernorm, hidden)
        hidden = hidden + named("self_attn", self.self_attn, normal, by, mask, kept)
        normal = named("post_attention_layernorm", self.post_attention_layernorm, hidden)
        return hidden + named("mlp", self.mlp, normal)


class Decoder(nnx.Module):
    """Tokens, the layers, the last norm."""

    def __init__(self, dims: Mapping[str, Any], kind: Kind, make: Make) -> None:
        self.embed_tokens = make.embed(dims["vocabulary"], dims["hidden"])
        self.layers = nnx.List([Layer(dims, kind, make) for _ in range(dims["layers"])])
        self.norm = RMSNorm(dims["hidden"], kind, make)
        self.width, self.window, self.scale = dims["head"], dims.get("window"), kind.embedding_scale

    def __call__(self, input_ids: Array, attention_mask: Array) -> Array:
        """(batch, seq) token numbers to (batch, seq, hidden)."""
        seq = input_ids.shape[1]
        hidden = named("embed_tokens", self._embedded, input_ids)
        by = named("rotary_emb", turns, jnp.arange(seq), self.width, hidden.dtype)
        mask = (attention_mask[:, None, None, :] != 0) & jnp.tril(jnp.ones((seq, seq), bool))
        if self.window is not None and seq > self.window:
            mask &= jnp.triu(jnp.ones((seq, seq), bool), 1 - self.window)
        for number, layer in enumerate(self.layers):
            hidden = named(f"layers.{number}", layer, hidden, by, mask)
        return named("norm", self.norm, hidden)

    def after(self, input_ids: Array, cache: Cache) -> Array:
        """(batch, tokens) token numbers, behind those in the cache, to (batch, tokens, hidden)."""
        tokens = input_ids.shape[1]
        hidden = named("embed_tokens", self._embedded, input_ids)
        by = named("rotary_emb", turns, cache.begin + jnp.arange(tokens), self.width, hidden.dtype)
        mask = cache.seen(tokens, self.window)
        for number, (layer, kept) in enumerate(zip(self.layers, cache.layers, strict=True)):
            hidden = named(f"layers.{number}", layer, hidden, by, mask, kept)
        return named("norm", self.norm, hidden)

    def _embedded(self, input_ids: Array) -> Array:
        rows = self.embed_tokens(input_ids)
        return rows if self.scale is None else rows * jnp.asarray(self.scale, rows.dtype)


class RotaryLM(nnx.Module):
    """The decoder and its head: a projection of its own, or the token table once more."""

    def __init__(self, dims: Mapping[str, Any], kind: Kind, make: Make, *, tied: bool) -> None:
        self.model = Decoder(dims, kind, make)
        if not tied:
            self.lm_head = make.linear(dims["hidden"], dims["vocabulary"], bias=False)
        self.tied = tied

    def __call__(self, input_ids: Array, attention_mask: Array) -> Array:
        """(batch, seq) token numbers to (batch, seq, vocabulary)."""
        return self._logits(named("model", self.model, input_ids, attention_mask))

    def next_logits(self, input_ids: Array, cache: Cache) -> Array:
        """(batch, tokens) token numbers, behind those in the cache, to the logits (batch, vocabulary) of the next."""
        return self._logits(named("model", self.model.after, input_ids, cache)[:, -1])

    def _logits(self, hidden: Array) -> Array:
        return named("lm_head", self.model.embed_tokens.attend if self.tied else self.lm_head, hidden)


def kept(dims: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of a token's keys in one layer."""
    return dims["kv_heads"], dims["head"]
