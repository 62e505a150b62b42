"""Figures of the claims in the post on SimpleChains.jl."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from roofline import devices
from roofline.published.publication import Publication

_MLP, _LENET, _ACCURACY = "MLP, 10,000 epochs", "LeNet5, 10 epochs", "LeNet5, accuracy on the test images"
#: Of the MLP: every step has all samples.
_STEPS = 10_000
_I9, _EPYC, _LAPTOP, _RYZEN, _SIX = "i9-10980XE", "EPYC 7513", "i7-1165G7", "Ryzen 9 5950X", "CPU of 6 cores"
_JAX = "JAX (equinox)"


class _Table:
    """Times and accuracies by column and hardware."""

    def __init__(self, publication: Publication) -> None:
        self.publication = publication

    def seconds(self, task: str, column: str, hardware: str) -> tuple[float, ...]:
        """List the times of all runs [s], without those that also compiled."""
        return tuple(
            cell.seconds
            for cell in self.publication.cells
            if (cell.task, cell.column, cell.hardware) == (task, column, hardware)
            and cell.seconds is not None
            and "compile" not in cell.note
        )

    def accuracy(self, column: str, hardware: str, run: int = 2) -> float:
        """Find the accuracy after `run` times ten epochs [%]."""
        value = self.publication.find(_ACCURACY, column, hardware=hardware, run=str(run)).value
        if value is None:
            raise ValueError(f"{column} on {hardware} has no accuracy")
        return value

    def flops(self, task: str) -> float:
        """Count the work of a task [FLOP]."""
        cell = next(cell for cell in self.publication.cells if cell.task == task)
        return self.publication.work(self.publication.row(cell).work, cell.batch).flops

    def ratios(self, task: str, slow: tuple[str, str], fast: tuple[str, str]) -> list[float]:
        """Divide every run of a column and hardware by every run of another one."""
        return [a / b for a, b in product(self.seconds(task, *slow), self.seconds(task, *fast))]


def figures(publication: Publication) -> dict[str, dict[str, float]]:
    """Compute the figures of each claim: ratios of times, times in the unit of their name, accuracies in percent."""
    table = _Table(publication)
    return {**_mlp(table), **_lenet5(table), "accuracy": _accuracies(table)}


def _mlp(table: _Table) -> dict[str, dict[str, float]]:
    best = {
        (column, place): min(table.seconds(_MLP, column, place))
        for column, place in product(("PyTorch", "SimpleChains"), (_I9, _EPYC))
    } | {
        (column, place): min(table.seconds(_MLP, column, place))
        for column, place in product((_JAX, "SimpleChains"), (_RYZEN, _I9, _SIX))
    }
    on_i9, on_epyc = (table.ratios(_MLP, ("PyTorch", place), ("SimpleChains", place)) for place in (_I9, _EPYC))
    jax = {}
    for name, place in (("ryzen", _RYZEN), ("i9", _I9), ("six", _SIX)):
        ratios = table.ratios(_MLP, (_JAX, place), ("SimpleChains", place))
        jax |= {f"{name}_least": min(ratios), f"{name}_most": max(ratios)}
    return {
        "mlp-i9": {
            **_span(on_i9),
            "pytorch_ms": 1e3 * best["PyTorch", _I9] / _STEPS,
            "simplechains_us": 1e6 * best["SimpleChains", _I9] / _STEPS,
            "mflop": table.flops(_MLP) / _STEPS / 1e6,
            "at_most": 1 / min(on_i9),
        },
        "mlp-epyc": {
            **_span(on_epyc),
            "pytorch": best["PyTorch", _EPYC] / best["PyTorch", _I9],
            "simplechains": best["SimpleChains", _EPYC] / best["SimpleChains", _I9],
        },
        "jax": {
            **jax,
            "jax_slower": best[_JAX, _SIX] / best[_JAX, _I9],
            "simplechains_slower": best["SimpleChains", _SIX] / best["SimpleChains", _I9],
        },
    }


def _lenet5(table: _Table) -> dict[str, dict[str, float]]:
    def against(slow: tuple[str, str], hardware: str) -> list[float]:
        return table.ratios(_LENET, slow, ("SimpleChains", hardware))

    a100 = min(table.seconds(_LENET, "PyTorch", "A100"))
    ceiling = devices.load(table.publication.devices["A100"]).rate("matrix.fp32")
    if ceiling is None:
        raise ValueError("an A100 has no ceiling in IEEE FP32")
    flops = table.flops(_LENET)
    i9, epyc = against(("PyTorch", _I9), _I9), against(("PyTorch", _EPYC), _EPYC)
    flux_a100, flux_v100 = against(("Flux", "A100"), _I9), against(("Flux", "V100"), _I9)
    others = [table.seconds(_LENET, column, place) for column in ("PyTorch", "Flux") for place in (_I9, _EPYC)]
    (laptop,) = table.seconds(_LENET, "SimpleChains", _LAPTOP)
    v100, on_a100 = against(("PyTorch", "V100"), _LAPTOP), against(("PyTorch", "A100"), _LAPTOP)
    return {
        "lenet5": {"i9_least": min(i9), "i9_most": max(i9), "epyc_least": min(epyc), "epyc_most": max(epyc)},
        "gpu": {
            "gflop": flops / 1e9,
            "seconds": a100,
            "gflops": flops / a100 / 1e9,
            "share": flops / a100 / ceiling,
            "flux": a100 / min(table.seconds(_LENET, "Flux", "A100")),
        },
        "flux-first": {"least": min(flux_a100) - 1, "most": max(flux_a100) - 1},
        "flux-today": {
            "a100_least": min(flux_a100) - 1,
            "a100_most": max(flux_a100) - 1,
            "v100_least": min(flux_v100) - 1,
            "v100_most": max(flux_v100) - 1,
        },
        "laptop": {
            "here": laptop,
            "cpu": min(min(times) for times in others),
            "v100_least": min(v100),
            "v100_most": max(v100),
            "a100": min(on_a100),
        },
    }


def _accuracies(table: _Table) -> dict[str, float]:
    """The accuracies on the test images [%]: after 20 epochs, and the last of the i9 after 30."""
    return {
        "torch_a100": table.accuracy("PyTorch", "A100"),
        "torch_v100": table.accuracy("PyTorch", "V100"),
        "torch_epyc": table.accuracy("PyTorch", _EPYC),
        "torch_i9": table.accuracy("PyTorch", _I9),
        "epyc": table.accuracy("SimpleChains", _EPYC),
        "i9": table.accuracy("SimpleChains", _I9),
        "i9_30": table.accuracy("SimpleChains", _I9, run=3),
        "laptop": table.accuracy("SimpleChains", _LAPTOP),
    }


def _span(ratios: Sequence[float]) -> dict[str, float]:
    return {"least": min(ratios), "most": max(ratios)}
