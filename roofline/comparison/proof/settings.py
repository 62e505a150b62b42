"""Which switch is turned for a finding, and to what: the backend's own first, then those that every run has."""

from __future__ import annotations

from collections.abc import Sequence

from roofline.comparison.causes.order import causes
from roofline.comparison.parity.difference import plain
from roofline.core.schema import Profile
from roofline.core.switch import COMPILED_AWAY, Setting, Switch

#: Why there is no switch in a step that the user wrote, where models of ours have one: by what it takes away.
_WRITTEN = {
    "attention": "its attention is written in your file",
    "dropout": "what it draws at random is written in your file",
    "optimizer": "its update is written in your file, or is none of an optimizer of PyTorch's that has another form",
    COMPILED_AWAY: "whether it is compiled is written in your file",
}


def setting_for(
    rule: str, mine: Profile, other: Profile, switches: Sequence[Switch], *, undone: bool = False
) -> Setting | None:
    """The switch to turn in `mine` for a finding of `rule`: the backend's own, else one of every run; None: none.

    Of several that of which the other run shows the other side. undone: `mine` is the run that spends less, which
    loses what the other one lacks.
    """
    cause = causes().get(rule)
    if cause is None:
        return None
    chosen: Setting | None = None
    for switch in switches:
        if switch.kind in cause.proved_by and mine.device.kind in switch.devices and switch.undone == undone:
            setting, as_theirs = _turned(switch, mine, other)
            if setting is not None and as_theirs:
                return setting
            chosen = chosen or setting
    if chosen is not None or undone:
        return chosen
    return cause.setting(mine, other) if cause.setting else None


def why_none(rule: str, mine: Profile) -> str:
    """Why there is no switch for a finding of `rule`, where there is more to say than that."""
    cause = causes().get(rule)
    if cause is None or not mine.own_step:
        return ""
    return next((_WRITTEN[kind] for kind in cause.proved_by if kind in _WRITTEN), "")


def _turned(switch: Switch, mine: Profile, other: Profile) -> tuple[Setting | None, bool]:
    """A switch set as in the other run, if it can be and is not so already, else to its opposite; and whether it is."""
    now = _state_of(switch, mine)
    if now is None:
        return None, False
    theirs = _state_of(switch, other)
    as_theirs = theirs in switch.turns.values() and theirs != now
    target = theirs if as_theirs else switch.turns.get(now, switch.turns.get("*"))
    if target is None or target == now:
        return None, False
    setting = Setting(
        text=f"{switch.name} {switch.words.get(now, plain(now))} -> {switch.words.get(target, target)}",
        moves=switch.moves,
        backend=switch.backend,
        options={**mine.options, switch.option: target} if switch.option else dict(mine.options),
        in_step={switch.in_step: target} if switch.in_step else {},
    )
    return setting, as_theirs


def _state_of(switch: Switch, profile: Profile) -> str | None:
    return profile.switches.get(switch.reads, profile.options.get(switch.reads, switch.assumed))
