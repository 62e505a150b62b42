"""RoBERTa with a two-class head, random weights, one sequence of full length per sample.

Liu et al. 2019. Size base is roberta-base without its pooler, as the published Keras classes have it: 124,052,736
parameters, and 592,130 in the head. The class in PyTorch has three rows of embeddings more: one token type, and two
positions that no token has. Every token is a word: positions do not depend on the tokens here, and in PyTorch they
would on padding. Attention and its mask are as in `bert`.
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

FIRST_WORD = 2  # lower numbers begin and fill up a sequence


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The published classifier of these dimensions; token numbers and mask (batch, seq) to (batch, classes)."""
    return version.classifier("Roberta", backbone(version, "Roberta", dims), dims["classes"], dims["dropout"])


def build(version: Version, workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of RoBERTa."""
    dims = prepare(version, workload)
    model = network(version, dims)
    shape, draw = (dims["batch"], dims["seq"]), generator()
    return step(
        version,
        workload,
        dims,
        model,
        {
            "token_ids": draw.integers(FIRST_WORD, dims["vocabulary"], size=shape, dtype=np.int32),
            "padding_mask": np.ones(shape, np.int32),
        },
        targets=draw.integers(dims["classes"], size=shape[:1], dtype=np.int32),
        switches=transformer_switches(workload, dims, attention=version.attention(dims["dropout"])),
    )
