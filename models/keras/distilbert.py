"""DistilBERT with a two-class head (keras_hub's DistilBertTextClassifier), random weights, full-length sequences.

Sanh et al. 2019. Size base is distilbert-base-uncased: 66,362,880 parameters, and 592,130 in the head, as in
PyTorch. The published class drops out the output of attention, as BERT does, which the original does not: that
rate is set to 0 here. Its GELU is the erf form already. Attention and its mask are as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from roofline.core.step import Step, Workload
from roofline.models.keras._step import attention, generator, keras_hub, prepare, set_gelu, step


def network(dims: Mapping[str, Any]) -> keras.Model:
    """DistilBertTextClassifier; token numbers and mask (batch, seq) to (batch, classes)."""
    library = keras_hub()
    backbone = library.models.DistilBertBackbone(
        vocabulary_size=dims["vocabulary"],
        num_layers=dims["layers"],
        num_heads=dims["heads"],
        hidden_dim=dims["hidden"],
        intermediate_dim=dims["ffn"],
        dropout=dims["dropout"],
        max_sequence_length=dims["positions"],
    )
    set_gelu(backbone, dims["gelu"])
    for layer in backbone.transformer_layers:
        layer._self_attention_dropout.rate = 0.0
    return library.models.DistilBertTextClassifier(
        backbone=backbone, num_classes=dims["classes"], preprocessor=None, dropout=dims["head_dropout"], compile=False
    )


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
            "attention": attention(dims["dropout"]),
            "attention mask": "all ones",
            "gelu": dims["gelu"],
            "dropout": dropout if workload.mode == "train" else "off",
            **({"loss": "cross entropy"} if workload.mode == "train" else {}),
        },
    )
