"""A causal language model in JAX: its inputs, its loss, and the step of one that LoRA trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from roofline.core.step import Step, Workload
from roofline.models._step import transformer_switches
from roofline.models.jax._generate import generation
from roofline.models.jax._layers import TRANSFORMER, attention_form
from roofline.models.jax._program import Inputs
from roofline.models.jax._step import prepare, step

IGNORED = -100  # the label that the loss leaves out


def loss(logits: Array, labels: Array) -> Array:
    """Mean cross entropy of the logits with the next tokens (batch, seq), already shifted; some are IGNORED."""
    counted = labels != IGNORED
    entropy = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.where(counted, labels, 0))
    return entropy.mean(where=counted)


def following(inputs: Inputs) -> Array:
    """The next token of each; the last has none.

    Shifting the labels and not the logits saves a copy of the logits, as Hugging Face's own loss does.
    """
    return jnp.pad(inputs["input_ids"][:, 1:], ((0, 0), (0, 1)), constant_values=IGNORED)


def language_model(
    workload: Workload,
    changes: Mapping[str, Any] | None,
    network: Callable[..., nnx.Module],
    kept: Callable[[Mapping[str, Any]], tuple[int, ...]],
) -> Step:
    """One forward pass, training step (cross entropy of each next token, AdamW) or generation of a causal model.

    changes: dimensions to replace. network: `network(dims, make)`, or with LoRA, which it is then trained by,
    `network(dims, make, lora=True)`. kept: from the dimensions to the shape of a token's keys in one layer.
    """
    dims = prepare(workload, changes)
    if workload.mode == "generate":
        form = attention_form(workload, 0.0)
        return generation(workload, dims, network, kept=kept(dims), attention=form, kernel=TRANSFORMER)
    shape, rate = (dims["batch"], dims["seq"]), dims.get("dropout", 0.0)
    tuned = workload.mode == "train" and "lora_rank" in dims
    return step(
        workload,
        dims,
        partial(network, lora=True) if tuned else network,
        kernel=TRANSFORMER,
        inputs=lambda key: {
            "input_ids": jax.random.randint(key, shape, 0, dims["vocabulary"], jnp.int32),
            "attention_mask": jnp.ones(shape, jnp.int32),
        },
        targets=lambda _, inputs: following(inputs),
        loss=loss,
        dropout=rate > 0,
        learned=nnx.LoRAParam if tuned else nnx.Param,
        switches=transformer_switches(
            workload,
            dims,
            attention=attention_form(workload, rate),
            mask="all ones, causal",
            kv_cache="off",
            loss="next-token cross entropy",
        ),
    )
