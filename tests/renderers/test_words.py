"""The sentences: what they claim and what they must not."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import handmade
import numpy as np
import pytest
from msgspec.structs import replace
from synthetic import LAYER, Row, step

from roofline import devices, plugins
from roofline.analysis.analysis import analyze
from roofline.analysis.caches.traffic import RangeReason
from roofline.analysis.callbacks import called_back
from roofline.analysis.flags import FLAGS
from roofline.comparison.parity.parity import parity
from roofline.content import bounds, tables, wording
from roofline.core.cost import Cost
from roofline.core.schema import Imported, Wall
from roofline.core.vocabulary import BOUNDS
from roofline.projection.project import project
from roofline.renderers import perfetto, text
from roofline.renderers.whatif import text as what_if


def test_verdict_of_the_handmade_step() -> None:
    # Shares of 12.5 ms: memory 400 + 25 + 1950 + 3000 = 5375 µs (43 %) of 5425 own, floors of 3720, 69 % of that, or of
    # 400 + 25 (gelu took no longer) + 800 + 2800 = 4025, 74 %, if all that is written reaches memory; 25 µs of it under
    # the cache's roof, which is less than a tenth; compute 5000 µs (40 %), floors of 4000; gap 1800 µs (14.4 %);
    # unknown 317 µs (2.5 %); overhead 8 µs rounds to nothing. The largest stands first.
    assert wording.verdict(analyze(handmade.profile())) == (
        "toy train, b4 s25 on Round Device, 2 threads: 12.5 ms per step; 43 % memory-limited, at 69 to 74 % of DRAM "
        "bandwidth; 40 % compute-limited, at 80 % of FP32 peak; 14 % host time; 3 % unknown."
    )


@pytest.mark.parametrize(
    ("batch", "seq", "lengths"),
    [(4, 25, "batch 4 x 25 tokens"), (4, None, "batch 4"), (None, 25, "25 tokens"), (1, 1, "batch 1 x 1 token")],
)
def test_lengths_that_are_known_are_said(batch: int | None, seq: int | None, lengths: str) -> None:
    profile = handmade.profile(batch=batch, seq=seq)
    assert wording.subject_parts(profile)[2] == lengths


def test_ops_far_beyond_their_step() -> None:
    """Shares of the step would be nonsense: 10.8 ms of ops, 1000 times as long, in a step of 12.5 ms."""
    ops = tuple(replace(op, own_ns=tuple(1000 * own for own in op.own_ns)) for op in handmade.OPS)
    beyond = analyze(handmade.profile(ops=ops))
    step = "12.5 ms per step, whose ops were recorded as taking 864 times as long, which is impossible"
    assert wording.verdict(beyond) == (
        f"toy train, b4 s25 on Round Device, 2 threads: {step}: where the time went is not known."
    )
    told = what_if.render(project(beyond, devices.load("h100-sxm"))).replace("\n", " ")
    assert f"{'which is impossible'}: nothing of it can be projected to NVIDIA H100 SXM." in told
    found = parity(analyze(handmade.profile()), beyond)
    assert found.verdict == "not comparable"
    assert [(one.a, one.b) for one in found.of("refused")] == [("no more", "864 times the step")]


def test_ops_a_little_beyond_their_step_stay_readable() -> None:
    """Kernels that run from one step into the next; 12 of the 12.5 ms are 4 % more than the step then."""
    wall = Wall(steps=(10.4e-3,) * 10)
    profiled = replace(handmade.profile().profiled, corrected=(10.4e-3,) * 3)
    told = wording.verdict(analyze(handmade.profile(wall=wall, profiled=profiled)))
    assert told.startswith("toy train, b4 s25 on Round Device, 2 threads: 10.4 ms per step; 52 % memory-limited, at ")


def test_ops_that_were_timed_in_far_longer_steps() -> None:
    """Steps of 12.5 ns beside profiled ones of 12.5 ms."""
    wall = Wall(steps=(12.5e-9,) * 10)
    told = wording.verdict(analyze(handmade.profile(wall=wall)))
    assert ": 12.5 ns per step (its ops timed in steps 1000000 times as long); 43 % memory" in told


def test_of_a_group_is_told_what_part_of_it_is_projected() -> None:
    """25 µs of gelu, a contraction here, and twice 2500 of products, of which the other device has no ceiling."""
    signatures = list(handmade.profile().signatures)
    signatures[2] = replace(signatures[2], op_class="contraction")
    there = handmade.device()
    there = replace(there, ceilings={name: one for name, one in there.ceilings.items() if name != "matrix.fp32"})
    told = what_if.render(project(analyze(handmade.profile(signatures=tuple(signatures))), there))
    assert "25.0 µs of 5.02 ms" in told, told


def test_what_is_unknown_is_told_once() -> None:
    """An op without any work has no floor where no launch has, nor has one of unknown work."""
    signatures = list(handmade.profile().signatures)
    signatures[0] = replace(signatures[0], cost=Cost())
    device = handmade.without_launch(handmade.device())
    profile = handmade.profile(signatures=tuple(signatures), device=device)
    split = bounds.split(analyze(profile))
    assert split["overhead"].seconds > 0
    assert split["unknown"].seconds > 0
    together = (split["overhead"].seconds + split["unknown"].seconds) / 12.5e-3
    told = wording.verdict(analyze(profile))
    assert told.count("unknown") == 1
    assert f"{100 * together:.0f} % unknown" in told


def test_what_group_is_unknown_is_asked_of_all_of_that_time() -> None:
    """An embedding without work and without a launch floor is all that nothing is known of here, and no product."""
    signatures = list(handmade.profile().signatures)
    signatures[0] = replace(signatures[0], cost=Cost())
    ops = tuple(op for op in handmade.OPS if op.signature != 4)
    device = handmade.without_launch(handmade.device())
    told = wording.verdict(analyze(handmade.profile(signatures=tuple(signatures), ops=ops, device=device)))
    assert "3 % unknown" in told  # 400 of 12 500 µs
    assert "(matmul)" not in told


def test_time_that_nothing_is_known_of_is_python_where_a_step_calls_it_back() -> None:
    """28 launches of 10 µs of host, 4.8 ms of layers, and a call of 900 µs, 15 % of 5.99 ms."""
    call = Row("EagerPyFunc", "other", 900, known=False)
    told = wording.verdict(analyze(step((*LAYER * 4, call))))
    assert "15 % unknown (Python that the step calls back: EagerPyFunc)" in told
    # Half of it Python, half of it an op of no class: neither; nine tenths of it one group's is that group.
    other = Row("mylib::sparse", "other", 901, known=False)
    assert "unknown (" not in wording.verdict(analyze(step((*LAYER * 4, call, other))))
    # Products of an arithmetic that is not known are under no known roof either, though their work is.
    lone = analyze(step((*LAYER * 4, call)))
    assert called_back(lone) == ("EagerPyFunc",)
    every = SimpleNamespace(bound=np.full(len(lone.table.share), BOUNDS.index("unknown")), share=lone.table.share)
    assert called_back(SimpleNamespace(profile=lone.profile, table=every)) == ()


def test_what_group_the_time_is_of_that_nothing_is_known_of() -> None:
    """900 µs of a collective, beside nothing, 100 or 110 µs of another class: nine tenths of it, or less."""
    called = Row("nccl", "communication", 900, known=False)
    for rest, told in ((0, "(communication)"), (100, "(communication)"), (110, "")):
        other = (Row("mine", "pointwise", rest, known=False),) if rest else ()
        words = wording.verdict(analyze(step((*LAYER * 4, called, *other))))
        assert f"% unknown{f' {told}' if told else ''}" in words
        assert ("unknown (" in words) == bool(told)


@pytest.mark.parametrize(("copy", "told"), [(44, ["DRAM"]), (45, ["DRAM", "link"]), (404, ["link", "DRAM"])])
def test_roofs_are_named_from_a_tenth_of_the_time_on(copy: float, told: list[str]) -> None:
    """Beside 400 µs of layers under the roof of memory a copy over a link of 10 GB/s, at its roof."""
    link = handmade.ceiling(10e9)
    run = step((*LAYER * 4, Row("aten::copy_", "transfer", copy, bytes=2 * 1e4 * copy)))
    device = replace(run.device, ceilings={**run.device.ceilings, "link.h2d": link})
    analysis = analyze(replace(run, device=device))
    assert wording.roofs_of(analysis, "memory") == [f"{name} bandwidth" for name in told]
    roofs = f"{' and '.join(told)} bandwidth"
    named = f"the ops' roofs ({roofs})" if len(told) > 1 else roofs
    assert f" of {named};" in wording.verdict(analysis)


@pytest.mark.parametrize(("exposed", "told"), [(None, ""), (0.0, ", 0 % exposed"), (600e-6, ", 10 % exposed")])
def test_how_much_of_unknown_communication_is_exposed(exposed: float | None, told: str) -> None:
    """900 µs of a collective in steps of 5990 µs, as a trace says."""
    called = Row("nccl", "communication", 900, known=False)
    run = step((*LAYER * 4, called))
    imported = Imported(communication=900e-6, exposed=exposed)
    assert f"15 % unknown (communication{told})" in wording.verdict(analyze(replace(run, imported=imported)))


def test_far_below_a_roof_the_share_says_so() -> None:
    # Four times the bandwidth: embedding 100 (cache), gelu 20, softmax 200 (cache), adamw 700 µs (cache): 1020 of
    # 5425 µs = 19 %.
    verdict = wording.verdict(analyze(handmade.profile(), handmade.device(dram_copy=40e9)))
    assert "43 % memory-limited, at 19 % of cache bandwidth;" in verdict


def test_the_largest_part_stands_first_and_the_gap_is_one_of_them() -> None:
    # 10.7 ms of ops in a step of 50 ms: 39.3 ms, 79 %, are the gap.
    idle = handmade.profile(device=replace(handmade.device(), kind="cuda"), wall=Wall(steps=(50e-3,) * 10))
    parts = wording.verdict(analyze(idle)).partition("; ")[2].rstrip(".").split("; ")
    assert parts[0].startswith("79 % GPU idle")
    shares = [int(part.partition(" %")[0]) for part in parts]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (0.93, 0.93, "memory-limited, at 93 % of DRAM bandwidth"),
        (0.3, 0.82, "memory-limited, at 30 to 82 % of DRAM bandwidth"),
        (1.2, 1.2, "memory-limited, at 120 % of DRAM bandwidth (above its roof)"),
    ],
)
def test_a_bound_says_which_roof_and_how_close(low: float, high: float, told: str) -> None:
    """Own times of 1 s with floors of `low` to `high` s; roofs are those of the hand-made step."""
    times = bounds.Times(seconds=1.0, floor=low, reach=high, loss=1 - low, turning=0.0)
    assert wording.bound(analyze(handmade.profile()), "memory", times) == told


def test_launches_are_told_by_how_many_times_as_long_as_the_least_they_take() -> None:
    # A launch takes 5 µs here, and layer_norm 8: 1.6 times as long; at 2 µs four times.
    analysis = analyze(handmade.profile())
    assert wording.bound(analysis, "overhead", bounds.split(analysis)["overhead"]) == (
        "overhead-limited, at 1.6 times the launch floor"
    )
    times = bounds.Times(seconds=8e-6, floor=2e-6, reach=2e-6, loss=6e-6, turning=0.0)
    assert wording.bound(analysis, "overhead", times) == "overhead-limited, at 4.0 times the launch floor"
    nothing = bounds.Times(seconds=8e-6, floor=0.0, reach=2e-6, loss=8e-6, turning=0.0)
    assert wording.bound(analysis, "overhead", nothing).endswith("4.0 times the launch floor or more")


@pytest.mark.parametrize(
    ("ceiling", "told"),
    [
        ("dram.copy", "DRAM bandwidth"),
        ("cache.llc", "cache bandwidth"),
        ("matrix.tf32", "TF32 peak"),
        ("vector.fp32", "vector peak"),
        ("function.erf", "erf ceiling"),
        ("launch.torch-eager", "launch floor"),
        ("link.h2d", "link bandwidth"),
        ("", "its roof"),
    ],
)
def test_roofs_have_names(ceiling: str, told: str) -> None:
    assert wording.roof_name(ceiling) == told


def test_flags_are_explained_and_unknown_ones_kept() -> None:
    assert wording.flag("few-steps").startswith("few-steps: Fewer than 10")
    assert wording.flag("contended: 2 of 4 cores").endswith("(2 of 4 cores)")
    assert wording.flag("in_process").startswith("in_process: The step ran inside")
    assert wording.flag("optimised-only").startswith("optimised-only: The program before compilation was not found")
    assert wording.flag("something\x1b[31m new") == "something new"


def test_of_a_clock_that_was_held_back_is_told_what_lasts() -> None:
    """The peak of the hand-made device is 100 GFLOP/s of fp32."""
    device = handmade.device()
    peak = replace(device.ceilings["matrix.fp32"], sustained=80e9, clock=1.5e9)
    card = replace(device, kind="cuda", ceilings={**device.ceilings, "matrix.fp32": peak})
    clocks = {"sm_clock": 1.8e9, "sm_clock_least": 1.6e9}
    profile = handmade.profile(device=card, flags=("throttled: power cap", "in-process"), conditions=clocks)
    capped, other = wording.flags(analyze(profile))
    assert capped == (
        f"throttled: {FLAGS['throttled']} Measure again at one clock (nvidia-smi --lock-gpu-clocks). (power cap) The "
        "sampled clock was 1.80 GHz on average and 1.60 GHz at the lowest. Under the power cap, fp32 matmuls sustain "
        "80.0 GFLOP/s at 1.50 GHz, not the peak of 100 GFLOP/s: compare long steps with the sustained rate."
    )
    assert other == wording.flag("in-process")
    assert "80.0 GFLOP/s at 1.50 GHz" in " ".join(text.render(analyze(profile), None, details=True).split())
    hot = wording.flags(analyze(replace(profile, flags=("throttled: thermal (software)",), conditions={})))[0]
    assert "GFLOP/s" not in hot, "what lasts was measured under the power cap"
    assert "Sampled" not in hot


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\x1b[1;31mb\x1b[0m", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x9b31mb", "a 31mb"),  # an eight-bit introducer is a control character
        ("a\r\n\tb", "a b"),
        ("a\u202eb\u2028c\u200b", "a b c"),
        ("µs – ×", "µs – ×"),
    ],
)
def test_plain(raw: str, clean: str) -> None:
    assert wording.plain(raw) == clean
    assert wording.plain("abcdef", 4) == "abc…"


def test_threads_and_gap_are_named_after_the_device() -> None:
    cpu = analyze(handmade.profile())
    assert (wording.device(cpu), wording.gap_name(cpu)) == ("Round Device, 2 threads", "host time")
    gpu = analyze(handmade.profile(device=replace(handmade.device(), kind="cuda")))
    assert (wording.device(gpu), wording.gap_name(gpu)) == ("Round Device", "GPU idle")


@pytest.mark.parametrize(
    ("threads", "cpus", "told"),
    [
        ("16", "2", "Round Device, 16 threads on 2 cores"),
        ("2", "2", "Round Device, 2 threads"),
        ("1", "2", "Round Device, 1 thread"),
        ("4", "", "Round Device, 4 threads"),
        ("many", "2", "Round Device, 2 threads"),  # those of the ceilings
    ],
)
def test_the_heading_says_with_how_many_threads_a_step_ran(threads: str, cpus: str, told: str) -> None:
    ran = analyze(handmade.profile(environment={"threads": threads, "cpus": cpus}))
    assert wording.device(ran) == told
    flagged = [flag for flag in ran.flags if flag.startswith("oversubscribed")]
    assert flagged == (["oversubscribed: 16 threads on 2 cores"] if threads == "16" else [])
    there = replace(handmade.device(), name="Other", conditions={"threads": "64"})
    assert wording.device(analyze(ran.profile, there)) == "Other, 64 threads", "where it did not run"
    gpu = analyze(replace(ran.profile, device=replace(handmade.device(), kind="cuda")))
    assert not [flag for flag in gpu.flags if flag.startswith("oversubscribed")], "threads beside a GPU run no ops"


def steps(times: object, **more: object) -> str:
    wall = Wall(steps=tuple(np.asarray(times, float).tolist()), **more)  # type: ignore[arg-type]
    return wording.spread(analyze(handmade.profile(wall=wall)))


def test_how_steps_were_timed_is_told_apart_from_what_they_show() -> None:
    plain = steps([12.5e-3] * 20)
    assert plain.startswith("n = 20 steps back to back, median 12.5 ms")
    assert plain.endswith("12.5–12.5 ms; steady")
    assert steps([12.5e-3] * 10).endswith("12.5–12.5 ms"), "too few to call them steady"
    assert steps([12.5e-3] * 20, protocol="single").startswith("n = 20 steps waited for one by one, median")
    assert steps([12.5e-3] * 20, source="profiled").startswith("n = 20 steps timed under the profiler, median")
    assert steps([12.5e-3]) == "n = 1 step back to back, 12.5 ms, so its spread is not known"
    uneven = steps([0.031, 5.5, 0.04, 0.9, 2.0, 0.05, 3.1, 0.2])
    assert uneven.endswith("; uneven: 8 of 8 steps are over 10 % off the median")
    assert "; 1 of 3 steps is over 10 % off the median" in steps([1.0, 1.0, 1.2])
    # A thousandth of the median for each of 40 steps: 2 % before and behind it
    growing = steps(12.5e-3 * (1 + 0.003 * (np.arange(40) - 19.5)))
    assert growing.endswith(
        "; growing: a step takes 0.30 % longer than the one before, in the median, 95 % interval 0.30–0.30 %"
    )
    shrinking = steps(12.5e-3 * (1 - 0.003 * (np.arange(40) - 19.5)))
    assert "shrinking: a step takes 0.30 % less than the one before" in shrinking


@pytest.mark.parametrize(("sign", "name"), [(1, "growing"), (-1, "shrinking")])
def test_steps_that_have_no_time_of_their_own_are_flagged(sign: int, name: str) -> None:
    wall = Wall(steps=tuple((12.5e-3 * (1 + sign * 0.01 * (np.arange(20) - 9.5))).tolist()))
    analysis = analyze(handmade.profile(wall=wall))
    assert name in analysis.flags
    assert "less than 1 in 100 gets this flag" in " ".join(wording.flags(analysis))
    assert {"growing", "shrinking"}.isdisjoint(analyze(handmade.profile()).flags)


@pytest.mark.parametrize(
    ("framework", "told"),
    [
        ("jax", "compilation, tracing included: define jitted functions once, outside of the step"),
        ("torch", "compilation, tracing included: call torch.compile once, outside of the step"),
        (
            "tensorflow",
            "tracing, and compiling by XLA, without what Grappler takes between: make each tf.function once",
        ),
        ("other", "compilation, tracing included"),
    ],
)
def test_compiling_in_the_steps_is_told_of_one_run_with_its_cure(framework: str, told: str) -> None:
    wall = Wall(steps=(0.44,) * 10)
    compiles = handmade.profile(framework=framework, wall=wall, conditions={"compiling_seconds_per_step": 0.412})
    words = " ".join(text.render(analyze(compiles), None, details=True).split())
    assert f"compiling 412 of 440 ms of a step, on average, is {told}" in words
    assert "host time (most of it compiling or tracing)" in words
    assert "compiling" in analyze(compiles).flags
    little = analyze(replace(compiles, conditions={"compiling_seconds_per_step": 0.004}))
    assert "compiling" not in little.flags
    assert "on average, is" not in text.render(little, None, details=True)


def test_op_times_that_were_scaled_are_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    # 13 ms of profiled steps, corrected, in 12.5 ms: 0.962
    profiled = replace(handmade.profile().profiled, corrected=(13e-3,) * 3)
    words = " ".join(text.render(analyze(handmade.profile(profiled=profiled)), None, details=True).split())
    assert (
        "scale all op times were multiplied by 0.962: the profiled steps, without what profiling them cost, took 4.0 % "
        "longer than plain ones"
    ) in words
    assert "multiplied by" not in text.render(analyze(handmade.profile()), None, details=True)


def test_what_of_a_gap_no_profiled_step_saw_is_not_known() -> None:
    # 0.6 ms of idle time were seen, of a gap of 1.8 ms: 0.4 of dispatching and 0.2 of input
    profile = handmade.profile()
    causes = {"host dispatch": 0.4e-3, "data input": 0.2e-3}
    apart = handmade.profile(profiled=replace(profile.profiled, idle=(0.6e-3,) * 3, idle_causes=causes))
    told = " ".join(text.render(analyze(apart), None, details=True).split())
    assert "host dispatch 400 µs, waiting for input 200 µs, not known 1.20 ms" in told


def test_of_a_step_that_ops_fill_no_time_without_ops_is_told() -> None:
    full = analyze(handmade.filled())
    assert full.gap == pytest.approx(10.5e-3 - 10.7e-3 * 10.5 / (10.7 - 10e-6))
    assert full.gap_causes == pytest.approx({"host dispatch": 0, "not known": full.gap})
    told = " ".join(text.render(full, None, details=True).split())
    # The scale alone makes the gap nothing, in each draw: an interval of it would be one of rounding.
    assert full.gap_interval is None
    assert (
        "scale all op times were multiplied by 0.981: in the profiled steps ops alone took 1.9 % longer than a "
        "plain step GPU idle not known: op times were scaled so that they fill the plain steps; 100 µs "
        "idle in the mean of 3 profiled steps matmuls"
    ) in told
    assert "GPU idle – – – – –" in told
    for name in ("text", "markdown", "latex"):
        assert "-9.8" not in plugins.load("roofline.renderers", name, "format").render(full, None)
    assert json.loads(plugins.load("roofline.renderers", "json", "format").render(full, None))["gap"] == full.gap


def test_a_gap_that_may_be_nothing_has_no_causes() -> None:
    # Plain steps of 10.5 ms by half and of 11.1 ms by half: the gap is 10.8 - 10.7 ms, or 0 where more were of 10.5.
    full = handmade.filled()
    unsure = analyze(replace(full, wall=Wall(steps=(10.5e-3, 11.1e-3) * 5)))
    assert unsure.gap == pytest.approx(0.1e-3)
    assert unsure.gap_causes
    assert "100 µs idle in the mean of 3 profiled steps matmuls" in " ".join(
        text.render(unsure, None, details=True).split()
    )


def test_missing_ceilings_and_profiled_walls_are_said() -> None:
    profile = handmade.profile(wall=Wall(steps=(12.5e-3,), source="profiled"))
    device = handmade.device()
    without = {name: c for name, c in device.ceilings.items() if name != "function.erf"}
    told = " ".join(text.render(analyze(profile, replace(device, ceilings=without)), None, details=True).split())
    assert "function.erf: no such ceiling, so its term is left out of the minimum times" in told
    assert "profiler overhead included" in told
    assert "few-steps: Fewer than 10 plain steps" in told


def test_ops_above_their_ceiling_are_counted() -> None:
    # At a tenth of the bandwidth, 1 GB/s, every op with cold bytes has a floor above its own time: embedding 3 of
    # 0.4 ms, both addmm 4.4 of 2.5 ms, softmax 7 of 2 ms, adamw 27 of 3 ms.
    told = text.render(analyze(handmade.profile(), handmade.device(dram_copy=1e9)), None, details=True)
    assert "5 ops ran faster than their minimum time" in told


def test_the_table_closes() -> None:
    for by in ("class", "group", "op", "scope", "block", "phase", "kernel", "source"):
        *rows, total = tables.rows(analyze(handmade.profile()), by)
        assert sum(row.seconds for row in rows) == pytest.approx(total.seconds, rel=1e-12)
        assert sum(row.time for row in rows) == pytest.approx(1.0, rel=1e-12)


def test_slices_of_one_lane_do_not_overlap() -> None:
    events = json.loads(perfetto.render(analyze(handmade.profile()), None))["traceEvents"]
    ends: dict[int, float] = {}
    for event in (event for event in events if event["ph"] == "X"):
        assert event["ts"] >= ends.get(event["tid"], 0.0)
        ends[event["tid"]] = event["ts"] + event["dur"]
    assert set(ends) == {0, 1}  # softmax and mystery ran side by side


def test_what_is_in_a_range_is_told_as_a_range() -> None:
    # embedding 300 to 400 us of 400, gelu 20 to 25 of 25, softmax 700 to 800 of 2000 (it overlaps: 1950 shared), adamw
    # 2700 to 2800 of 3000: floors of 3720 to 4025 us of 5425.
    analysis = analyze(handmade.profile(imported=Imported(files=("trace.json",))))
    split = bounds.split(analysis)["memory"]
    assert (split.floor, split.reach) == (pytest.approx(3720e-6), pytest.approx(4025e-6))
    assert "43 % memory-limited, at 69 to 74 % of DRAM bandwidth;" in wording.verdict(analysis)
    row = next(row for row in tables.rows(analysis, "class") if row.label == "embedding")
    cells = {column.heading.replace("\n", " "): column.cell(row) for column in tables.COLUMNS}
    assert (cells["of roof %"], cells["minimum %"], cells["above %"]) == ("75–100", "2–3", "0–1")
    assert "caches" in text.render(analysis, None, details=True)
    assert "caches" not in text.render(analyze(handmade.profile()), None, details=True)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (
            "no buffers",
            "the profile does not say what the caches held, so minimum times are ranges: from all that fits in the "
            "last-level cache to nothing",
        ),
        (
            "no addresses",
            "the profile does not say where all results lie, so minimum times are ranges: from results that exceed "
            "the last-level cache to all that it would evict if these shared no memory",
        ),
        (
            "cpu",
            "the allocator of a CPU places buffers again in each step, so minimum times are ranges: from results that "
            "exceed the last-level cache to all that it may evict",
        ),
        (
            "too many touches",
            "the step touches memory too often to follow which buffers share it, so minimum times are ranges: from "
            "results that exceed the last-level cache to all that it would evict if no two buffers shared memory",
        ),
    ],
)
def test_a_range_of_bytes_is_explained_by_its_reason(reason: RangeReason, sentence: str) -> None:
    analysis = analyze(handmade.profile())
    analysis = dataclasses.replace(analysis, table=dataclasses.replace(analysis.table, cold_reason=reason))
    assert wording.ranges(analysis) == f"{sentence}, as far as an op's own time allows it"


def test_a_range_is_explained_by_its_own_ends() -> None:
    sentence = wording.range_ends(analyze(handmade.profile()), "27 to 43 %")
    kept, evicted = wording._EVICTIONS
    assert sentence == f"Ranges, such as 27 to 43 %, are of two cases: {kept} and {evicted}."
