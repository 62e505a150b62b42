"""Which switch answers a row of the account, and to what it is turned: the backend's own, then those of every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.row import Row
from roofline.core.schema import Op, Profile
from roofline.core.switch import (
    COMPILED_AWAY,
    COMPILED_THERE,
    FLOAT32,
    LAUNCHED_AWAY,
    MALLOC,
    MEMORY,
    THREADS,
    Setting,
    Switch,
)
from roofline.units import plain

#: Kinds of switches by the setting in which two runs differ, as parity names it.
OF_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "attention": ("attention",),
    "dropout": ("dropout",),
    "jit": (COMPILED_AWAY, LAUNCHED_AWAY, COMPILED_THERE),
    "optimizer kernels": ("optimizer",),
    "threads": (THREADS,),
    **dict.fromkeys(("precision", "tf32", "precision by rate", "switch jax_enable_x64"), (FLOAT32,)),
}
#: Why there is no switch in a step that the user wrote, where models of ours have one: by its kind.
_WRITTEN = {
    "attention": "its attention is written in your file",
    "dropout": "what it draws at random is written in your file",
    "optimizer": "its update is written in your file, or is none of an optimizer of PyTorch's that has another form",
    COMPILED_AWAY: "whether it is compiled is written in your file",
}
#: Where a profile may record how many threads there were.
_THREADS = ("threads", "NPROC", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "intra-op threads")
_X64 = "jax_enable_x64"


def kinds_of(row: Row) -> dict[str, tuple[str, ...]]:
    """Return the kinds of switches that may answer a row, by the name that they answer: its annotations or settings."""
    if row.kind == "setting":
        return {change.name: OF_SETTINGS[change.name] for change in row.ops if change.name in OF_SETTINGS}
    return {name: _of_annotation(name) for name in row.annotations}


def _of_annotation(name: str) -> tuple[str, ...]:
    known = known_annotations().get(name)
    if known is None or known.switch is None:
        return ()
    return (known.switch, COMPILED_THERE) if known.switch == COMPILED_AWAY else (known.switch,)


def setting_for(
    kinds: Sequence[str], mine: Profile, other: Profile, switches: Sequence[Switch], *, undone: bool = False
) -> Setting | None:
    """Return the switch of one of some kinds to turn in `mine`: the backend's own, else one of every run; None: none.

    Of several that of which the other run shows the other side. undone: `mine` is the run that spends less, which
    loses what the other one lacks.
    """
    chosen: Setting | None = None
    for switch in switches:
        if switch.kind in kinds and mine.device.kind in switch.devices and switch.undone == undone:
            setting, as_theirs = _turned(switch, mine, other)
            if setting is not None and as_theirs:
                return setting
            chosen = chosen or setting
    if chosen is not None or undone:
        return chosen
    everywhere = (_EVERYWHERE[kind](mine, other) for kind in kinds if kind in _EVERYWHERE)
    return next((setting for setting in everywhere if setting is not None), None)


def why_none(kinds: Sequence[str], mine: Profile) -> str:
    """Say why a step of the user's has no switch of some kinds, where there is more to say than that."""
    return next((_WRITTEN[kind] for kind in kinds if kind in _WRITTEN), "") if mine.own_step else ""


def _turned(switch: Switch, mine: Profile, other: Profile) -> tuple[Setting | None, bool]:
    """Set a switch as in the other run, if it can be and is not so already, else to its opposite; and say whether."""
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


# ---------------------------------------------------------------------------------------- what every run can be told


def _threads(mine: Profile, other: Profile) -> Setting | None:
    """Set as many threads as the other run had."""
    now, target = (run.environment.get("threads", "") for run in (mine, other))
    if not (target.isascii() and target.isdecimal()) or int(target) < 1 or now == target:
        return None
    return Setting(
        text=f"threads {plain(now) or 'not recorded'} -> {int(target)}",
        moves=tuple(f"environment {name}" for name in _THREADS),
        threads=int(target),
    )


def _memory(mine: Profile, other: Profile) -> Setting | None:
    """Keep freed memory, so that the next step finds its pages mapped."""
    if mine.device.kind != "cpu" or any(name in mine.environment for name in MALLOC):
        return None
    moves = tuple(f"environment {name}" for name in MALLOC)
    return Setting(text="freed memory given back -> kept", moves=moves, variables=MALLOC)


def _arithmetic(mine: Profile, other: Profile) -> Setting | None:
    """Turn TF32 for products of float32 data on or off; of JAX also float64 off, where only the other run has none.

    None where it is not known how this run's products ran, or where they did not run as was asked for: then nothing
    that could be asked for is sure to change them.
    """
    if mine.switches.get(_X64) == "True" and other.switches.get(_X64) == "False":
        return Setting(text=f"{_X64} True -> False", moves=(f"switch {_X64}",), in_step={_X64: "False"})
    if mine.device.kind != "cuda" or mine.precision not in ("default", "fp32", "tf32"):
        return None
    now = _tf32(mine)
    if now is None and mine.precision != "default":
        now = mine.precision == "tf32"
    target = "fp32" if now else "tf32"
    if now is None or target == mine.precision:
        return None
    moves = ("precision", "switch float32 *", "switch jax_default_matmul_precision")
    if not mine.own_step:
        return Setting(text=f"precision {mine.precision} -> {target}", moves=moves, precision=target)
    before = "tf32" if now else "fp32"  # of a step that may take no precision the process is told
    text = f"float32 products {before} -> {target}"
    return Setting(text=text, moves=moves[1:], in_step={FLOAT32: "ieee" if now else "tf32"})


_EVERYWHERE: Mapping[str, Callable[[Profile, Profile], Setting | None]] = {
    THREADS: _threads,
    MEMORY: _memory,
    FLOAT32: _arithmetic,
}


def _tf32(profile: Profile) -> bool | None:
    """Return whether products of float32 data ran in less than IEEE arithmetic, by executed FLOPs; None: not recorded.

    What was asked for says little: frameworks differ in what they do by default, and switches may not reach a kernel.
    """
    flops = {True: 0.0, False: 0.0}
    for op in profile.ops:
        arithmetic = _float32(profile, op)
        if arithmetic is not None:
            flops[arithmetic != "fp32"] += profile.signatures[op.signature].cost.flops or 0.0
    return None if not any(flops.values()) else flops[True] > flops[False]


def _float32(profile: Profile, op: Op) -> str | None:
    """Return the arithmetic of a product of float32 data: of the op, or of the first constituent that has one."""
    for number in (op.signature, *op.constituents):
        precision = profile.signatures[number].precision
        if precision is not None:
            return precision.arithmetic if precision.inputs == "fp32" else None
    return None
