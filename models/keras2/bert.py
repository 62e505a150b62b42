"""BERT with a two-class head (KerasNLP's BertClassifier), random weights, one sequence of full length per sample.

Devlin et al. 2019. Size base has the vocabulary of bert-base-cased and 108,311,810 parameters, as in PyTorch. The
published class has the tanh form of GELU, which is size base-tanh; the other sizes have the erf form of the
original and of Hugging Face. The padding mask of ones and the token types are inputs. Keras always applies the
mask, by adding -1e9 where it is 0. Attention is written out (einsum, masked softmax, dropout, einsum).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tf_keras

from roofline.core.step import Step, Workload
from roofline.models.keras2._step import generator, keras_nlp, plain, prepare, set_gelu, step


def network(dims: Mapping[str, Any]) -> tf_keras.Model:
    """BertClassifier of these dimensions; token numbers, types and mask (batch, seq) to (batch, classes)."""
    models = keras_nlp().models
    backbone = models.BertBackbone(
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
    return plain(models.BertClassifier(backbone, dims["classes"], dropout=dims["dropout"]), "bert")


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
            "attention": "written out",
            "attention mask": "all ones",
            "gelu": dims["gelu"],
            "dropout": str(dims["dropout"]) if workload.mode == "train" else "off",
            **({"loss": "cross entropy"} if workload.mode == "train" else {}),
        },
    )
