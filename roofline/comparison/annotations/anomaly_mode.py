"""PyTorch's anomaly mode, which checks each gradient and keeps each op's traceback."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="host-bound",
    says="Autograd runs in anomaly mode in one run, which checks each gradient.",
    patterns=(
        Pattern(kind="setting", setting="switch detect_anomaly"),
        Pattern(phase="backward", more=("isnan", "any"), share="most"),
    ),
)
