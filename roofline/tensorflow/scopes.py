"""Read a TensorFlow node's phase and scope from its name.

A name is the path of name scopes and the op's own part: `gradient_tape/bert/encoder/layer.0/attention/MatMul/MatMul_1`.
Three things are not the user's and are taken out:

- what inlining a function puts before its names: `StatefulPartitionedCall/...`, and for loops and branches
  `blk/while/body/_1/blk/while/MatMul`, where the second half repeats the first;
- what the graph optimizer puts between: `ArithmeticOptimizer/`, `ConstantFolding/`;
- names of ops: `dense/MatMul/ReadVariableOp` lies in `dense`, since `dense/MatMul` is an op, and the gradient
  `gradient_tape/dense/MatMul/MatMul_1` in `dense` too. Symbolic gradients write `gradients/dense/MatMul_grad/MatMul`.

A number at the end (`dense_1`) is kept: TensorFlow numbers a scope that is entered again exactly like a second layer,
and nothing in the graph tells the two apart. Numbers of ops go with the op's own part.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import lru_cache

from roofline.core.vocabulary import OpClass
from roofline.xla import scopes
from roofline.xla.scopes import BACKWARD, FORWARD, OPTIMIZER, Place

_CALL = re.compile(r"(Stateful)?PartitionedCall(_\d+)?$")
_BRANCH = re.compile(r"(body|cond|then|else|branch\w*)$")
_NUMBER = re.compile(r"_\d+$")
_MADE = frozenset(("ArithmeticOptimizer", "ConstantFolding", "ConstantFoldingCtrl", "Func", "LayoutOptimizer"))
_REWRITTEN = re.compile(r"(?<![^/])(SimplifyAggregation_[A-Za-z]+_|AddOpsRewrite_(Leaf_\d+_)?)(?=[^/]+$)")
_GRADIENTS = re.compile(r"gradients(_\d+)?$")

_NORM = re.compile(
    r"(layer|batch|group|rms|instance|weight|unit)_?norm|normali[sz]ation|^moments(_\d+)?$|^norm(_\d+)?$|l2_normalize",
    re.IGNORECASE,
)
_SOFTMAX = re.compile(r"softmax", re.IGNORECASE)


def canonical(name: str) -> str:
    """The name without the numbers that lowering gave to loops and branches: equal before and after it."""
    return re.sub(r"/(?:_\d+|_)(?=/|$)", "/_", name)


def original(name: str) -> str:
    """The canonical name of the node that grappler's own node of this name stands for."""
    return canonical(_REWRITTEN.sub("", name.replace("ArithmeticOptimizer/", "")))


@lru_cache(maxsize=65536)
def path(name: str) -> tuple[bool, tuple[str, ...]]:
    """(whether a gradient, the user's path with the op's own part at the end) of a node's name."""
    parts = _without_inlining(name.split("/"))
    backward = "gradient_tape" in parts
    for index in range(len(parts) - 1, -1, -1):
        if _GRADIENTS.match(parts[index]) and index < len(parts) - 1:
            # Before it stands where the gradient was taken, behind it where the forward op was.
            parts, backward = parts[index + 1 :], True
            break
    parts = [part for part in parts if part not in _MADE and part != "gradient_tape" and not _CALL.match(part)]
    return backward, tuple(parts) or (name,)


@lru_cache(maxsize=65536)
def gradient_order(name: str) -> int:
    """Count how often a gradient was taken to make a node (`xla.scopes.gradient_order`)."""
    return scopes.gradient_order("/".join(_without_inlining(name.split("/"))))


def _without_inlining(parts: list[str]) -> list[str]:
    """A body's names begin with the path of the function that holds the loop: it is taken once."""
    while True:
        marks = [
            index
            for index in range(1, len(parts) - 2)
            if _BRANCH.match(parts[index]) and (parts[index + 1] == "_" or _NUMBER.fullmatch(parts[index + 1]))
        ]
        if not marks:
            return parts
        outer, inner = parts[: marks[0]], parts[marks[0] + 2 :]
        starts = [place for place in range(len(outer)) if outer[place] == inner[0]]
        common = {place: _common(outer[place:], inner) for place in starts}
        parts = outer[: max(common, key=lambda place: common[place])] + inner if common else outer[:-1] + inner


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    number = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        number += 1
    return number


def place(name: str, optimizers: Sequence[str] = ("optimizer",), ops: Container[tuple[str, ...]] = ()) -> Place:
    """The phase and the scope of a node.

    optimizers: first parts of a path that are the optimizer's ("adamw"), in any case. ops: the paths of all nodes, by
    which a scope is told from an op; without them (names in HLO) the forward op's name stays in its gradient's scope.
    """
    backward, parts = path(name)
    scope = list(parts[:-1])
    if _NUMBER.fullmatch(name.rpartition("/")[2]):
        # Made by lowering a loop or a branch, `<call>/<any tensor's name>_switch/_108`: it lies where the call does.
        calls = [length for length in range(len(scope), 0, -1) if tuple(scope[:length]) in ops]
        scope = scope[: calls[0]] if calls else scope
    while scope and (tuple(scope) in ops or scope[-1].endswith("_grad")):
        scope.pop()
    phase = BACKWARD if backward else FORWARD
    if scope and _is_optimizer(scope[0], tuple(optimizers)):
        phase = OPTIMIZER
    return Place(phase, "/".join(scope))


@lru_cache(maxsize=4096)
def _is_optimizer(part: str, optimizers: tuple[str, ...]) -> bool:
    lower = part.lower()
    return lower.startswith("optimizer") or _NUMBER.sub("", lower) in {name.lower() for name in optimizers}


@lru_cache(maxsize=65536)
def semantic(scope: str) -> OpClass | None:
    """Tell what the ops of a scope are parts of, by its name: the innermost part that says it decides."""
    for part in reversed(scope.split("/")):
        if _SOFTMAX.search(part):
            return "softmax"
        if _NORM.search(part):
            return "normalisation"
    return None
