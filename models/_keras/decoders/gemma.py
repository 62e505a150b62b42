"""Gemma 7B with its tied language-model head, random weights, full-length sequences.

Gemma Team 2024, arXiv 2403.08295. Size base is google/gemma-7b, 8,537,680,896 parameters (the head shares the token
table). Attention is written out where keras_hub has no fused kernel for the device, as on every CPU. Training is LoRA
as in the Keras 3 benchmark (`_keras.language_model`). Labels, mask and cache are as in `gpt2`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofline.core.step import Step, Workload
from roofline.models._keras.language_model import language_model
from roofline.models._keras.version import Version


def network(version: Version, dims: Mapping[str, Any]) -> Any:
    """GemmaCausalLM, without LoRA; token numbers and mask (batch, seq) to (batch, seq, vocabulary)."""
    backbone = version.library().models.GemmaBackbone(
        vocabulary_size=dims["vocabulary"],
        num_layers=dims["layers"],
        num_query_heads=dims["heads"],
        num_key_value_heads=dims["kv_heads"],
        hidden_dim=dims["hidden"],
        intermediate_dim=2 * dims["ffn"],  # the library means both of the projections that are multiplied
        head_dim=dims["head"],
        layer_norm_epsilon=1e-6,
    )
    return version.language_model("Gemma", backbone)


def build(version: Version, workload: Workload) -> Step:
    """One forward pass, training step (next-token cross entropy, LoRA, AdamW) or generation of Gemma."""

    def attention(model: Any, dims: Mapping[str, Any]) -> str:
        fused = model.backbone.transformer_layers[0].attention._use_fused_attention_op()
        return version.attention(0.0) if fused else "written out"

    return language_model(version, workload, network, attention)
