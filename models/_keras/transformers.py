"""The published transformers with the dimensions and the GELU of the geometry, and the step of those that classify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload
from roofline.models._keras.prepare import generator, prepare
from roofline.models._keras.step import step
from roofline.models._keras.version import Version
from roofline.models._step import transformer_switches


def backbone(version: Version, family: str, dims: Mapping[str, Any], **more: Any) -> Any:
    """The published backbone of a family ("Bert"). more: arguments that only this family has."""
    kind = getattr(version.library().models, f"{family}Backbone")
    made = kind(
        vocabulary_size=dims["vocabulary"],
        num_layers=dims["layers"],
        num_heads=dims["heads"],
        hidden_dim=dims["hidden"],
        intermediate_dim=dims["ffn"],
        dropout=dims["dropout"],
        max_sequence_length=dims["positions"],
        **more,
    )
    _set_gelu(version.KERAS, made, dims["gelu"])
    return made


def _set_gelu(keras: ModuleType, backbone: Any, form: str) -> None:
    """Gives the FFN of every layer this GELU, whatever it was published with.

    form: "erf" (exact) or "tanh" (the approximation).
    A dense layer reads its activation whenever it is called, and a model that has not run yet has not been traced.
    """
    forms: dict[str, Callable[[Any], Any]] = {
        "erf": keras.activations.gelu,
        "tanh": partial(keras.activations.gelu, approximate=True),
    }
    for layer in backbone.transformer_layers:
        layer.activation = forms[form]
        layer._feedforward_intermediate_dense.activation = layer.activation


def classifier(
    network: Callable[[Version, Mapping[str, Any]], Any],
    version: Version,
    workload: Workload,
    *,
    first_token: int = 0,
    token_types: bool = False,
) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of a transformer that classifies sequences.

    first_token: the lowest number of a token, where lower ones mean something to the model, such as padding.
    token_types: whether they are an input, here all of type 0.
    """
    dims = prepare(version, workload)
    model = network(version, dims)
    shape, draw = (dims["batch"], dims["seq"]), generator()
    return step(
        version,
        workload,
        dims,
        model,
        {
            "token_ids": draw.integers(first_token, dims["vocabulary"], size=shape, dtype=np.int32),
            **({"segment_ids": np.zeros(shape, np.int32)} if token_types else {}),
            "padding_mask": np.ones(shape, np.int32),
        },
        targets=draw.integers(dims["classes"], size=shape[:1], dtype=np.int32),
        switches=transformer_switches(workload, dims, attention=version.attention(dims["dropout"])),
    )
