"""Scopes as a tree: which siblings are one layer repeated, and how far down the blocks of an unknown model lie.

Nothing here knows a model. Layers that differ in their number alone and hold the same are one (`encoder/layer.*`); the
tree is descended through them, and where one node holds nearly all of the work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

#: What the ops outside of every scope are called.
TOP = "(top)"
#: What the ops are called that a loader of batches runs inside of the step.
LOADER = "DataLoader"
#: The numbers that end a name: "layer.3", "h_3", "block3", "3", and Keras's "dense_1_2", whose first one is "dense".
_NUMBERS = re.compile(r"([._]?\d+)+$")
#: All of them, without what parts the first one from the name.
_START = re.compile(r"\d+(?:[._]?\d+)*$")
#: From this share on one node holds nearly all of the work. By choice: the FFN has up to two thirds of the products of
#: a transformer's layer, and is a block beside attention.
_NEARLY_ALL = 0.75
#: A node with less than this share of all work is not looked into. By choice.
_LITTLE = 0.1
#: The layers that a model is made of hold most of what is below any node: beside them others are parts like any.
_MOST = 0.5
#: Deeper scopes are those of their ancestor: names in a profile come from anywhere. By choice, far below any module.
_DEEPEST = 100
#: So many blocks can be read. By choice.
_READABLE = 16
#: Two layers hold the same if this share of what either has below it is in both: a compiler that fuses across layers
#: leaves the first and the last one other parts. By choice: most of it.
_ALIKE = 0.5


@dataclass(slots=True)
class _Node:
    """A scope. work: that of its own ops; op_class: of most of it. below: the scopes directly below it, by name.

    repeated: whether it stands for several layers that hold the same.
    """

    work: float = 0.0
    op_class: str = ""
    below: dict[str, _Node] = field(default_factory=dict)
    repeated: bool = False

    @property
    def whole(self) -> float:
        return self.work + self.inner

    @property
    def inner(self) -> float:
        """Return the work of what is below it."""
        return sum(node.whole for node in self.below.values())

    @property
    def holds_layers(self) -> bool:
        """Return whether it is or holds layers that are repeated and have parts."""
        return bool(self.below) and (self.repeated or any(node.holds_layers for node in self.below.values()))


def folded(scopes: Sequence[str], work: Sequence[float], classes: Sequence[str]) -> list[str]:
    """Fold repeated layers in each scope: "layer.3/attention" -> "layer.*/attention".

    work: of the ops of each scope, in any one unit; classes: the class of most of it, "" where it has no ops.
    """
    return _folded_tree(scopes, work, classes)[1]


def blocks(scopes: Sequence[str], work: Sequence[float], classes: Sequence[str]) -> list[str]:
    """Return the block of each scope of a model whose parts nobody named; arguments as for `folded`.

    Repeated layers and what holds them are descended, what is made like one that was, and what holds nearly all of the
    work, while the blocks stay few.
    The ops of a descended node that are in none of its parts are a block of its name.
    """
    tree, names = _folded_tree(scopes, work, classes)
    open_ = _opened(tree)
    return [_block(name, open_) or TOP for name in names]


def _block(name: str, opened: set[str]) -> str:
    """Return the first part of a path that was not opened, or all of it."""
    path = ""
    for part in name.split("/"):
        path = f"{path}/{part}" if path else part
        if path not in opened:
            return path
    return path


def _opened(tree: _Node) -> set[str]:
    """Return the paths of the nodes that were descended."""
    shown, everything, opened, parts = _shown(tree, ""), tree.whole, set[str](), dict[str, _Node]()
    while True:
        able = {
            path: node.inner
            for path, (node, share) in shown.items()
            if node.inner > 0
            and len(shown) - 1 + len(node.below) <= _READABLE
            and (
                node.inner >= _NEARLY_ALL * everything
                or (
                    node.holds_layers
                    and node.inner >= _LITTLE * everything
                    and (share >= _MOST or _made_like(path, node, parts))
                )
            )
        }
        if not able:
            return opened
        path = max(able, key=able.__getitem__)
        opened.add(path)
        node, _ = shown.pop(path)
        parts[path] = node
        shown |= _shown(node, path)


def _made_like(path: str, node: _Node, opened: Mapping[str, _Node]) -> bool:
    """Return whether a node is made like an opened one next to it, as an encoder like its decoder."""
    above, parts = path.rpartition("/")[0], node.below.keys()
    siblings = (sibling.below.keys() for name, sibling in opened.items() if name.rpartition("/")[0] == above)
    return any(len(parts & sibling) > _ALIKE * len(parts | sibling) for sibling in siblings)


def _shown(parent: _Node, name: str) -> dict[str, tuple[_Node, float]]:
    """Return the nodes below a node by their paths, each with its share of the work that lies deeper still."""
    inner = sum(node.inner for node in parent.below.values())
    return {
        f"{name}/{part}" if name else part: (node, node.inner / inner if inner else 0.0)
        for part, node in parent.below.items()
    }


def _folded_tree(scopes: Sequence[str], work: Sequence[float], classes: Sequence[str]) -> tuple[_Node, list[str]]:
    """Return the tree of folded scopes, and the path in it of each."""
    root = _Node()
    paths = [list(filter(None, path.split("/")))[:_DEEPEST] for path in scopes]
    for path, amount, op_class in zip(paths, work, classes, strict=True):
        node = root
        for part in path:
            node = node.below.setdefault(part, _Node())
        node.work += amount
        node.op_class = node.op_class or op_class
    renamed: dict[str, str] = {"": ""}
    return _fold([("", root)], "", renamed), [renamed["/".join(path)] for path in paths]


def _fold(layers: Sequence[tuple[str, _Node]], name: str, renamed: dict[str, str]) -> _Node:
    """Merge nodes that are one layer repeated; `renamed` gets the folded path of all that are below them.

    layers: (path, node) of each. name: the folded path of all.
    """
    merged = _Node(
        sum(node.work for _, node in layers), next((node.op_class for _, node in layers if node.op_class), "")
    )
    below: dict[str, _Below] = {}
    begun: dict[tuple[str, int], str] = {}
    for path, node in layers:
        labels, counts = _labels(node), Counter[str]()
        for label, inner in labels.items():
            base = _NUMBERS.sub("", inner[0])
            counts[base] += 1
            # Keras counts through the whole model: "dense" of one layer is "dense_1" of the next.
            first = begun.setdefault((base, counts[base]), label)
            where = first if label not in below and first not in labels else label
            below.setdefault(where, []).extend((f"{path}/{part}" if path else part, node.below[part]) for part in inner)
    for label, nodes in _counted_through(below).items():
        folded_name = f"{name}/{label}" if name else label
        renamed.update((path, folded_name) for path, _ in nodes)
        merged.below[label] = _fold(nodes, folded_name, renamed)
        merged.below[label].repeated = len(nodes) > len(layers)
    return merged


#: Some scopes with their paths.
_Below: TypeAlias = list[tuple[str, _Node]]


def _counted_through(below: Mapping[str, _Below]) -> dict[str, _Below]:
    """Name the parts of repeated layers, with a "*" for a number that differs from layer to layer.

    Where that would name two parts alike, the number is that of the first layer: "dense_{1,...}".
    """
    plain = [label for label in below if not {"*", "{"} & set(label)]
    stars = {label: f"{_START.split(label, maxsplit=1)[0]}*" for label in plain}
    counts = Counter((*stars.values(), *below))
    starred: dict[str, _Below] = {}
    for label, nodes in below.items():
        star = stars.get(label)
        if star is None or len({path.rpartition("/")[2] for path, _ in nodes}) == 1:
            starred[label] = nodes
        elif counts[star] == 1:
            starred[star] = nodes
        else:
            starred[f"{star[:-1]}{{{label.removeprefix(star[:-1])},...}}"] = nodes
    return starred


def _labels(node: _Node) -> dict[str, list[str]]:
    """Group the names below a node by what they are folded to, in their order."""
    labels: dict[str, list[str]] = {}
    for groups in _groups(node):
        several = sum(len(group) > 1 for group in groups) > 1
        for group in groups:
            start = _START.split(max(group, key=len), maxsplit=1)[0]
            numbered = sorted(group, key=_numbers)
            few = ",".join([name.removeprefix(start) for name in numbered][:3]) + (",..." if len(group) > 3 else "")
            label = group[0] if len(group) == 1 else f"{start}{{{few}}}" if several else f"{start}*"
            labels.setdefault(label, []).extend(group)
    return labels


def _numbers(name: str) -> list[tuple[int, str]]:
    """Return a key that orders names by the numbers in them, however many digits these have."""
    digits = [number.lstrip("0") for number in re.findall(r"\d+", name)]
    return [(len(number), number) for number in digits]


def _groups(node: _Node) -> Iterable[list[list[str]]]:
    """Group the names below a node: those alike without numbers, and of them those that hold the same."""
    by_base: dict[str, list[list[str]]] = {}
    for name in node.below:
        groups = by_base.setdefault(_NUMBERS.sub("", name), [])
        alike = next((group for group in groups if _alike(node.below[group[0]], node.below[name])), None)
        if alike is None:
            groups.append([name])
        else:
            alike.append(name)
    return by_base.values()


def _alike(a: _Node, b: _Node) -> bool:
    """Return whether two siblings are the same layer: by what is below them, or by what their ops are."""
    if not a.below and not b.below:
        return a.op_class == b.op_class
    names_a, names_b = set(_below(a)), set(_below(b))
    return len(names_a & names_b) >= _ALIKE * len(names_a | names_b)


def _below(node: _Node) -> Iterator[str]:
    """Return the names below a node without their numbers."""
    return (_NUMBERS.sub("", name) or name for name in node.below)
