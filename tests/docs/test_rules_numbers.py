"""The numbers of rules in design.md, imports.md, proving.md, counters.md and whatif.md are those of the code."""

from __future__ import annotations

from pathlib import Path

import msgspec

from roofline.analysis.analysis import INFLATED, analyze
from roofline.analysis.floors import ABOVE_TOLERANCE, ATTAINED, RIDGE_RATIO
from roofline.analysis.step_times import FALSE_ALARM, FAR, FEW, LEAST_CHANGE, MISTAKEN
from roofline.comparison import turns
from roofline.comparison.machine_speed import PROCESSES
from roofline.core import shipped
from roofline.core.device import CONTENDED, DRAM, SHEET_HIGH, SHEET_LOW
from roofline.core.schema import load
from roofline.counters import joining, nsight_compute
from roofline.importing import launches
from roofline.measuring import session
from roofline.recording import contention, protocol
from roofline.recording.request import Request
from roofline.timing import idle

ROOT = Path(__file__).resolve().parents[2]


def words_of(page: str) -> str:
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


PAGE = words_of("design.md")
NUMBERS = {1: "one", 2: "two", 4: "a quarter", 5: "five", 6: "six", 10: "ten"}


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def test_thresholds_of_verdicts_are_those_of_the_code() -> None:
    assert ATTAINED == 0.5
    assert "ops below half of their roof" in PAGE
    few_steps = NUMBERS[round(1 / FEW)]
    for words in (
        f"second largest term is within {percent(1 - RIDGE_RATIO)} of the largest",
        f"Beyond {percent(ABOVE_TOLERANCE)} or that spread",
        f"from {launches._FEWEST} kernels on and up to {launches._LONGEST / 1e3:g} µs (both by choice)",
        f"outside {SHEET_LOW} to {SHEET_HIGH} times a known datasheet value",
        f"Above {percent(CONTENDED)} the machine was busy",
        f"pattern: {', '.join(DRAM).replace('inplace', 'in place')}.",
        f"below {INFLATED} the profile is flagged `inflated`",
        f"less than {100 * FALSE_ALARM:g} in 100 runs of equal",
        f"must be {percent(LEAST_CHANGE)} of the step or more",
        f"refuted, at {percent(MISTAKEN)}, that {few_steps} of such steps is more than {percent(FAR)} off",
        f"are taken to differ by {percent(PROCESSES)}",
    ):
        assert words in PAGE, words


def test_the_protocol_is_that_of_the_code() -> None:
    (budget,) = (field.default for field in msgspec.structs.fields(Request) if field.name == "budget")
    few, many, short = protocol._FEW, protocol._MANY, protocol._SHORT
    for words in (
        f"at most {NUMBERS[protocol.IN_FLIGHT]} steps are in flight",
        f"On a GPU T takes {protocol.GPU_STEPS} steps, on a CPU up to {protocol.CPU_STEPS} within "
        f"{budget:g} s and never fewer than {protocol.CPU_LEAST}",
        f"profiles {NUMBERS[few]} steps, or {NUMBERS[many]} if they take at most {1e3 * short:g} ms",
        f"short steps get up to {NUMBERS[protocol._MOST]} that do not count",
        f"the cores that the process may use were full ({percent(contention.FULL)} of them) and others, or other "
        f"tenants, took more than {percent(contention.OTHERS)} of these",
    ):
        assert words in PAGE, words
    assert session._MISSING == 0.5
    assert "half a core or more is missing" in PAGE


def test_eager_steps_idle_longer_under_the_profiler() -> None:
    """Observed idle time over the gap of plain steps, of each eager step of PyTorch on the H100."""
    eager = [
        path
        for name, path in shipped.paths().items()
        if name.startswith(("h100/bert-torch-infer", "h100/bert-torch-train"))
    ]
    ratios = [analysis.idle / analysis.gap for analysis in map(analyze, map(load, eager)) if analysis.idle]
    assert len(ratios) == len(eager) == 12
    assert f"{min(ratios):.1f} to {max(ratios):.1f} times as long in the twelve eager steps" in PAGE


def test_rules_of_other_pages_are_those_of_the_code() -> None:
    imports, proving = words_of("imports.md"), words_of("proving.md")
    assert f"up to {idle.KERNEL_LATENCY / 1e3:g} µs between queued kernels" in imports
    assert f"({NUMBERS[idle.PAUSE]} times as long as nine of ten of its launches take)" in imports
    assert f"what the switch gains, {turns.MOST} turns at most" in proving
    assert f"({percent(PROCESSES)} of what either run spends there)" in proving
    counters = words_of("counters.md")
    assert f"more than {nsight_compute.MAX_KERNELS:,} kernels or {nsight_compute.MAX_BYTES >> 20} MiB" in counters
    assert f"Where these take more than {percent(1 - joining.LEAST)} of the counted time" in counters
    assert f"with counted bytes less than {percent(joining.LEAST)} of the profile's time" in counters
