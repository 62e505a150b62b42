"""Choose the switch that answers a row of the account, and its setting: the backend's own, then those of every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.row import Row
from roofline.core.numerals import whole
from roofline.core.schema import Profile
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
#: Kinds that may answer what one of another kind answers.
_ALSO: Mapping[str, tuple[str, ...]] = {COMPILED_AWAY: (COMPILED_THERE,)}
_X64 = "jax_enable_x64"


def kinds_of(row: Row) -> dict[str, tuple[str, ...]]:
    """Return the kinds of switches that may answer a row, by the name that they answer: its annotations or settings."""
    if row.kind == "setting":
        return {change.name: OF_SETTINGS[change.name] for change in row.ops if change.name in OF_SETTINGS}
    by_name = known_annotations()
    kinds = {name: by_name[name].switch if name in by_name else None for name in row.annotations}
    return {name: () if kind is None else (kind, *_ALSO.get(kind, ())) for name, kind in kinds.items()}


def setting_for(
    kinds: Sequence[str], mine: Profile, other_profile: Profile, switches: Sequence[Switch], *, undone: bool = False
) -> Setting | None:
    """Return the switch of one of some kinds to turn in `mine`: the backend's own, else one of every run; None: none.

    Of several that of which the other run shows the other side. undone: `mine` is the run that spends less, which
    loses what the other one lacks.
    """
    targets = [
        (target, switch)
        for switch in switches
        if switch.kind in kinds and mine.device.kind in switch.devices and switch.undone == undone
        if (target := _target(switch, mine, other_profile)) is not None
    ]
    if targets:
        # The first that is set as in the other run, else the first.
        target, switch = min(targets, key=lambda turn: turn[0] != _state(turn[1], other_profile))
        now = _state(switch, mine) or ""
        return Setting(
            text=f"{switch.name} {switch.words.get(now, plain(now))} -> {switch.words.get(target, target)}",
            moves=switch.moves,
            backend=switch.backend,
            options={**mine.options, switch.option: target} if switch.option else dict(mine.options),
            in_step={switch.in_step: target} if switch.in_step else {},
        )
    everywhere = (_EVERYWHERE[kind](mine, other_profile) for kind in kinds if kind in _EVERYWHERE and not undone)
    return next(filter(None, everywhere), None)


def why_none(kinds: Sequence[str], mine: Profile) -> str:
    """Say why a step of the user's has no switch of some kinds, where there is more to say than that."""
    return next((_WRITTEN[kind] for kind in kinds if kind in _WRITTEN), "") if mine.own_step else ""


def _target(switch: Switch, mine: Profile, other_profile: Profile) -> str | None:
    """Return what a switch is set to: as in the other run, else its opposite; None where it cannot be, or is so."""
    now, theirs = _state(switch, mine), _state(switch, other_profile)
    if now is None:
        return None
    as_theirs = theirs in switch.turns.values() and theirs != now
    target = theirs if as_theirs else switch.turns.get(now, switch.turns.get("*"))
    return None if target == now else target


def _state(switch: Switch, profile: Profile) -> str | None:
    return profile.switches.get(switch.reads, profile.options.get(switch.reads, switch.assumed))


# ---------------------------------------------------------------------------------------- what every run can be told


def _threads(mine: Profile, other_profile: Profile) -> Setting | None:
    """Set as many threads as the other run had."""
    now, asked = (run.environment.get("threads", "") for run in (mine, other_profile))
    target = whole(asked)
    if not target or now == asked:
        return None
    return Setting(
        text=f"threads {plain(now) or 'not recorded'} -> {target}",
        moves=tuple(f"environment {name}" for name in _THREADS),
        threads=target,
    )


def _memory(mine: Profile, other_profile: Profile) -> Setting | None:
    """Keep freed memory, so that the next step finds its pages mapped."""
    if mine.device.kind != "cpu" or any(name in mine.environment for name in MALLOC):
        return None
    moves = tuple(f"environment {name}" for name in MALLOC)
    return Setting(text="freed memory given back -> kept", moves=moves, variables=MALLOC)


def _arithmetic(mine: Profile, other_profile: Profile) -> Setting | None:
    """Turn TF32 for products of float32 data on or off; of JAX also float64 off, where only the other run has none.

    None where it is not known how this run's products ran, or where they did not run as was asked for: then nothing
    that could be asked for is sure to change them.
    """
    if mine.switches.get(_X64) == "True" and other_profile.switches.get(_X64) == "False":
        return Setting(text=f"{_X64} True -> False", moves=(f"switch {_X64}",), in_step={_X64: "False"})
    if mine.device.kind != "cuda" or mine.precision not in ("default", "fp32", "tf32"):
        return None
    now = _ran_in(mine) or (None if mine.precision == "default" else mine.precision)
    target = "fp32" if now == "tf32" else "tf32"
    if now is None or target == mine.precision:
        return None
    moves = ("precision", "switch float32 *", "switch jax_default_matmul_precision")
    if not mine.own_step:
        return Setting(text=f"precision {mine.precision} -> {target}", moves=moves, precision=target)
    # A step that may take no precision: the process is told.
    requested = {FLOAT32: "ieee" if target == "fp32" else target}
    return Setting(text=f"float32 products {now} -> {target}", moves=moves[1:], in_step=requested)


_EVERYWHERE: Mapping[str, Callable[[Profile, Profile], Setting | None]] = {
    THREADS: _threads,
    MEMORY: _memory,
    FLOAT32: _arithmetic,
}


def _ran_in(profile: Profile) -> str | None:
    """Return what most FLOPs of float32 products ran in, "fp32" or less, called "tf32"; None: not recorded.

    What was asked for says little: frameworks differ in what they do by default, and switches may not reach a kernel.
    """
    flops = {"fp32": 0.0, "tf32": 0.0}
    for op in profile.ops:
        signatures = (profile.signatures[number] for number in (op.signature, *op.constituents))
        precision = next((signature.precision for signature in signatures if signature.precision), None)
        if precision and precision.inputs == "fp32" and precision.arithmetic is not None:
            arithmetic = "fp32" if precision.arithmetic == "fp32" else "tf32"
            flops[arithmetic] += profile.signatures[op.signature].cost.flops or 0.0
    return max(flops, key=lambda name: flops[name]) if any(flops.values()) else None
