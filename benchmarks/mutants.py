"""Rules broken on purpose, one at a time, and whether a test notices: `make mutants`. See docs/reliability.md.

A mutant is the checkout with one place of a pure room changed; drawn with a seed, each place as likely as another. Its
tests run in a copy of the checkout until one fails: those of its file and of its room, then those of other pure rooms
and of what is shown that import it. Sentences, types, and what names the members of a class or module are not changed.
Each result is added to --output as it comes, one JSON object a line, the last one of a mutant is the one that counts,
and what that holds is not run again.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).resolve().parents[1]
#: Folders and files of roofline/ whose rules need no framework; the tests of a room lie in the same place below tests/.
ROOMS = (
    *("analysis", "comparison", "content", "core", "costs", "importing", "ranks", "regression", "traces"),
    *("xla/hlo", "pytorch/aten"),
    *("devices/__init__.py", "devices/calibration.py", "devices/contention.py", "devices/cpu.py", "devices/nvidia.py"),
    *("devices/recognise.py", "devices/sampling.py"),
    *("sweeping/budget.py", "sweeping/grid.py", "sweeping/plan.py", "sweeping/prediction.py"),
)
#: Other tests that need no framework, and whose they are: run where that imports what was changed.
OTHERS = {
    **{room: room for room in ("analysis", "core", "costs", "importing", "projection", "published", "ranks")},
    **{room: room for room in ("regression", "comparison", "content", "renderers", "traces")},
    **{
        f"cli/test_{verb}.py": f"cli.{verb}" for verb in ("compare", "import", "report", "export", "published", "sweep")
    },
    **{"cli/test_show_and_plot.py": "cli.show", "cli/test_counted.py": "cli.show"},
    "cli/test_whatif_and_check.py": "cli.check",
}
PYTEST = ("-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "--hypothesis-profile=few")
MARKS = "not slow and not gpu and not thorough"

FLIPPED: dict[type[ast.AST], type[ast.AST]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div},
    **{ast.Mod: ast.Mult, ast.Pow: ast.Mult},
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A place and its change. line, column: of its first character; before, after: the whole lines of the place."""

    file: str
    line: int
    column: int
    kind: str
    before: str
    after: str

    def source(self) -> str:
        """The file with the change.

        Raises:
            LookupError: the file has no such place any more.
        """
        lines = (ROOT / self.file).read_text(encoding="utf-8").split("\n")
        place = slice(self.line - 1, self.line + self.before.count("\n"))
        if "\n".join(lines[place]) != self.before:
            raise LookupError(f"{self.file} has changed")
        lines[place] = [self.after]
        return "\n".join(lines)


def mutants(file: Path) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its places."""
    text = file.read_text(encoding="utf-8")
    lines = text.encode().split(b"\n")
    for node in _rules(ast.parse(text)):
        for kind, replacement in _changes(node):
            first, last = node.lineno - 1, node.end_lineno
            before = b"\n".join(lines[first:last])
            tail = lines[last - 1][node.end_col_offset :]
            after = lines[first][: node.col_offset] + replacement.encode() + tail
            yield Mutant(str(file.relative_to(ROOT)), first + 1, node.col_offset, kind, before.decode(), after.decode())


def _rules(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but sentences, types, and what names the members of a class or of a module."""
    yield node
    for field, children in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in children if isinstance(children, list) else [children]:
            if isinstance(child, ast.AST) and not _is_no_rule(child):
                yield from _rules(child)


def _is_no_rule(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
            return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The kinds of changes of a node, and what is written in its place."""
    match node:
        case ast.Compare(left, operators, comparators):
            for at, operator in enumerate(operators):
                flipped = [*operators[:at], FLIPPED[type(operator)](), *operators[at + 1 :]]
                yield "comparison", f"({ast.unparse(ast.Compare(left, flipped, comparators))})"
        case ast.BoolOp(operator, values):
            yield "and-or", f"({ast.unparse(ast.BoolOp(FLIPPED[type(operator)](), values))})"
        case ast.BinOp(left, operator, right) if type(operator) in FLIPPED and not _is_text(left, right):
            yield "arithmetic", f"({ast.unparse(ast.BinOp(left, FLIPPED[type(operator)](), right))})"
        case ast.AugAssign(target, operator, right) if type(operator) in FLIPPED and not _is_text(right):
            yield "arithmetic", ast.unparse(ast.AugAssign(target, FLIPPED[type(operator)](), right))
            yield "statement", "pass"
        case ast.Constant(int() | float() as number) if not isinstance(number, bool) and number < 2**20:
            yield "constant", repr(number + 1)
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", f"({ast.unparse(operand)})"
        case ast.Return(value) if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", "return None"
        # A name that is bound nowhere is noticed at once: what binds one stays.
        case ast.Expr() | ast.Raise() | ast.Delete() | ast.AugAssign():
            yield "statement", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", "pass"
        case ast.Continue():
            yield "loop", "break"
        case ast.Break():
            yield "loop", "continue"


def _is_text(*operands: ast.AST) -> bool:
    return any(
        isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        for node in operands
    )


def draw(number: int, seed: int) -> list[Mutant]:
    """So many mutants of all rooms; a larger number begins with those of a smaller one."""
    places = list(_places())
    random.Random(seed).shuffle(places)
    return places[:number]


@cache
def _places() -> tuple[Mutant, ...]:
    paths = [ROOT / "roofline" / room for room in ROOMS]
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    return tuple(mutant for file in files for mutant in mutants(file))


def drawn_before(file: Path) -> list[Mutant]:
    """The mutants of a file of results, where they are now; one whose lines have changed is left out, and said."""
    found = []
    for former in _read(file):
        path = ROOT / former.file
        here = [
            mutant for mutant in (mutants(path) if path.exists() else ()) if replace(mutant, line=former.line) == former
        ]
        if here:
            found.append(min(here, key=lambda mutant: abs(mutant.line - former.line)))
        else:
            print(f"{former.file}:{former.line} is not there any more: {former.before}", file=sys.stderr)
    return found


def tests_of(file: str) -> tuple[list[str], list[str]]:
    """The tests of a file and of its room, and those of what imports it: the order in which a mutant meets them."""
    inside = file.removeprefix("roofline/")
    room = next(room.partition(".")[0] for room in ROOMS if inside == room or inside.startswith(f"{room}/"))
    tests = ROOT / "tests"
    mirror = tests / room if (tests / room).is_dir() else tests / Path(room).parent
    own = sorted(mirror.rglob(f"test_{Path(inside).stem}.py"))
    module = file.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    changed = {module, *_imports().find_downstream_modules(module)}
    others: list[Path] = []
    for path, of in OTHERS.items():
        if tests / path == mirror:
            continue
        if any(f"{name}.".startswith(f"roofline.{of}.") for name in changed):
            others.append(tests / path)
        else:  # a test may import what its room does not
            others += [test for test in sorted((tests / path).rglob("test_*.py")) if changed & _imported(test)]
    return [str(path.relative_to(ROOT)) for path in (*own, mirror)], [str(path.relative_to(ROOT)) for path in others]


@cache
def _imported(test: Path) -> set[str]:
    """The modules that a test imports, and what may be one; not the package, which imports all of them."""
    nodes = [node for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    return {name for node in nodes for alias in node.names for name in (node.module, f"{node.module}.{alias.name}")} - {
        "roofline"
    }


@cache
def _imports() -> grimp.ImportGraph:
    return grimp.build_graph("roofline", cache_dir=None)


def run(mutant: Mutant, tests: Iterable[str], copy: Path, limit: float) -> dict[str, Any]:
    """Run tests of a mutant in a copy of the checkout, until one fails. limit: of each file or folder of tests [s]."""
    begin = time.monotonic()
    file = copy / mutant.file
    file.write_text(mutant.source(), encoding="utf-8")
    end, test, passed = "survived", None, []
    try:
        for path in tests:
            end, test = _run_tests(path, copy, limit)
            if end != "survived":
                break
            passed.append(path)
    finally:
        shutil.copyfile(ROOT / mutant.file, file)
    seconds = round(time.monotonic() - begin, 1)
    return asdict(mutant) | {"end": end, "test": test, "passed": passed, "seconds": seconds}


def _run_tests(path: str, copy: Path, limit: float) -> tuple[str, str | None]:
    process = subprocess.Popen(
        [sys.executable, *PYTEST, "-m", MARKS, path],
        cwd=copy,
        env={name: word for name, word in os.environ.items() if name != "PYTEST_ADDOPTS"} | {"PYTHONPATH": str(copy)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "timeout", path
    if process.returncode in (0, 5):  # 5: the marks leave none of them
        return "survived", None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    return "killed", failed[1] if failed else output.strip().rpartition("\n")[2]


def _copy_checkout(to: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)


def _read(file: Path) -> dict[Mutant, dict[str, Any]]:
    """The last result of each mutant."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {Mutant(*map(result.get, Mutant.__slots__)): result for result in map(json.loads, lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=40, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, help="a file of results: its mutants, not drawn ones")
    parser.add_argument("--output", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--limit", type=float, default=600, help="seconds that each folder of tests may take")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="no mutant is begun after so many")
    options = parser.parse_args()
    begin = time.monotonic()
    drawn = drawn_before(options.again) if options.again else draw(options.number, options.seed)
    results = _read(options.output)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        _copy_checkout(copy)
        # All mutants meet the tests nearby first: most end there, in seconds.
        for far, mutant in itertools.product((False, True), drawn):
            former = results.get(mutant, {"end": "survived", "passed": [], "seconds": 0.0})
            tests = [path for path in tests_of(mutant.file)[far] if path not in former["passed"]]
            if former["end"] != "survived" or not tests:
                continue
            if time.monotonic() - begin > 60 * options.minutes:
                break
            result = run(mutant, tests, copy, options.limit)
            result["passed"] = former["passed"] + result["passed"]
            result["seconds"] += former["seconds"]
            results[mutant] = result
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            print(f"{result['end']:8s} {mutant.file}:{mutant.line} {mutant.kind} {result['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
