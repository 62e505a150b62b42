"""The line of one cell in its table, by column."""

from __future__ import annotations

from roofline import units
from roofline.analysis.analysis import Analysis


def row(analysis: Analysis) -> dict[str, str]:
    """The cells of the line, as they are written. GFLOP are model FLOPs of contractions."""
    phases, blocks, coverage = analysis.by("phase"), analysis.by("block"), analysis.coverage
    lost = sum(total.seconds for name, total in blocks.items() if name in ("other", "(no op)", ""))

    def model(*names: str) -> str:
        there = [phases[name].model_flops for name in names if name in phases]
        return f"{sum(there) / 1e9:.6g}" if there else ""

    ratios = [f"{name} {total.flops / total.model_flops:.4g}" for name, total in phases.items() if total.model_flops]
    return {
        "ms": f"{analysis.wall * 1e3:.4g}",
        "parameters": "" if analysis.profile.parameters is None else f"{analysis.profile.parameters:,}",
        "forward GFLOP": model("forward", "prefill", "decode"),
        "backward GFLOP": model("backward"),
        "executed / model": ", ".join(ratios),
        "FLOPs known": _share(coverage["flops"]),
        "unknown work": ", ".join(f"`{name}`" for name in _unknown(analysis)),
        "bytes known": _share(coverage["bytes"]),
        "joined": _share(coverage["time"]),
        "placed": _share(1 - lost / analysis.busy if analysis.busy else None),
        "above": str(analysis.above_ceiling),
        "flags": ", ".join(analysis.flags),
    }


def _unknown(analysis: Analysis) -> list[str]:
    """The ops that ran and whose FLOPs are not known, by name."""
    signatures = analysis.profile.signatures
    used = {number for op in analysis.profile.ops for number in (op.constituents or (op.signature,))}
    return sorted({signatures[number].name for number in used if not signatures[number].cost.flops_known})


def _share(value: float | None) -> str:
    return "" if value is None else units.percent(value)
