"""Casts: tensors copied into another type."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="precision",
    says="{more} copies tensors into another type.",
    patterns=(Pattern(unlike=True, more=("to_copy|cast|convert|wrapped_convert|convert_element_type",), share="most"),),
    pairs={"torch": "third/mixer-weights-float64"},
    advice={"torch": "cast weights once, outside of the step (model.to(dtype))"},
)
