"""Shorten a kernel's name to its operation and types, without namespaces, parameters and plumbing.

`void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, ...)::...
{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int, ...)` is `vectorized_elementwise<Gelu(bf16)>`. Much is lost, so
that two kernels may come out alike: `distinct` keeps them apart. Names that are not C++ stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from roofline.content.names import mangled

_OPEN, _CLOSE = "<([{", {">": "<", ")": "(", "]": "[", "}": "{"}
#: Nested deeper than any kernel; what is deeper is left out.
_DEEPEST = 24
_LONGEST = 20_000

#: Arguments that say how data is passed and not what is done.
_PLUMBING = {
    *("array", "Array", "TrivialOffsetCalculator", "OffsetCalculator", "LoadWithoutCast", "StoreWithoutCast"),
    *("allocator", "TensorIteratorBase", "TensorIterator"),
}
#: Templates that only pass on what they are made of.
_TRANSPARENT = {"Kernel", "Kernel2", "gpu_kernel_impl", "gpu_kernel_impl_nocast", "func_wrapper_t"}
#: Names that say nothing without the namespace before them.
_GENERAL = {"kernel"}
_TYPES = {
    **dict.fromkeys(("BFloat16", "__nv_bfloat16", "bfloat16_t", "hip_bfloat16", "__hip_bfloat16"), "bf16"),
    **dict.fromkeys(("Half", "__half", "half_t", "half"), "fp16"),
}
_ENDING = re.compile(r"(?:_?CUDA|_cuda)?_?[Kk]ernel(?:_?(?:cuda|CUDA|[Ii]mpl))*$")
_NUMBER = re.compile(r"-?\d+(?:u?l?l?|U?L?L?)|true|false|\([\w:]+\)-?\d+")
_LAMBDA = re.compile(r"\{lambda\((?P<types>.*)\)(?:#\d+)?\}", re.DOTALL)


def brief(name: str, numbers: bool = False) -> str:
    """Shorten the name of a kernel. numbers: keep the numbers and truth values of its template's arguments."""
    if name.startswith("_Z"):
        name = mangled.readable(name[:_LONGEST])
    elif ("(" not in name and "<" not in name) or not re.match(r"[\w:~]+[ <:(]", name) or len(name) > _LONGEST:
        return name
    pieces = [piece for piece in _split(name, " ") if piece and piece != "const" and not piece.startswith("[")]
    # "Memcpy DtoH (Device -> Pinned)" is no C++: there a bracket follows a name.
    if not pieces or any(piece.startswith("(") and not piece.startswith(_ANONYMOUS) for piece in pieces):
        return name
    return _term(pieces[-1], numbers, 0) or name


_ANONYMOUS = "(anonymous namespace)"


def _term(text: str, numbers: bool, depth: int) -> str:
    """Shorten a type, a function or a value; "" for plumbing."""
    text = text.strip().removesuffix(" const").rstrip("*& ")
    if _NUMBER.fullmatch(text):
        return (re.sub(r"[uUlL]+$", "", text) if text[-1] in "uUlL" else text.rpartition(")")[2]) if numbers else ""
    if depth > _DEEPEST:
        return "…"
    term = types = ""
    for part in _split(text, "::"):
        match = _LAMBDA.fullmatch(part)
        if match:
            types = ", ".join(_arguments(match["types"], numbers, depth)) or types
        elif part != _ANONYMOUS and not part.startswith(("operator", "{")):
            head, arguments, call = _taken_apart(part)
            # Namespaces, and functions inside of functions, make way for what is in them.
            if head:
                outer, term, types = term, _made(head, arguments, numbers, depth), ""
                term = f"{outer}::{term}" if outer and head in _GENERAL else term
            if call and depth == 0:
                break
    return f"{term}({types})" if term and types else term


def _made(head: str, arguments: str, numbers: bool, depth: int) -> str:
    """Write a template with its arguments."""
    if head in _PLUMBING:
        return ""
    inside = _arguments(arguments, numbers, depth)
    if head in _TRANSPARENT and inside:
        return ", ".join(inside[-1:] if head == "func_wrapper_t" else inside)
    name = _TYPES.get(head, head)
    stem = _ENDING.sub("", name)
    name = stem if len(stem) > 2 else name
    return f"{name}<{', '.join(inside)}>" if inside else name


def _arguments(text: str, numbers: bool, depth: int) -> list[str]:
    """Shorten the arguments, each once: a kernel on one type often repeats it three times."""
    terms = (_term(part, numbers, depth + 1) for part in _split(text, ","))
    return list(dict.fromkeys(filter(None, terms)))


def _taken_apart(part: str) -> tuple[str, str, bool]:
    """Split `name<arguments>(parameters)` into the name, the arguments, and whether there are parameters."""
    head = re.match(r"[^<(]*", part)
    name = head[0].strip() if head else ""
    tail = part[len(head[0]) if head else 0 :]
    if not tail.startswith("<"):
        return name, "", tail.startswith("(")
    end = _end(tail)
    return name, tail[1:end], tail[end + 1 :].lstrip().startswith("(")


def _end(text: str) -> int:
    """Find the place of the bracket that closes the first letter of `text`."""
    for at, depth in _depths(text):
        if depth == 0 and at > 0:
            return at
    return len(text)


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Count the brackets that are open after each letter. A ">" that closes none is an operator."""
    stack: list[str] = []
    for at, letter in enumerate(text):
        if letter in _OPEN:
            stack.append(letter)
        elif letter in _CLOSE and stack and stack[-1] == _CLOSE[letter]:
            stack.pop()
        yield at, len(stack)


def _split(text: str, separator: str) -> list[str]:
    """Split a text at the separators outside all brackets."""
    parts, begin = [], 0
    for at, depth in _depths(text):
        if depth == 0 and at >= begin and text.startswith(separator, at):
            parts.append(text[begin:at].strip())
            begin = at + len(separator)
    return [*parts, text[begin:].strip()]
