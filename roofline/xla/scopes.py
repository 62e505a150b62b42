"""Read the phase and scope of an HLO instruction from the `op_name` that the framework gave it.

JAX writes its name stack: `jit(train)/transpose(jvp(bert/encoder))/layer.3/dot_general`. What a transformation wraps is
a scope; `transpose` is the backward pass; the last part is the primitive. TensorFlow writes node names, whose gradients
begin with `gradient_tape`: those are read as in graph mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

FORWARD, BACKWARD, OPTIMIZER = range(3)

#: What JAX itself puts into a name stack around the user's scopes.
_OWN = frozenset(
    (
        "while closed_call checkpoint rematted_computation remat remat2 custom_jvp_call custom_vjp_call "
        "custom_vjp_call_jaxpr core_call xla_call named_call shard_map pjit cond_fun body_fun eval_jaxpr"
    ).split()
)
#: What it puts there, too, and users call modules: `while/body`, `while/cond` and `cond/branch_1_fun` are of JAX.
_PARTS_OF_LOOPS = ("body", "body_pred", "cond")
_BRANCH = re.compile(r"branch_\d+_fun$")
_CALL = re.compile(r"(\w+)\((.*)\)$", re.DOTALL)
#: Names of a tape's gradients, and of symbolic ones, which say of which op: `gradients` alone may be a user's scope.
_GRADIENT = re.compile(r"(?:^|/)(?:gradient_tape(?=/)|gradients(?:_\d+)?(?=/(?:.*/)?[^/]*_grad(?:_\d+)?/))")
#: Calls of functions whose name is no scope: `jit(log_softmax)` is a library's own.
_FUNCTIONS = frozenset(("jit", "pjit", "xla_call", "core_call", "named_call"))


class Place(NamedTuple):
    """Phase (index into PHASES) and scope path of an instruction; scope None: it carries no name."""

    phase: int
    scope: str | None


def segments(op_name: str) -> list[str]:
    """An op_name at its slashes, but for those in parentheses."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(op_name):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "/" and depth <= 0:
            parts.append(op_name[begin:index])
            begin = index + 1
    parts.append(op_name[begin:])
    return parts


@lru_cache(maxsize=65536)
def place(op_name: str, optimizers: tuple[str, ...] = ("optimizer",)) -> Place:
    """The phase and the scope of a JAX op_name; optimizers: scopes whose ops are the optimizer's.

    XLA puts a semicolon between the names of instructions that it made one: the first is the one that was kept.
    """
    op_name = op_name.partition(";")[0]
    if not op_name.startswith(("jit(", "pjit(", "pmap(", "xmap(")):
        return Place(FORWARD, None)  # a parameter's name, or one of the compiler's own making
    backward = False
    path: list[str] = []
    parts = segments(op_name)
    for before, part, after in zip(["", *parts], parts[:-1], parts[1:], strict=False):
        if part in _PARTS_OF_LOOPS and (before == "while" or _BRANCH.match(after)):
            continue
        wrapped, transformations = _unwrap(part)
        backward |= "transpose" in transformations
        inner = [name for name in segments(wrapped) if _is_scope(name)]
        if transformations and inner and path[: len(inner)] == inner:
            path = inner  # a transformation of a transformed function names the scope around it again
        else:
            path += inner
    phase = BACKWARD if backward else FORWARD
    if any(_matches(name, optimizers) for name in path[:1]):
        phase = OPTIMIZER
    return Place(phase, "/".join(path))


def is_gradient(node_name: str) -> bool:
    """Tell whether a node of TensorFlow belongs to the backward pass."""
    return gradient_order(node_name) > 0


def gradient_order(node_name: str) -> int:
    """Count how often a gradient was taken to make a node of TensorFlow: 2 of the gradient of a gradient.

    The gradient of a loop counts as one more: TensorFlow takes that of its body in it.
    """
    return len(_GRADIENT.findall(node_name))


def is_recomputed(op_name: str) -> bool:
    """Tell whether the instruction repeats forward work in the backward pass, as `jax.checkpoint` asks for."""
    return repeating_checkpoint(op_name) is not None


def repeating_checkpoint(op_name: str) -> str | None:
    """Return the name of the `jax.checkpoint` that repeats an instruction; of one inside of another it is longer."""
    around, repeats, _ = op_name.partition("rematted_computation")
    return around if repeats else None


def _unwrap(part: str) -> tuple[str, list[str]]:
    """`transpose(jvp(bert))` is ("bert", ["transpose", "jvp"]); a called function has no scope in it."""
    functions: list[str] = []
    while (match := _CALL.match(part)) is not None:
        if match[1] in _FUNCTIONS:
            return "", functions
        functions.append(match[1])
        part = match[2]
    return part, functions


def _is_scope(name: str) -> bool:
    if name in _OWN or _CALL.match(name) or _BRANCH.match(name):
        return False
    # An einsum names its specification (`bhqd,bhkd->bhqk`), a function that is called itself (`RngStream.__call__`).
    return bool(name) and not ("->" in name or "<locals>" in name or name.endswith("__call__"))


def _matches(name: str, optimizers: Sequence[str]) -> bool:
    return any(name == optimizer or re.fullmatch(rf"{re.escape(optimizer)}_\d+", name) for optimizer in optimizers)


def commonest(places: Iterable[Place]) -> Place:
    """The place that most of these share; those without a scope count only where no other is."""
    counts: dict[Place, int] = {}
    for place in places:
        counts[place] = counts.get(place, 0) + 1
    named = {place: count for place, count in counts.items() if place.scope is not None}
    pool = named or counts
    return max(pool, key=lambda place: (pool[place], len(place.scope or ""))) if pool else Place(FORWARD, None)
