"""A step that generates text: the transformers library's own `generate`, greedily, with keys and values kept.

The prompt is read in the phase of prefill, which gives the first new token; each further token is a pass of decode. All
samples get all of their tokens, whatever they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from roofline.core.generate_phases import generate_phases
from roofline.core.step import Step, Workload
from roofline.models._step import generation_switches, transformer_switches
from roofline.models.torch._step import own_step, transformers


def generation(workload: Workload, dims: Mapping[str, Any], model: nn.Module) -> Step:
    """One call of `generate`: `new_tokens` for each of `batch` prompts of `seq` tokens."""
    shape = (dims["batch"], dims["seq"])
    kept = {"do_sample": False, "use_cache": True, "eos_token_id": None, "pad_token_id": 0}
    config = transformers().GenerationConfig(max_new_tokens=dims["new_tokens"], **kept)
    inputs = {
        "input_ids": torch.randint(dims["vocabulary"], shape),
        "attention_mask": torch.ones(shape, dtype=torch.long),
    }

    def called(**arrived: torch.Tensor) -> object:
        with generate_phases(model):
            return model.generate(**arrived, generation_config=config)

    return own_step(
        workload,
        dims,
        model,
        inputs,
        called,
        switches=transformer_switches(
            workload,
            dims,
            attention=model.config._attn_implementation,
            mask="all ones, causal",
        )
        | generation_switches(kv_cache="grows", passes=dims["new_tokens"] - 1),
    )
