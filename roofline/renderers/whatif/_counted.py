"""Write the least time of counted work on a device, in words and a table."""

from __future__ import annotations

from roofline import units
from roofline.content import terminal, wording
from roofline.content.facts import memory
from roofline.content.terminal import SHEET, Page
from roofline.projection.least import Least

_ROOFS = {
    "serial": "these ops, one after the other",
    "overlap": "the same, compute and memory overlapped",
    "ideal": "only parameters, inputs and outputs moved",
}


#: What goes first of the table for want of room: the highest.
_RANKS = (0, 4, 1, 2, 3, 0)


def render(least_time: Least, page: Page = SHEET) -> str:
    """Write the sentence, the floors by group, and their basis."""
    verdict = f"{wording.subject(least_time.step)}: counted and not run; {_verdict(least_time)}"
    if least_time.fit.fits is False:
        verdict += f" It does not fit into the memory of {wording.plain(least_time.device.name)}."
    rows: list[tuple[str, ...]] = [("group", "ops", "executed", "read", "written", "minimum")]
    unknown = {"matmul"} if least_time.unpriced else set()
    sums = [
        (name, total, None if name in unknown else least_time.floors[name]) for name, total in least_time.groups.items()
    ]
    for name, total, floor in (*sums, ("total", least_time.step.total, least_time.floor)):
        moved = units.byte(total.bytes_read), units.byte(total.bytes_written)
        rows.append((name, units.count(total.ops), units.flop(total.flops), *moved, units.seconds(floor)))
    roofs = [
        f"{name} {'at least ' if least_time.unknown_ops else ''}{units.seconds(least_time.step.roofs[name])} ({roof})"
        for name, roof in _ROOFS.items()
        if least_time.step.roofs[name] is not None
    ]
    facts = [("least step", "; ".join(roofs))] if roofs and not least_time.unpriced else []
    facts += memory.fit_facts(least_time.fit)
    if least_time.unknown_ops:
        facts.append(
            ("not known", f"{wording.counted(least_time.unknown_ops, 'op')} without known work, or a ceiling for it")
        )
    if least_time.step.missing:
        names = wording.conjunction(list(map(wording.plain, least_time.step.missing)))
        device = wording.plain(least_time.device.name)
        facts.append(("missing", f"{names}: not known for {device}, so not in the column minimum"))
    table = terminal.fitted(rows, (0,), _RANKS, page, 1, -1)
    sentence = terminal.wrapped(verdict, page, "bold")
    return "\n".join([*sentence, "", *table, "", *terminal.facts(facts, page)]) + "\n"


def _verdict(least_time: Least) -> str:
    """Say the least time, or why there is none."""
    device, floor = wording.plain(least_time.device.name), least_time.floor
    if floor is None:
        precisions = wording.conjunction([wording.plain(name.removeprefix("matrix.")) for name in least_time.unpriced])
        return f"{device} has no known ceiling for products in {precisions}, so no least time is known there."
    shares = ", ".join(f"{units.percent(seconds / floor)} {name}" for name, seconds in least_time.bounds.items())
    least_words = f"on {device} at least {units.seconds(floor)} per step by the ceilings alone"
    return f"{least_words} ({shares}), which code does not reach."
