"""BERT with a two-class head (Hugging Face), random weights, one sequence of full length per sample.

Devlin et al. 2019. Size base has the vocabulary of bert-base-cased and 108,311,810 parameters. As a user of the
tokenizer would, the step passes an attention mask, here of ones: run eagerly, the model looks at it (on a GPU
a synchronisation per step), finds nothing to mask and calls attention without one; traced or compiled, it
cannot look and builds the mask. Token types and positions are the model's own buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import GELU, classifier


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """BertForSequenceClassification of these dimensions; (batch, seq) token numbers to (batch, classes).

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.BertConfig(
        vocab_size=dims["vocabulary"],
        hidden_size=dims["hidden"],
        num_hidden_layers=dims["layers"],
        num_attention_heads=dims["heads"],
        intermediate_size=dims["ffn"],
        hidden_act=GELU[dims["gelu"]],
        max_position_embeddings=dims["positions"],
        type_vocab_size=dims["token_types"],
        hidden_dropout_prob=dims["dropout"],
        attention_probs_dropout_prob=dims["dropout"],
        num_labels=dims["classes"],
        attn_implementation=attention,
    )
    return library.BertForSequenceClassification(config)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of BERT."""
    dims = prepare(workload)
    return classifier(workload, dims, network(dims, workload.options.get("attention")))
