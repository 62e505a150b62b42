"""DistilBERT with a two-class head in native TensorFlow, random weights, one sequence of full length per sample.

Sanh et al. 2019. The model of `models/torch/encoders/distilbert.py`, name for name: at size base 66,362,880
parameters, and 592,130 in the head. Attention, mask and table gradients are as in `bert`.
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
    """Token and position embeddings, normalised: (B, S) token numbers to (B, S, hidden)."""

    def __init__(self, scope: str, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, hidden = scope, dims["hidden"]
        self.words = Embedding(f"{scope}/word_embeddings", dims["vocabulary"], hidden, dtypes)
        self.positions = Embedding(f"{scope}/position_embeddings", dims["positions"], hidden, dtypes)
        self.norm = LayerNorm(f"{scope}/LayerNorm", hidden, EPSILON, dtypes)
        self.dropout = Dropout(f"{scope}/dropout", dims["dropout"])

    def __call__(self, input_ids: tf.Tensor, training: bool) -> tf.Tensor:
        """Applies the layer."""
        with scoped(self.scope):
            positions = tf.range(input_ids.shape[1], dtype=tf.int64)[tf.newaxis]
            x = self.words(input_ids) + self.positions(positions)
        return self.dropout(self.norm(x), training)


class Layer(tf.Module):
    """One encoder layer, (B, S, hidden) to the same shape."""

    def __init__(self, scope: str, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, hidden, ffn = scope, dims["hidden"], dims["ffn"]
        core = f"{scope}/attention"
        self.query = Dense(f"{core}/q_lin", hidden, hidden, dtypes)
        self.key = Dense(f"{core}/k_lin", hidden, hidden, dtypes)
        self.value = Dense(f"{core}/v_lin", hidden, hidden, dtypes)
        self.attention = Attention(core, dims["heads"], Dropout(f"{core}/dropout", dims["dropout"]))
        self.attention_output = Dense(f"{core}/out_lin", hidden, hidden, dtypes)
        self.attention_norm = LayerNorm(f"{scope}/sa_layer_norm", hidden, EPSILON, dtypes)
        self.wide = Dense(f"{scope}/ffn/lin1", hidden, ffn, dtypes)
        self.activation = gelu(dims["gelu"])
        self.narrow = Dense(f"{scope}/ffn/lin2", ffn, hidden, dtypes)
        self.dropout = Dropout(f"{scope}/ffn/dropout", dims["dropout"])
        self.norm = LayerNorm(f"{scope}/output_layer_norm", hidden, EPSILON, dtypes)

    def __call__(self, x: tf.Tensor, mask: tf.Tensor, training: bool) -> tf.Tensor:
        """mask: added to the scores of attention."""
        mixed = self.attention(self.query(x), self.key(x), self.value(x), mask, training)
        mixed = self.attention_output(mixed)
        with scoped(self.scope):
            x = mixed + x
        x = self.attention_norm(x)
        wide = self.wide(x)
        with scoped(f"{self.scope}/ffn"):
            wide = self.activation(wide)
        narrow = self.dropout(self.narrow(wide), training)
        with scoped(self.scope):
            x = narrow + x
        return self.norm(x)


class DistilBert(tf.Module):
    """The encoder with its classifier; (B, S) token numbers to (B, classes)."""

    def __init__(self, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        hidden = dims["hidden"]
        layers = range(dims["layers"])
        self.embeddings = Embeddings("distilbert/embeddings", dims, dtypes)
        self.layers = [Layer(f"distilbert/transformer/layer.{number}", dims, dtypes) for number in layers]
        self.pre_classifier = Dense("pre_classifier", hidden, hidden, dtypes)
        self.dropout = Dropout("dropout", dims["head_dropout"])
        self.classifier = Dense("classifier", hidden, dims["classes"], dtypes)

    def __call__(self, input_ids: tf.Tensor, attention_mask: tf.Tensor, training: bool) -> tf.Tensor:
        """The logits; attention_mask (B, S) is 1 where there is a token."""
        with scoped("distilbert/attention_mask"):
            mask = padding_mask(attention_mask)
        x = self.embeddings(input_ids, training)
        for layer in self.layers:
            x = layer(x, mask, training)
        with scoped("pre_classifier"):
            first = x[:, 0]
            pooled = tf.nn.relu(self.pre_classifier(first))
        return self.classifier(self.dropout(pooled, training))


def network(dims: Mapping[str, Any], dtypes: Dtypes = FLOAT32) -> tf.Module:
    """DistilBERT of these dimensions; (batch, seq) token numbers to (batch, classes)."""
    return DistilBert(dims, dtypes)


build = partial(classifier, network)
