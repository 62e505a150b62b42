"""GPT-2 with its tied language-model head (Hugging Face), random weights, full-length sequences.

Radford et al. 2019. Size base is the smallest model, 124,439,808 parameters (the head shares the token table).
Where nothing is generated the forward pass keeps no keys and values (`use_cache=False`, against the library's
default): nobody reads them, and copying them would count as attention. GELU is the library's written-out
tanh form, eight elementwise ops. The attention mask is as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import language_model


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """GPT2LMHeadModel; (batch, seq) token numbers to (batch, seq, vocabulary).

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.GPT2Config(
        vocab_size=dims["vocabulary"],
        n_embd=dims["hidden"],
        n_layer=dims["layers"],
        n_head=dims["heads"],
        n_inner=dims["ffn"],
        n_positions=dims["positions"],
        embd_pdrop=dims["dropout"],
        attn_pdrop=dims["dropout"],
        resid_pdrop=dims["dropout"],
        use_cache=False,
        # The published model ends texts with its last token; a smaller vocabulary has to follow.
        bos_token_id=dims["vocabulary"] - 1,
        eos_token_id=dims["vocabulary"] - 1,
        attn_implementation=attention,
    )
    return library.GPT2LMHeadModel(config)


def build(workload: Workload) -> Step:
    """One forward pass, one training step (next-token cross entropy, AdamW) or one `generate` of GPT-2."""
    dims = prepare(workload)
    return language_model(workload, dims, network(dims, workload.options.get("attention")))
