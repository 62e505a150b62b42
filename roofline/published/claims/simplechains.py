"""What the post on SimpleChains.jl, and what is told of it, say of small networks."""

from __future__ import annotations

from itertools import product

from roofline import devices
from roofline.published.claims._claim import Claim, span, times
from roofline.published.publication import Publication
from roofline.published.work import work

_MLP, _LENET = "MLP, 10,000 epochs", "LeNet5, 10 epochs"
#: Of the MLP: all samples are in each of them.
STEPS = 10_000
_I9, _EPYC, _LAPTOP = "i9-10980XE", "EPYC 7513", "i7-1165G7"
_POST = "the post"
_TOLD = "told of it; which figures are meant is not recorded"


def seconds(publication: Publication, task: str, column: str, hardware: str) -> tuple[float, ...]:
    """The times [s] of all runs of a cell, those that also compiled left out."""
    return tuple(
        cell.seconds
        for cell in publication.cells
        if (cell.task, cell.column, cell.hardware) == (task, column, hardware)
        and cell.seconds is not None
        and "compile" not in cell.note
    )


def asked(publication: Publication, task: str) -> float:
    """The work of a task [FLOP]."""
    cell = next(cell for cell in publication.cells if cell.task == task)
    found = work(publication.row(cell).work, cell.batch).flops
    if found is None:
        raise ValueError(f"the work of {task} is not counted")
    return found


def ratios(slow: tuple[float, ...], fast: tuple[float, ...]) -> list[float]:
    """Every run of one against every run of the other."""
    return [one / other for one, other in product(slow, fast)]


def claims(publication: Publication) -> tuple[Claim, ...]:
    """In the order of the post; then what else is told."""
    return (
        _mlp_i9(publication),
        _mlp_epyc(publication),
        _lenet5(publication),
        _gpu(publication),
        _flux(publication),
        _laptop(publication),
        _jax(publication),
        _unknown(publication),
    )


def _mlp_i9(publication: Publication) -> Claim:
    slow, fast = (seconds(publication, _MLP, name, _I9) for name in ("PyTorch", "SimpleChains"))
    found, flops = ratios(slow, fast), asked(publication, _MLP)
    return Claim(
        says="PyTorch takes over 35 times as long for the small MLP on an i9-10980XE: 1.5 ms against 41 µs a step.",
        where=_POST,
        arithmetic=f"{span(found)} times; {1e3 * min(slow) / STEPS:.2f} ms against {1e6 * min(fast) / STEPS:.1f} µs.",
        verdict="true",
        figures={
            "least": min(found),
            "most": max(found),
            "PyTorch": min(slow) / STEPS,
            "SimpleChains": min(fast) / STEPS,
        },
        why=(
            f"A step is {flops / STEPS / 1e6:.1f} MFLOP of products. SimpleChains did them, and all else, in "
            f"1/{min(found):.0f} of the time on the same processor, so at most {100 / min(found):.1f} % of PyTorch's "
            "time is arithmetic that had to be. What the rest is (dispatch, allocation, threads, tanh) the table does "
            "not say; [profiles of the same network](cpu-comparison.md) do, on another processor."
        ),
    )


def _mlp_epyc(publication: Publication) -> Claim:
    slow, fast = (seconds(publication, _MLP, name, _EPYC) for name in ("PyTorch", "SimpleChains"))
    there, quick = (seconds(publication, _MLP, name, _I9) for name in ("PyTorch", "SimpleChains"))
    found = ratios(slow, fast)
    pytorch, simple = min(slow) / min(there), min(fast) / min(quick)
    return Claim(
        says="The advantage is close to 100 times on an EPYC 7513.",
        where=_POST,
        arithmetic=f"{span(found)} times.",
        verdict="true",
        figures={"least": min(found), "most": max(found), "PyTorch, EPYC / i9": pytorch, "SimpleChains": simple},
        why=(
            f"It grew because PyTorch takes {pytorch:.1f} times what it takes on the i9, for the same work, and "
            f"SimpleChains {simple:.1f} times. Why is not known: the two processors differ in cores, vector units and "
            "more, and nothing of PyTorch's threads is published."
        ),
    )


def _lenet5(publication: Publication) -> Claim:
    found = {
        place: ratios(*(seconds(publication, _LENET, name, place) for name in ("PyTorch", "SimpleChains")))
        for place in (_I9, _EPYC)
    }
    return Claim(
        says="SimpleChains is 5 times as fast as PyTorch on LeNet5.",
        where=f"{_POST}, title",
        arithmetic=f"{span(found[_I9])} times on the i9, {span(found[_EPYC])} on the EPYC.",
        verdict="depends",
        figures={f"{end.__name__}, {place}": end(found[place]) for place in found for end in (min, max)},
        why=(
            "It depends on the processor. PyTorch's times contain the loading of data, SimpleChains' do not; without "
            "it the factor would be another one, which nobody published."
        ),
    )


def _gpu(publication: Publication) -> Claim:
    slow, fast = (seconds(publication, _LENET, name, "A100") for name in ("PyTorch", "Flux"))
    found, rate = ratios(slow, fast), asked(publication, _LENET) / min(slow)
    ceiling = devices.load(publication.devices["A100"]).rate("matrix.fp32") or 0.0
    return Claim(
        says="LeNet5 is far too small to fill a GPU: PyTorch on an A100 spends its time moving batches.",
        where=_POST,
        arithmetic=f"{asked(publication, _LENET) / 1e9:.0f} GFLOP in {min(slow):.2f} s are {rate / 1e9:.1f} GFLOP/s, "
        f"{100 * rate / ceiling:.1f} % of an A100 in IEEE FP32. Flux does them {times(min(found))} as fast.",
        verdict="depends",
        figures={"PyTorch / Flux": min(found), "FLOP/s": rate, "share": rate / ceiling},
        why=(
            "That the GPU is not filled follows from the rate, and that it is not what limits follows from Flux, which "
            "needs a tenth of the time on one. PyTorch's DataLoader is inside the timing (read in the script), so this "
            "row compares no arithmetic. That moving batches is what takes the time, no figure shows."
        ),
    )


def _flux(publication: Publication) -> Claim:
    flux, fast = seconds(publication, _LENET, "Flux", "A100"), seconds(publication, _LENET, "SimpleChains", _I9)
    found = ratios(flux, fast)
    return Claim(
        says="The i9-10980XE with SimpleChains is around 70 % faster than Flux with an A100.",
        where=f"{_POST}, summary",
        arithmetic=f"{_listed(flux)} s against {_listed(fast)} s: {100 * (min(found) - 1):.0f} to "
        f"{100 * (max(found) - 1):.0f} % faster.",
        verdict="false",
        figures={"least": min(found), "most": max(found)},
        why="Faster, but by half of that. The printed runs do not say where 70 % is from.",
    )


def _laptop(publication: Publication) -> Claim:
    (here,) = seconds(publication, _LENET, "SimpleChains", _LAPTOP)
    found = ratios(seconds(publication, _LENET, "PyTorch", "V100"), (here,))
    others = [seconds(publication, _LENET, name, place) for name in ("PyTorch", "Flux") for place in (_I9, _EPYC)]
    least = min(min(runs) for runs in others)
    return Claim(
        says="A laptop's i7-1165G7 with SimpleChains beats PyTorch and Flux on any CPU, and PyTorch on a V100.",
        where=f"{_POST}, summary",
        arithmetic=f"{here:.2f} s against {least:.2f} s, the best of theirs on a CPU; {span(found)} times as fast as "
        "PyTorch on the V100.",
        verdict="true",
        figures={"V100, least": min(found), "best other CPU": least, "here": here},
        why="PyTorch's times contain the loading of data. Why Flux is slow on CPUs is not known.",
    )


def _jax(publication: Publication) -> Claim:
    slow, fast = (seconds(publication, _MLP, name, _I9) for name in ("JAX (equinox)", "SimpleChains"))
    found = ratios(slow, fast)
    return Claim(
        says="SimpleChains is 22 times as fast as JAX on the small MLP.",
        where=_TOLD,
        arithmetic=f"{slow[0]:.1f} s against {_listed(fast)} s: {span(found)} times.",
        verdict="true",
        figures={"least": min(found), "most": max(found)},
        why=f"The {slow[0]:.1f} s are one figure, with no run, script or spread beside it that we could read.",
        unread=True,
    )


def _unknown(publication: Publication) -> Claim:
    fast = seconds(publication, _LENET, "SimpleChains", _I9)
    i9 = ratios(seconds(publication, _LENET, "PyTorch", _I9), fast)
    v100 = ratios(seconds(publication, _LENET, "Flux", "V100"), fast)
    return Claim(
        says="SimpleChains is 10 times as fast on small networks, and 2 times as fast as a GPU.",
        where=_TOLD,
        arithmetic=f"Near 10 is LeNet5 against PyTorch on the i9, {span(i9)} times; near 2 is LeNet5 on the i9 against "
        f"Flux on a V100, {times(min(v100))}.",
        verdict="open",
        figures={"10, least": min(i9), "10, most": max(i9), "2, least": min(v100), "2, most": max(v100)},
        why="What is compared with what is not recorded, so nothing can be checked.",
        unread=True,
    )


def _listed(runs: tuple[float, ...]) -> str:
    return " and ".join(f"{one:.3f}" for one in runs)
