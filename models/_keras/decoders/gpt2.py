"""GPT-2 with its tied language-model head, random weights, full-length sequences.

Radford et al. 2019. Size base is the smallest model, 124,439,808 parameters (the head shares the token table). Where
nothing is generated no keys and values are kept. Every layer makes its causal mask anew and combines it with the
padding mask of ones; attention is as in `bert`. The label of the last token is left out of the loss by a weight of 0,
the others weigh so that the loss is the mean over them, as in PyTorch; the libraries' own preprocessors weigh tokens
too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from roofline.core.step import Step, Workload
from roofline.models._keras.language_model import language_model
from roofline.models._keras.transformers import backbone
from roofline.models._keras.version import Version


def network(version: Version, dims: Mapping[str, Any], generates: bool = False) -> Any:
    """GPT2CausalLM; token numbers and mask (batch, seq) to (batch, seq, vocabulary). generates: with `generate`."""
    return version.language_model("GPT2", backbone(version, "GPT2", dims), generates)


def build(version: Version, workload: Workload) -> Step:
    """One forward pass, one training step (next-token cross entropy, AdamW) or one `generate` of GPT-2."""
    made = partial(network, generates=workload.mode == "generate")
    return language_model(version, workload, made, lambda _, dims: version.attention(dims["dropout"]))
