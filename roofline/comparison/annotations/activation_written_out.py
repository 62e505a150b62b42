"""An activation from its formula, where the other run has one op for it."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="fusion",
    says="{more} computes an activation from its formula, {less} with one op.",
    patterns=(
        Pattern(more=("erfc?|tanh", "mul"), less=("gelu",), share="any"),
        Pattern(more=("exp|sigmoid", "div|mul"), less=("silu|swish",), share="any"),
        Pattern(more=("log|log1p", "exp|expm1|abs|add"), less=("softplus",), share="any"),
        Pattern(more=("lt|gt|le|ge", "mul|where|index_put"), less=("(leaky_)?relu|elu|prelu\\w*",), share="any"),
    ),
    pairs={"torch": "first/unfused-gelu"},
    advice={"torch": "use the op of the framework (torch.nn.functional.gelu, silu, softplus, leaky_relu)"},
)
