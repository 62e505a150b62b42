"""One op for each tensor, where the other run has one for all of them."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="optimizer",
    says="{more} goes through tensors one by one, {less} takes all of them in one op.",
    patterns=(
        Pattern(more=("add|sub|mul|div|sqrt|lerp|addcdiv|addcmul|pow",), less=("(fused|foreach)_\\w+",), share="any"),
        Pattern(kind="setting", setting="optimizer kernels"),
    ),
    pairs={"torch": "first/optimizer-loop"},
    advice={"torch": "use fused=True or foreach=True of torch.optim, or torch._foreach_... for an update of one's own"},
    switch="optimizer",
)
