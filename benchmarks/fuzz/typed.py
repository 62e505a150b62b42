"""Change JSON, TOML or MessagePack so that it still has the types that its reader asks for.

What passes the decoder reaches validation, analysis and renderers: None wherever it is allowed, empty lists, numbers at
the edges, names that act on their format.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import mutation
from msgspec import inspect
from target import Mutate

_DEEPEST = 6
#: Numbers that measurements have: half of what is drawn, so that most of a document stays possible.
_USUAL = (0.0, 1e-9, 1e-6, 1e-4, 0.002, 0.5, 1.0, 3.0, 1e3, 1e6, 1e9, 1e12)
_WORDS = ("fp32", "bf16", "matrix.fp32", "dram.read", "cuda", "cpu", "forward", "exact", "aten::mm", "model.layer.0")


def json_of(kind: Any) -> Mutate:
    """Return what changes JSON of a type."""
    known = inspect.type_info(kind)

    def mutate(data: bytes, draw: Random) -> bytes | None:
        try:
            tree = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return json.dumps(_several(tree, known, draw), separators=(",", ":")).encode()

    return mutate


def _several(tree: Any, kind: inspect.Type, draw: Random) -> Any:
    if draw.random() < 0.1:
        return mutation.change([tree], draw)
    for _ in range(draw.choice((1, 1, 2, 3))):
        tree = changed(tree, kind, draw)
    return tree


def changed(tree: Any, kind: inspect.Type, draw: Random) -> Any:
    """Return a tree of a type with one part of it drawn anew, left out, repeated, or emptied."""
    kind = _chosen(tree, kind)
    if isinstance(tree, dict) and isinstance(kind, inspect.StructType):
        by_name = {field.encode_name: field for field in kind.fields}
        if draw.random() < 0.25:
            field = draw.choice(kind.fields)
            rest = {key: leaf for key, leaf in tree.items() if key != field.encode_name}
            return rest if draw.random() < 0.3 else {**rest, field.encode_name: generated(field.type, draw)}
        key = draw.choice(list(tree) or [""])
        return {**tree, key: changed(tree[key], by_name[key].type, draw)} if key in by_name else tree
    if isinstance(tree, dict) and isinstance(kind, inspect.DictType) and tree:
        key = draw.choice(list(tree))
        match draw.randint(0, 5):
            case 0:
                return {name: leaf for name, leaf in tree.items() if name != key}
            case 1:
                return {**tree, str(generated(kind.key_type, draw)): tree[key]}
            case _:
                return {**tree, key: changed(tree[key], kind.value_type, draw)}
    if isinstance(tree, list) and tree:
        place = draw.randrange(len(tree))
        inner = _inner(kind, place)
        if inner is not None:
            match draw.randint(0, 9):
                case 0:
                    return []
                case 1:
                    return tree[:place] + tree[place + 1 :]
                case 2:
                    return [*tree, tree[place]]
                case _:
                    return [*tree[:place], changed(tree[place], inner, draw), *tree[place + 1 :]]
    return generated(kind, draw)


def _inner(kind: inspect.Type, place: int) -> inspect.Type | None:
    if isinstance(kind, inspect.StructType) and kind.array_like:
        return kind.fields[place].type if place < len(kind.fields) else None
    if isinstance(kind, inspect.TupleType):
        return kind.item_types[place] if place < len(kind.item_types) else None
    return getattr(kind, "item_type", None)


def _chosen(tree: Any, kind: inspect.Type) -> inspect.Type:
    """Return the type of a union that a tree has."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    if not isinstance(kind, inspect.UnionType):
        return kind
    for one in kind.types:
        one = _chosen(tree, one)
        is_list = isinstance(one, inspect.StructType) and one.array_like
        if isinstance(tree, dict) and isinstance(one, inspect.StructType | inspect.DictType) and not is_list:
            return one
        if isinstance(tree, list) and (is_list or hasattr(one, "item_type") or hasattr(one, "item_types")):
            return one
    return kind


def generated(kind: inspect.Type, draw: Random, depth: int = 0) -> Any:
    """Draw a tree of a type."""
    match kind:
        case inspect.Metadata():
            return generated(kind.type, draw, depth)
        case inspect.UnionType():
            return generated(draw.choice(kind.types), draw, depth)
        case inspect.NoneType():
            return None
        case inspect.BoolType():
            return draw.random() < 0.5
        case inspect.IntType():
            whole = draw.choice((*range(4), *range(4), *mutation.WHOLE))
            return max(whole, kind.ge) if kind.ge is not None else whole
        case inspect.FloatType():
            return draw.choice(_USUAL if draw.random() < 0.5 else mutation.NUMBERS)
        case inspect.StrType():
            return draw.choice(_WORDS if draw.random() < 0.3 else mutation.TEXTS)
        case inspect.LiteralType():
            return draw.choice(kind.values)
        case inspect.StructType():
            return _struct(kind, draw, depth)
        case inspect.DictType():
            number = 0 if depth > _DEEPEST else draw.choice((0, 1, 1, 2))
            keys = [str(generated(kind.key_type, draw, depth + 1)) for _ in range(number)]
            return {key: generated(kind.value_type, draw, depth + 1) for key in keys}
        case inspect.TupleType():
            return [generated(one, draw, depth + 1) for one in kind.item_types]
    if (item := getattr(kind, "item_type", None)) is not None:
        number = 0 if depth > _DEEPEST else draw.choice((0, 1, 1, 2, 3))
        return [generated(item, draw, depth + 1) for _ in range(number)]
    return mutation.odd(draw)


def _struct(kind: inspect.StructType, draw: Random, depth: int) -> Any:
    share = 0.5 if depth < 3 else 0.2
    if kind.array_like:
        return [generated(field.type, draw, depth + 1) for field in kind.fields]
    fields = [field for field in kind.fields if field.required or draw.random() < share]
    return {field.encode_name: generated(field.type, draw, depth + 1) for field in fields}
