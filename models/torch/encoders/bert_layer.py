"""One encoder layer of BERT-large (Hugging Face's BertLayer), the subject of Ivanov et al.

Data Movement Is All You Need, arXiv 2007.00072: hidden 1024, 16 heads, FFN 4096, dropout 0.1, batch 8, length
512; 12,596,224 parameters. Training takes a given gradient of the output, computes that of the input too, as
in the middle of a model, and ends with AdamW unless `--no-optimizer`: their figure is forward and backward.
Their precision is `--precision fp16`. Attention is the library's default form, not their written-out one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from roofline.core.step import Step, Workload
from roofline.models._step import transformer_switches
from roofline.models.torch._step import prepare, step, transformers


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """A BertLayer without mask; (batch, seq, hidden) to the same shape.

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.BertConfig(
        vocab_size=1,
        max_position_embeddings=1,
        hidden_size=dims["hidden"],
        num_hidden_layers=1,
        num_attention_heads=dims["heads"],
        intermediate_size=dims["ffn"],
        hidden_dropout_prob=dims["dropout"],
        attention_probs_dropout_prob=dims["dropout"],
        attn_implementation=attention,
    )
    # Taken out of a model: a BertLayer built alone has no attention form resolved and would write it out.
    return library.BertModel(config, add_pooling_layer=False).encoder.layer[0]


def build(workload: Workload) -> Step:
    """One forward pass, or forward, backward and AdamW, of the layer."""
    dims = prepare(workload)
    model = network(dims, workload.options.get("attention"))
    shape = (dims["batch"], dims["seq"], dims["hidden"])
    return step(
        workload,
        dims,
        model,
        {"hidden_states": torch.randn(shape)},
        targets=torch.randn(shape),
        differentiable=("hidden_states",),
        switches=transformer_switches(
            workload,
            dims,
            attention=model.attention.self.config._attn_implementation,
            mask="none",
            loss="none: given output gradient",
        ),
    )
