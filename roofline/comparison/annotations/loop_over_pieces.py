"""A loop of the framework over pieces, which are put together."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

#: What a loop's results are collected with, in TensorFlow and by XLA.
_COLLECT = "tensorliststack|\\w*dynamic-update-slice\\w*"

ANNOTATION = Annotation(
    rule="tiny-ops",
    says="{more} computes pieces in a loop and puts them together, {less} does not.",
    patterns=(Pattern(loop=True, more=(_COLLECT,), nowhere=_COLLECT, share="any"),),
    pairs={"jax": "second/jax-decoder-loop-over-samples", "tensorflow": "fourth/forecast-mapped"},
    advice={
        "jax": "compute on the whole batch (jax.vmap) in the place of lax.map or lax.scan",
        "tensorflow": "compute on the whole batch in the place of tf.map_fn or a loop",
    },
)
