"""Ops of the forward pass, again in the backward pass."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

#: What no derivative of PyTorch's calls.
_FORWARD = (
    "addmm|convolution|embedding|silu|gelu|elu|leaky_relu|softplus|native_(layer|group|batch)_norm|"
    "\\w*_attention(_for_cpu)?|(log_)?softmax"
)

ANNOTATION = Annotation(
    rule="recomputation",
    says="{more} executes ops of the forward pass again in the backward pass, {less} does not.",
    patterns=(Pattern(phase="backward", more=(_FORWARD,), absent=".*", share="any"),),
    pairs={"torch": "first/recomputation"},
    advice={"torch": "turn checkpointing off where the memory suffices"},
)
