"""RoBERTa with a two-class head (Hugging Face), random weights, one sequence of full length per sample.

Liu et al. 2019. Size base is roberta-base: 124,055,040 parameters in the encoder without a pooler, and 592,130 in the
head (768 x 768 + 768 before tanh, 768 x 2 + 2 after it). BERT's layers with a larger vocabulary; one token type, and
positions that are counted from the tokens that are no padding, in integers, in every step. The attention mask is as in
`bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import GELU, classifier

PADDING = 1  # the number of the token that fills short sequences up; positions start after it


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """RobertaForSequenceClassification of these dimensions; (batch, seq) token numbers to (batch, classes).

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.RobertaConfig(
        vocab_size=dims["vocabulary"],
        hidden_size=dims["hidden"],
        num_hidden_layers=dims["layers"],
        num_attention_heads=dims["heads"],
        intermediate_size=dims["ffn"],
        hidden_act=GELU[dims["gelu"]],
        max_position_embeddings=dims["positions"] + PADDING + 1,  # the first rows are never a token's
        type_vocab_size=dims["token_types"],
        pad_token_id=PADDING,
        hidden_dropout_prob=dims["dropout"],
        attention_probs_dropout_prob=dims["dropout"],
        layer_norm_eps=1e-5,
        num_labels=dims["classes"],
        attn_implementation=attention,
    )
    return library.RobertaForSequenceClassification(config)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of RoBERTa."""
    dims = prepare(workload)
    model = network(dims, workload.options.get("attention"))
    return classifier(workload, dims, model, first_token=PADDING + 1)
