"""Figures of what Ivanov et al. say of the shares of FLOPs and of the runtime."""

from __future__ import annotations

from roofline.published.implied import implied
from roofline.published.publication import Cell, Publication

_CLASSES = ("tensor contraction", "statistical normalization", "element-wise")


def figures(publication: Publication) -> dict[str, dict[str, float]]:
    """Compute the figures of each claim: sums of the shares [%], and rates relative to that of contractions."""
    flops = {name: _value(publication.find(name, "share of FLOPs")) for name in _CLASSES}
    runtime = {name: _value(publication.find(name, "share of runtime")) for name in _CLASSES}
    layer = implied(publication, publication.find("BERT-large encoder layer, length 512", "PyTorch"))
    if layer.rate is None or layer.share is None:
        raise ValueError("the layer implies no rate")
    contraction, normalisation, pointwise = ((flops[name], runtime[name]) for name in _CLASSES)
    rate = contraction[0] / contraction[1]
    return {
        "shares": {
            "flops": sum(flops.values()),
            "runtime": sum(runtime.values()),
            "tflops": layer.rate / 1e12,
            "share": layer.share,
            "products": layer.share / (contraction[1] / 100),
        },
        "rates": {
            "normalisation": rate / (normalisation[0] / normalisation[1]),
            "pointwise": rate / (pointwise[0] / pointwise[1]),
            "normalisation_work": contraction[0] / normalisation[0],
            "pointwise_work": contraction[0] / pointwise[0],
        },
    }


def _value(cell: Cell) -> float:
    """Return the published value of a cell; ValueError where it has none."""
    if cell.value is None:
        raise ValueError(f"{cell.task}, {cell.column} has no value")
    return cell.value
