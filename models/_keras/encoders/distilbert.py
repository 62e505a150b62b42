"""DistilBERT with a two-class head, random weights, full-length sequences.

Sanh et al. 2019. Size base is distilbert-base-uncased: 66,362,880 parameters, and 592,130 in the head, as in
PyTorch. The published class drops out the output of attention, as BERT does, which the original does not: that
rate is set to 0 here. Its GELU is the erf form already. Attention and its mask are as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from roofline.models._keras.transformers import backbone, classifier
from roofline.models._keras.version import Version


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The published classifier of these dimensions; token numbers and mask (batch, seq) to (batch, classes)."""
    encoder = backbone(version, "DistilBert", dims)
    for layer in encoder.transformer_layers:
        layer._self_attention_dropout.rate = 0.0
    return version.classifier("DistilBert", encoder, dims["classes"], dims["head_dropout"])


build = partial(classifier, network)
