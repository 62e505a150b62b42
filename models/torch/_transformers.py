"""What the models of the transformers library share: inputs, loss and step of a classifier and of a language model.

Every sequence has its full length. As a user of the tokenizer would, the step passes an attention mask, here of ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from roofline.core.step import Step, Workload
from roofline.errors import InputError
from roofline.models._step import transformer_switches
from roofline.models.torch._generate import generation
from roofline.models.torch._lora import add_lora
from roofline.models.torch._step import step

#: The library's names for the forms of GELU.
GELU = {"erf": "gelu", "tanh": "gelu_pytorch_tanh"}
IGNORED = -100  # the label that cross_entropy leaves out


def classifier(workload: Workload, dims: Mapping[str, Any], model: nn.Module, *, first_token: int = 0) -> Step:
    """One forward pass or one training step (cross entropy of one label per sequence, AdamW).

    first_token: the lowest number of a token, where lower ones mean something to the model, such as padding.
    """
    shape = (dims["batch"], dims["seq"])
    inputs = {
        "input_ids": torch.randint(first_token, dims["vocabulary"], shape),
        "attention_mask": torch.ones(shape, dtype=torch.long),
    }
    labels = torch.randint(dims["classes"], shape[:1])
    return step(
        workload,
        dims,
        model,
        inputs,
        targets=labels,
        loss=class_loss,
        switches=transformer_switches(workload, dims, attention=model.config._attn_implementation),
        batches={**inputs, "labels": labels},
    )


def class_loss(output: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    """Cross entropy of the class logits (batch, classes)."""
    return functional.cross_entropy(output["logits"], labels)


def language_model(workload: Workload, dims: Mapping[str, Any], model: nn.Module) -> Step:
    """One forward pass, training step (cross entropy of each next token, AdamW) or generation of a causal model."""
    if workload.mode == "generate":
        return generation(workload, dims, model)
    tokens = torch.randint(dims["vocabulary"], (dims["batch"], dims["seq"]))
    # Shifting the labels and not the logits saves a copy of the logits, as the library's own loss does.
    following = functional.pad(tokens[:, 1:], (0, 1), value=IGNORED)
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    return step(
        workload,
        dims,
        model,
        inputs,
        targets=following,
        loss=next_token_loss,
        switches=transformer_switches(
            workload,
            dims,
            attention=model.config._attn_implementation,
            mask="all ones, causal",
            kv_cache="off",
            loss="next-token cross entropy",
        ),
        batches={**inputs, "labels": tokens},  # which the model shifts itself
    )


def next_token_loss(output: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    """Cross entropy of the logits with the next tokens (batch, seq), already shifted."""
    return functional.cross_entropy(output["logits"].flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


def tuned(workload: Workload, dims: Mapping[str, Any], model: nn.Module) -> nn.Module:
    """`model`; for a training step with LoRA on its query and value projections, and all other weights frozen."""
    if workload.mode == "train":
        add_lora(model, ("q_proj", "v_proj"), dims["lora_rank"], dims["lora_alpha"])
    return model


def refuse_fused_attention(workload: Workload) -> None:
    """Raises InputError where another attention is asked for than the one that the library's class writes out."""
    if workload.options.get("attention", "eager") != "eager":
        raise InputError(f"The transformers library only writes {workload.model}'s attention out: use attention=eager.")
