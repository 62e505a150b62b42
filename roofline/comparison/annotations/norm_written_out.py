"""A norm from its definition, where the other run has one op for it."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

_NORMS = "native_(layer|group|batch)_norm|(cudnn|miopen)_batch_norm|(fused_)?rms_norm|fusedbatchnorm\\w*"

ANNOTATION = Annotation(
    rule="fusion",
    says="{more} computes a norm from means, differences and roots, {less} with one op.",
    patterns=(Pattern(more=("mean|var|var_mean|sum|sub|pow", "r?sqrt"), less=(_NORMS,), share="any"),),
    pairs={"torch": "first/unfused-norm"},
    advice={"torch": "use the op of the framework (torch.nn.functional.layer_norm, group_norm, batch_norm, rms_norm)"},
)
