"""Which switch is turned for a finding, and to what: the backend's own first, then those that every run has."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.comparison.causes.order import causes
from roofline.comparison.parity.difference import plain
from roofline.core.schema import Profile
from roofline.core.switch import Setting, Switch


def setting_for(rule: str, mine: Profile, other: Profile, switches: Sequence[Switch]) -> Setting | None:
    """The switch to turn in `mine` for a finding of `rule`: the backend's own, else one of every run; None: none."""
    cause = causes().get(rule)
    if cause is None:
        return None
    for switch in switches:
        if switch.kind in cause.proved_by and mine.device.kind in switch.devices:
            setting = _turned(switch, mine, other)
            if setting is not None:
                return setting
    return cause.setting(mine, other) if cause.setting else None


def _turned(switch: Switch, mine: Profile, other: Profile) -> Setting | None:
    """A switch set as in the other run, if it can be and is not so already, else to its opposite."""
    now = _state_of(switch, mine)
    if now is None:
        return None
    theirs = _state_of(switch, other)
    as_theirs = theirs in switch.turns.values() and theirs != now
    target = theirs if as_theirs else switch.turns.get(now, switch.turns.get("*"))
    if target is None or target == now:
        return None
    return Setting(
        text=f"{switch.name} {switch.words.get(now, plain(now))} -> {switch.words.get(target, target)}",
        moves=switch.moves,
        backend=switch.backend,
        options={**mine.options, switch.option: target} if switch.option else dict(mine.options),
    )


def _state_of(switch: Switch, profile: Profile) -> str | None:
    return profile.switches.get(switch.reads, profile.options.get(switch.reads, switch.assumed))
