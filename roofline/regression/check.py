"""Check whether a step got worse than a baseline, by how much, and where: in its causes as well as its time.

Counts (FLOPs, bytes, kernels, ops of unknown work, graph breaks, opaque regions) are the same on every run and every
machine, so a limit is a limit. Times are not: a gate of a time fails only where the growth is beyond its limit and its
95 % interval excludes the limit, too; between the two it is not resolved. A gate that cannot be judged states why.

The limits are in limits.py, one measure against its limit in growth.py, the measures in counts.py and times.py. This
file decides which profiles can be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from roofline.analysis.analysis import Analysis, WorkAnalysis, analyze, why_untimed
from roofline.comparison.machine_speed import machine_speed
from roofline.comparison.parity.precision import products_differ
from roofline.core.schema import Profile, slug
from roofline.core.vocabulary import PROTOCOLS
from roofline.errors import InputError, MeasurementError
from roofline.regression.counts import counts
from roofline.regression.growth import Gate
from roofline.regression.limits import Limits
from roofline.regression.times import times
from roofline.units import quote

#: Flags of a profile whose times cannot be judged.
UNUSABLE = ("contended", "throttled", "inflated", "beyond-step")


@dataclass(frozen=True, slots=True)
class Result:
    """Hold all gates, and the differences of the two profiles: (name, baseline's, current's)."""

    baseline: WorkAnalysis
    current: WorkAnalysis
    counts_only: bool
    gates: tuple[Gate, ...]
    differences: tuple[tuple[str, str, str], ...]

    @property
    def failed(self) -> tuple[Gate, ...]:
        """The gates that failed."""
        return tuple(gate for gate in self.gates if gate.status == "failed")


@dataclass(frozen=True)
class Baseline:
    """Hold the profile that others are judged by: analysed once for all of them, when the first is judged."""

    profile: Profile

    @cached_property
    def analysis(self) -> WorkAnalysis:
        """Analyse the profile. Raises InputError for one without a plain step."""
        return analyze(self.profile)


def check(
    baseline: Profile | Baseline, current: Profile, limits: Limits, counts_only: bool = False, allow_name: bool = False
) -> Result:
    """Judge `current` by `baseline`: a `Baseline` where several are judged by it.

    counts_only: ignore times, gap and memory, and the flags that make them unusable. allow_name: the model's name may
    differ, as a trace's comes from its file.

    Raises InputError for profiles that are not of the same step (for times: not on the same device), MeasurementError
    for times that cannot be judged: others used the processor, the machine was slower meanwhile, or a growth beyond
    its limit has too few steps to be told from noise.
    """
    baseline = Baseline(baseline) if isinstance(baseline, Profile) else baseline
    _check_step(baseline.profile, current, allow_name)
    before, after = baseline.analysis, analyze(current)
    gates = counts(before, after, limits)
    if not counts_only:
        first, second = _require_times(before, "BASELINE"), _require_times(after, "CURRENT")
        _check_conditions(first, second)
        timed = times(first, second, limits)
        gates = [*timed, *gates]
        if all(gate.measure in ("time", "gap") for gate in gates if gate.status == "failed"):
            _check_machine_speed(first, second, timed)
        if not any(gate.status == "failed" for gate in gates):
            _check_steps(timed)
    return Result(before, after, counts_only, tuple(gates), _differences(before, after))


# ------------------------------------------------------------------------------------- what can be judged


def _check_step(baseline: Profile, current: Profile, allow_name: bool) -> None:
    for name, profile in (("BASELINE", baseline), ("CURRENT", current)):
        if not profile.ops:
            raise InputError(f"{name} has no ops, so there is nothing to check: measure it again.")
    if not allow_name:
        traced = baseline.imported is not None and current.imported is not None
        cure = "import both traces with one --name" if traced else "measure both alike"
        _check_equal("model", baseline.model, current.model, f"{cure}, or add --allow-name if only the name differs")
    for field in ("mode", "size", "layers", "batch", "seq", "precision"):
        _check_equal(field, getattr(baseline, field), getattr(current, field))
    _check_equal("kind of device", baseline.device.kind, current.device.kind)


def _check_equal(subject: str, before: object, after: object, cure: str = "measure both alike") -> None:
    if before != after:
        raise InputError(
            f"The profiles are not of the same step: {subject} is {quote(before)} in BASELINE and {quote(after)} in "
            f"CURRENT; {cure}."
        )


def _require_times(side: WorkAnalysis, name: str) -> Analysis:
    """Return an analysis with times. Raises InputError for a profile without."""
    if isinstance(side, Analysis):
        return side
    raise InputError(f"{name} {why_untimed(side.profile)}, or add --counts-only.")


def _check_conditions(before: Analysis, after: Analysis) -> None:
    sides = (("BASELINE", before), ("CURRENT", after))
    conditions: tuple[tuple[str, Callable[[Analysis], object]], ...] = (
        ("the device", lambda side: side.device.name),
        ("the number of threads", _threads),
        ("how steps were timed", lambda side: PROTOCOLS.get(side.profile.wall.protocol, side.profile.wall.protocol)),
        ("what timed the steps", lambda side: side.profile.wall.source),
    )
    for condition, of in conditions:
        if of(before) != of(after):
            raise InputError(
                f"Times cannot be compared: {condition} is {quote(of(before))} in BASELINE and {quote(of(after))} in "
                "CURRENT; measure both alike, or add --counts-only."
            )
    for name, side in sides:
        unusable = [flag for flag in UNUSABLE if any(slug(text) == flag for text in side.flags)]
        if unusable:
            raise MeasurementError(
                f"The times of {name} cannot be judged, it is flagged {' and '.join(unusable)}: measure it again on an "
                "idle machine, or add --counts-only."
            )


def _check_steps(gates: Iterable[Gate]) -> None:
    """Refuse to pass a growth over its limit that has too few steps to fail. Raises MeasurementError."""
    for gate in gates:
        if gate.status == "unresolved" and gate.interval is None:
            raise MeasurementError(
                f"The {gate.measure} is beyond its limit, and fewer than 3 steps cannot separate it from noise: "
                "record more steps, raise the limit, or add --counts-only."
            )


def _check_machine_speed(before: Analysis, after: Analysis, gates: Iterable[Gate]) -> None:
    """Refuse to call a step slower where the machine was slower and the counts are equal. Raises MeasurementError."""
    slower = [gate for gate in gates if gate.measure == "time" and gate.status == "failed"]
    if not slower:
        return
    speed = machine_speed(before, after)
    if not speed.uneven or speed.products > 1:
        return
    if any(gate.limit.allows(gate.limit.growth(before.wall, after.wall + speed.seconds)) for gate in slower):
        raise MeasurementError(
            "The times of CURRENT cannot be judged: the same ops took longer there, as on a slower machine "
            f"(matmuls {1 / speed.products:.2f} times as long, other ops {1 / speed.other_ops:.2f} times); "
            "measure it again, or add --counts-only."
        )


def _threads(side: Analysis) -> str | None:
    return side.profile.environment.get("threads") or side.device.conditions.get("threads")


def _differences(before: WorkAnalysis, after: WorkAnalysis) -> tuple[tuple[str, str, str], ...]:
    """List names, backends, precisions of products, options, versions and switches that differ.

    A growth may come from them. Lower precision is no growth, and faster: only this list shows it, no gate.
    """
    baseline, current = before.profile, after.profile
    words = (("model", baseline.model, current.model), ("backend", baseline.backend, current.backend))
    differences = [(name, old, new) for name, old, new in words if old != new]
    differences += products_differ(before, after)
    for first, second in (
        (baseline.options, current.options),
        (baseline.versions, current.versions),
        (baseline.switches, current.switches),
    ):
        for name in sorted({*first, *second}):
            if first.get(name) != second.get(name):
                differences.append((name, first.get(name, "none"), second.get(name, "none")))
    return tuple(differences)
