"""Run a program as it is, and measure some of its steps: `roofline run`."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from roofline.cli.options import tables
from roofline.core.numerals import whole
from roofline.errors import DefectError, InputError, RooflineError, defect
from roofline.standard_error import tell

if TYPE_CHECKING:
    from roofline.running.boundary import Boundary
    from roofline.running.measurement import Wanted
    from roofline.running.program import Program
    from roofline.running.ranks import Rank
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
    ranks: Annotated[
        str | None, typer.Option(metavar="N,N", help="The ranks of a job that are measured. Default: all.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="The profile to write (.json); of several ranks a folder.")
    ] = None,
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
    from roofline.running.measurement import MOST_LOOPS, Wanted
    from roofline.running.program import Program
    from roofline.running.ranks import of_launcher
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
    first, last = _range(steps)
    wanted = Wanted(**({} if first is None else {"first": first}), last=last, every=every, stop=stop)
    command_line = words.command_line(len(run_program.arguments))
    rank, picked = of_launcher(), _picked(ranks)
    if rank is not None:
        return _of_a_job(run_program, wanted, kinds, rank, picked, output, force, command_line, details)
    if picked is not None:
        raise InputError("--ranks picks ranks of a job, and no torchrun, mpirun or srun launched this process as one.")
    if output is not None:
        check_output(Path(output), force, (".json",), (script,))
    if steps is None and step is None and not stop:
        wanted = replace(wanted, loops=MOST_LOOPS)
    check_writable(Path.cwd() if output is None else Path(output).parent)
    place = Path.cwd() if output is None else Path(output).absolute()  # the program may go to another folder
    return partial(_start, run_program, wanted, kinds, partial(_report, command_line, place, force, details))


def _picked(ranks: str | None) -> frozenset[int] | None:
    """Read the numbers of --ranks. Raises InputError for anything else."""
    if ranks is None:
        return None
    numbers = [whole(word) for word in ranks.split(",")]
    if None in numbers:
        raise InputError(f"--ranks {ranks} is no list of ranks: give numbers, as in 0,3.")
    return frozenset(number for number in numbers if number is not None)


def _of_a_job(
    program: Program,
    wanted: Wanted,
    kinds: Sequence[Boundary],
    rank: Rank,
    picked: frozenset[int] | None,
    output: str | None,
    force: bool,
    command_line: str,
    details: bool,
) -> Callable[[], NoReturn]:
    """Prepare the run of a rank, whose profile goes into the folder of the job, if it is picked."""
    from roofline.ranks import folder

    if wanted.stop or wanted.every is not None:
        raise InputError("A rank takes no --stop, at which the others would wait for it, and no --every.")
    into = Path(f"{program.name}-ranks" if output is None else output).absolute()
    if into.suffix == ".json" or (into.exists() and not into.is_dir()):
        raise InputError(f"Cannot write {into}: the profiles of ranks go into a folder; give the name of one.")
    if not into.parent.is_dir():
        raise InputError(f"Cannot write {into}: there is no folder {into.parent}; make it.")
    if picked is not None and max(picked) >= rank.of:
        raise InputError(f"There is no rank {max(picked)} of {rank.of}: --ranks counts from 0.")
    if _is_earlier(into / folder.MANIFEST):
        if not force and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
            raise InputError(f"{into} has profiles of ranks already: give --force, or another folder.")
        (into / folder.MANIFEST).unlink(missing_ok=True)  # the ranks of this run list themselves, at their ends
    if picked is not None and rank.number not in picked:
        return partial(_start, program, wanted, (), lambda ended: None)
    speaks = rank.number == min(picked or {0})
    report = partial(_report_rank, command_line, into, rank, details if speaks else None)
    return partial(_start, program, wanted, kinds, report, f"roofline, rank {rank.number}", speaks)


def _is_earlier(file: Path) -> bool:
    """Return whether a file was written before this process, as told by its CPU time: else it may be of this job."""
    try:
        return file.stat().st_mtime < time.time() - time.process_time()
    except FileNotFoundError:
        return False


def _report_rank(command_line: str, into: Path, rank: Rank, details: bool | None, ended: Ended) -> None:
    """Write the profile of a rank into the folder of its job. details: of its screen; None: print none."""
    [profile] = ended.profiles(command_line)  # there may be none, for which the rest is not loaded
    from msgspec.structs import replace

    from roofline.analysis.analysis import analyze
    from roofline.cli import printing_anything
    from roofline.cli.options import terminal, words
    from roofline.ranks import folder
    from roofline.ranks.number import RANK, RANKS
    from roofline.renderers import text
    from roofline.units import printable

    numbers = {RANK: str(rank.number), RANKS: str(rank.of)}
    profile = replace(profile, environment={**profile.environment, **numbers})
    into.mkdir(exist_ok=True)
    path = folder.add(into, profile)
    if details is None:
        return
    with printing_anything():
        words.result(text.render(analyze(profile), None, page=terminal.page(), details=details))
        words.result(f"Wrote {printable(path)}\nNext, when all ranks have ended: roofline show {words.quoted(into)}\n")


def _range(steps: str | None) -> tuple[int | None, int | None]:
    """Read FIRST:LAST, either of which may be missing. Raises InputError for anything else."""
    if steps is None:
        return None, None
    first, colon, last = steps.partition(":")
    ends = whole(first), whole(last)
    if not colon or any(word and end is None for word, end in zip((first, last), ends, strict=True)):
        raise InputError(f"--steps {steps} is no range: give FIRST:LAST, as in 100:200.")
    return ends


def _say(text: str, who: str = "roofline") -> None:
    from roofline.cli.options import words

    words.say(f"{who}: {text}")


def _start(
    program: Program,
    wanted: Wanted,
    kinds: Sequence[Boundary],
    report: Callable[[Ended], None],
    who: str = "roofline",
    speaks: bool = True,
) -> NoReturn:
    """Run the program, print what was measured, and exit as the program does.

    A program that ended well and was not measured has the exit code of the error. who: begins our lines. speaks: False
    if only errors are to be said.
    """
    from roofline.running.program import raise_as_python
    from roofline.running.run import run

    ended = run(program, wanted, partial(_say, who=who) if speaks else lambda text: None, kinds)
    code = 0
    if ended.own_process:
        # The program may have sent its own output elsewhere.
        with redirect_stdout(sys.__stdout__), redirect_stderr(sys.__stderr__):
            for sentence in ended.sentences() if speaks else ():
                _say(sentence, who)
            try:
                report(ended)
            except RooflineError as error:
                _say(str(error), who)
                code = error.exit_code
            except Exception as error:
                tell(traceback.format_exc().rstrip("\n"))  # without --debug: the program may have run for hours
                _say(str(defect(error, is_printed=True)), who)
                code = DefectError.exit_code
    if ended.error is not None and (ended.failed or not code):
        raise_as_python(ended.error)
    sys.exit(code)


def _further(first_path: Path, word: str, force: bool) -> Path:
    """Choose the path of a further profile, `net-step1006.json`; where that is taken, `net-step1006-2.json`."""
    path, number = first_path.with_stem(f"{first_path.stem}-{word}"), 2
    while not force and os.path.lexists(path):
        path, number = first_path.with_stem(f"{first_path.stem}-{word}-{number}"), number + 1
    return path


def _report(command_line: str, place: Path, force: bool, details: bool, ended: Ended) -> None:
    """Write the profiles, and print the first one's screen, and how further ones of the same loop differ.

    place: the file to write, or a folder.
    """
    profiles, in_folder = ended.profiles(command_line), place.is_dir()  # there may be none: the rest is not loaded
    from roofline.analysis.analysis import Analysis, analyze
    from roofline.cli import printing_anything
    from roofline.cli.options import terminal, words
    from roofline.cli.options.paths import save_measured
    from roofline.measuring import session
    from roofline.renderers import text
    from roofline.running import drift
    from roofline.units import printable

    first_paths: dict[int, Path] = {}  # of each loop
    analyses: dict[int, list[tuple[int, int, Analysis]]] = {}
    with printing_anything():
        for profile, (loop, taken) in zip(profiles, ended.measured, strict=True):
            if loop in first_paths:
                path = _further(first_paths[loop], f"step{taken.first}", force)
            elif in_folder:
                path = session.default_name(profile, place)
            else:
                path = place if loop == 1 else _further(place, str(loop), force)
            file = save_measured(profile, path, force)
            analysis = analyze(profile)
            if not first_paths:
                words.result(text.render(analysis, None, page=terminal.page(), details=details))
            first_paths.setdefault(loop, path)
            if isinstance(analysis, Analysis):
                analyses.setdefault(loop, []).append((taken.first, taken.last, analysis))
            words.result(f"Wrote {printable(file.name if in_folder else file)}\n")
        for measured in analyses.values():
            if len(measured) > 1:
                words.result("\n".join(["", *drift.lines(measured), ""]))
