"""Launches replayed as one graph, where the other run launches one by one."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern
from roofline.core.switch import LAUNCHED_AWAY

_REPLAYED = ".*replayed as CUDA graphs"

ANNOTATION = Annotation(
    rule="host-bound",
    says="One run replays its launches as graphs, the other one launches kernel by kernel.",
    patterns=(Pattern(kind="setting", setting="jit", values=(_REPLAYED, f"(?!{_REPLAYED}).*")),),
    pairs={
        "torch": "h100/bert-torch-compile-default-infer-b32-bf16 h100/bert-torch-compile-reduce-overhead-infer-b32-bf16"
    },
    advice={"torch": 'replay the step as CUDA graphs (torch.compile with mode="reduce-overhead")'},
    switch=LAUNCHED_AWAY,
)
