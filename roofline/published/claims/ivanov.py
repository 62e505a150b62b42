"""What Ivanov et al. say of the share of FLOPs and of the runtime."""

from __future__ import annotations

from roofline.published.claims._claim import Claim
from roofline.published.implied import implied
from roofline.published.publication import Publication

_CLASSES = ("tensor contraction", "statistical normalization", "element-wise")


def claims(publication: Publication) -> tuple[Claim, ...]:
    """The shares, and the rates that follow from them."""
    flops = {name: publication.find(name, "share of FLOPs").value or 0.0 for name in _CLASSES}
    runtime = {name: publication.find(name, "share of runtime").value or 0.0 for name in _CLASSES}
    return _shares(publication, flops, runtime), _rates(flops, runtime)


def _shares(publication: Publication, flops: dict[str, float], runtime: dict[str, float]) -> Claim:
    layer = implied(publication, publication.find("BERT-large encoder layer, length 512", "PyTorch"))
    products, _, _ = _CLASSES
    if layer.rate is None or layer.share is None:
        raise ValueError("the layer implies no rate")
    within = layer.share / (runtime[products] / 100)
    return Claim(
        says="99.8 % of the FLOPs are 61 % of the runtime; normalisation takes 25.5 %, element-wise operators 13.5 %.",
        where="Table 1",
        arithmetic=f"The shares of FLOPs add up to {sum(flops.values()):.1f} %, those of runtime to "
        f"{sum(runtime.values()):.1f} %.",
        verdict="true",
        figures={"flops": sum(flops.values()), "runtime": sum(runtime.values()), "share of roof": layer.share},
        why=(
            f"As slides transcribe the table. The layer in PyTorch implies {layer.rate / 1e12:.1f} TFLOP/s of products "
            f"over its whole time, {100 * layer.share:.0f} % of the V100's FP16 peak; if that run is the one of the "
            f"table, which we do not know, the products themselves reached {100 * within:.0f} %. That memory is the "
            "roof of the other two classes these figures do not show: bytes are not among them."
        ),
    )


def _rates(flops: dict[str, float], runtime: dict[str, float]) -> Claim:
    rates = {name: flops[name] / runtime[name] for name in _CLASSES}
    products, normalisation, pointwise = (rates[name] for name in _CLASSES)
    return Claim(
        says="Normalisation achieves 1/250 of the FLOP/s of contractions, element-wise operators 1/700.",
        where="as quoted of the paper",
        arithmetic=" and ".join(
            f"({flops[_CLASSES[0]]:g} / {runtime[_CLASSES[0]]:g}) / ({flops[name]:g} / {runtime[name]:g}) is "
            f"{products / rates[name]:.0f}"
            for name in _CLASSES[1:]
        )
        + ".",
        verdict="true",
        figures={"normalisation": products / normalisation, "element-wise": products / pointwise},
        why=(
            "They are ratios of rates, not of work, of which normalisation has "
            f"1/{flops[_CLASSES[0]] / flops[_CLASSES[1]]:.0f} and element-wise operators "
            f"1/{flops[_CLASSES[0]] / flops[_CLASSES[2]]:.0f} of that of contractions. How vector work is counted "
            "differs between tools, and so would both factors."
        ),
        unread=True,
    )
