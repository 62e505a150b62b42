"""DistilBERT with a two-class head (Hugging Face), random weights, one sequence of full length per sample.

Sanh et al. 2019. Size base is distilbert-base-uncased: 66,362,880 parameters, and 592,130 in the head
(768 x 768 + 768 before the activation, 768 x 2 + 2 after it). The attention mask is as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import GELU, classifier


def network(dims: Mapping[str, Any], attention: str | None = None) -> nn.Module:
    """DistilBertForSequenceClassification; (batch, seq) token numbers to (batch, classes).

    attention: the library's name of a form, None for the one that it chooses.
    """
    library = transformers()
    config = library.DistilBertConfig(
        vocab_size=dims["vocabulary"],
        dim=dims["hidden"],
        n_layers=dims["layers"],
        n_heads=dims["heads"],
        hidden_dim=dims["ffn"],
        activation=GELU[dims["gelu"]],
        max_position_embeddings=dims["positions"],
        dropout=dims["dropout"],
        attention_dropout=dims["dropout"],
        seq_classif_dropout=dims["head_dropout"],
        num_labels=dims["classes"],
        attn_implementation=attention,
    )
    return library.DistilBertForSequenceClassification(config)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of DistilBERT."""
    dims = prepare(workload)
    return classifier(workload, dims, network(dims, workload.options.get("attention")))
