"""Run a Python program in this interpreter as `python` would, and let it end as it would."""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, Protocol

from roofline.errors import InputError

#: What changes the code of a script before it is run.
Compile = Callable[[bytes, str], CodeType]

#: Folders of our own code that lies between the program and the libraries that it calls.
_OURS = os.path.dirname(__file__) + os.sep


def _compile(source: bytes, path: str) -> CodeType:
    code: CodeType = compile(source, path, "exec", dont_inherit=True)
    return code


class WatchedProgram(Protocol):
    """Run, while its steps are watched. name: of its profile where no model is known."""

    @property
    def name(self) -> str:
        """Name the program."""

    def run(self) -> None:
        """Run it to its end. Its exceptions pass through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Name a program: a script (a file, a folder or an archive with a `__main__`), or a module as of `python -m`.

    arguments: those of the program. compile: makes code of a script's source and path.
    """

    script: str | None = None
    module: str | None = None
    arguments: tuple[str, ...] = ()
    compile: Compile = _compile

    @property
    def name(self) -> str:
        """Name it without its folder."""
        return self.module or Path(str(self.script)).stem

    def check(self) -> None:
        """Raise InputError for a script that is not there."""
        if self.script is not None and not os.path.exists(self.script):
            raise InputError(f"There is no file {self.script}: give the path of a program, or -m and a module.")

    def run(self) -> None:
        """Run it as `__main__`, to its end. Its exceptions pass through, SystemExit as well."""
        main = types.ModuleType("__main__")
        vars(main).update(__builtins__=builtins, __annotations__={})
        sys.modules["__main__"] = main
        if self.module is not None:
            _set_first_path(os.getcwd())
            sys.argv = ["-m", *self.arguments]
            # The function behind `python -m`, also for its messages; it puts the module's path into sys.argv.
            runpy._run_module_as_main(self.module)  # type: ignore[attr-defined]
            return
        script = str(self.script)
        sys.argv = [script, *self.arguments]
        if pkgutil.get_importer(script) is not None:  # a folder or an archive
            sys.path_importer_cache.pop(script, None)
            _set_first_path(os.path.abspath(script))
            runpy._run_module_as_main("__main__", alter_argv=False)  # type: ignore[attr-defined]
            return
        self._run_file(main, script)

    def _run_file(self, main: types.ModuleType, script: str) -> None:
        path = os.path.abspath(script)
        _set_first_path(os.path.dirname(os.path.realpath(script)))
        with io.open_code(path) as file:
            code = pkgutil.read_code(file)  # of a .pyc
        if code is None:
            with io.open_code(path) as file:
                code = self.compile(file.read(), path)
        vars(main).update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
        exec(code, vars(main))


def _set_first_path(folder: str) -> None:
    """Put a folder where Python puts that of a program: in the place of ours."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def raise_as_python(error: BaseException) -> None:
    """Raise what ended the program; Python then prints it without our frames, and exits as for the program."""
    before = sys.excepthook

    def hook(kind: type[BaseException], raised: BaseException, traceback: TracebackType | None) -> None:
        for chained in _chain(raised):
            chained.__traceback__ = _without_ours(chained.__traceback__)
        before(kind, raised, raised.__traceback__)

    sys.excepthook = hook
    # Out of a text: behind any other one that was executed, Python ends as on Ctrl-C (by the signal) only so.
    exec("raise error", {"error": error})


def _chain(error: BaseException) -> Iterator[BaseException]:
    """List an exception and all that it is raised from, during or with."""
    waiting: list[BaseException | None] = [error]
    met: set[int] = set()
    while waiting:
        raised = waiting.pop()
        if raised is None or id(raised) in met:
            continue
        met.add(id(raised))
        yield raised
        waiting += [raised.__cause__, raised.__context__]
        if isinstance(raised, BaseExceptionGroup):
            waiting += raised.exceptions


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Leave out the frames above the program and those of our wrappers in it."""
    frames: list[Any] = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    begins = [place for place, frame in enumerate(frames) if frame.tb_frame.f_code is Program.run.__code__]
    shown: TracebackType | None = None
    for frame in reversed(frames[begins[0] + 1 :] if begins else frames):
        if not frame.tb_frame.f_code.co_filename.startswith(_OURS):
            shown = TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shown
