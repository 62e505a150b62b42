"""Gaps of steps whose ops wait in the queue of a GPU: profiles of an H100 (docs/h100.md), and what is planted in them.

There no op runs only as far as the device's work does not hide the host's.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.analysis.gap_causes import hole, most_before_one
from roofline.comparison.causes.findings import Finding, explain
from roofline.comparison.terms import compare
from roofline.core.schema import Profile, Profiled, load
from roofline.renderers._facts import evidence

H100 = Path(__file__).resolve().parents[4] / "profiles" / "h100"
MS = 1_000_000  # [ns]


@cache
def measured(row: str) -> Profile:
    return load(H100 / f"bert-{row}.json")


def found(a: Profile, b: Profile) -> dict[str, Finding]:
    return {one.rule: one for one in explain(compare(a, b))}


def test_a_faster_device_shows_its_host() -> None:
    """The same 158 launches by the same host: fp32 products of 19 ms hide them, TF32 products of 4 ms do not."""
    a, b = measured("torch-infer-b32-fp32"), measured("torch-infer-b32-tf32")
    causes = found(a, b)
    assert "host-idle" not in causes
    assert causes["host-bound"].seconds < 0
    # 10.635 ms / 158
    assert "its device waits for the host, which takes up to 67.3 µs for a launch" in causes["host-bound"].text
    assert "torch (fp32) hides its host's time behind its ops" in causes["host-bound"].text


def test_one_host_is_slower_than_another() -> None:
    """Both devices wait: a launch takes the host at most the step over them, 10.635 ms / 158 and 5.389 ms / 176."""
    causes = found(measured("torch-infer-b32-tf32"), measured("torchscript-infer-b32-tf32"))
    assert "a launch takes its host up to 67.3 µs, against up to 30.6 µs" in causes["host-bound"].text
    assert "host-idle" not in causes


def test_a_graph_leaves_nothing_to_dispatch() -> None:
    causes = found(
        measured("torch-compile-default-train-b32-bf16"), measured("torch-compile-reduce-overhead-train-b32-bf16")
    )
    assert list(causes) == ["host-bound"]


def test_what_a_step_that_waits_for_its_host_says() -> None:
    waits, full = analyze(measured("torch-infer-b32-tf32")), analyze(measured("torch-infer-b32-fp32"))
    assert waits.waits_for_host
    assert waits.most_per_launch == pytest.approx(waits.wall / 158)
    assert (waits.hides_host, full.hides_host) == (False, True)
    assert not full.waits_for_host
    assert full.most_per_launch is None
    # A compiled program is not launched kernel by kernel, however long its device waits.
    keras = analyze(measured("keras-jax-infer-b32-tf32"))
    assert keras.waits_for_host
    assert keras.most_per_launch is None


def test_a_single_hole_is_no_matter_of_each_launch() -> None:
    """The device idles 11 times as long before op 40 as in all of the step: 11 of 12 parts of it at once."""
    profile = measured("torch-infer-b32-tf32")
    assert hole(profile, analyze(profile).idle) is None
    idle = sum(sum(op.host_ns or ()) for op in profile.ops)
    ops = [replace(op, host_ns=(0, 11 * idle)) if row == 40 else op for row, op in enumerate(profile.ops)]
    row, share = hole(replace(profile, ops=tuple(ops)), 12e-9 * idle) or (None, None)
    assert (row, share) == (40, pytest.approx(11 / 12))
    assert hole(replace(profile, ops=tuple(ops)), 23e-9 * idle) is None  # less than half
    # Of an op of several launches it is not known how long each waited.
    ops[40] = replace(ops[40], launches=2)
    launched = replace(profile, ops=tuple(ops))
    assert hole(launched, 12e-9 * idle) is None
    assert most_before_one(launched, 12e-9 * idle) == (40, pytest.approx(11 / 12))
    # The step is longer by those 11 parts, and so is its idle time, which is dispatch.
    plain, profiled = analyze(profile), profile.profiled
    assert profiled is not None
    more = 11 * plain.gap
    holed = replace(
        profile,
        ops=tuple(
            replace(op, host_ns=(0, round(2e9 * more))) if row == 40 else op for row, op in enumerate(profile.ops)
        ),
        wall=replace(profile.wall, steps=(plain.wall + more,)),
        profiled=replace(
            profiled,
            idle=tuple(each + more for each in profiled.idle),
            idle_causes={**profiled.idle_causes, "host dispatch": profiled.idle_causes["host dispatch"] + more},
        ),
    )
    assert analyze(holed).waits_for_host
    assert analyze(holed).most_per_launch is None
    assert dict(evidence.told(analyze(holed)))["GPU idle"].endswith(f"of it at once, before {name(profile, 40)}")


def name(profile: Profile, op: int) -> str:
    return profile.signatures[profile.ops[op].signature].name


def slept(profile: Profile, op: int, sleep: int) -> Profile:
    """The step with so long [ns] in Python before an op, in plain and in profiled steps alike."""
    profiled = profile.profiled
    assert isinstance(profiled, Profiled)
    seconds = 1e-9 * sleep

    def later(times: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(time + seconds for time in times)

    one = profile.ops[op]
    assert one.host_ns is not None
    ops = list(profile.ops)
    ops[op] = replace(one, host_ns=(one.host_ns[0], one.host_ns[1] + sleep))
    return replace(
        profile,
        ops=tuple(ops),
        wall=replace(profile.wall, steps=later(profile.wall.steps)),
        profiled=replace(
            profiled,
            walls=later(profiled.walls),
            corrected=later(profiled.corrected),
            idle=later(profiled.idle),
            idle_causes={
                cause: time + (seconds if cause == "host dispatch" else 0.0)
                for cause, time in profiled.idle_causes.items()
            },
        ),
    )


@pytest.mark.parametrize("row", ["torch-infer-b32-tf32", "torch-infer-b1-bf16", "torch-train-b32-bf16"])
def test_a_host_that_sleeps_is_told_from_one_that_dispatches(row: str) -> None:
    """5 ms before an op in the middle of the forward pass, where the host is at most 0.5 ms otherwise."""
    without = measured(row)
    causes = found(slept(without, 50, 5 * MS), without)
    assert list(causes) == ["host-idle"]
    assert causes["host-idle"].seconds == pytest.approx(5e-3, rel=0.05)
