"""Tensors copied as they are, or into another layout."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

#: XLA names a fusion after what it holds: all of it copies.
_FUSION = "(?=.*(copy|transpose))((copy|transpose|bitcast|wrapped|input|loop|fusion)_?)+"

ANNOTATION = Annotation(
    rule="layout",
    says="{more} copies tensors as they are, or into another layout.",
    patterns=(Pattern(unlike=True, more=(f"clone|contiguous|copy|transpose|{_FUSION}",), share="most"),),
    pairs={"torch": "fourth/squeeze-formats"},
    advice={"torch": "look for .contiguous(), .clone() and .to(memory_format=...), and keep one layout"},
)
