"""Which switch is turned for a finding, and to what: the backend's own first, then those that every run has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roofline.comparison.parity.difference import plain
from roofline.core.schema import Op, Profile
from roofline.core.switch import MALLOC, Setting, Switch


def setting_for(rule: str, mine: Profile, other: Profile, switches: Sequence[Switch]) -> Setting | None:
    """The switch to turn in `mine` for a finding of `rule`: the backend's own, else one of every run; None: none."""
    for switch in switches:
        if rule in switch.rules and mine.device.kind in switch.devices:
            setting = _turned(switch, mine, other)
            if setting is not None:
                return setting
    common = _COMMON.get(rule)
    return common(mine, other) if common else None


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


def _threads(mine: Profile, other: Profile) -> Setting | None:
    """As many threads as the other run had."""
    now, target = mine.environment.get("threads", ""), other.environment.get("threads", "")
    if not (target.isascii() and target.isdecimal()) or int(target) < 1 or now == target:
        return None
    names = ("threads", "NPROC", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "intra-op threads")
    return Setting(
        text=f"threads {plain(now) or 'not recorded'} -> {int(target)}",
        moves=tuple(f"environment {name}" for name in names),
        threads=int(target),
    )


def _precision(mine: Profile, other: Profile) -> Setting | None:
    """TF32 for products of float32 data, or none of it: what this run does not do, and the other does if they differ.

    None where it is not known how this run's products ran, or where they did not run as was asked for: then nothing
    that could be asked for is sure to change them.
    """
    if mine.device.kind != "cuda" or mine.precision not in ("default", "fp32", "tf32"):
        return None
    now = _tf32(mine)
    if now is None and mine.precision != "default":
        now = mine.precision == "tf32"
    if now is None:
        return None
    target = "fp32" if now else "tf32"
    if target == mine.precision:
        return None
    moves = ("precision", "switch float32 *", "switch jax_default_matmul_precision")
    return Setting(text=f"precision {mine.precision} -> {target}", moves=moves, precision=target)


def _tf32(profile: Profile) -> bool | None:
    """Whether products of float32 data ran in less than IEEE arithmetic, by executed FLOPs; None: not recorded.

    What was asked for says little: frameworks differ in what they do by default, and switches may not reach a kernel.
    """
    flops = {True: 0.0, False: 0.0}
    for op in profile.ops:
        arithmetic = _arithmetic(profile, op)
        if arithmetic is not None:
            flops[arithmetic != "fp32"] += profile.signatures[op.signature].cost.flops or 0.0
    return None if not any(flops.values()) else flops[True] > flops[False]


def _arithmetic(profile: Profile, op: Op) -> str | None:
    """That of a product of float32 data: of the op, or of the first of its constituents that has one."""
    for number in (op.signature, *op.constituents):
        precision = profile.signatures[number].precision
        if precision is not None:
            return precision.arithmetic if precision.inputs == "fp32" else None
    return None


def _allocation(mine: Profile, other: Profile) -> Setting | None:
    """glibc's malloc told to keep what was freed, so that the next step finds its pages mapped."""
    if mine.device.kind != "cpu" or any(name in mine.environment for name in MALLOC):
        return None
    # No block is mapped for itself, the heap is never trimmed, and grows by 64 MiB at once.
    values = ("0", str(1 << 40), str(1 << 26))
    return Setting(
        text="freed memory given back -> kept",
        moves=tuple(f"environment {name}" for name in MALLOC),
        variables=dict(zip(MALLOC, values, strict=True)),
    )


#: By rule, what can be set in every run.
_COMMON: Mapping[str, Callable[[Profile, Profile], Setting | None]] = {
    "threads": _threads,
    "precision": _precision,
    "allocation": _allocation,
}
