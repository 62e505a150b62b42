"""Run a program as it is, and measure some of its steps: `roofline run`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from roofline.cli.options import tables
from roofline.errors import InputError, RooflineError

if TYPE_CHECKING:
    from roofline.running.boundary import Boundary
    from roofline.running.measurement import Wanted
    from roofline.running.program import Program
    from roofline.running.run import Ended


class _ProgramLast(TyperCommand):
    """Leave all words behind the program to it, as `python` does: behind a script, and behind `-m MODULE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put "--" behind -m and its module."""
        with_value = {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] != "--":
            word = args[place]
            place += 2 if word in with_value else 1
            if word.startswith("-m"):
                args = [*args[:place], "--", *args[place:]]
                break
        return super().parse_args(ctx, args)


#: Of the command: options end with the program's name.
SETTINGS = {"cls": _ProgramLast, "context_settings": {"allow_interspersed_args": False}}


def command(
    program: Annotated[
        list[str] | None, typer.Argument(metavar="SCRIPT [ARGS]", help="A Python program and its arguments.")
    ] = None,
    module: Annotated[
        str | None,
        typer.Option("-m", metavar="MODULE", help="Run a module, as `python -m`; its arguments follow."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="The function that is a step. Default: it is found by itself."),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(metavar="FIRST:LAST", help="The steps that may be measured. Default: all behind the fifth."),
    ] = None,
    every: Annotated[
        int | None, typer.Option(metavar="N", help="Measure again every N steps, to see whether they change.")
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="End the program when all is measured.")] = False,
    output: Annotated[str | None, typer.Option("-o", "--output", help="The profile to write (.json).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
    details: tables.Details = False,
) -> Callable[[], NoReturn]:
    """Run a program as it is, and say what limits its steps.

    The program runs in this interpreter as `python` would run it, with its output, its arguments and its exit code.
    While it goes on, time some of its steps, profile a few and count the work of one.

    Example: roofline run train.py --epochs 3
    """
    from dataclasses import replace

    from roofline.cli.options import words
    from roofline.cli.options.paths import check_output, check_writable
    from roofline.running.boundaries.named import boundary
    from roofline.running.measurement import Wanted
    from roofline.running.program import Program
    from roofline.running.run import boundaries

    given = program or []
    script = given[0] if given and module is None else None
    if script is None and module is None:
        raise InputError("There is no program to run: give the path of one, or -m and a module.")
    run_program = Program(script=script, module=module, arguments=tuple(given[script is not None :]))
    run_program.check()
    kinds, named = boundaries(), None if step is None else boundary(step, script)
    if named is not None:
        kinds = (named[0], *kinds)
        run_program = replace(run_program, compile=named[1] or run_program.compile)
    if output is not None:
        check_output(Path(output), force, (".json",), (script,))
    check_writable(Path.cwd() if output is None else Path(output).parent)
    first, last = _range(steps)
    wanted = Wanted(**({} if first is None else {"first": first}), last=last, every=every, stop=stop)
    command_line = words.command_line()
    place = Path.cwd() if output is None else Path(output).absolute()  # the program may go to another folder
    return partial(_start, run_program, wanted, kinds, partial(_report, command_line, place, details))


def _range(steps: str | None) -> tuple[int | None, int | None]:
    """Read FIRST:LAST, either of which may be missing. Raises InputError for anything else."""
    if steps is None:
        return None, None
    first, colon, last = steps.partition(":")
    if not colon or not all(word == "" or word.isdecimal() for word in (first, last)):
        raise InputError(f"--steps {steps} is no range: give FIRST:LAST, as in 100:200.")
    return (int(first) if first else None), (int(last) if last else None)


def _say(text: str) -> None:
    from roofline.cli.options import words

    words.say(f"roofline: {text}")


def _start(program: Program, wanted: Wanted, kinds: Sequence[Boundary], report: Callable[[Ended], None]) -> NoReturn:
    """Run the program, print what was measured, and exit as the program does.

    A program that ended well and was not measured has the exit code of the error.
    """
    from roofline.running.program import raise_as_python
    from roofline.running.run import run

    ended = run(program, wanted, _say, kinds)
    code = 0
    if ended.own_process:
        # The program may have sent its own output elsewhere.
        with redirect_stdout(sys.__stdout__), redirect_stderr(sys.__stderr__):
            for sentence in ended.sentences():
                _say(sentence)
            try:
                report(ended)
            except RooflineError as error:
                _say(str(error))
                code = error.exit_code
    if ended.error is not None and (ended.failed or not code):
        raise_as_python(ended.error)
    sys.exit(code)


def _report(command_line: str, place: Path, details: bool, ended: Ended) -> None:
    """Write the profiles, and print the first one's screen, and how the others differ.

    place: the file to write, or a folder.
    """
    from roofline.analysis.analysis import Analysis, analyze
    from roofline.cli import printing_anything
    from roofline.cli.options import terminal, words
    from roofline.core.schema import save
    from roofline.measuring import session
    from roofline.renderers import text
    from roofline.running import drift
    from roofline.units import printable

    profiles = ended.profiles(command_line)
    first_path = session.default_name(profiles[0], place) if place.is_dir() else place
    analyses = []
    with printing_anything():
        for number, (profile, taken) in enumerate(zip(profiles, ended.measurement.measured, strict=True)):
            file = first_path.with_stem(f"{first_path.stem}-step{taken.first}") if number else first_path
            save(profile, file)
            analysis = analyze(profile)
            if not number:
                words.result(text.render(analysis, None, page=terminal.page(), details=details))
            if isinstance(analysis, Analysis):
                analyses.append((taken.first, taken.last, analysis))
            words.result(f"Wrote {printable(file.name if place.is_dir() else file)}\n")
        if len(analyses) > 1:
            words.result("\n".join(["", *drift.lines(analyses), ""]))
