"""A loss from its formula, where the other run has one op for it."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

_ENTROPIES = "nll_loss\\w*|\\w*cross_?entropy\\w*"
_DISTANCES = "(mse|l1|smooth_l1|huber)_loss\\w*"

ANNOTATION = Annotation(
    rule="fusion",
    says="{more} computes a loss from its formula, {less} with one op.",
    patterns=(
        Pattern(more=("log|log1p",), less=(_ENTROPIES,), share="any"),
        Pattern(more=("pow|square|abs",), less=(_DISTANCES,), share="any"),
    ),
    pairs={"torch": "third/mixer-loss-written-train"},
    advice={
        "torch": "use the op of the framework (torch.nn.functional.cross_entropy, binary_cross_entropy_with_logits)"
    },
)
