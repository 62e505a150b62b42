"""BERT with a two-class head, random weights, one sequence of full length per sample.

Devlin et al. 2019. Size base has the vocabulary of bert-base-cased and 108,311,810 parameters, as in PyTorch. The
published class has the tanh form of GELU, which is size base-tanh; the other sizes have the erf form of the
original and of Hugging Face. The padding mask of ones and the token types are inputs, and Keras always applies the
mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from roofline.models._keras.transformers import backbone, classifier
from roofline.models._keras.version import Version


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The published classifier of these dimensions; token numbers, types and mask (batch, seq) to (batch, classes)."""
    encoder = backbone(version, "Bert", dims, num_segments=dims["token_types"])
    return version.classifier("Bert", encoder, dims["classes"], dims["dropout"])


build = partial(classifier, network, token_types=True)
