"""The same ops in another floating type or arithmetic."""

from __future__ import annotations

import re

from roofline.comparison.account.annotation import Annotation, Pattern, Seen, bare_name

_FLOATING = re.compile(r"tf32|bf16|fp\d+|complex\d+")
#: Types that no framework computes in unless it is told to.
_DOUBLE = frozenset(("fp64", "complex128"))


def matches(seen: Seen) -> bool:
    """Whether the run that spends more computes in a type of its own what the other one computes in another."""
    if seen.row.kind not in ("only", "rate"):
        return False
    less = [change for change in seen.row.ops if seen.counts(change)[1] > seen.counts(change)[0]]
    theirs = {(bare_name(change.name), change.type) for change in less if _is_floating(change.type)}
    types = {kind for _, kind in theirs}
    mine = [(bare_name(change.name), change.type) for change in seen.named if _is_floating(change.type)]
    if seen.row.kind == "rate" and types and mine:  # the same work, whatever it is called
        return not types & {kind for _, kind in mine}
    same_op = any(name == other and kind != their_kind for name, kind in mine for other, their_kind in theirs)
    return same_op or any(kind in _DOUBLE and kind not in types for _, kind in mine)


def _is_floating(kind: str | None) -> bool:
    return kind is not None and _FLOATING.fullmatch(kind) is not None


ANNOTATION = Annotation(
    rule="precision",
    says="{more} computes in a floating type, or an arithmetic of it, in which {less} does not.",
    patterns=(Pattern(kind="setting", setting="precision|tf32|data types|switch jax_enable_x64"),),
    matches=matches,
    pairs={
        "torch": "first/float64",
        "jax": "sixth/lru-wide",
        "tensorflow": "fourth/forecast-wide-norm",
    },
    advice={
        "torch": "look for .double(), .to(torch.float64) and tensors made of NumPy's arrays",
        "jax": "look for jax_enable_x64, and astype or NumPy's arrays of float64",
        "tensorflow": "look for tf.cast to tf.float64",
    },
    switch="float32",
)
