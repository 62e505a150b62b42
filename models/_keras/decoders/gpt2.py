"""GPT-2 with its tied language-model head, random weights, full-length sequences.

Radford et al. 2019. Size base is the smallest model, 124,439,808 parameters (the head shares the token table). Where
nothing is generated no keys and values are kept. Every layer makes its causal mask anew and combines it with the
padding mask of ones; attention is as in `bert`. The label of the last token is left out of the loss by a weight of 0,
the others weigh so that the loss is the mean over them, as in PyTorch; the libraries' own preprocessors weigh tokens
too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._keras.generate import generation
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import step
from roofline.models._keras.transformers import backbone
from roofline.models._keras.version import Version
from roofline.models._step import transformer_switches


def network(version: Version, dims: Mapping[str, Any], generates: bool = False) -> Any:
    """GPT2CausalLM; token numbers and mask (batch, seq) to (batch, seq, vocabulary). generates: with `generate`."""
    return version.language_model("GPT2", backbone(version, "GPT2", dims), generates)


def build(version: Version, workload: Workload) -> Step:
    """One forward pass, one training step (next-token cross entropy, AdamW) or one `generate` of GPT-2."""
    dims = prepare(version, workload)
    model = network(version, dims, workload.mode == "generate")
    if workload.mode == "generate":
        return generation(version, workload, dims, model, version.attention(dims["dropout"]))
    tokens = generator().integers(dims["vocabulary"], size=(dims["batch"], dims["seq"]), dtype=np.int32)
    return step(
        version,
        workload,
        dims,
        model,
        {"token_ids": tokens, "padding_mask": np.ones_like(tokens)},
        targets=np.roll(tokens, -1, axis=1),
        weights=following(tokens.shape),
        switches=transformer_switches(
            workload,
            dims,
            attention=version.attention(dims["dropout"]),
            mask="all ones, causal",
            kv_cache="off",
            loss="next-token cross entropy",
        ),
    )


def following(shape: tuple[int, int]) -> np.ndarray:
    """Weights (batch, seq) that make Keras's mean over all tokens one over those that have a next token."""
    weights = np.full(shape, shape[1] / max(1, shape[1] - 1), np.float32)
    weights[:, -1] = 0.0
    return weights
