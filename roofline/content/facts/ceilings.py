"""Say when the ceilings of a device were measured, and whether the machine was busy then."""

from __future__ import annotations

from roofline import units
from roofline.content.wording import plain
from roofline.core.device import Ceiling, Device


def provenance(device: Device) -> str:
    """Say how many ceilings are measured and when, and which of them while others used the device; "" of none.

    Of ceilings that the user gave it begins with the device that they are those of.
    """
    beforehand = [ceiling for ceiling in device.ceilings.values() if not ceiling.from_trace]
    measured = [ceiling for ceiling in beforehand if ceiling.spread is not None]
    sheets = len(beforehand) - len(measured)
    parts = [_measured(measured, device.kind, all_of_them=not sheets)] if measured else []
    if sheets:
        parts.append(f"{sheets} from a datasheet" if measured else "from a datasheet")
    words = "; ".join(parts)
    return f"given, those of {plain(device.ceilings_of, 120)}: {words}" if words and device.ceilings_of else words


def waited(ceiling: Ceiling, kind: str) -> str:
    """Say that others used the device while a ceiling was measured; "" where they did not, or nobody looked.

    kind: of the device: of a GPU processes are seen, of a processor how long threads wait for it.
    """
    if not ceiling.contended:
        return ""
    if kind != "cpu":
        return "measured while another process was on the GPU: may be too low"
    return (
        f"measured on a busy machine (its threads waited {units.percent(ceiling.waited)} of the time): may be too low"
    )


def _measured(ceilings: list[Ceiling], kind: str, all_of_them: bool) -> str:
    dates = sorted({plain(ceiling.date, 30) for ceiling in ceilings if ceiling.date})
    when = f" {dates[0]}" if len(dates) == 1 else f" {dates[0]} to {dates[-1]}" if dates else ""
    words = f"measured{when}" if all_of_them else f"{len(ceilings)} measured{when}"
    watched = [ceiling.waited for ceiling in ceilings if ceiling.waited is not None]
    if not watched:
        return words
    busy = sum(ceiling.contended for ceiling in ceilings)
    return f"{words}, {(_waiting if kind == 'cpu' else _shared)(watched, len(ceilings), busy)}"


def _shared(watched: list[float], ceilings: int, busy: int) -> str:
    """Say whether another process was on the GPU. watched: of these ceilings [share of the looks]."""
    if busy:
        return f"{busy} of them only while another process was on the GPU"
    words = "no other process was seen on the GPU"
    return words if len(watched) == ceilings else f"{words} (asked for {len(watched)} of them)"


def _waiting(watched: list[float], ceilings: int, busy: int) -> str:
    """Say how long threads waited for a processor that others had. watched: of these ceilings [share of the time]."""
    longest = max(watched)
    share = f"up to {units.percent(longest)} of the time"
    if busy:
        return f"{busy} of them only while others used the processor (threads waited {share})"
    words = f"threads waited for a processor {share}" if longest else "no thread waited for a processor"
    return words if len(watched) == ceilings else f"{words} (seen for {len(watched)} of them)"
