"""DistilBERT with a two-class head (KerasNLP's DistilBertClassifier), random weights, full-length sequences.

Sanh et al. 2019. Size base is distilbert-base-uncased: 66,362,880 parameters, and 592,130 in the head, as in
PyTorch. The published class drops out the output of attention, as BERT does, which the original does not: that
rate is set to 0 here. Its GELU is the erf form already. Attention and its mask are as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tf_keras

from roofline.core.step import Step, Workload
from roofline.models.keras2._step import generator, keras_nlp, plain, prepare, set_gelu, step


def network(dims: Mapping[str, Any]) -> tf_keras.Model:
    """DistilBertClassifier; token numbers and mask (batch, seq) to (batch, classes)."""
    models = keras_nlp().models
    backbone = models.DistilBertBackbone(
        vocabulary_size=dims["vocabulary"],
        num_layers=dims["layers"],
        num_heads=dims["heads"],
        hidden_dim=dims["hidden"],
        intermediate_dim=dims["ffn"],
        dropout=dims["dropout"],
        max_sequence_length=dims["positions"],
    )
    set_gelu(backbone, dims["gelu"])
    for number in range(dims["layers"]):
        backbone.get_layer(f"transformer_layer_{number}")._self_attention_dropout.rate = 0.0
    task = models.DistilBertClassifier(backbone, dims["classes"], dropout=dims["head_dropout"])
    return plain(task, "distilbert")


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of DistilBERT."""
    dims = prepare(workload)
    model = network(dims)
    shape, draw = (dims["batch"], dims["seq"]), generator()
    dropout = f"{dims['dropout']}, {dims['head_dropout']} in the head"
    return step(
        workload,
        dims,
        model,
        {
            "token_ids": draw.integers(dims["vocabulary"], size=shape, dtype=np.int32),
            "padding_mask": np.ones(shape, np.int32),
        },
        targets=draw.integers(dims["classes"], size=shape[:1], dtype=np.int32),
        switches={
            "attention": "written out",
            "attention mask": "all ones",
            "gelu": dims["gelu"],
            "dropout": dropout if workload.mode == "train" else "off",
            **({"loss": "cross entropy"} if workload.mode == "train" else {}),
        },
    )
