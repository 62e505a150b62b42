"""BERT with a two-class head, random weights, one sequence of full length per sample.

Devlin et al. 2019. Size base has the vocabulary of bert-base-cased and 108,311,810 parameters, as in PyTorch. The
published class has the tanh form of GELU, which is size base-tanh; the other sizes have the erf form of the
original and of Hugging Face. The padding mask of ones and the token types are inputs, and Keras always applies the
mask.
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
    """The published classifier of these dimensions; token numbers, types and mask (batch, seq) to (batch, classes)."""
    encoder = backbone(version, "Bert", dims, num_segments=dims["token_types"])
    return version.classifier("Bert", encoder, dims["classes"], dims["dropout"])


def build(version: Version, workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of BERT."""
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
            "segment_ids": np.zeros(shape, np.int32),
            "padding_mask": np.ones(shape, np.int32),
        },
        targets=draw.integers(dims["classes"], size=shape[:1], dtype=np.int32),
        switches=transformer_switches(workload, dims, attention=version.attention(dims["dropout"])),
    )
