"""Attention from products and a softmax, where the other run has one op for it."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

_FUSED = "\\w*(scaled_dot_product|flash|efficient|cudnn)\\w*_attention\\w*|\\w*fmha\\w*"

ANNOTATION = Annotation(
    rule="attention",
    says="{more} computes attention from products and a softmax, {less} with one op.",
    patterns=(
        Pattern(more=("(ba?d?d?b?)?mm|matmul|batchmatmul\\w*|einsum", "softmax"), less=(_FUSED,), share="any"),
        Pattern(kind="setting", setting="attention", values=("written out", "a fused kernel.*")),
    ),
    pairs={"torch": "first/eager-attention"},
    advice={"torch": "use torch.nn.functional.scaled_dot_product_attention"},
    switch="attention",
)
