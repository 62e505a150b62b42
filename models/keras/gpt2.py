"""GPT-2 with its tied language-model head (keras_hub's GPT2CausalLM), random weights, full-length sequences.

Radford et al. 2019. Size base is the smallest model, 124,439,808 parameters (the head shares the token table). The
forward pass keeps no keys and values. Every layer makes its causal mask anew and combines it with the padding mask
of ones; attention is as in `bert`. The label of the last token is left out of the loss by a weight of 0, the others
weigh so that the loss is the mean over them, as in PyTorch; keras_hub's own preprocessor weighs tokens too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from roofline.core.step import Step, Workload
from roofline.models.keras._step import attention, generator, keras_hub, prepare, set_gelu, step


def network(dims: Mapping[str, Any]) -> keras.Model:
    """GPT2CausalLM; token numbers and mask (batch, seq) to (batch, seq, vocabulary)."""
    library = keras_hub()
    backbone = library.models.GPT2Backbone(
        vocabulary_size=dims["vocabulary"],
        num_layers=dims["layers"],
        num_heads=dims["heads"],
        hidden_dim=dims["hidden"],
        intermediate_dim=dims["ffn"],
        dropout=dims["dropout"],
        max_sequence_length=dims["positions"],
    )
    set_gelu(backbone, dims["gelu"])
    return library.models.GPT2CausalLM(backbone=backbone, preprocessor=None, compile=False)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (next-token cross entropy, AdamW) of GPT-2."""
    dims = prepare(workload)
    model = network(dims)
    tokens = generator().integers(dims["vocabulary"], size=(dims["batch"], dims["seq"]), dtype=np.int32)
    return step(
        workload,
        dims,
        model,
        {"token_ids": tokens, "padding_mask": np.ones_like(tokens)},
        targets=np.roll(tokens, -1, axis=1),
        weights=following(tokens.shape),
        switches={
            "attention": attention(dims["dropout"]),
            "attention mask": "all ones, causal",
            "kv cache": "off",
            "gelu": dims["gelu"],
            "dropout": str(dims["dropout"]) if workload.mode == "train" else "off",
            **({"loss": "next-token cross entropy"} if workload.mode == "train" else {}),
        },
    )


def following(shape: tuple[int, int]) -> np.ndarray:
    """Weights (batch, seq) that make Keras's mean over all tokens one over those that have a next token."""
    weights = np.full(shape, shape[1] / max(1, shape[1] - 1), np.float32)
    weights[:, -1] = 0.0
    return weights
