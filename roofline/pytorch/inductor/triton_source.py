"""Read what a kernel of torch's compiler reads and writes from its source, in the cache folder that Inductor keeps.

The source is read as text and parsed; nothing of it is executed. Each `tl.load(pointer + index)` and `tl.store` says
which elements of a buffer are touched: an index is made of digits of the numbers that count the kernel's elements
(`x0 = xindex % 64`), so that the number of its values follows. Indices that were loaded themselves touch as many
elements as they have values, which is the most that they can.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from roofline.errors import InputError

_LARGEST = 4 << 20  # bytes of a source; they have a few thousand
_HASH = re.compile(r"[A-Za-z0-9_]{4,100}")
_INDEX = re.compile(r"([xyzr])(\d?)_?index")
_MOST = 1 << 50  # elements where their number is not given: more than any tensor has


class Sources:
    """Finds the sources of kernels below a folder by the hash that a trace names. missing: hashes without a source."""

    def __init__(self, folder: Path) -> None:
        """Raises InputError where there is no such folder."""
        if not folder.is_dir():
            raise InputError(f"There is no folder {folder}: give the cache folder of torch's compiler (Inductor).")
        self.missing: set[str] = set()
        self._folder = folder
        self._files: dict[str, Path] | None = None
        self._kernels: dict[str, Kernel | None] = {}

    def kernel(self, name: str) -> Kernel | None:
        """Return the kernel in the file of that name (a hash), None where there is none or it cannot be read."""
        if name not in self._kernels:
            self._kernels[name] = self._read(name) if _HASH.fullmatch(name) else None
            if self._kernels[name] is None:
                self.missing.add(name)
        return self._kernels[name]

    def _read(self, name: str) -> Kernel | None:
        path = self._folder / name[1:3] / f"{name}.py"  # where Inductor puts it
        if not path.is_file():
            if self._files is None:
                self._files = {file.stem: file for file in self._folder.rglob("*.py")}
            path = self._files.get(name, path)
        try:
            if path.stat().st_size > _LARGEST:
                return None
            return parsed(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            return None


@dataclass(frozen=True, slots=True)
class Kernel:
    """Holds a kernel's code. parameters: those that its caller gives, in order."""

    parameters: tuple[str, ...]
    function: ast.FunctionDef

    @property
    def multiplies(self) -> bool:
        """Return whether it computes matrix products."""
        return any(isinstance(node, ast.Attribute) and node.attr == "dot" for node in ast.walk(self.function))

    def touched(self, values: Sequence[int | None]) -> dict[str, tuple[float, float]]:
        """Return the elements read and written of each pointer, at most; infinite where its index is not understood.

        values: of the parameters, None for what is no whole number.
        """
        given = {name: value for name, value in zip(self.parameters, values, strict=False) if value is not None}
        reading = _Reading(given, {name for name in self.parameters if name not in given})
        reading.run(self.function.body)
        return {name: reading.elements(name) for name in self.parameters if name not in given}


def parsed(text: str) -> Kernel | None:
    """Parse the source of a kernel; None where it holds none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(_called(decorator) == "jit" for decorator in node.decorator_list):
            given = [argument.arg for argument in node.args.args if argument.annotation is None]
            return Kernel(tuple(given), node)
    return None


def _called(node: ast.AST) -> str:
    """The last part of a dotted name, also of one that is called."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@dataclass(frozen=True, slots=True)
class _Digit:
    """The part of a count between two units: `index // low % (high // low)`."""

    root: str
    low: float
    high: float

    @property
    def size(self) -> int:
        return max(1, math.ceil(self.high / self.low))


@dataclass(frozen=True, slots=True)
class _Value:
    """What is known of a value. digits: those that it depends on. open: it depends on other things, too.

    number: it is this. line: it is digit + offset. bounds: as a condition, digit -> (first, end) where it is true.
    """

    digits: frozenset[_Digit] = frozenset()
    open: bool = False
    number: float | None = None
    line: tuple[_Digit, float] | None = None
    bounds: Mapping[_Digit, tuple[float, float]] = field(default_factory=dict)


class _Reading:
    """Follows the code of a kernel, each statement once, and notes what is loaded and stored."""

    def __init__(self, given: Mapping[str, int], pointers: set[str]) -> None:
        self._values = {name: _Value(number=float(value)) for name, value in given.items()}
        self._pointers = pointers
        self._reads: dict[str, dict[str, float]] = {}
        self._writes: dict[str, dict[str, float]] = {}
        self._opaque: set[str] = set()

    def elements(self, pointer: str) -> tuple[float, float]:
        if pointer in self._opaque:
            # A template walks through its operands; what they are called tells what it does to them.
            return (0.0 if pointer.startswith("out_") else math.inf, math.inf if "out_" in pointer else 0.0)
        return sum(self._reads.get(pointer, {}).values()), sum(self._writes.get(pointer, {}).values())

    def run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                value = self._value(statement.value)
                for target in targets:
                    self._assign(target, value, statement.value)
            elif isinstance(statement, ast.For | ast.If | ast.While | ast.With):
                for expression in _expressions(statement):
                    self._value(expression)
                self.run(statement.body)
                self.run(getattr(statement, "orelse", []))
            elif isinstance(statement, ast.Expr):
                self._value(statement.value)

    def _assign(self, target: ast.expr, value: _Value, source: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            for part in target.elts:
                self._assign(part, _Value(value.digits, value.open), source)
        elif isinstance(target, ast.Name):
            match = _INDEX.fullmatch(target.id)
            others = {node.id for node in ast.walk(source) if isinstance(node, ast.Name)}
            if match and not any(_INDEX.fullmatch(name) for name in others):
                root = match[1] + match[2]
                numel = next(
                    (
                        known.number
                        for name in (f"{root}_numel", f"{root}numel")
                        if (known := self._values.get(name)) and known.number is not None
                    ),
                    float(_MOST),
                )
                digit = _Digit(root, 1.0, numel)
                value = _Value(frozenset([digit]), line=(digit, 0.0))
            self._values[target.id] = value

    def _value(self, node: ast.expr) -> _Value:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                return _Value()
            return _Value(number=float(node.value))
        if isinstance(node, ast.Name):
            if node.id in self._pointers:
                self._opaque.add(node.id)
            return self._values.get(node.id, _Value(open=True))
        if isinstance(node, ast.Attribute | ast.List | ast.Tuple):  # a type, a shape
            return _Value()
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand)
            negative = isinstance(node.op, ast.USub) and value.number is not None
            return _Value(number=-(value.number or 0.0)) if negative else _Value(value.digits, value.open)
        if isinstance(node, ast.BinOp):
            return _combined(node.op, self._value(node.left), self._value(node.right))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _compared(node.ops[0], self._value(node.left), self._value(node.comparators[0]))
        if isinstance(node, ast.Subscript):
            return self._value(node.value)
        if isinstance(node, ast.Call):
            return self._call(node)
        return _joined([self._value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)])

    def _call(self, node: ast.Call) -> _Value:
        name, arguments = _called(node), list(node.args)
        pointer = _pointer(arguments[0], self._pointers) if arguments else None
        if pointer is not None and (name in ("load", "store") or name.startswith("atomic_")):
            rest = [self._value(argument) for argument in (*arguments[1:], *(word.value for word in node.keywords))]
            return self._access(name, pointer, arguments[0], rest)
        if name == "to" and isinstance(node.func, ast.Attribute):  # a cast
            return self._value(node.func.value)
        values = [self._value(argument) for argument in (*arguments, *(word.value for word in node.keywords))]
        if name == "full" and len(values) > 1:
            return values[1]
        if name == "broadcast_to" and values:
            return values[0]
        if name == "program_id":
            return _Value(open=True)
        if isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name):
            values.append(self._value(node.func.value))
        return _joined(values)

    def _access(self, name: str, pointer: str, address: ast.expr, rest: Sequence[_Value]) -> _Value:
        index = self._value(address.right) if isinstance(address, ast.BinOp) else _Value()
        bounds: dict[_Digit, tuple[float, float]] = {}
        for value in rest:
            bounds = _both(bounds, value.bounds)
        number, text = math.inf if index.open else _number(index.digits, bounds), ast.unparse(address)
        written = self._writes.setdefault(pointer, {})
        if name != "store" and text not in written:
            reads = self._reads.setdefault(pointer, {})
            reads[text] = max(reads.get(text, 0.0), number)
        if name != "load":
            written[text] = max(written.get(text, 0.0), number)
        return _Value(index.digits, index.open)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield what a compound statement evaluates itself."""
    for name in ("iter", "test"):
        expression = getattr(statement, name, None)
        if expression is not None:
            yield expression


def _pointer(node: ast.expr, pointers: set[str]) -> str | None:
    """The pointer that an address begins with: `in_ptr0 + (x0)`."""
    first = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) else node
    return first.id if isinstance(first, ast.Name) and first.id in pointers else None


def _joined(values: Sequence[_Value]) -> _Value:
    return _Value(frozenset().union(*(value.digits for value in values)), any(value.open for value in values))


def _combined(operator: ast.operator, left: _Value, right: _Value) -> _Value:
    both = _joined((left, right))
    if left.number is not None and right.number is not None:
        return _Value(number=_calculated(operator, left.number, right.number))
    if isinstance(operator, ast.BitAnd):
        return replace(both, bounds=_both(left.bounds, right.bounds))
    if isinstance(operator, ast.Add) and left.number is not None:
        left, right = right, left
    if left.line is None or right.number is None:
        return both
    digit, offset = left.line
    if isinstance(operator, ast.Add | ast.Sub):
        return replace(both, line=(digit, offset + (right.number if isinstance(operator, ast.Add) else -right.number)))
    if offset or right.number < 1:
        return both
    if isinstance(operator, ast.Mod):
        digit = _Digit(digit.root, digit.low, min(digit.high, digit.low * right.number))
    elif isinstance(operator, ast.FloorDiv):
        digit = _Digit(digit.root, digit.low * right.number, max(digit.high, digit.low * right.number))
    else:
        return both
    return _Value(frozenset([digit]), line=(digit, 0.0))


def _calculated(operator: ast.operator, left: float, right: float) -> float | None:
    if isinstance(operator, ast.Add | ast.Sub):
        return left + right if isinstance(operator, ast.Add) else left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.FloorDiv | ast.Mod) and right:
        return left // right if isinstance(operator, ast.FloorDiv) else left % right
    return None


def _compared(operator: ast.cmpop, left: _Value, right: _Value) -> _Value:
    both = _joined((left, right))
    if left.line is None or right.number is None:
        return both
    digit, offset = left.line
    limit = right.number - offset
    ranges = {
        ast.Lt: (0.0, limit),
        ast.LtE: (0.0, limit + 1),
        ast.Gt: (limit + 1, math.inf),
        ast.GtE: (limit, math.inf),
    }
    found = ranges.get(type(operator))
    return both if found is None else replace(both, bounds={digit: found})


def _both(
    first: Mapping[_Digit, tuple[float, float]], second: Mapping[_Digit, tuple[float, float]]
) -> dict[_Digit, tuple[float, float]]:
    bounds = dict(first)
    for digit, (low, high) in second.items():
        before = bounds.get(digit, (0.0, math.inf))
        bounds[digit] = max(before[0], low), min(before[1], high)
    return bounds


def _number(digits: frozenset[_Digit], bounds: Mapping[_Digit, tuple[float, float]]) -> float:
    """Count the values that these digits take together, where their bounds allow them."""
    number = 1.0
    for root in {digit.root for digit in digits}:
        low = high = 0.0
        for digit in sorted((digit for digit in digits if digit.root == root), key=lambda digit: digit.low):
            if digit.low >= high:  # a gap: what lies in it is another digit, which the index does not have
                number *= math.ceil(high / low) if low else 1
                low, high = digit.low, digit.high
            high = max(high, digit.high)
        number *= max(1, math.ceil(high / low))
    for digit, (first, end) in bounds.items():
        covered = any(other.root == digit.root and other.low <= digit.low < other.high for other in digits)
        if covered:
            number *= max(0.0, min(end, digit.size) - max(first, 0.0)) / digit.size
    return number
