"""Finds where in the model, and in the program, the nodes of a compiled graph come from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from roofline.recording.source_lines import SourceFiles

_OF_SELF = ["L", "'self"]  # what `L['self']` is split into
#: How a module is reached, in the second form where its class looks attributes up by itself (diffusers' ModelMixin).
_MODULES = re.compile(r"\._modules\['|\.__dict__\['_modules'\]\['")
#: A frame of a stack that Dynamo keeps as text, the outermost first.
_FRAME = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)
_CALL = re.compile(r"\.(?!\d+(\.|$))")  # modules with a number are called by the owner of their list


def scope_of(node: Any, names: frozenset[str]) -> str | None:
    """The layer path of a node, as eager mode names it: each module as its caller's `named_modules` does."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        # The model itself is in no stack; nor are nodes that Inductor made, or gradients that autograd adds up.
        is_op_of_program = node.meta.get("original_aten") is not None
        return "" if is_op_of_program and node.meta.get("partitioner_tag") in (None, "is_forward") else None
    return path_of([str(entry[0]) for entry in stack.values()], names)


def line_of(nodes: Iterable[Any]) -> str | None:
    """The line of the user's program that the first node with one comes from; a backward node's is its forward op's."""
    return next((line for node in nodes if (line := _line(node.meta.get("stack_trace") or ""))), None)


@cache
def _line(stack: str) -> str | None:
    frames = reversed(_FRAME.findall(stack))
    return next((line for file, number in frames if (line := _files().line(file, int(number)))), None)


@cache
def _files() -> SourceFiles:
    return SourceFiles()


def path_of(stack: list[str], names: frozenset[str]) -> str:
    """The layer path of modules that call each other, outermost first: `L['self'].encoder`, ...

    After a graph break in the forward of a module, `self` is that module. Then it is the one below which there are
    modules of these names; of several such modules there is no telling which one it is.
    """
    path: list[str] = []
    outer = ""
    for expression in stack:
        plain = _MODULES.sub(".", expression).replace("']", "").replace("[", ".").replace("]", "")
        parts = plain.split(".")
        name = _module(parts, names)
        if not name and parts[:2] == _OF_SELF:
            below = "." + ".".join(parts[2:])
            ends = [name for name in names if name.endswith(below)]
            if len(ends) == 1:
                name = ends[0]
                if not outer:
                    outer = name.removesuffix(below)
                    path = _CALL.sub("/", outer).split("/")
        if not name or name == outer:
            continue
        path.append(name.removeprefix(outer + ".") if outer and name.startswith(outer + ".") else name)
        outer = name
    return "/".join(path)


def _module(parts: list[str], names: frozenset[str]) -> str:
    """The longest end of an expression that is a module of the model; "" for the model itself."""
    ends = (".".join(parts[start:]) for start in range(len(parts)))
    return next((name for name in ends if name in names), "")
