"""Measure a cell of a notebook: `%load_ext roofline`, then `%%roofline` as the first line of a cell that is a step.

With `--loop` the cell runs once, as it is, and its steps are found as those of a program are.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
import shlex
import sys
from collections.abc import Mapping
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NoReturn

from IPython.core.error import UsageError

from roofline.core.schema import Profile
from roofline.core.step import MODES, Step
from roofline.core.vocabulary import FRAMEWORKS
from roofline.errors import RooflineError, reason
from roofline.measuring import in_process
from roofline.standard_error import tell

#: What helps a loop in a cell of which no step was found, or too few.
_CURE = "Call roofline.step() at the end of each step in the cell."
_SHORTER = "let its loop run more often."


class _Parser(argparse.ArgumentParser):
    """Parse the line of a magic; what it refuses is printed below the cell in one line."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError, in the place of ending the process."""
        raise UsageError(message)


def load(shell: Any) -> None:
    """Register `%%roofline` in an IPython shell."""

    def roofline(line: str, cell: str) -> Profile:
        """Measure the cell as one step, which runs some dozen times; with --loop, steps of a loop in it.

        Options: --backend NAME, --mode infer|train|generate, --device auto|cpu|cuda, --steps N, --name NAME; or --loop.
        """
        try:
            asked = _parse(line)
            return _of_loop(shell, cell, f"%%roofline {line}") if asked.loop else _measured(shell, cell, asked)
        except RooflineError as error:
            raise UsageError(str(error)) from None

    shell.register_magic_function(roofline, "cell")


def _parse(line: str) -> argparse.Namespace:
    """Parse the options of the magic. Raises UsageError."""
    parser = _Parser("%%roofline", add_help=False)
    parser.add_argument("--backend")
    parser.add_argument("--mode", default="infer", choices=MODES)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--name", default="cell")
    parser.add_argument("--loop", action="store_true")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}: {line}") from None
    if "--loop" in words and len(words) > 1:
        raise UsageError("--loop takes no other option: it finds the steps, and what they are, by itself.")
    return parser.parse_args(words)


def _of_loop(shell: Any, cell: str, command: str) -> Profile:
    """Run a cell once and profile the steps of its first loop. Errors of the cell pass through."""
    from roofline.running.measurement import Wanted
    from roofline.running.run import boundaries, run

    program = LoopCell(shell, cell)
    ended = run(program, Wanted(), lambda text: tell(f"roofline: {text}"), boundaries())
    for sentence in ended.sentences():
        tell(f"roofline: {sentence}")
    if ended.error is not None:
        raise ended.error.with_traceback(frames_from(program.file, ended.error))
    return ended.profiles(command, _CURE, _SHORTER)[0]


class LoopCell:
    """Run a cell once, as the shell would. name: of a profile whose model is not known."""

    name = "cell"

    def __init__(self, shell: Any, cell: str) -> None:
        """Compile the cell. Raises SyntaxError as the cell would, also for `await`."""
        source, self.file = _source(shell, cell)
        self._code, self._namespace = _compiled(shell, source, self.file, "exec"), shell.user_ns

    def run(self) -> None:
        """Run it, with what JAX made in earlier cells in sight."""
        watched = self._watched()
        originals = {name: self._namespace[name] for name in watched}
        self._namespace.update(watched)
        try:
            exec(self._code, self._namespace)
        finally:
            for name, thing in watched.items():
                if self._namespace.get(name) is thing:
                    self._namespace[name] = originals[name]

    def _watched(self) -> Mapping[str, object]:
        if "jax" not in sys.modules:
            return {}
        from roofline.running.boundaries.jax_call import watched_names

        try:
            return watched_names(self._namespace)
        except Exception as error:  # of a JAX that has changed: the cell runs all the same
            tell(f"roofline: functions of earlier cells are not seen: {reason(error)}")
            return {}


def _measured(shell: Any, cell: str, asked: Any) -> Profile:
    """Profile a cell, and say how often it ran. Errors of the cell pass through, with the cell's own frames only."""
    step = CellStep(shell, cell)
    backend = asked.backend or backend_of(shell.user_ns)
    try:
        return in_process.profile(
            Step(run=step, mode=asked.mode), backend=backend, device=asked.device, steps=asked.steps, name=asked.name
        )
    except RooflineError:
        raise
    except Exception as error:
        raise error.with_traceback(frames_from(step.file, error)) from error.__cause__
    finally:
        if step.runs:
            print(step.output.getvalue(), end="", file=sys.stdout)
            tell(step.said())


class CellStep:
    """Run a cell as a step, each time with the names that it binds as they were before: as if it ran once.

    Where it gives arrays away that these names hold (JAX's `donate_argnums`), nothing can run with them again: then
    each run goes on from the one before. What it changes in place changes each time. runs: how often it ran. output:
    what the first run printed; what the others print is dropped.
    """

    def __init__(self, shell: Any, cell: str) -> None:
        """Compile the cell. Raises SyntaxError as the cell would, also for `await`."""
        source, self.file = _source(shell, cell)
        tree = ast.parse(source, self.file)
        self._names = bound_names(tree)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self._body = _compiled(shell, tree, self.file, "exec")
        value = ast.Expression(last.value if isinstance(last, ast.Expr) else ast.Constant(None))
        self._value = _compiled(shell, ast.fix_missing_locations(value), self.file, "eval")
        self._namespace: dict[str, Any] = shell.user_ns
        self._before = {name: self._namespace[name] for name in self._names if name in self._namespace}
        self._gives_away = False
        self.runs, self.output = 0, io.StringIO()

    def __call__(self) -> object:
        """Run the cell; return the value of its last expression and of the names that it binds.

        A framework that computes while Python goes on waits for what a step returns.
        """
        self.runs += 1
        if self.runs == 2:
            self._gives_away = _is_given_away(self._before)
        if self.runs > 1 and not self._gives_away:
            for name in self._names:
                self._namespace.pop(name, None)
            self._namespace.update(self._before)
        with contextlib.redirect_stdout(self.output if self.runs == 1 else io.StringIO()):
            exec(self._body, self._namespace)
            value = eval(self._value, self._namespace)
        return value, [self._namespace.get(name) for name in self._names]

    def said(self) -> str:
        """Say how often the cell ran, and with what effect."""
        begin = (
            "from where the one before left off, since it gives arrays away"
            if self._gives_away
            else "with names as they were before it"
        )
        changes = "what it changes in place or writes to files was changed each time"
        return f"The cell ran {self.runs} time{'s' if self.runs > 1 else ''}, each {begin}; {changes}."


def _source(shell: Any, cell: str) -> tuple[str, str]:
    """Return the Python of a cell, and the name of its file."""
    source = "\n" + shell.transform_cell(cell)  # its first line is that of the magic
    return source, shell.compile.cache(source, _number(shell), raw_code=cell)


def _compiled(shell: Any, source: str | ast.Module | ast.Expression, file: str, mode: str) -> CodeType:
    """Compile a cell with the future statements of the cells before it, and with none of this file."""
    code: CodeType = compile(source, file, mode, flags=shell.compile.flags, dont_inherit=True)
    return code


def frames_from(file: str, error: BaseException) -> TracebackType | None:
    """Return the traceback of an error from the file of the cell on."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != file:
        frame = frame.tb_next
    return frame or error.__traceback__


def _number(shell: Any) -> int:
    """Return the number of the cell that runs: the shell's own count may be that of the next one already."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        named = shell.compile.format_code_name(frame.f_code.co_filename)
        if named is not None and (number := re.search(r"\d+", named[1])):
            return int(number[0])
        frame = frame.f_back
    return int(shell.execution_count)


def _is_given_away(values: object) -> bool:
    """Tell whether values hold an array of JAX that a program was given to write over."""
    jax = sys.modules.get("jax")
    return jax is not None and any(
        isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in jax.tree.leaves(values)
    )


def bound_names(tree: ast.AST) -> list[str]:
    """List the names of the namespace that a cell binds, outside of its functions and classes."""
    names: dict[str, None] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.comprehension):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = None
        waiting += ast.iter_child_nodes(node)
    return list(names)


def backend_of(namespace: Mapping[str, object]) -> str:
    """Return the backend of the only framework whose modules a notebook has imported; with Keras that on it.

    Raises UsageError where there is none, or several.
    """
    imported = {
        value.__name__.partition(".")[0] for value in tuple(namespace.values()) if isinstance(value, ModuleType)
    }
    frameworks = [name for name in FRAMEWORKS if name in imported]
    if "keras" in imported:
        engine = sys.modules["keras"].backend.backend()
        if frameworks in ([], [engine]):
            return f"keras-{engine}"
    if len(frameworks) == 1:
        return frameworks[0]
    why = f"imports {' and '.join(frameworks)}" if frameworks else "imports no framework"
    raise UsageError(f"The notebook {why}: add a backend, as in %%roofline --backend torch.")
