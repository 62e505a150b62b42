"""What Hugging Face's article of 2019 says; its cells are not published where anybody found them."""

from __future__ import annotations

from roofline.published.claims._claim import Claim
from roofline.published.products import forward
from roofline.published.publication import Publication
from roofline.published.transformers import bert

_TASK = "average of all models, batches and lengths"
_COPIES = "two copies of the article"
_TOLD = "told of the article; its text was not read here in full"
_CELLS = "The times by model, batch and length would decide, and they are not published where we could read them."


def claims(publication: Publication) -> tuple[Claim, ...]:
    """The averages, which were read, and what only the cells could decide."""
    return (
        _averages(publication),
        Claim(
            says="TorchScript makes inference 20 % faster.",
            where=_TOLD,
            arithmetic="None: the averages are in an image.",
            verdict="open",
            why=_CELLS,
            unread=True,
        ),
        Claim(
            says="TorchScript always helps XLNet, and XLM at small inputs only.",
            where=_TOLD,
            arithmetic="None.",
            verdict="open",
            why=_CELLS,
            unread=True,
        ),
        Claim(
            says="XLA makes TensorFlow 1.15 times as fast on the GPU, and takes up to 70 % off small inputs.",
            where=_TOLD,
            arithmetic="None.",
            verdict="open",
            why=f"{_CELLS} It was XLA's auto-clustering, and on the GPU only.",
            unread=True,
        ),
        _distilled(),
        Claim(
            says="PyTorch runs out of memory before TensorFlow does.",
            where=_COPIES,
            arithmetic="None: no copy says at which inputs.",
            verdict="open",
            why=f"{_CELLS} Such entries were dropped, so PyTorch's average is over fewer large inputs.",
            unread=True,
        ),
    )


def _averages(publication: Publication) -> Claim:
    found = {}
    for place, hardware in (("CPU", "n1-standard-32"), ("GPU", "V100 16 GB")):
        slow, fast = (publication.find(_TASK, name, hardware=hardware).seconds for name in _COLUMNS)
        found[place] = (fast or 0.0) / (slow or 1.0)
    return Claim(
        says="TensorFlow is slower than PyTorch on a CPU on average and faster on a GPU; mostly they are alike.",
        where=_COPIES,
        arithmetic=f"TensorFlow takes {found['CPU']:.2f} times as long on the CPU and {found['GPU']:.2f} times on the "
        "GPU.",
        verdict="depends",
        figures=found,
        why=(
            "It is so of these averages. An average of times is ruled by the largest models and inputs, and these are "
            "not over the same entries: what ran out of memory was dropped, which favours PyTorch. Geometric means of "
            "ratios would treat all alike, and cannot be computed without the cells."
        ),
    )


_COLUMNS = ("PyTorch 1.3.0", "TensorFlow 2.0")


def _distilled() -> Claim:
    short, long = (_layers(12, seq) / _layers(6, seq) for seq in (8, 512))
    return Claim(
        says="Distilled models take half the time.",
        where=_TOLD,
        arithmetic=f"By shape: 12 layers of BERT-base ask for {short:.3f} times the FLOPs of 6 at length 8, {long:.3f} "
        "times at 512.",
        verdict="depends",
        figures={"length 8": short, "length 512": long},
        why=(
            "Half of the layers are half of the products, launches and dispatches alike, so half the time follows as "
            f"far as the layers are what takes it. {_CELLS}"
        ),
        unread=True,
    )


def _layers(number: int, seq: int) -> float:
    """Work of a forward pass of BERT-base with so many layers, one sequence [FLOP]."""
    return forward(bert(1, seq, number, hidden=768, heads=12, ffn=3072, classes=2))
