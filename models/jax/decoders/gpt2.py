"""GPT-2 with its tied language-model head (flax nnx), random weights, full-length sequences.

Radford et al. 2019. Size base is the smallest model, 124,439,808 parameters (the head shares the token table). Layers
and names are those of Hugging Face's GPT2LMHeadModel. Where nothing is generated no keys and values are kept. The
attention mask of ones is applied, as in `bert`, together with the causal one: a boolean (batch, 1, seq, seq), made
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array

from roofline.core.step import Step, Workload
from roofline.models.jax._causal import language_model
from roofline.models.jax._generate import Cache, Kept
from roofline.models.jax._layers import Make, attended, dropped, gelu, named

EPSILON = 1e-5


class Attention(nnx.Module):
    """Query, key and value in one projection, causal attention, output projection, dropout."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.c_attn = make.linear(dims["hidden"], 3 * dims["hidden"])
        self.c_proj = make.linear(dims["hidden"], dims["hidden"])
        self.resid_dropout = nnx.Dropout(dims["dropout"])
        self.heads, self.rate = dims["heads"], dims["dropout"]

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None, kept: Kept | None = None) -> Array:
        """(batch, seq, hidden) to the same shape. kept: the keys and values of the tokens before, and now of these."""
        query, key, value = jnp.split(named("c_attn", self.c_attn, hidden), 3, axis=-1)
        if kept is not None:
            key, value = kept.written(key, value)
        context = attended(query, key, value, mask, heads=self.heads, rate=self.rate, rngs=rngs)
        return dropped(self.resid_dropout, named("c_proj", self.c_proj, context), rngs, "resid_dropout")


class MLP(nnx.Module):
    """Dense, GELU, dense, dropout."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.c_fc = make.linear(dims["hidden"], dims["ffn"])
        self.c_proj = make.linear(dims["ffn"], dims["hidden"])
        self.act = gelu(dims["gelu"])
        self.dropout = nnx.Dropout(dims["dropout"])

    def __call__(self, hidden: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        inner = named("act", self.act, named("c_fc", self.c_fc, hidden))
        return dropped(self.dropout, named("c_proj", self.c_proj, inner), rngs)


class Block(nnx.Module):
    """One decoder layer, its norms before attention and feed-forward network."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.ln_1 = make.norm(dims["hidden"], EPSILON)
        self.attn = Attention(dims, make)
        self.ln_2 = make.norm(dims["hidden"], EPSILON)
        self.mlp = MLP(dims, make)

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None, kept: Kept | None = None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        hidden = named("attn", self.attn, named("ln_1", self.ln_1, hidden), mask, rngs, kept) + hidden
        return named("mlp", self.mlp, named("ln_2", self.ln_2, hidden), rngs) + hidden


class Transformer(nnx.Module):
    """Tokens and positions, the layers, the last norm."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.wte = make.embed(dims["vocabulary"], dims["hidden"])
        self.wpe = make.embed(dims["positions"], dims["hidden"])
        self.drop = nnx.Dropout(dims["dropout"])
        self.h = nnx.List([Block(dims, make) for _ in range(dims["layers"])])
        self.ln_f = make.norm(dims["hidden"], EPSILON)

    def __call__(self, input_ids: Array, attention_mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq) token numbers to (batch, seq, hidden)."""
        seq = input_ids.shape[1]
        hidden = named("wte", self.wte, input_ids) + named("wpe", self.wpe, jnp.arange(seq)[None])
        hidden = dropped(self.drop, hidden, rngs, "drop")
        mask = (attention_mask[:, None, None, :] != 0) & jnp.tril(jnp.ones((seq, seq), bool))
        for number, layer in enumerate(self.h):
            hidden = named(f"h.{number}", layer, hidden, mask, rngs)
        return named("ln_f", self.ln_f, hidden)

    def after(self, input_ids: Array, cache: Cache) -> Array:
        """(batch, tokens) token numbers, behind those in the cache, to (batch, tokens, hidden)."""
        positions = cache.begin + jnp.arange(input_ids.shape[1])
        hidden = named("wte", self.wte, input_ids) + named("wpe", self.wpe, positions[None])
        mask = cache.seen(input_ids.shape[1])
        for number, (layer, kept) in enumerate(zip(self.h, cache.layers, strict=True)):
            hidden = named(f"h.{number}", layer, hidden, mask, None, kept)
        return named("ln_f", self.ln_f, hidden)


class GPT2LMHeadModel(nnx.Module):
    """The transformer, and its token table once more as the head."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.transformer = Transformer(dims, make)

    def __call__(self, input_ids: Array, attention_mask: Array, rngs: nnx.Rngs | None = None) -> Array:
        """(batch, seq) token numbers to (batch, seq, vocabulary); without rngs nothing is dropped."""
        hidden = named("transformer", self.transformer, input_ids, attention_mask, rngs)
        return named("lm_head", self.transformer.wte.attend, hidden)

    def next_logits(self, input_ids: Array, cache: Cache) -> Array:
        """(batch, tokens) token numbers, behind those in the cache, to the logits (batch, vocabulary) of the next."""
        hidden = named("transformer", self.transformer.after, input_ids, cache)
        return named("lm_head", self.transformer.wte.attend, hidden[:, -1])


def network(dims: Mapping[str, Any], make: Make) -> nnx.Module:
    """GPT2LMHeadModel; (batch, seq) token numbers to (batch, seq, vocabulary)."""
    return GPT2LMHeadModel(dims, make)


def build(workload: Workload, changes: Mapping[str, Any] | None = None) -> Step:
    """One forward pass, training step (next-token cross entropy, AdamW) or generation; changes: of dimensions."""
    return language_model(workload, changes, network, kept=lambda dims: (dims["hidden"],))
