"""XLA's own cost analysis of single instructions, through jaxlib: each becomes a module of its own.

Private API of jaxlib and no part of the product: only a second opinion for tests.
"""

from __future__ import annotations

import re
from typing import Any

import jax
import jaxlib._jax as jax_library

try:
    import jaxlib._hlo as hlo_library
except ImportError:  # jaxlib 0.10.0
    hlo_library = jax_library

_LINE = re.compile(r"^\s*(?:ROOT )?%(\S+) = (.*)$")
_NAME = re.compile(r"%([\w.\-]+)")


def proto(text: str) -> bytes:
    """A bare HloModuleProto from HLO text, also of instructions that no CPU runs."""
    return hlo_library.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def analyses(module: Any, computations: set[str]) -> dict[str, dict[str, float]]:
    """XLA's figures for each instruction of these computations, by instruction name; others' texts are left out."""
    options = hlo_library.HloPrintOptions()
    options.print_metadata = False
    options.print_large_constants = False
    texts = _computations(module.to_string(options))
    client = jax.devices()[0].client
    found = {}
    for name in computations:
        lines = [match.groups() for line in texts[name].split("\n")[1:] if (match := _LINE.match(line))]
        shapes = {each: _shape(rest)[0] for each, rest in lines}
        for each, rest in lines:
            shape, body = _shape(rest)
            opcode = body.split("(", 1)[0]
            if opcode in ("parameter", "constant", "while", "conditional", "call"):
                continue
            text = _alone(each, shape, opcode, body, shapes, texts)
            found[each] = jax_library.hlo_module_cost_analysis(client, hlo_library.hlo_module_from_text(text))
    return found


def _computations(text: str) -> dict[str, str]:
    """The text of each computation by name."""
    parts = re.split(r"\n(?=%|ENTRY )", text)
    return {_NAME.search(part).group(1): part.removeprefix("ENTRY ") for part in parts[1:]}


def _shape(rest: str) -> tuple[str, str]:
    """The type at the beginning of an instruction's text, and what follows."""
    if not rest.startswith("("):
        shape, _, body = rest.partition(" ")
        return shape, body
    end = _closing(rest, 0)
    return rest[: end + 1], rest[end + 1 :].strip()


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError(text)


def _alone(name: str, shape: str, opcode: str, body: str, shapes: dict[str, str], texts: dict[str, str]) -> str:
    start = body.index("(")
    end = _closing(body, start)
    operands = _NAME.findall(body[start:end])
    attributes = re.sub(r", control-predecessors=\{[^}]*\}", "", body[end + 1 :])
    needed: dict[str, None] = {}
    _reach(attributes, texts, needed)
    parameters = "".join(
        f"  %{operand} = {shapes[operand]} parameter({number})\n"
        for number, operand in enumerate(dict.fromkeys(operands))
    )
    called = "\n\n".join(texts[each].rstrip() for each in reversed(needed))
    arguments = ", ".join("%" + operand for operand in operands)
    return (
        f"HloModule alone\n\n{called}\n\nENTRY %entry {{\n{parameters}"
        f"  ROOT %{name} = {shape} {opcode}({arguments}){attributes}\n}}\n"
    )


def _reach(text: str, texts: dict[str, str], found: dict[str, None]) -> None:
    """The computations that a text refers to, callers before those they call."""
    for name in _NAME.findall(text):
        if name in texts:
            found.pop(name, None)
            found[name] = None
            _reach(texts[name].split("\n", 1)[1], texts, found)
