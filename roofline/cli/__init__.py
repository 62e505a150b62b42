"""Build the command line: one verb per file of this folder, found by its name. Only this package prints and exits.

A verb is a module with a function `command`, whose docstring is its help. A verb imports its rooms when it runs:
`roofline --help` loads no framework, no numpy and no matplotlib.
"""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from roofline import plugins
from roofline.cli.options import defaults, words
from roofline.cli.options.words import drop_output
from roofline.errors import OUT_OF_MEMORY, DefectError, MeasurementError, RooflineError, defect
from roofline.standard_error import tell
from roofline.units import printable
from roofline.version import __version__

#: Verbs in the order of use, for the help; the others follow by name.
_ORDER = (
    *("profile", "run", "sweep", "import", "show", "compare", "plot", "report", "export", "whatif", "check"),
    *("verify", "calibrate", "devices", "models", "backends", "published", "doctor"),
)

#: The exit code after Ctrl-C: 128 + SIGINT.
_STOPPED = 130
#: Other signals that end a command from outside; the code is 128 + the signal, too.
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
#: Letters of an error: a longer one, which quotes its input, is cut to its beginning and its end with the cure.
_LONGEST, _END = 1500, 500


def build(only: str | None = None) -> typer.Typer:
    """Build the command line with all verbs, or with one: running a verb need not load the others."""
    app = typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        help="Measure a step of a model, split its time into ops, and compare each op with the limits of the device.",
    )

    @app.callback()
    def root(
        debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
        version: bool = typer.Option(
            False, "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ) -> None:
        pass  # both are done by now: --debug in `main`, --version in its callback

    names = plugins.names("roofline.cli")
    ordered = [name for name in _ORDER if name in names] + [name for name in names if name not in _ORDER]
    for name in ordered:
        if only is None or name == only:
            verb = plugins.load("roofline.cli", name, "command")
            app.command(name, **getattr(verb, "SETTINGS", {}))(verb.command)
    return app


def main(arguments: list[str] | None = None, *, take_defaults: bool = True) -> Callable[[], NoReturn]:
    """Run the command line and exit: 0, or the code of the error (docs/errors.md). No arguments print the help.

    take_defaults: from the nearest pyproject.toml; not where the arguments are those of another call that took them.
    Returns for `roofline run` alone: a function that runs the program and exits, to be called when nothing of this is
    in the way any more.
    """
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    verbs = plugins.names("roofline.cli")
    first = next((word for word in arguments if not word.startswith("-")), None)
    ours = arguments.index("run") if first == "run" else len(arguments)  # behind it they may be the program's
    debug = "--debug" in arguments[:ours]
    arguments = [word for word in arguments[:ours] if word != "--debug"] + arguments[ours:]
    code: Any = 0
    words.KEPT.clear()
    try:
        with _signals_stop(), printing_anything():
            app = build(first if first in verbs else None)
            takes = take_defaults and first in verbs and "--help" not in arguments
            taken = _defaults(app, first, arguments) if takes and first else {}
            code = app(args=arguments, prog_name="roofline", standalone_mode=False, default_map=taken)
            if sys.stdout is not None:
                sys.stdout.flush()  # a failure to write is reported, and not left to the end of the process
    except RooflineError as error:
        _fail(str(error), error.exit_code, debug)
    except KeyboardInterrupt:
        code = _STOPPED
    except _Signalled as error:
        _fail(_stopped(), 128 + error.number)
    except BrokenPipeError:
        _reader_gone()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        _reader_gone()  # typer turns it into the code of a failed gate
    except OSError as error:
        _fail(_of_system(error), 2, debug)
    except MemoryError:  # of the command itself: a measuring process says it in its own words
        _fail(OUT_OF_MEMORY, MeasurementError.exit_code, debug)
    except Exception as error:
        message = usage(error)
        if message is None:
            _fail(str(defect(error)), DefectError.exit_code, debug)
        verb = first if first in verbs else ""
        _fail(f"{message.rstrip('.')}; see `{f'roofline {verb}'.rstrip()} --help`.", 2, debug)
    if callable(code):
        return code  # type: ignore[no-any-return]
    if code == _STOPPED:  # typer makes it of a KeyboardInterrupt
        _fail(_stopped(), _STOPPED)
    sys.exit(code if isinstance(code, int) else 0)


def _stopped() -> str:
    return f"Stopped; {words.KEPT[-1] if words.KEPT else 'nothing was written'}."


def _defaults(app: typer.Typer, verb: str, arguments: list[str]) -> dict[str, dict[str, Any]]:
    """Return the defaults of the verb's parameters from the nearest pyproject.toml, and say which there are."""
    words.DEFAULTS.clear()
    file = defaults.nearest()
    table = {} if file is None else defaults.read(file)
    if file is None or not table:
        return {}
    defaults.check_tables(file, table, plugins.names("roofline.cli"))
    command = _command(app, verb)
    values = defaults.of_verb(
        file, table, verb, command, lambda: [_command(build(name), name) for name in plugins.names("roofline.cli")]
    )
    words.DEFAULTS += defaults.words_of(values, verb, command, arguments[arguments.index(verb) + 1 :])
    if words.DEFAULTS:
        words.say(defaults.told(file, words.DEFAULTS))
    return {verb: defaults.parameters(values, command)}


def _command(app: typer.Typer, verb: str) -> Any:
    group: Any = typer.main.get_command(app)
    return group.commands[verb]


class _Signalled(BaseException):
    """Carry a signal that ends the command after its clean-up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _signals_stop() -> Iterator[None]:
    """Let ending signals act like Ctrl-C while the context is active: no process and no folder stays behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        raise _Signalled(number)

    # One that is ignored (nohup) stays so.
    handled = [number for number in _SIGNALS if signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


#: Plain signs for encodings that lack ours: "24-50 %" is readable, "24?50 %" is not.
_PLAIN = {
    "–": "-",
    "—": "-",
    "−": "-",
    "─": "-",
    "…": "...",
    "µ": "u",
    "×": "x",
    "→": "->",
    "≥": ">=",
    "≤": "<=",
    "·": "-",
}
#: Signs of bars: full, above a minimum, without one, of the other run; eighths of a letter.
_PLAIN |= {"█": "#", "▓": "=", "░": ".", "▒": "=", **dict.fromkeys("▉▊▋▌▍▎▏", "|")}


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Replace signs that an encoding lacks by plain ones, and any other by "?"; a handler of `codecs`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


@contextmanager
def printing_anything() -> Iterator[None]:
    """Print signs that the terminal's encoding lacks as plain ones: a dash or a name must not end a command."""
    codecs.register_error("roofline", _plainer)
    streams = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, io.TextIOWrapper)]
    before = [stream.errors for stream in streams]
    for stream in streams:
        stream.reconfigure(errors="roofline")
    yield
    # Not behind an exception: what is said of it may hold such signs, too.
    for stream, errors in zip(streams, before, strict=True):
        stream.reconfigure(errors=errors)


def _reader_gone() -> NoReturn:
    drop_output()
    sys.exit(0)


def _of_system(error: OSError) -> str:
    """Describe an error of the system in a sentence."""
    try:
        os.getcwd()
    except OSError:
        return "The folder that the command runs in is gone: change to another one."
    why = error.strerror or str(error)
    if error.filename is not None:
        return f"Cannot use {error.filename}: {why}; give another path."
    drop_output()
    return f"The output cannot be written: {why}."


def usage(error: Any) -> str | None:
    """Return typer's message about wrong arguments, or None for any other exception."""
    form = getattr(error, "format_message", None)
    if form is None or not hasattr(error, "exit_code"):
        return None
    return str(form()) or None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"roofline {__version__}")
        raise typer.Exit


def _fail(message: str, code: int, debug: bool = False) -> NoReturn:
    """Print one line on standard error, below the traceback with --debug, and exit."""
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST - _END]} … {message[-_END:]}"
    # Without standard error, the code still tells a broken input from a failed gate.
    if debug:
        tell(traceback.format_exc().rstrip("\n"))
    tell(f"roofline: {printable(' '.join(message.splitlines()))}")
    sys.exit(code)
