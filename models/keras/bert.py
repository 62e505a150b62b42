"""BERT with a two-class head (keras_hub's BertTextClassifier), random weights, one sequence of full length per sample.

Devlin et al. 2019. Size base has the vocabulary of bert-base-cased and 108,311,810 parameters, as in PyTorch. The
published class has the tanh form of GELU, which is size base-tanh; the other sizes have the erf form of the
original and of Hugging Face. The padding mask of ones and the token types are inputs. Keras always applies the
mask, by a select before and one after the softmax. Attention is written out (einsum, masked softmax, dropout,
einsum): Keras calls a fused kernel only where the model was made without dropout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from roofline.core.step import Step, Workload
from roofline.models.keras._step import attention, generator, keras_hub, prepare, set_gelu, step


def network(dims: Mapping[str, Any]) -> keras.Model:
    """BertTextClassifier of these dimensions; token numbers, types and mask (batch, seq) to (batch, classes)."""
    library = keras_hub()
    backbone = library.models.BertBackbone(
        vocabulary_size=dims["vocabulary"],
        num_layers=dims["layers"],
        num_heads=dims["heads"],
        hidden_dim=dims["hidden"],
        intermediate_dim=dims["ffn"],
        dropout=dims["dropout"],
        max_sequence_length=dims["positions"],
        num_segments=dims["token_types"],
    )
    set_gelu(backbone, dims["gelu"])
    return library.models.BertTextClassifier(
        backbone=backbone, num_classes=dims["classes"], preprocessor=None, dropout=dims["dropout"], compile=False
    )


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of BERT."""
    dims = prepare(workload)
    model = network(dims)
    shape, draw = (dims["batch"], dims["seq"]), generator()
    return step(
        workload,
        dims,
        model,
        {
            "token_ids": draw.integers(dims["vocabulary"], size=shape, dtype=np.int32),
            "segment_ids": np.zeros(shape, np.int32),
            "padding_mask": np.ones(shape, np.int32),
        },
        targets=draw.integers(dims["classes"], size=shape[:1], dtype=np.int32),
        switches={
            "attention": attention(dims["dropout"]),
            "attention mask": "all ones",
            "gelu": dims["gelu"],
            "dropout": str(dims["dropout"]) if workload.mode == "train" else "off",
            **({"loss": "cross entropy"} if workload.mode == "train" else {}),
        },
    )
