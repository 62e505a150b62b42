"""DistilBERT with a two-class head, random weights, full-length sequences.

Sanh et al. 2019. Size base is distilbert-base-uncased: 66,362,880 parameters, and 592,130 in the head, as in
PyTorch. The published class drops out the output of attention, as BERT does, which the original does not: that
rate is set to 0 here. Its GELU is the erf form already. Attention and its mask are as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import step
from roofline.models._keras.transformers import backbone
from roofline.models._keras.version import Version
from roofline.models._step import transformer_switches


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The published classifier of these dimensions; token numbers and mask (batch, seq) to (batch, classes)."""
    encoder = backbone(version, "DistilBert", dims)
    for layer in encoder.transformer_layers:
        layer._self_attention_dropout.rate = 0.0
    return version.classifier("DistilBert", encoder, dims["classes"], dims["head_dropout"])


def build(version: Version, workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of DistilBERT."""
    dims = prepare(version, workload)
    model = network(version, dims)
    shape, draw = (dims["batch"], dims["seq"]), generator()
    return step(
        version,
        workload,
        dims,
        model,
        {
            "token_ids": draw.integers(dims["vocabulary"], size=shape, dtype=np.int32),
            "padding_mask": np.ones(shape, np.int32),
        },
        targets=draw.integers(dims["classes"], size=shape[:1], dtype=np.int32),
        switches=transformer_switches(workload, dims, attention=version.attention(dims["dropout"])),
    )
