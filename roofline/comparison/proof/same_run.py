"""What is recorded of a run, and the work that it does: what two measurements must have alike to prove anything."""

from __future__ import annotations

from collections.abc import Mapping

from roofline import units
from roofline.analysis.analysis import WorkAnalysis, analyze
from roofline.comparison.parity.difference import SAME_WORK
from roofline.core.schema import Profile, slug
from roofline.units import plain

Recorded = dict[str, str]
#: Versions that change no step.
_OURS = frozenset(("roofline",))
#: What a measurement on contended cores sets for itself (session.measure), and an experiment for all that it measures.
_SET = frozenset(("environment OMP_WAIT_POLICY",))


def recorded(profile: Profile) -> Recorded:
    """All that is recorded of how a step was built and run, by name: what parity of two measurements rests on."""
    found = {
        "model": profile.model,
        "backend": profile.backend,
        "mode": profile.mode,
        "size": profile.size,
        "precision": profile.precision,
    }
    for name in ("batch", "seq", "layers", "parameters", "trainable", "samples", "tokens"):
        value = getattr(profile, name)
        if value is not None:
            found[name] = str(value)
    tables = {"option": profile.options, "switch": profile.switches, "environment": profile.environment}
    for kind, table in tables.items():
        found |= {f"{kind} {name}": value for name, value in table.items()}
    found |= {f"file {name}": value for name, value in profile.sources.items()}
    return found | {f"version {name}": value for name, value in profile.versions.items() if name not in _OURS}


def differing(before: Profile, after: Profile) -> dict[str, tuple[str | None, str | None]]:
    """Return the facts in which two profiles differ, but for what measuring them sets; None: not recorded."""
    one, other = recorded(before), recorded(after)
    names = sorted({*one, *other} - _SET)
    return {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}


def changed_since(recorded_: Profile, again: Profile) -> list[str]:
    """List the facts in which a step that is measured again is not what was recorded.

    Plain steps alone record less, and not whether they train: what they do not record may be as it was.
    """
    found = differing(recorded_, again)
    return [name for name, (_, value) in found.items() if value is not None and name != "mode"]


def model_flops(analysis: WorkAnalysis) -> dict[str, float]:
    """Model FLOPs of products by phase [FLOP]; in one sum where the phases could not be told apart."""
    by_phase = {phase: products.model for phase, products in analysis.products.items()}
    unresolved = "phases-unresolved" in map(slug, analysis.profile.flags)
    return {"step": sum(by_phase.values())} if unresolved else by_phase


def counted_work(profile: Profile) -> dict[str, float]:
    """`model_flops` of a profile that was counted."""
    return model_flops(analyze(profile))


def other_work(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """What is not the same work, in words: a phase and its model FLOPs of both [FLOP]."""
    if ("step" in before) != ("step" in after):
        before, after = {"step": sum(before.values())}, {"step": sum(after.values())}
    apart = []
    for phase in dict.fromkeys((*before, *after)):
        one, other = before.get(phase, 0.0), after.get(phase, 0.0)
        if abs(one - other) > SAME_WORK * max(one, other):
            apart.append(f"model FLOPs of the {plain(phase)} ({units.flop(one)} to {units.flop(other)})")
    return apart
