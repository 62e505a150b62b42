"""GPT-2 with its tied language-model head in native TensorFlow, random weights, full-length sequences.

Radford et al. 2019. The model of `models/torch/decoders/gpt2.py`, name for name: 124,439,808 parameters at size base,
the head shares the token table. Attention is written out over the full square of tokens, later ones masked; the mask
of ones is part of that mask. The table's gradient is the sum of the head's, dense, and of the embedding's, made
dense.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from roofline.core.step import Step, Workload
from roofline.models._step import transformer_switches
from roofline.models.tensorflow._layers import (
    FLOAT32,
    Attention,
    Dense,
    Dropout,
    Dtypes,
    Embedding,
    LayerNorm,
    causal_mask,
    gelu,
    scoped,
)
from roofline.models.tensorflow._step import numbers, prepare, step

EPSILON = 1e-5
IGNORED = -100  # the label of a token that has no next one


class Layer(tf.Module):
    """One decoder layer, (B, S, hidden) to the same shape; normalisation comes first."""

    def __init__(self, scope: str, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, hidden, ffn, dropout = scope, dims["hidden"], dims["ffn"], dims["dropout"]
        core = f"{scope}/attn"
        self.attention_norm = LayerNorm(f"{scope}/ln_1", hidden, EPSILON, dtypes)
        self.query_key_value = Dense(f"{core}/c_attn", hidden, 3 * hidden, dtypes)
        self.attention = Attention(core, dims["heads"], Dropout(f"{core}/attn_dropout", dropout))
        self.attention_output = Dense(f"{core}/c_proj", hidden, hidden, dtypes)
        self.attention_dropout = Dropout(f"{core}/resid_dropout", dropout)
        self.norm = LayerNorm(f"{scope}/ln_2", hidden, EPSILON, dtypes)
        self.wide = Dense(f"{scope}/mlp/c_fc", hidden, ffn, dtypes)
        self.activation = gelu(dims["gelu"])
        self.narrow = Dense(f"{scope}/mlp/c_proj", ffn, hidden, dtypes)
        self.dropout = Dropout(f"{scope}/mlp/dropout", dropout)

    def __call__(self, x: tf.Tensor, mask: tf.Tensor, training: bool) -> tf.Tensor:
        """mask: added to the scores of attention."""
        together = self.query_key_value(self.attention_norm(x))
        with scoped(f"{self.scope}/attn"):
            query, key, value = tf.split(together, 3, axis=-1)
        mixed = self.attention_output(self.attention(query, key, value, mask, training))
        mixed = self.attention_dropout(mixed, training)
        with scoped(self.scope):
            x = mixed + x
        wide = self.wide(self.norm(x))
        with scoped(f"{self.scope}/mlp"):
            wide = self.activation(wide)
        narrow = self.dropout(self.narrow(wide), training)
        with scoped(self.scope):
            return x + narrow


class Gpt2(tf.Module):
    """The decoder with its head; (B, S) token numbers to logits (B, S, vocabulary)."""

    def __init__(self, dims: Mapping[str, Any], dtypes: Dtypes) -> None:
        super().__init__()
        hidden = dims["hidden"]
        self.compute = dtypes.compute
        self.words = Embedding("transformer/wte", dims["vocabulary"], hidden, dtypes)
        self.positions = Embedding("transformer/wpe", dims["positions"], hidden, dtypes)
        self.dropout = Dropout("transformer/drop", dims["dropout"])
        self.layers = [Layer(f"transformer/h.{number}", dims, dtypes) for number in range(dims["layers"])]
        self.norm = LayerNorm("transformer/ln_f", hidden, EPSILON, dtypes)

    def __call__(self, input_ids: tf.Tensor, attention_mask: tf.Tensor, training: bool) -> tf.Tensor:
        """The logits; attention_mask (B, S) is 1 where there is a token."""
        with scoped("transformer/attention_mask"):
            mask = causal_mask(attention_mask)
        with scoped("transformer"):
            positions = tf.range(input_ids.shape[1], dtype=tf.int64)[tf.newaxis]
            x = self.words(input_ids) + self.positions(positions)
        x = self.dropout(x, training)
        for layer in self.layers:
            x = layer(x, mask, training)
        x = self.norm(x)
        with scoped("lm_head"):
            rows = tf.reshape(x, (-1, x.shape[-1]))
            logits = tf.matmul(rows, tf.cast(self.words.weight, self.compute), transpose_b=True)
            return tf.reshape(logits, (*x.shape[:-1], logits.shape[-1]))


def network(dims: Mapping[str, Any], dtypes: Dtypes = FLOAT32) -> tf.Module:
    """GPT-2 of these dimensions; (batch, seq) token numbers to (batch, seq, vocabulary)."""
    return Gpt2(dims, dtypes)


def loss(output: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Mean cross entropy of the logits with the next tokens (batch, seq), already shifted; IGNORED does not count."""
    # TensorFlow's operation has no label to ignore: those tokens take class 0, and their losses are left out.
    counted = labels != IGNORED
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.where(counted, labels, 0), output)
    return tf.reduce_sum(tf.where(counted, losses, 0.0)) / tf.reduce_sum(tf.cast(counted, losses.dtype))


def build(workload: Workload) -> Step:
    """One forward pass or one training step (next-token cross entropy, AdamW) of GPT-2."""
    dims = prepare(workload)
    tokens = numbers("tokens", dims["vocabulary"], (dims["batch"], dims["seq"]))
    # Shifting the labels and not the logits saves a copy of the logits.
    following = tf.pad(tokens[:, 1:], ((0, 0), (0, 1)), constant_values=IGNORED)
    return step(
        workload,
        dims,
        network,
        {"input_ids": tokens, "attention_mask": tf.ones_like(tokens)},
        targets=following,
        loss=loss,
        switches=transformer_switches(
            workload,
            dims,
            attention="written out",
            mask="all ones, causal",
            kv_cache="off",
            loss="next-token cross entropy",
        ),
    )
