"""Compare what is recorded of two measurements, and their work: they must be alike to prove anything."""

from __future__ import annotations

from collections.abc import Mapping

from roofline import units
from roofline.analysis.analysis import WorkAnalysis
from roofline.comparison.parity.difference import SAME_WORK
from roofline.core.schema import Profile, slug
from roofline.units import plain

_FIELDS = (
    *("model", "backend", "mode", "size", "precision"),
    *("batch", "seq", "layers", "parameters", "trainable", "samples", "tokens"),
)
#: What may differ: our version changes no step, and what a measurement on contended cores sets for itself
#: (session.measure), an experiment sets for all that it measures.
_FREE = frozenset(("version roofline", "environment OMP_WAIT_POLICY"))


def recorded(profile: Profile) -> dict[str, str]:
    """Return all that is recorded of how a step was built and run, by name."""
    tables: dict[str, Mapping[str, str]] = {
        "option": profile.options,
        "switch": profile.switches,
        "environment": profile.environment,
        "file": profile.sources,
        "version": profile.versions,
    }
    facts = {name: str(getattr(profile, name)) for name in _FIELDS if getattr(profile, name) is not None}
    return facts | {f"{kind} {name}": value for kind, table in tables.items() for name, value in table.items()}


def differing(before: Profile, after: Profile) -> dict[str, tuple[str | None, str | None]]:
    """Return the facts in which two profiles differ, but for what measuring them sets; None: not recorded."""
    old, new = recorded(before), recorded(after)
    names = sorted({*old, *new} - _FREE)
    return {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}


def changed_since(before: Profile, after: Profile) -> list[str]:
    """List the facts in which a step that is measured again is not what was recorded.

    Plain steps alone record less, and not whether they train: what they do not record may be as it was.
    """
    changed = differing(before, after)
    return [name for name, (_, value) in changed.items() if value is not None and name != "mode"]


def model_flops(analysis: WorkAnalysis) -> dict[str, float]:
    """Return the model FLOPs of products by phase; in one sum where the phases could not be told apart."""
    by_phase = {phase: products.model for phase, products in analysis.products.items()}
    unresolved = "phases-unresolved" in map(slug, analysis.profile.flags)
    return {"step": sum(by_phase.values())} if unresolved else by_phase


def other_work(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Name what is not the same work: a phase and its model FLOPs of both."""
    if ("step" in before) != ("step" in after):
        before, after = {"step": sum(before.values())}, {"step": sum(after.values())}
    changed = []
    for phase in dict.fromkeys((*before, *after)):
        old, new = before.get(phase, 0.0), after.get(phase, 0.0)
        if abs(old - new) > SAME_WORK * max(old, new):
            changed.append(f"model FLOPs of the {plain(phase)} ({units.flop(old)} to {units.flop(new)})")
    return changed
