"""XLM with a two-class head (Hugging Face), random weights, one sequence of full length per sample.

Lample and Conneau 2019. Size base is xlm-mlm-en-2048, 667,088,896 parameters and 4,098 in the head (2048 x 2 + 2); one
language, so that there are no language embeddings. Attention is written out in inference too and always masks; the mask
of ones also multiplies the output of every layer. The library copies keys and values into a cache that nobody reads,
which this class cannot be told to leave out. The step waits for the device once, for the number of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import classifier, refuse_fused_attention

PADDING = 2  # the number of the token that fills short sequences up


def network(dims: Mapping[str, Any]) -> nn.Module:
    """XLMForSequenceClassification; (batch, seq) token numbers to (batch, classes). `ffn` is four times `hidden`."""
    library = transformers()
    config = library.XLMConfig(
        vocab_size=dims["vocabulary"],
        emb_dim=dims["hidden"],
        n_layers=dims["layers"],
        n_heads=dims["heads"],
        max_position_embeddings=dims["positions"],
        dropout=dims["dropout"],
        attention_dropout=dims["dropout"],
        summary_first_dropout=dims["head_dropout"],
        gelu_activation=dims["gelu"] == "erf",  # else ReLU
        embed_init_std=dims["hidden"] ** -0.5,
        pad_token_id=PADDING,
        num_labels=dims["classes"],
    )
    return library.XLMForSequenceClassification(config)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of XLM."""
    refuse_fused_attention(workload)
    dims = prepare(workload)
    return classifier(workload, dims, network(dims), first_token=PADDING + 1)
