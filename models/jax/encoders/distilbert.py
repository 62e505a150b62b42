"""DistilBERT with a two-class head (flax nnx), random weights, one sequence of full length per sample.

Sanh et al. 2019. Size base is distilbert-base-uncased: 66,362,880 parameters, and 592,130 in the head
(768 x 768 + 768 before the activation, 768 x 2 + 2 after it). Layers and names are those of Hugging Face's
DistilBertForSequenceClassification; the attention mask is as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from roofline.models.jax._layers import Layers, Make, attended, dropped, gelu, named
from roofline.models.jax._step import classifier

EPSILON = 1e-12


class Embeddings(nnx.Module):
    """Tokens and positions, summed, normalised, dropped."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.word_embeddings = make.embed(dims["vocabulary"], dims["hidden"])
        self.position_embeddings = make.embed(dims["positions"], dims["hidden"])
        self.LayerNorm = make.norm(dims["hidden"], EPSILON)
        self.dropout = nnx.Dropout(dims["dropout"])

    def __call__(self, input_ids: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq) token numbers to (batch, seq, hidden)."""
        words = named("word_embeddings", self.word_embeddings, input_ids)
        positions = named("position_embeddings", self.position_embeddings, jnp.arange(input_ids.shape[1])[None])
        return dropped(self.dropout, named("LayerNorm", self.LayerNorm, words + positions), rngs)


class Attention(nnx.Module):
    """The four projections, and attention between the first three."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        width = dims["hidden"]
        self.q_lin, self.k_lin, self.v_lin, self.out_lin = (make.linear(width, width) for _ in range(4))
        self.heads, self.rate = dims["heads"], dims["dropout"]

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        query, key, value = (named(name, getattr(self, name), hidden) for name in ("q_lin", "k_lin", "v_lin"))
        context = attended(query, key, value, mask, heads=self.heads, rate=self.rate, rngs=rngs)
        return named("out_lin", self.out_lin, context)


class FeedForward(nnx.Module):
    """Dense, GELU, dense, dropout."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.lin1 = make.linear(dims["hidden"], dims["ffn"])
        self.lin2 = make.linear(dims["ffn"], dims["hidden"])
        self.activation = gelu(dims["gelu"])
        self.dropout = nnx.Dropout(dims["dropout"])

    def __call__(self, hidden: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        inner = named("activation", self.activation, named("lin1", self.lin1, hidden))
        return dropped(self.dropout, named("lin2", self.lin2, inner), rngs)


class Block(nnx.Module):
    """One layer; what attention gives is not dropped before its sum."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.attention = Attention(dims, make)
        self.sa_layer_norm = make.norm(dims["hidden"], EPSILON)
        self.ffn = FeedForward(dims, make)
        self.output_layer_norm = make.norm(dims["hidden"], EPSILON)

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        context = named("attention", self.attention, hidden, mask, rngs)
        hidden = named("sa_layer_norm", self.sa_layer_norm, context + hidden)
        return named("output_layer_norm", self.output_layer_norm, named("ffn", self.ffn, hidden, rngs) + hidden)


class DistilBert(nnx.Module):
    """Embeddings and layers."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.embeddings = Embeddings(dims, make)
        self.transformer = Layers(Block, dims, make)

    def __call__(self, input_ids: Array, attention_mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq) token numbers to (batch, seq, hidden)."""
        hidden = named("embeddings", self.embeddings, input_ids, rngs)
        mask = attention_mask[:, None, None, :] != 0
        return named("transformer", self.transformer, hidden, mask, rngs)


class DistilBertForSequenceClassification(nnx.Module):
    """DistilBERT; on its first token dense, ReLU, dropout and a dense layer to the classes."""

    def __init__(self, dims: Mapping[str, Any], make: Make) -> None:
        self.distilbert = DistilBert(dims, make)
        self.pre_classifier = make.linear(dims["hidden"], dims["hidden"])
        self.classifier = make.linear(dims["hidden"], dims["classes"])
        self.dropout = nnx.Dropout(dims["head_dropout"])

    def __call__(self, input_ids: Array, attention_mask: Array, rngs: nnx.Rngs | None = None) -> Array:
        """(batch, seq) token numbers to (batch, classes); without rngs nothing is dropped."""
        hidden = named("distilbert", self.distilbert, input_ids, attention_mask, rngs)
        pooled = named("ReLU", jax.nn.relu, named("pre_classifier", self.pre_classifier, hidden[:, 0]))
        return named("classifier", self.classifier, dropped(self.dropout, pooled, rngs))


def network(dims: Mapping[str, Any], make: Make) -> nnx.Module:
    """DistilBertForSequenceClassification; (batch, seq) token numbers to (batch, classes)."""
    return DistilBertForSequenceClassification(dims, make)


build = partial(classifier, network)
