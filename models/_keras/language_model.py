"""A causal language model of keras_hub or KerasNLP; where the geometry asks for LoRA, trained as `enable_lora` does it.

That is not LoRA as in PyTorch and JAX (`models/torch/_lora.py`): a projection's kernel has an axis for the heads, and
Keras factorises the last two axes alone, so that one of the factors is there once for each head; it adds the product
of the factors to the kernel in every step, where the others multiply the input with one factor after the other; its
alpha is the rank; and the factors are float32 also with `--precision bf16`. Gemma 7B so learns 11,067,392 numbers and
not 1,605,632, Mistral 7B 21,004,288 and not 1,703,936.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._keras.generate import generation
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import step
from roofline.models._keras.version import Version
from roofline.models._step import transformer_switches


def language_model(
    version: Version,
    workload: Workload,
    network: Callable[[Version, Mapping[str, Any]], Any],
    attention: Callable[[Any, Mapping[str, Any]], str],
) -> Step:
    """One forward pass, one training step (cross entropy of each next token, AdamW) or one `generate`.

    network: `network(version, dims)`, a CausalLM on a backbone. attention: the form that the made model computes it in,
    from the model and the dimensions.
    """
    dims = prepare(version, workload)
    model, lora = network(version, dims), {}
    if workload.mode == "generate":
        return generation(version, workload, dims, model, attention(model, dims))
    if workload.mode == "train" and "lora_rank" in dims:
        model.backbone.enable_lora(rank=dims["lora_rank"])
        rank = dims["lora_rank"]
        lora = {"lora": f"rank {rank}, alpha {rank}, query and value, by head, added to the kernels"}
    tokens = generator().integers(dims["vocabulary"], size=(dims["batch"], dims["seq"]), dtype=np.int32)
    return step(
        version,
        workload,
        dims,
        model,
        {"token_ids": tokens, "padding_mask": np.ones_like(tokens)},
        targets=np.roll(tokens, -1, axis=1),
        weights=following(tokens.shape),
        switches={
            **transformer_switches(
                workload,
                dims,
                attention=attention(model, dims),
                mask="all ones, causal",
                kv_cache="off",
                loss="next-token cross entropy",
            ),
            **lora,
        },
    )


def following(shape: tuple[int, int]) -> np.ndarray:
    """Weights (batch, seq) that make Keras's mean over all tokens one over those that have a next token."""
    weights = np.full(shape, shape[1] / max(1, shape[1] - 1), np.float32)
    weights[:, -1] = 0.0
    return weights
