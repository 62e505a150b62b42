"""Ops one by one, where the other run has one program."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern
from roofline.core.switch import COMPILED_AWAY

ANNOTATION = Annotation(
    rule="jit-not-in-effect",
    says="One run executes its step op by op, the other one as one program.",
    patterns=(
        Pattern(unlike=True, more=("eagerlocalexecute: .*",)),
        Pattern(kind="setting", setting="jit", values=("(.*, )?op by op.*", "compiled by .*|a TensorFlow graph.*")),
    ),
    pairs={
        "jax": "second/jax-decoder-not-jitted",
        "tensorflow": "sixth/gestures-in-parts-train",
        "torch": "fifth/hyper-for-debugging",
    },
    advice={
        "jax": "jit the whole step (jax.jit)",
        "tensorflow": "put the whole step in one tf.function",
        "torch": "compile the step (torch.compile, with a backend that compiles)",
    },
    switch=COMPILED_AWAY,
)
