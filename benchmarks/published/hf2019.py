"""Figures of the claims in Hugging Face's article of 2019, whose single times we found nowhere."""

from __future__ import annotations

from forms.products import forward
from forms.transformers import bert

from roofline.published import presets
from roofline.published.publication import Publication

_TASK = "average of all models, batches and lengths"


def figures(publication: Publication) -> dict[str, dict[str, float]]:
    """Compute the figures of each claim: ratios of the averages, and what follows from shapes."""
    lengths = [row.seqs for row in presets.load("hf2019").row]
    return {
        "averages": {
            "cpu": _tensorflow_against_pytorch(publication, "n1-standard-32"),
            "gpu": _tensorflow_against_pytorch(publication, "V100 16 GB"),
        },
        "distilled": {f"length_{seq}": _flops(12, seq) / _flops(6, seq) for seq in (8, 512)},
        "memory": {
            "models": len(lengths),
            "longest": sum(1024 in seqs for seqs in lengths),
            # batch 8, 12 heads, 1024 x 1024 scores of 4 bytes, in each of 12 layers
            "scores_gb": 12 * 8 * 12 * 1024**2 * 4 / 1e9,
        },
    }


def _tensorflow_against_pytorch(publication: Publication, hardware: str) -> float:
    pytorch, tensorflow = (
        publication.find(_TASK, column, hardware=hardware).seconds for column in ("PyTorch 1.3.0", "TensorFlow 2.0")
    )
    if pytorch is None or tensorflow is None:
        raise ValueError(f"an average on {hardware} is no time")
    return tensorflow / pytorch


def _flops(layers: int, seq: int) -> float:
    """Count a forward pass of BERT-base with that many layers, one sequence [FLOP]."""
    return forward(bert(1, seq, layers, hidden=768, heads=12, ffn=3072, classes=2))
