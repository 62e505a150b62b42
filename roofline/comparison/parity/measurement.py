"""Compare how two runs were measured: device, threads, clocks, environment, protocol, versions, and doubts."""

from __future__ import annotations

from statistics import median

from msgspec.structs import replace

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.beyond_step import times_the_step
from roofline.analysis.flags import FLAGS, clause
from roofline.comparison.machine_speed import machine_speed
from roofline.comparison.parity.difference import Difference, Pair
from roofline.core.framework import framework
from roofline.core.schema import slug
from roofline.core.vocabulary import PROTOCOLS
from roofline.units import plain

#: Flags that make a run's times doubtful.
_OF_TIMES = (
    *("contended", "contended-ceilings", "given-ceilings", "throttled", "inflated", "beyond-step", "few-steps"),
    *("few-traced-steps", "steps-inferred", "unjoined", "in-process", "nothing-returned", "replays-by-order"),
)
#: Flags of a run whose work was not all seen, or need not be what was asked for.
_OF_WORK = (
    *("model-flops-derived", "optimised-only", "shapes-vary", "opaque-regions", "compiled-code", "nothing-compiled"),
    *("no-shapes", "command-buffers", "replays-unattributed", "replays-uncaptured", "phases-unresolved"),
)
#: Doubts that have another key than their slug.
_KEYS = {"contended": "contention", "throttled": "throttling"}
#: How threads wait for each other: it changes nothing where there is one, and a measurement on contended cores sets it.
_WAITING = frozenset(("OMP_WAIT_POLICY",))
#: Mean clocks that differ by more than this share of the higher are two settings. By choice.
CLOCKS = 0.03
#: Variables that change what runs in every framework.
_EVERYWHERE = ("NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING")


def measurement(pair: Pair) -> list[Difference]:
    """Compare how and where the step was measured."""
    sources = pair.each(lambda run: run.profile.wall.source)
    return [
        *_device(pair),
        *_threads(pair),
        *_clocks(pair),
        *_machine_speed(pair),
        *_environment(pair),
        *_protocol(pair),
        *pair.compare("wall", sources, "The wall of one run was timed under a profiler and includes its overhead"),
        *_versions(pair),
        *_doubts(pair),
        *_beyond(pair),
    ]


def _device(pair: Pair) -> list[Difference]:
    """Name different devices: they are comparable, since the sum separates work from hardware."""
    a, b = pair.a.device, pair.b.device
    is_same = (a.name, a.kind) == (b.name, b.kind)
    return [] if is_same else [pair.differ("device", (a.name, b.name), "The devices differ")]


def _threads(pair: Pair) -> list[Difference]:
    """Name threads without a limit: more may be slower, by any factor, if they wait for each other or share a core."""
    threads = pair.each(lambda run: run.profile.environment.get("threads"))
    return [] if None in threads else pair.compare("threads", threads, "The numbers of threads differ")


def _clocks(pair: Pair) -> list[Difference]:
    """Compare the clocks. seconds: what the run at the lower clock would gain if all of its step scaled with it."""
    a, b = pair.each(lambda run: run.profile.conditions.get("sm_clock"))
    if not a or not b or pair.a.device.name != pair.b.device.name:
        return []
    lost = 1 - min(a, b) / max(a, b)
    if lost <= CLOCKS:
        return []
    seconds = lost * (pair.a if a < b else pair.b).wall
    return [pair.differ("clocks", (units.scaled(a, "Hz"), units.scaled(b, "Hz")), "The clocks differ", seconds=seconds)]


def _machine_speed(pair: Pair) -> list[Difference]:
    """Warn of a slower machine. seconds: how much longer the ops that both runs have took in one of them."""
    speed = machine_speed(pair.a, pair.b)
    if not speed.uneven:
        return []
    slower, faster = pair.names if speed.products > 1 else pair.names[::-1]
    products, other_ops = (f"{max(ratio, 1 / ratio):.2f} times" for ratio in (speed.products, speed.other_ops))
    text = (
        f"The same ops took longer in {slower}, as on a slower machine (clock, other programs, colder caches): matmuls "
        f"{products} as long as in {faster}, other ops {other_ops}."
    )
    shown = ("slower", "faster") if speed.products > 1 else ("faster", "slower")
    return [replace(pair.differ("pace", shown, "", "warning", seconds=abs(speed.seconds)), text=text)]


def _environment(pair: Pair) -> list[Difference]:
    """Compare variables and pools of one framework; between frameworks only what all of them heed."""
    a, b = pair.a.profile, pair.b.profile
    if not a.environment or not b.environment:
        return []  # a profile from elsewhere records none at all, which says nothing about a variable
    names = {"cpus", *_EVERYWHERE}
    if framework(a) == framework(b):
        names = {*a.environment, *b.environment} - {"threads"}
    if a.environment.get("threads") == b.environment.get("threads") == "1":
        names -= _WAITING
    differences: list[Difference] = []
    for name in sorted(names):
        values = a.environment.get(name, "not set"), b.environment.get(name, "not set")
        differences += pair.compare(f"environment {plain(name)}", values, f"The environments differ in {plain(name)}")
    return differences


def _protocol(pair: Pair) -> list[Difference]:
    """Compare the protocols. seconds: between steps of a run that were timed back to back and one by one."""
    a, b = pair.each(lambda run: run.profile.wall)
    spreads = [abs(median(wall.single) - median(wall.steps)) for wall in (a, b) if wall.single]
    seconds, text = max(spreads, default=None), "The steps were timed by different protocols"
    shown = (PROTOCOLS.get(a.protocol, a.protocol), PROTOCOLS.get(b.protocol, b.protocol))
    return pair.compare("protocol", shown, text, seconds=seconds)


def _versions(pair: Pair) -> list[Difference]:
    """Compare the versions of what both runs use."""
    a, b = pair.each(lambda run: run.profile.versions)
    names = sorted(name for name in {*a} & {*b} if a[name] != b[name])
    shown = [", ".join(f"{name} {versions[name]}" for name in names) for versions in (a, b)]
    return pair.compare("versions", (shown[0], shown[1]), "The versions differ")


def _doubts(pair: Pair) -> list[Difference]:
    """Say what a run doubts of itself: times that may be off are warnings, work that was not seen is named."""
    a, b = pair.each(_details)
    differences: list[Difference] = []
    for name in (*_OF_TIMES, *_OF_WORK):
        if name not in a and name not in b:
            continue
        values, text = (a.get(name, "no"), b.get(name, "no")), clause(FLAGS[name])
        doubt = pair.differ(_KEYS.get(name, name), values, text, "named" if name in _OF_WORK else "warning")
        details = {value: "" if value == "yes" else f" ({value})" for value in (doubt.a, doubt.b)}
        if values[0] == values[1]:  # of both alike it is no difference between them, and stays in doubt
            doubt = replace(doubt, text=f"{text}, in both runs{details[doubt.a]}.", severity="warning")
        elif "no" in values:
            side = values.index("no") - 1  # the other one
            detail = details[(doubt.a, doubt.b)[side]]
            doubt = replace(doubt, text=f"Only in {pair.names[side]}: {text[0].lower()}{text[1:]}{detail}.")
        differences.append(doubt)
    return differences


def _details(run: Analysis) -> dict[str, str]:
    """Return the flags of a run: what each says behind its colon, else "yes"."""
    details = {slug(flag): flag.partition(":")[2].strip() or "yes" for flag in run.flags}
    opaque = run.profile.compilation.opaque if run.profile.compilation else 0
    return {"opaque-regions": units.count(opaque), **details} if opaque else details


def _beyond(pair: Pair) -> list[Difference]:
    """Refuse ops that took far longer than the step: they leave nothing of it to be divided among them."""
    ratios = pair.each(lambda run: times_the_step(run.busy, run.wall))
    if ratios == (None, None):
        return []
    a, b = ("no more" if times is None else f"{units.significant(times)} times the step" for times in ratios)
    return [pair.differ("time of ops", (a, b), "Ops took longer than the step they ran in", "refused")]
