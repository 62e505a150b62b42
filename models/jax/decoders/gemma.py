"""Gemma 7B with its tied language-model head (flax nnx), random weights, full-length sequences.

Gemma Team 2024, arXiv 2403.08295. Size base is google/gemma-7b, 8,537,680,896 parameters (the head shares the token
table). Layers and names are those of Hugging Face's GemmaForCausalLM. Training is LoRA on the query and value
projections, as in `models/torch/decoders/gemma.py`. Where nothing is generated no keys and values are kept; the mask
is as in `gpt2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flax import nnx

from roofline.core.step import Step, Workload
from roofline.models.jax._causal import language_model
from roofline.models.jax._layers import Make, gelu
from roofline.models.jax._rotary import Kind, RotaryLM, kept


def network(dims: Mapping[str, Any], make: Make, *, lora: bool = False) -> nnx.Module:
    """GemmaForCausalLM; (batch, seq) token numbers to (batch, seq, vocabulary)."""
    kind = Kind(
        activation=gelu(dims["gelu"]), epsilon=1e-6, norm_from=1, embedding_scale=dims["hidden"] ** 0.5, lora=lora
    )
    return RotaryLM(dims, kind, make, tied=True)


def build(workload: Workload, changes: Mapping[str, Any] | None = None) -> Step:
    """One forward pass, training step (next-token cross entropy, LoRA, AdamW) or generation of Gemma.

    changes: of dimensions.
    """
    return language_model(workload, changes, network, kept)
