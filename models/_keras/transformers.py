"""The backbones of the published transformers, with the dimensions and the GELU of the geometry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from roofline.models._keras.version import Version


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
