"""BERT with a two-class head in native TensorFlow, random weights, one sequence of full length per sample.

Devlin et al. 2019. The model of `models/torch/encoders/bert.py`, name for name: 108,311,810 parameters at size base.
Attention is written out, and the mask of ones is made into numbers that are added to the scores, as users of
TensorFlow do. The gradients of the embedding tables are made dense for the optimizer, as torch's are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import tensorflow as tf

from roofline.models.tensorflow._layers import (
    FLOAT32,
    Attention,
    Dense,
    Dropout,
    Dtypes,
    Embedding,
    LayerNorm,
    gelu,
    padding_mask,
    scoped,
)
from roofline.models.tensorflow._step import classifier

EPSILON = 1e-12


class Embeddings(tf.Module):
    """Token, type and position embeddings, normalised: (B, S) token numbers to (B, S, hidden)."""

    def __init__(self, scope: str, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, hidden = scope, dims["hidden"]
        self.words = Embedding(f"{scope}/word_embeddings", dims["vocabulary"], hidden, dtypes)
        self.types = Embedding(f"{scope}/token_type_embeddings", dims["token_types"], hidden, dtypes)
        self.positions = Embedding(f"{scope}/position_embeddings", dims["positions"], hidden, dtypes)
        self.norm = LayerNorm(f"{scope}/LayerNorm", hidden, EPSILON, dtypes)
        self.dropout = Dropout(f"{scope}/dropout", dims["dropout"])

    def __call__(self, input_ids: tf.Tensor, training: bool) -> tf.Tensor:
        """Applies the layer; all tokens are of type 0."""
        with scoped(self.scope):
            types = tf.zeros_like(input_ids)
            positions = tf.range(input_ids.shape[1], dtype=tf.int64)[tf.newaxis]
            x = self.words(input_ids) + self.types(types) + self.positions(positions)
        return self.dropout(self.norm(x), training)


class Residual(tf.Module):
    """The end of both halves of a layer: dense, dropout, sum with the half's input, normalisation."""

    def __init__(self, scope: str, inputs: int, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.scope = scope
        self.dense = Dense(f"{scope}/dense", inputs, dims["hidden"], dtypes)
        self.dropout = Dropout(f"{scope}/dropout", dims["dropout"])
        self.norm = LayerNorm(f"{scope}/LayerNorm", dims["hidden"], EPSILON, dtypes)

    def __call__(self, x: tf.Tensor, before: tf.Tensor, training: bool) -> tf.Tensor:
        """before: the half's input, (B, S, hidden)."""
        x = self.dropout(self.dense(x), training)
        with scoped(self.scope):
            x += before
        return self.norm(x)


class Layer(tf.Module):
    """One encoder layer, (B, S, hidden) to the same shape."""

    def __init__(self, scope: str, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, hidden, ffn = scope, dims["hidden"], dims["ffn"]
        core = f"{scope}/attention/self"
        self.query = Dense(f"{core}/query", hidden, hidden, dtypes)
        self.key = Dense(f"{core}/key", hidden, hidden, dtypes)
        self.value = Dense(f"{core}/value", hidden, hidden, dtypes)
        self.attention = Attention(core, dims["heads"], Dropout(f"{core}/dropout", dims["dropout"]))
        self.attention_output = Residual(f"{scope}/attention/output", hidden, dims, dtypes)
        self.intermediate = Dense(f"{scope}/intermediate/dense", hidden, ffn, dtypes)
        self.activation = gelu(dims["gelu"])
        self.output = Residual(f"{scope}/output", ffn, dims, dtypes)

    def __call__(self, x: tf.Tensor, mask: tf.Tensor, training: bool) -> tf.Tensor:
        """mask: added to the scores of attention."""
        mixed = self.attention(self.query(x), self.key(x), self.value(x), mask, training)
        x = self.attention_output(mixed, x, training)
        wide = self.intermediate(x)
        with scoped(f"{self.scope}/intermediate"):
            wide = self.activation(wide)
        return self.output(wide, x, training)


class Bert(tf.Module):
    """The encoder with pooler and classifier; (B, S) token numbers to (B, classes)."""

    def __init__(self, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        hidden = dims["hidden"]
        self.embeddings = Embeddings("bert/embeddings", dims, dtypes)
        self.layers = [Layer(f"bert/encoder/layer.{number}", dims, dtypes) for number in range(dims["layers"])]
        self.pooler = Dense("bert/pooler/dense", hidden, hidden, dtypes)
        self.dropout = Dropout("dropout", dims["dropout"])
        self.classifier = Dense("classifier", hidden, dims["classes"], dtypes)

    def __call__(self, input_ids: tf.Tensor, attention_mask: tf.Tensor, training: bool) -> tf.Tensor:
        """The logits; attention_mask (B, S) is 1 where there is a token."""
        with scoped("bert/attention_mask"):
            mask = padding_mask(attention_mask)
        x = self.embeddings(input_ids, training)
        for layer in self.layers:
            x = layer(x, mask, training)
        with scoped("bert/pooler"):
            first = x[:, 0]
            pooled = tf.tanh(self.pooler(first))
        return self.classifier(self.dropout(pooled, training))


def network(dims: Mapping[str, Any], dtypes: Dtypes = FLOAT32) -> tf.Module:
    """BERT of these dimensions; (batch, seq) token numbers to (batch, classes)."""
    return Bert(dims, dtypes)


build = partial(classifier, network)
