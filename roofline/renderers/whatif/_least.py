"""The least time of counted work on a device, in words and a table."""

from __future__ import annotations

from roofline import units
from roofline.projection.least import Least
from roofline.renderers import _terminal, _words
from roofline.renderers._terminal import SHEET, Page

_ROOFS = {
    "serial": "these ops, one after the other",
    "overlap": "the same, compute and memory overlapped",
    "ideal": "nothing moved but parameters, inputs and outputs",
}


#: What goes first of the table for want of room: the highest.
_RANKS = (0, 4, 1, 2, 3, 0)


def render(found: Least, page: Page = SHEET) -> str:
    """The sentence, the floors by group, and what they rest on."""
    floors = found.floor
    shares = ", ".join(f"{units.percent(seconds / floors)} {name}" for name, seconds in found.bounds.items())
    verdict = (
        f"{_words.subject(found.step)}: counted and not run; on {_words.plain(found.there.name)} at least "
        f"{units.seconds(floors)} per step by the ceilings alone ({shares}). What code reaches of them is not in that."
    )
    rows: list[tuple[str, ...]] = [("group", "ops", "executed", "read", "written", "floor")]
    sums = [(name, total, found.floors[name]) for name, total in found.groups.items()]
    for name, total, floor in (*sums, ("total", found.step.total, floors)):
        moved = units.byte(total.bytes_read), units.byte(total.bytes_written)
        rows.append((name, str(total.ops), units.flop(total.flops), *moved, units.seconds(floor)))
    roofs = [
        f"{name} {'at least ' if found.unknown else ''}{units.seconds(found.step.roofs[name])} ({what})"
        for name, what in _ROOFS.items()
        if found.step.roofs[name] is not None
    ]
    facts = [("least step", "; ".join(roofs))]
    if found.unknown:
        facts.append(("not known", f"{_words.counted(found.unknown, 'op')} without known work, or a ceiling for it"))
    if found.step.missing:
        facts.append(("missing", ", ".join(map(_words.plain, found.step.missing))))
    table = _terminal.fitted(rows, (0,), _RANKS, page, 1, -1)
    told = _terminal.wrapped(verdict, page, "bold")
    return "\n".join([*told, "", *table, "", *_terminal.facts(facts, page)]) + "\n"
