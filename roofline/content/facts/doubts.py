"""Say what makes the numbers of a run doubtful: flags, uneven steps, work that is not known."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.analysis.analysis import Analysis
from roofline.analysis.flags import CURES, FLAGS, clause
from roofline.content import wording
from roofline.core.schema import slug

#: Flags that say what a run is, and nothing against its numbers.
HARMLESS = frozenset(
    ("in-process", "given-ceilings", "model-flops-derived", "phases-unresolved", "several-devices", "trains")
)
#: Flags that make all times doubtful, or all work, the gravest first; others follow.
_GRAVEST = (
    *("beyond-step", "contended", "throttled", "compiling", "oversubscribed", "contended-ceilings"),
    *("no-shapes", "no-ceilings", "unjoined", "above-ceiling"),
)


def doubtful(analysis: Analysis) -> list[str]:
    """Return the slugs of flags that make numbers doubtful, the gravest first, others in the order of the profile."""
    names = [name for name in map(slug, analysis.flags) if name not in HARMLESS]
    return sorted(names, key=lambda name: _GRAVEST.index(name) if name in _GRAVEST else len(_GRAVEST))


def cures(analysis: Analysis) -> list[str]:
    """Return what to do about the flags that make numbers doubtful, where something helps."""
    return list(dict.fromkeys(CURES[name] for name in doubtful(analysis) if name in CURES))


def reasons(analysis: Analysis) -> Iterator[str]:
    """Yield why numbers are doubtful: of each flag its first sentence, then what is not known."""
    flags = {slug(name): name for name in analysis.flags}
    for name in doubtful(analysis):
        text = FLAGS.get(name) or wording.flag(flags[name])
        sentence = text.partition(". ")[0].removesuffix(".")
        details = flags[name].partition(":")[2].strip() if name in FLAGS else ""
        seen = clause(sentence)
        bracket = f" ({wording.plain(details, 60).replace(' (', ', ').replace(')', '')})" if details else ""
        yield f"{seen}{bracket}{sentence.removeprefix(seen)}."
    if steps := wording.uneven(analysis.profile.wall):
        yield f"Steps are {steps}."
    known = analysis.coverage
    lacking = {kind: share for kind, share in known.items() if share is not None and not units.is_whole(share)}
    if ("flops" in lacking or "bytes" in lacking) and "no-shapes" not in flags:
        share = min(lacking.get("flops", 1.0), lacking.get("bytes", 1.0))
        unknown = f"Ops that take {units.percent(1 - share)} of all ops' time have no known FLOPs or bytes"
        yield f"{unknown}{'' if 'no-ceilings' in flags else ', so no minimum'}."
    if "time" in lacking:
        yield f"{units.percent(1 - lacking['time'])} of the recorded time belongs to no known op."
