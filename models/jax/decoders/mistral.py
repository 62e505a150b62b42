"""Mistral 7B with its language-model head (flax nnx), random weights, full-length sequences.

Jiang et al. 2023, arXiv 2310.06825. Size base is mistralai/Mistral-7B-v0.1, 7,241,732,096 parameters. Layers and
names are those of Hugging Face's MistralForCausalLM. Training is LoRA on the query and value projections, as in
`models/torch/decoders/mistral.py`. Where nothing is generated no keys and values are kept; the mask is as in `gpt2`,
and where sequences are longer than the window of attention, it hides what lies before that too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from flax import nnx

from roofline.core.step import Step, Workload
from roofline.models.jax._causal import language_model
from roofline.models.jax._layers import Make
from roofline.models.jax._rotary import Kind, RotaryLM, kept


def network(dims: Mapping[str, Any], make: Make, *, lora: bool = False) -> nnx.Module:
    """MistralForCausalLM; (batch, seq) token numbers to (batch, seq, vocabulary)."""
    kind = Kind(activation=jax.nn.silu, epsilon=1e-5, norm_from=0, embedding_scale=None, lora=lora)
    return RotaryLM(dims, kind, make, tied=False)


def build(workload: Workload, changes: Mapping[str, Any] | None = None) -> Step:
    """One forward pass, training step (next-token cross entropy, LoRA, AdamW) or generation of Mistral.

    changes: of dimensions.
    """
    return language_model(workload, changes, network, kept)
