"""Gemma 7B with its tied language-model head (Hugging Face), random weights, full-length sequences.

Gemma Team 2024, arXiv 2403.08295. Size base is google/gemma-7b, 8,537,680,896 parameters (the head shares the token
table); its weights take 34 GB in fp32 and 17 GB with `--precision bf16`, in which it was published. A head is 256 wide,
so attention is wider than the hidden states; each layer's feed-forward network multiplies GELU of one projection with
another one; the norms are RMSNorm and multiply with 1 + weight. Training is LoRA on the query and value projections
(`_lora`), as in the Keras 3 benchmark: all other weights are frozen. The forward pass keeps no keys and values
(`use_cache=False`, against the library's default), as in `gpt2`. The attention mask is as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import GELU, language_model, tuned


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """GemmaForCausalLM, without LoRA; (batch, seq) token numbers to (batch, seq, vocabulary).

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.GemmaConfig(
        vocab_size=dims["vocabulary"],
        hidden_size=dims["hidden"],
        intermediate_size=dims["ffn"],
        num_hidden_layers=dims["layers"],
        num_attention_heads=dims["heads"],
        num_key_value_heads=dims["kv_heads"],
        head_dim=dims["head"],
        hidden_act=GELU[dims["gelu"]],
        max_position_embeddings=dims["positions"],
        rms_norm_eps=1e-6,
        pad_token_id=None,  # every token is one, and none has a gradient of 0 for that
        use_cache=False,
        attn_implementation=attention,
    )
    return library.GemmaForCausalLM(config)


def build(workload: Workload) -> Step:
    """One forward pass, training step (next-token cross entropy, LoRA, AdamW) or generation of Gemma."""
    dims = prepare(workload)
    return language_model(workload, dims, tuned(workload, dims, network(dims, workload.options.get("attention"))))
