"""RoBERTa with a two-class head, random weights, one sequence of full length per sample.

Liu et al. 2019. Size base is roberta-base without its pooler, as the published Keras classes have it: 124,052,736
parameters, and 592,130 in the head. The class in PyTorch has three rows of embeddings more: one token type, and two
positions that no token has. Every token is a word: positions do not depend on the tokens here, and in PyTorch they
would on padding. Attention and its mask are as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from roofline.models._keras.transformers import backbone, classifier
from roofline.models._keras.version import Version

FIRST_WORD = 2  # lower numbers begin and fill up a sequence


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """The published classifier of these dimensions; token numbers and mask (batch, seq) to (batch, classes)."""
    return version.classifier("Roberta", backbone(version, "Roberta", dims), dims["classes"], dims["dropout"])


build = partial(classifier, network, first_token=FIRST_WORD)
