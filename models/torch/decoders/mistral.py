"""Mistral 7B with its language-model head (Hugging Face), random weights, full-length sequences.

Jiang et al. 2023, arXiv 2310.06825. Size base is mistralai/Mistral-7B-v0.1, 7,241,732,096 parameters; its weights take
29 GB in fp32 and 14.5 GB with `--precision bf16`, in which it was published. Four query heads share a key and a value
(grouped-query attention); a token attends to the last 4096; each layer's feed-forward network multiplies SiLU of one
projection with another one; the norms are RMSNorm. Training is LoRA on the query and value projections (`_lora`), as in
the Keras 3 benchmark: all other weights are frozen. The forward pass keeps no keys and values (`use_cache=False`,
against the library's default), as in `gpt2`. The attention mask is as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import language_model, tuned


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """MistralForCausalLM, without LoRA; (batch, seq) token numbers to (batch, seq, vocabulary).

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.MistralConfig(
        vocab_size=dims["vocabulary"],
        hidden_size=dims["hidden"],
        intermediate_size=dims["ffn"],
        num_hidden_layers=dims["layers"],
        num_attention_heads=dims["heads"],
        num_key_value_heads=dims["kv_heads"],
        head_dim=dims["head"],
        max_position_embeddings=dims["positions"],
        rms_norm_eps=1e-5,  # the published model's; the library's default is another
        sliding_window=dims["window"],
        use_cache=False,
        attn_implementation=attention,
    )
    return library.MistralForCausalLM(config)


def build(workload: Workload) -> Step:
    """One forward pass, training step (next-token cross entropy, LoRA, AdamW) or generation of Mistral."""
    dims = prepare(workload)
    return language_model(workload, dims, tuned(workload, dims, network(dims, workload.options.get("attention"))))
