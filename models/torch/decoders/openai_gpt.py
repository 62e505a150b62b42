"""OpenAI GPT with its tied language-model head (Hugging Face), random weights, full-length sequences.

Radford et al. 2018. Size base is openai-gpt, 116,534,784 parameters (the head shares the token table). Normalisation
comes after attention and feed-forward network. Attention is written out in inference too: the scores of later tokens
are replaced by arithmetic (times the triangle, less 10,000 beside it), and the mask of ones is added to them, in every
layer. GELU is the library's written-out tanh form, as in `gpt2`. No keys and values are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import language_model, refuse_fused_attention

#: The library's names for the forms of GELU, of which this class has one.
GELU = {"tanh": "gelu"}


def network(dims: Mapping[str, Any]) -> nn.Module:
    """OpenAIGPTLMHeadModel; (batch, seq) token numbers to (batch, seq, vocabulary). `ffn` is four times `hidden`."""
    library = transformers()
    config = library.OpenAIGPTConfig(
        vocab_size=dims["vocabulary"],
        n_embd=dims["hidden"],
        n_layer=dims["layers"],
        n_head=dims["heads"],
        n_positions=dims["positions"],
        afn=GELU[dims["gelu"]],
        embd_pdrop=dims["dropout"],
        attn_pdrop=dims["dropout"],
        resid_pdrop=dims["dropout"],
    )
    return library.OpenAIGPTLMHeadModel(config)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (next-token cross entropy, AdamW) of OpenAI GPT."""
    refuse_fused_attention(workload)
    dims = prepare(workload)
    return language_model(workload, dims, network(dims))
