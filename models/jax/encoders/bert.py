"""BERT with a two-class head (flax nnx), random weights, one sequence of full length per sample.

Devlin et al. 2019. Size base has the vocabulary of bert-base-cased and 108,311,810 parameters. Layers and names are
those of Hugging Face's BertForSequenceClassification. The step passes an attention mask of ones, and a compiled
program cannot look at it: it is applied, a select in every layer, where eager PyTorch finds nothing to mask and leaves
it out. Token types (all 0) and positions are constants of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array

from roofline.models.jax._layers import Layers, Make, attended, dropped, gelu, named
from roofline.models.jax._step import classifier

EPSILON = 1e-12


class Embeddings(nnx.Module):
    """Tokens, positions and token types, summed, normalised, dropped."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.word_embeddings = make.embed(dims["vocabulary"], dims["hidden"])
        self.position_embeddings = make.embed(dims["positions"], dims["hidden"])
        self.token_type_embeddings = make.embed(dims["token_types"], dims["hidden"])
        self.LayerNorm = make.norm(dims["hidden"], EPSILON)
        self.dropout = nnx.Dropout(dims["dropout"])

    def __call__(self, input_ids: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq) token numbers to (batch, seq, hidden)."""
        words = named("word_embeddings", self.word_embeddings, input_ids)
        types = named("token_type_embeddings", self.token_type_embeddings, jnp.zeros_like(input_ids))
        positions = named("position_embeddings", self.position_embeddings, jnp.arange(input_ids.shape[1])[None])
        return dropped(self.dropout, named("LayerNorm", self.LayerNorm, words + types + positions), rngs)


class SelfAttention(nnx.Module):
    """Query, key and value projections, and attention between them."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.query, self.key, self.value = (make.linear(dims["hidden"], dims["hidden"]) for _ in range(3))
        self.heads, self.rate = dims["heads"], dims["dropout"]

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        query, key, value = (named(name, getattr(self, name), hidden) for name in ("query", "key", "value"))
        return attended(query, key, value, mask, heads=self.heads, rate=self.rate, rngs=rngs)


class Output(nnx.Module):
    """A projection back to the residual stream: dense, dropout, sum, norm."""

    def __init__(self, width: int, dims: Mapping[str, Any], make: Make) -> None:
        self.dense = make.linear(width, dims["hidden"])
        self.dropout = nnx.Dropout(dims["dropout"])
        self.LayerNorm = make.norm(dims["hidden"], EPSILON)

    def __call__(self, inner: Array, residual: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, width) and (batch, seq, hidden) to the latter shape."""
        projected = dropped(self.dropout, named("dense", self.dense, inner), rngs)
        return named("LayerNorm", self.LayerNorm, projected + residual)


class Attention(nnx.Module):
    """Self-attention and its output."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.self = SelfAttention(dims, make)
        self.output = Output(dims["hidden"], dims, make)

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        return named("output", self.output, named("self", self.self, hidden, mask, rngs), hidden, rngs)


class Intermediate(nnx.Module):
    """The first half of the feed-forward network."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.dense = make.linear(dims["hidden"], dims["ffn"])
        self.activation = gelu(dims["gelu"])

    def __call__(self, hidden: Array) -> Array:
        """(batch, seq, hidden) to (batch, seq, ffn)."""
        return named("intermediate_act_fn", self.activation, named("dense", self.dense, hidden))


class Layer(nnx.Module):
    """One encoder layer: attention, then the feed-forward network, each with its norm behind the sum."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.attention = Attention(dims, make)
        self.intermediate = Intermediate(dims, make)
        self.output = Output(dims["ffn"], dims, make)

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        hidden = named("attention", self.attention, hidden, mask, rngs)
        return named("output", self.output, named("intermediate", self.intermediate, hidden), hidden, rngs)


class Pooler(nnx.Module):
    """tanh of a dense layer on the first token."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.dense = make.linear(dims["hidden"], dims["hidden"])

    def __call__(self, hidden: Array) -> Array:
        """(batch, seq, hidden) to (batch, hidden)."""
        return named("activation", jnp.tanh, named("dense", self.dense, hidden[:, 0]))


class Bert(nnx.Module):
    """Embeddings, encoder, pooler."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.embeddings = Embeddings(dims, make)
        self.encoder = Layers(Layer, dims, make)
        self.pooler = Pooler(dims, make)

    def __call__(self, input_ids: Array, attention_mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq) token numbers to (batch, hidden)."""
        hidden = named("embeddings", self.embeddings, input_ids, rngs)
        mask = attention_mask[:, None, None, :] != 0
        return named("pooler", self.pooler, named("encoder", self.encoder, hidden, mask, rngs))


class BertForSequenceClassification(nnx.Module):
    """BERT, dropout, a dense layer to the classes."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.bert = Bert(dims, make)
        self.dropout = nnx.Dropout(dims["dropout"])
        self.classifier = make.linear(dims["hidden"], dims["classes"])

    def __call__(self, input_ids: Array, attention_mask: Array, rngs: nnx.Rngs | None = None) -> Array:
        """(batch, seq) token numbers to (batch, classes); without rngs nothing is dropped."""
        pooled = dropped(self.dropout, named("bert", self.bert, input_ids, attention_mask, rngs), rngs)
        return named("classifier", self.classifier, pooled)


def network(dims: Mapping[str, Any], make: Make) -> nnx.Module:
    """BertForSequenceClassification of these dimensions; (batch, seq) token numbers to (batch, classes)."""
    return BertForSequenceClassification(dims, make)


build = partial(classifier, network)
