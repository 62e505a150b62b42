"""Mistral 7B with its language-model head, random weights, full-length sequences.

Jiang et al. 2023, arXiv 2310.06825. Size base is mistralai/Mistral-7B-v0.1, 7,241,732,096 parameters. Keys and values
are repeated for each of the query heads that share them; attention is as in `bert`. Every layer makes its causal mask,
and that of the window, anew. Training is LoRA as in the Keras 3 benchmark (`_keras.language_model`). Labels and cache
are as in `gpt2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline.core.step import Step, Workload
from roofline.models._keras.language_model import language_model
from roofline.models._keras.version import Version


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """MistralCausalLM, without LoRA; token numbers and mask (batch, seq) to (batch, seq, vocabulary)."""
    backbone = version.library().models.MistralBackbone(
        vocabulary_size=dims["vocabulary"],
        num_layers=dims["layers"],
        num_query_heads=dims["heads"],
        num_key_value_heads=dims["kv_heads"],
        hidden_dim=dims["hidden"],
        intermediate_dim=dims["ffn"],
        head_dim=dims["head"],
        sliding_window=dims["window"],
        layer_norm_epsilon=1e-5,
    )
    return version.language_model("Mistral", backbone)


def build(version: Version, workload: Workload) -> Step:
    """One forward pass, training step (next-token cross entropy, LoRA, AdamW) or generation of Mistral."""
    return language_model(version, workload, network, lambda model, dims: version.attention(0.0))
