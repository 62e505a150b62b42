"""DistilBERT with a two-class head (Hugging Face), random weights, one sequence of full length per sample.

Sanh et al. 2019. Size base is distilbert-base-uncased: 66,362,880 parameters, and 592,130 in the head
(768 x 768 + 768 before the activation, 768 x 2 + 2 after it). The attention mask is as in `bert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from roofline.core.step import Step, Workload
from roofline.models._step import transformer_switches
from roofline.models.torch._step import prepare, step, transformers

#: The library's names for the forms of GELU.
GELU = {"erf": "gelu", "tanh": "gelu_pytorch_tanh"}


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


def loss(output: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    """Cross entropy of the class logits."""
    return functional.cross_entropy(output["logits"], labels)


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of DistilBERT."""
    dims = prepare(workload)
    model = network(dims, workload.options.get("attention"))
    shape = (dims["batch"], dims["seq"])
    return step(
        workload,
        dims,
        model,
        {
            "input_ids": torch.randint(dims["vocabulary"], shape),
            "attention_mask": torch.ones(shape, dtype=torch.long),
        },
        targets=torch.randint(dims["classes"], shape[:1]),
        loss=loss,
        switches=transformer_switches(workload, dims, attention=model.config._attn_implementation),
    )
