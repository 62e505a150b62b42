"""CTRL with its tied language-model head (Hugging Face), random weights, full-length sequences.

Keskar et al. 2019. Size base is the published model: 1,637,718,016 parameters, and 246,534 in the bias of the head,
which shares the token table; its weights take 6.6 GB in fp32. Positions are sines and cosines that the model holds, the
feed-forward network has ReLU, and there is no dropout in attention, so that a fused kernel serves training too. The
forward pass keeps no keys and values (`use_cache=False`, against the library's default), as in `gpt2`. The attention
mask is as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import language_model


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """CTRLLMHeadModel; (batch, seq) token numbers to (batch, seq, vocabulary).

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.CTRLConfig(
        vocab_size=dims["vocabulary"],
        n_embd=dims["hidden"],
        n_layer=dims["layers"],
        n_head=dims["heads"],
        dff=dims["ffn"],
        n_positions=dims["positions"],
        embd_pdrop=dims["dropout"],
        resid_pdrop=dims["dropout"],
        use_cache=False,
        attn_implementation=attention,
    )
    model = library.CTRLLMHeadModel(config)
    # The library stores this table again in every step. Of an nn.Buffer, which only later versions make of it, Dynamo
    # (torch 2.13) does not follow that and breaks the graph five times; of the same numbers as a plain tensor it does.
    table = model.transformer.pos_encoding
    if isinstance(table, nn.Buffer):
        model.transformer.register_buffer("pos_encoding", table.detach(), persistent=False)
    return model


def build(workload: Workload) -> Step:
    """One forward pass or one training step (next-token cross entropy, AdamW) of CTRL."""
    dims = prepare(workload)
    return language_model(workload, dims, network(dims, workload.options.get("attention")))
