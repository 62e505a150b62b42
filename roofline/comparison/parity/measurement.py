"""Whether two runs were measured alike: device, threads, clocks, environment, protocol, versions, and doubts."""

from __future__ import annotations

from statistics import median

import msgspec

from roofline import units
from roofline.analysis.beyond_step import times_the_step
from roofline.comparison.machine_speed import machine_speed
from roofline.comparison.parity.difference import Difference, Pair, Severity
from roofline.core.framework import framework
from roofline.core.schema import Profile
from roofline.units import plain

#: What a run says about itself that makes its times or its work doubtful: slug -> (severity, sentence).
DOUBTS: dict[str, tuple[Severity, str]] = {
    "contended": ("warning", "Other programs used the processor during a measurement, so its times are too long"),
    "contended-ceilings": ("warning", "Other programs used the device while ceilings were measured"),
    "given-ceilings": ("warning", "Ceilings were given and not measured beside the step"),
    "throttled": ("warning", "The driver named a reason to hold the device's clock back during a measurement"),
    "inflated": ("warning", "Op times of a run were scaled down to its wall, because profiling it cost too much"),
    "beyond-step": ("warning", "Ops of a run took longer than the step they ran in, so that their times are wrong"),
    "few-steps": ("warning", "Fewer than 10 plain steps were timed"),
    "few-traced-steps": ("warning", "A trace holds fewer than 10 steps"),
    "unjoined": ("warning", "The profiled steps of a run and the counted one differ"),
    "in-process": ("warning", "A step ran in the caller's process, with the threads and settings found there"),
    "model-flops-derived": ("named", "Model FLOPs were derived from what ran, which may have been changed by then"),
    "optimised-only": ("named", "Model FLOPs are those of the compiled program, which may have been changed by then"),
    "opaque-regions": ("named", "The inside of some compiled regions is not known, so it cannot be verified"),
    "compiled-code": ("named", "Compiled code ran whose kernels were not seen, so its work cannot be verified"),
    "nothing-compiled": ("named", "Nothing of a step that was to be compiled was"),
    "nothing-returned": ("warning", "A JAX step returned nothing, so that it may not have been waited for"),
    "no-shapes": ("named", "A trace was recorded without shapes, so no work can be verified"),
    "command-buffers": ("named", "Kernels were replayed from command buffers, so their work cannot be verified"),
    "replays-unattributed": ("named", "Replayed kernels could not be traced back, so their work cannot be verified"),
    "replays-by-order": ("warning", "Replayed kernels were given their ops by order, without ids of graph nodes"),
    "phases-unresolved": ("named", "Forward, backward and optimizer are not told apart"),
}

#: How threads wait for each other: it changes nothing where there is one, and a measurement on contended cores sets it.
_WAITING = frozenset(("OMP_WAIT_POLICY",))
#: Mean clocks that differ by more than this share of the higher are two settings. By choice.
CLOCKS = 0.03
#: Variables that change what runs in every framework.
_EVERYWHERE = ("NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING")


def measurement(pair: Pair) -> list[Difference]:
    """All differences in how and where the step was measured."""
    return [
        *_device(pair),
        *_threads(pair),
        *_clocks(pair),
        *_machine_speed(pair),
        *_environment(pair),
        *_protocol(pair),
        *_source(pair),
        *_versions(pair),
        *_doubts(pair),
        *_beyond(pair),
    ]


def _device(pair: Pair) -> list[Difference]:
    """Different devices are comparable: the sum separates work from hardware."""
    a, b = pair.a.device, pair.b.device
    return (
        [] if (a.name, a.kind) == (b.name, b.kind) else [pair.differ("device", (a.name, b.name), "The devices differ")]
    )


def _threads(pair: Pair) -> list[Difference]:
    """No limit: more threads may also be slower, by any factor, where they wait for each other or share a core."""
    a, b = pair.each(lambda run: run.profile.environment.get("threads"))
    if a == b or None in (a, b):
        return []
    return [pair.differ("threads", (a, b), "The numbers of threads differ")]


def _clocks(pair: Pair) -> list[Difference]:
    """seconds: what the run at the lower clock would gain if all of its step scaled with it."""
    a, b = pair.each(lambda run: run.profile.conditions.get("sm_clock"))
    if not a or not b or min(a, b) <= 0 or pair.a.device.name != pair.b.device.name:
        return []
    lost = 1 - min(a, b) / max(a, b)
    if lost <= CLOCKS:
        return []
    slower = pair.a if a < b else pair.b
    shown = (units.scaled(a, "Hz"), units.scaled(b, "Hz"))
    return [pair.differ("clocks", shown, "The clocks differ", seconds=slower.wall * lost)]


def _machine_speed(pair: Pair) -> list[Difference]:
    """seconds: how much longer the ops that both runs have took in one of them."""
    found = machine_speed(pair.a, pair.b)
    if not found.uneven:
        return []
    slower, other = pair.names if found.products > 1 else pair.names[::-1]
    text = (
        f"What both runs do took longer in {slower}, as on a slower machine (its clock, its neighbours, colder "
        f"caches): products {_times(found.products)} as long as in {other}, other ops {_times(found.others)}."
    )
    shown = ("slower", "faster") if found.products > 1 else ("faster", "slower")
    difference = pair.differ("pace", shown, "", "warning", seconds=abs(found.seconds))
    return [msgspec.structs.replace(difference, text=text)]


def _times(ratio: float) -> str:
    return f"{max(ratio, 1 / ratio):.2f} times"


def _environment(pair: Pair) -> list[Difference]:
    """Variables and pools of one framework; between frameworks only what all of them heed."""
    a, b = pair.a.profile, pair.b.profile
    one = framework(a) == framework(b)
    names = {*a.environment, *b.environment} - {"threads"} if one else {"cpus", *_EVERYWHERE}
    if a.environment.get("threads") == b.environment.get("threads") == "1":
        names -= _WAITING
    found = []
    for name in sorted(names):
        values = (a.environment.get(name, "not set"), b.environment.get(name, "not set"))
        # A profile from elsewhere records no environment at all, which says nothing about a variable.
        if values[0] != values[1] and a.environment and b.environment:
            found.append(pair.differ(f"environment {plain(name)}", values, f"The environments differ in {plain(name)}"))
    return found


def _protocol(pair: Pair) -> list[Difference]:
    """seconds: how far apart the steady and the single steps of a run that has both are."""
    a, b = pair.each(lambda run: run.profile.wall)
    if a.protocol == b.protocol:
        return []
    known = [abs(median(wall.single) - median(wall.steps)) for wall in (a, b) if wall.single]
    text = "The steps were timed by different protocols"
    return [pair.differ("protocol", (a.protocol, b.protocol), text, seconds=max(known, default=None))]


def _source(pair: Pair) -> list[Difference]:
    """A wall that was timed under a profiler includes what the profiler costs; how much is not known."""
    a, b = pair.each(lambda run: run.profile.wall.source)
    if a == b:
        return []
    return [pair.differ("wall", (a, b), "The wall of one run was timed under a profiler and includes its overhead")]


def _versions(pair: Pair) -> list[Difference]:
    """Versions of what both runs use."""
    a, b = pair.a.profile.versions, pair.b.profile.versions
    names = sorted(name for name in {*a} & {*b} if a[name] != b[name])
    if not names:
        return []
    shown = (", ".join(f"{name} {a[name]}" for name in names), ", ".join(f"{name} {b[name]}" for name in names))
    return [pair.differ("versions", shown, "The versions differ")]


def _doubts(pair: Pair) -> list[Difference]:
    """What a run says about itself: times that may be off are warnings, work that was not seen is named."""
    a, b = pair.each(lambda run: _slugs(run.flags, run.profile))
    found = []
    for slug, (severity, text) in DOUBTS.items():
        if slug not in a and slug not in b:
            continue
        shown = (a.get(slug, "no"), b.get(slug, "no"))
        if shown[0] != shown[1]:
            found.append(pair.differ(_KEYS.get(slug, slug), shown, text, severity))
            continue
        # What is in doubt of both alike is no difference between them. It stays in doubt.
        both = pair.differ(_KEYS.get(slug, slug), shown, "", "warning")
        more = "" if shown[0] == "yes" else f" ({both.a})"
        found.append(msgspec.structs.replace(both, text=f"{text}, in both runs{more}."))
    return found


def _beyond(pair: Pair) -> list[Difference]:
    """Ops that took far longer than the step leave nothing of it to be divided among them."""
    found = pair.each(lambda run: times_the_step(run.busy, run.wall))
    if found == (None, None):
        return []
    a, b = ("no more" if times is None else f"{units.significant(times)} times the step" for times in found)
    return [pair.differ("time of ops", (a, b), "Ops took longer than the step they ran in", "refused")]


_KEYS = {"contended": "contention", "throttled": "throttling"}


def _slugs(flags: tuple[str, ...], profile: Profile) -> dict[str, str]:
    """The flags of a run: what each says behind its colon, else "yes"."""
    found = {}
    for flag in flags:
        slug, _, details = flag.partition(":")
        found[slug.strip().replace("_", "-")] = details.strip() or "yes"
    if profile.compilation and profile.compilation.opaque:
        found.setdefault("opaque-regions", units.count(profile.compilation.opaque))
    return found
