"""Bad input gets one sentence, the right exit code and no half-written file (docs/errors.md).

Exit 2: what the user gave cannot be used; 3: something is not installed; 4: a measurement failed; 130: Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import site
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import handmade
import psutil
import pytest
from ended_processes import wait_for_end

from roofline import __version__, plugins
from roofline.core.schema import SCHEMA, save
from roofline.devices import nvidia
from tests.cli.conftest import Ended

Run = Callable[..., Any]

SMALL = ("--backend", "torch", "--device", "cpu", "--threads", "1", "--steps", "3")
MLP = ("profile", "mlp", "--size", "tiny", *SMALL)
OUT = ("-o", "out.json")


def listed(package: str, suffix: str = ".py", *, sorted_by_kind: bool = False) -> str:
    return ", ".join(plugins.names(package, suffix, sorted_by_kind=sorted_by_kind))


def said(ended: Any, code: int, *parts: str) -> str:
    """The sentence a command failed with; all it wrote to standard error, on one line."""
    assert ended.code == code, ended.err
    assert ended.err.startswith("roofline: "), ended.err
    assert ended.err.endswith((".\n", "?\n"))
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    for part in parts:
        assert part in ended.err
    return str(ended.err)


def files(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder, hidden files and half-written ones too."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if "__pycache__" not in path.parts
    }


@pytest.fixture(autouse=True)
def _nothing_is_measured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be refused is refused before a ceiling is measured or a child is started."""
    from roofline.devices import calibration

    def measure(*_: object) -> None:
        raise AssertionError("a test started a calibration")

    monkeypatch.setattr(calibration, "_measure", measure)


@pytest.fixture
def _no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    from roofline.recording import launch

    def run(*_: object) -> None:
        raise AssertionError("a child was started")

    monkeypatch.setattr(launch, "run", run)


# ------------------------------------------------------------------------------------------------ words


@pytest.mark.usefixtures("_no_child")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("profile", "elmo", *SMALL),
            f"There is no model called 'elmo'; there are: {listed('roofline.models.torch', sorted_by_kind=True)}.",
        ),
        (
            ("profile", "gemma", "--backend", "keras2"),
            f"keras2 has no model called 'gemma'; it has: {listed('roofline.models.keras2', sorted_by_kind=True)}.",
        ),
        (
            ("profile", "mlp", "--backend", "tensorfow"),
            f"There is no backend called 'tensorfow'; there are: {listed('roofline.backends')}.",
        ),
        (
            ("profile", "mlp", "--backend", "torch:mode=x"),
            "The torch backend has no option 'mode'; there are: attention, optimizer, dropout.",
        ),
        (("profile", "mlp", "--backend", ""), "There is no backend called ''"),
        (
            (*MLP, "--mode", "learn"),
            "There is no mode 'learn'; there are: infer, train, generate.",
        ),
        ((*MLP, "--mode", "generate"), "mlp has no mode 'generate' yet: use --mode with one of infer, train."),
        (
            ("profile", "gpt2", "--backend", "torchscript", "--mode", "generate"),
            "TorchScript traces functions of tensors, and a model that generates hands on its cache: "
            "use --backend torch, or --mode infer.",
        ),
        ((*MLP, "--device", "tpu"), "There is no device 'tpu'; there are: auto, cpu, cuda."),
        ((*MLP, "--precision", "fp7"), "There is no precision 'fp7'; there are: default, fp32, tf32, bf16, fp16, "),
        ((*MLP, "--input", "disk"), "There is no input 'disk'; there are: device, host."),
        ((*MLP, "--size", "huge"), "mlp has no size 'huge': use --size with one of tiny, base, published."),
        ((*MLP, "--batch", "0"), "--batch 0 is not possible: give at least 1."),
        ((*MLP, "--batch", "-3"), "--batch -3 is not possible: give at least 1."),
        ((*MLP, "--batch", "9" * 30), "is not possible: give at most 1000000000000."),
        ((*MLP, "--steps", "0"), "--steps 0 is not possible: give at least 1."),
        ((*MLP, "--rounds", "0"), "--rounds 0 is not possible: give at least 1."),
        ((*MLP, "--threads", "0"), "--threads 0 is not possible: give at least 1."),
        ((*MLP, "--threads", "100000"), "--threads must be between 1 and "),
        ((*MLP, "--seq", "8"), "mlp has no sequence: leave --seq out."),
        ((*MLP, "--layers", "8"), "mlp has no number of layers to choose: leave --layers out."),
        (
            ("profile", "bert", "--seq", "513", *SMALL),
            "bert has positions for 512 tokens: use --seq 512 or less, not 513.",
        ),
        (("profile", "mine.py", *SMALL), "'mine.py' is no model; a step of your own is given as path/to/file.py:func"),
        (("profile", "mine.txt:f", *SMALL), "'mine.txt:f' is no model"),
        (("profile", "mine.py:", *SMALL), "'mine.py:' is no model"),
        (("profile", "absent.py:f", *SMALL), "There is no file absent.py: give the path of one"),
        (("verify", "elmo", "--backend", "torch", "--device", "cpu"), "There is no model called 'elmo'"),
        (("verify", "mlp", "--backend", "torch", "--mode", "learn"), "There is no mode 'learn'"),
        (("show", "absent.json"), "Cannot read absent.json: No such file or directory; give the path of a profile."),
        (("show", "absent.json", "--format", "xml"), "There is no format called 'xml'; there are: csv, json, latex, "),
        (("show", "absent.json", "--by", "colour"), "There is no table by 'colour'; there are: class, group, "),
        (
            ("plot", "absent.json", "-o", "x.svg", "--kind", "pie"),
            f"There is no kind of figure called 'pie'; there are: {listed('roofline.renderers.figures')}.",
        ),
        (("plot", "absent.json", "-o", "x.svg"), "Cannot read absent.json"),
        (("plot", "absent.json", "-o", "x.svg", "--width", "wide"), "'wide' is not a width: write it like 3.3in"),
        (("plot", "h1000", "-o", "x.svg", "--kind", "devices"), "There is no device called 'h1000'"),
        (("devices", "h1000"), "There is no device called 'h1000'; there are: a10, "),
        (("devices", "--format", "xml"), "There is no format called 'xml'; there are: text, json."),
        (("calibrate", "--device", "tpu"), "There is no device called 'tpu' to calibrate; there are: auto, cpu, cuda."),
        # typer's own complaints, each with the command that shows more
        (("frobnicate",), "No such command 'frobnicate'; see `roofline --help`."),
        (("--frobnicate",), "No such option: --frobnicate; see `roofline --help`."),
        (("profile",), "see `roofline profile --help`."),
        (("profile", "mlp", "bert", *SMALL), "unexpected extra argument"),
        ((*MLP, "--batch", "many"), "Invalid value for '--batch'"),
        ((*MLP, "--frobnicate"), "No such option: --frobnicate"),
        ((*MLP, "-o"), "Option '-o' requires an argument"),
        (("show", "--frobnicate"), "see `roofline show --help`."),
    ],
)
def test_what_cannot_be_used_is_said(roofline: Run, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    ended = roofline(*words)
    said(ended, 2, sentence)
    assert ended.out == ""
    assert files(tmp_path) == {}


@pytest.mark.usefixtures("_no_child")
def test_a_traceback_only_when_asked(roofline: Run) -> None:
    plain = said(roofline(*MLP, "--batch", "0"), 2)
    for words in (("--debug", *MLP, "--batch", "0"), (*MLP, "--batch", "0", "--debug")):
        ended = roofline(*words)
        assert ended.code == 2
        assert ended.err.startswith("Traceback (most recent call last):")
        assert "InputError: --batch 0 is not possible" in ended.err
        assert ended.err.endswith(plain)
    ended = roofline("--debug", "profile", "mlp")
    assert (ended.code, "Traceback" in ended.err) == (2, True)


def test_help_and_version(roofline: Run) -> None:
    assert roofline("--version") == (0, f"roofline {__version__}\n", "")
    alone, asked = roofline(), roofline("--help")
    assert alone == asked
    assert (alone.code, alone.err) == (0, "")
    assert alone.out.startswith("Usage: roofline [OPTIONS] COMMAND [ARGS]...")
    for verb in plugins.names("roofline.cli"):
        assert f"\n  {verb} " in alone.out
        ended = roofline(verb, "--help")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.startswith(f"Usage: roofline {verb} ")


# ------------------------------------------------------------------------------------------------ profiles


def nan_in(text: str) -> str:
    """The profile with NaN for its first step's time, as Python's own json would write it."""
    document = json.loads(text)
    document["wall"]["steps"][0] = float("nan")
    return json.dumps(document)


def with_field(text: str, **fields: object) -> str:
    return json.dumps(json.loads(text) | fields)


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("empty", lambda text: "", "cannot be read as a profile"),
        ("truncated", lambda text: text[: len(text) // 2], "cannot be read as a profile"),
        ("one byte short", lambda text: text.rstrip()[:-1], "cannot be read as a profile"),
        ("not JSON", lambda text: "hello", "cannot be read as a profile"),
        ("not text", lambda text: "\udcff\udcfe", "cannot be read as a profile"),
        ("a list", lambda text: "[1, 2]", "cannot be read as a profile"),
        ("deep", lambda text: "[" * 100_000, "cannot be read as a profile"),
        (
            "something else",
            lambda text: '{"hello": 1}',
            "is not a roofline profile: it has no schema number; one is made by `roofline profile`",
        ),
        (
            "a null schema",
            lambda text: with_field(text, schema=None),
            "it has no schema number; one is made by `roofline profile`",
        ),
        (
            "schema 0",
            lambda text: with_field(text, schema=0),
            "it has no schema number; one is made by `roofline profile`",
        ),
        (
            "newer",
            lambda text: with_field(text, schema=SCHEMA + 1),
            f"was made by a newer roofline (schema {SCHEMA + 1}, this one reads up to {SCHEMA}): upgrade.",
        ),
        ("newer and other", lambda text: f'{{"schema": {SCHEMA + 1}}}', "was made by a newer roofline"),
        ("NaN", nan_in, "cannot be read as a profile"),
        ("infinite", lambda text: text.replace('"first":', '"first":1e999,"was":', 1), "cannot be read as a profile"),
        ("wrong type", lambda text: with_field(text, batch="many"), "at `$.batch`"),
        ("missing field", lambda text: '{"schema": 1, "model": "mlp"}', "missing required field"),
        ("a row too short", lambda text: with_field(text, ops=[[0]]), "at `$.ops[0]`"),
        ("points outside", lambda text: with_field(text, scopes=[]), "op 0 points outside the profile's tables"),
    ],
)
@pytest.mark.parametrize("verb", ["show", "plot"])
def test_a_bad_profile_is_refused(
    roofline: Run, recorded: Path, tmp_path: Path, verb: str, name: str, damage: Callable[[str], str], sentence: str
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(damage(recorded.read_text()), encoding="utf-8", errors="surrogateescape")
    before = files(tmp_path)
    more = ("-o", "x.svg") if verb == "plot" else ()
    told = said(roofline(verb, "bad.json", *more), 2, "roofline: bad.json ", sentence)
    assert len(told) < 400, f"{name}: a sentence does not quote the file"
    assert files(tmp_path) == before


def test_a_folder_is_no_profile(roofline: Run, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    said(roofline("show", "folder"), 2, "Cannot read folder: Is a directory; give the path of a profile.")
    said(
        roofline("plot", "folder", "-o", "x.svg"), 2, "Cannot read folder: Is a directory; give the path of a profile."
    )


# ------------------------------------------------------------------------------------------------ outputs


@pytest.mark.usefixtures("_no_child")
@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("there.json", "there.json exists; add --force to replace it, or choose another name."),
        ("absent/out.json", "Cannot write absent/out.json: there is no folder absent; make it"),
        ("folder.json", "Cannot write folder.json: it is a folder; give the name of a file in it."),
        ("there.json/out.json", "there is no folder there.json; make it"),
        ("out.txt", "Cannot write out.txt: the name must end in .json."),
        ("out", "the name must end in .json."),
        pytest.param(
            "/proc/out.json",
            "Cannot write in /proc: ",
            marks=pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc here"),
        ),
    ],
)
def test_an_output_that_cannot_be_written(roofline: Run, tmp_path: Path, output: str, sentence: str) -> None:
    (tmp_path / "there.json").write_text("mine")
    (tmp_path / "folder.json").mkdir()
    before = files(tmp_path)
    said(roofline(*MLP, "-o", output), 2, sentence)
    assert files(tmp_path) == before


@pytest.mark.usefixtures("_no_child")
def test_a_folder_that_takes_no_files(roofline: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write everywhere, so that the refusal is made up here."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    # Without -o the profile goes to the folder one is in.
    said(roofline(*MLP), 2, f"Cannot write in {tmp_path}: Permission denied; choose another place with -o.")
    (tmp_path / "below").mkdir()
    said(roofline(*MLP, "-o", "below/out.json"), 2, "Cannot write in below: Permission denied")
    assert files(tmp_path) == {"below": None}


def test_a_disk_that_fills_up_leaves_nothing(measuring: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.json").write_text("mine")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("roofline.core.schema.os.replace", full)
    ended = measuring(*MLP, "--batch", "64", "--count-only", *OUT, "--force")
    assert ended.code == 2
    assert (
        ended.err.splitlines()[-1] == "roofline: Cannot write out.json: No space left on device; choose another place."
    )
    assert files(tmp_path) == {"out.json": b"mine"}


# ------------------------------------------------------------------------------------------------ a user's own file

USERS_FILE = """
import os, signal, sys

if os.environ.get("BROKEN_IMPORT"):
    import no_such_module

def raises():
    raise ZeroDivisionError("while building")

def step_raises():
    import torch
    layer = torch.nn.Linear(2, 2)
    def run():
        layer(torch.ones(1, 2))
        raise LookupError("inside the step")
    return run

def wants(colour):
    return lambda: None

def wants_batch(batch):
    return lambda: None

def does_nothing():
    return lambda: None

def shape_error():
    import torch
    return lambda: torch.ones(2, 3) @ torch.ones(2, 3)

def eats_all():
    raise MemoryError

def eats_petabytes():
    import torch
    return lambda: torch.ones(2**50)

def eats_more_than_can_be_counted():
    import torch
    return lambda: torch.ones(2**61)

def eats_with_numpy():
    import numpy
    return lambda: numpy.ones(2**50)

def waits():
    import time
    def run():
        forked = [os.fork()]
        if forked[-1]:
            forked.append(os.fork())
            if not forked[-1]:
                os.setsid()
        if not forked[-1]:
            time.sleep(3600)  # longer than any test waits: it ends because it was ended
            os._exit(0)
        open("started", "w").write(f"{forked[0]} {forked[1]}")
        time.sleep(60)
    return run

not_callable = 7
"""


@pytest.fixture
def users_file(tmp_path: Path) -> dict[str, bytes | None]:
    (tmp_path / "mine.py").write_text(USERS_FILE)
    return files(tmp_path)


@pytest.mark.parametrize(
    ("function", "code", "sentence"),
    [
        ("absent", 2, "mine.py has no function 'absent'; it defines does_nothing, eats_all, "),
        ("not_callable", 2, "mine.py has no function 'not_callable'"),
        ("wants", 2, "wants needs the argument 'colour'; it can be given batch, seq, mode, device, precision"),
        ("wants_batch", 2, "wants_batch needs batch: give --batch."),
        *(
            (f"eats_{how}", 4, "Out of memory on the CPU: use a smaller --batch, --seq or --size.")
            for how in ("all", "petabytes", "more_than_can_be_counted", "with_numpy")
        ),
    ],
)
def test_a_users_file_that_cannot_be_used(
    measuring: Run, tmp_path: Path, users_file: dict[str, Any], function: str, code: int, sentence: str
) -> None:
    said(measuring("profile", f"mine.py:{function}", *SMALL, *OUT), code, sentence)
    assert files(tmp_path) == users_file


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("--batch", "64"), "does_nothing takes no argument 'batch': leave --batch out, or let does_nothing take it."),
        (("--precision", "bf16"), "does_nothing takes no argument 'precision'"),
        (("--no-optimizer",), "--no-optimizer is for the models of roofline"),
        (("--input", "host"), "--input host is for the models of roofline"),
    ],
)
def test_what_a_users_function_cannot_be_given_is_not_recorded_as_if_it_held(
    measuring: Run, tmp_path: Path, users_file: dict[str, Any], asked: tuple[str, ...], sentence: str
) -> None:
    said(
        measuring("profile", "mine.py:does_nothing", "--backend", "torch", "--threads", "1", *asked, *OUT), 2, sentence
    )
    assert files(tmp_path) == users_file


def test_a_step_that_does_nothing(measuring: Run, tmp_path: Path, users_file: dict[str, Any]) -> None:
    ended = measuring("profile", "mine.py:does_nothing", *SMALL, *OUT)
    assert ended.code == 4
    assert ended.err.splitlines()[-1] == "roofline: The step ran no op that does work, so there is nothing to profile."
    assert files(tmp_path) == users_file


@pytest.mark.parametrize(
    ("function", "last_lines"),
    [
        ("raises", ["ZeroDivisionError: while building", "roofline: The step raised ZeroDivisionError (see above)."]),
        ("step_raises", ["LookupError: inside the step", "roofline: The step raised LookupError (see above)."]),
        ("shape_error", [None, "roofline: The step raised RuntimeError (see above)."]),
    ],
)
def test_a_users_exception_keeps_its_traceback(
    measuring: Run, tmp_path: Path, users_file: dict[str, Any], function: str, last_lines: list[str | None]
) -> None:
    ended = measuring("profile", f"mine.py:{function}", *SMALL, *OUT)
    assert ended.code == 4
    assert "Traceback (most recent call last):" in ended.err
    assert f'File "{tmp_path / "mine.py"}", line ' in ended.err
    for wanted, line in zip(last_lines, ended.err.splitlines()[-2:], strict=True):
        assert wanted in (None, line)
    assert "UserError" not in ended.err, "the wrapper of our own is nobody's business"
    assert files(tmp_path) == users_file


@pytest.mark.parametrize(
    ("text", "name"), [("def f(:\n", "SyntaxError"), ("import no_such_module\n", "ModuleNotFoundError")]
)
def test_a_users_file_that_cannot_be_imported(measuring: Run, tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    ended = measuring("profile", "bad.py:f", *SMALL, *OUT)
    assert ended.code == 4
    assert ended.err.splitlines()[-1] == f"roofline: The step raised {name} (see above)."
    assert str(tmp_path / "bad.py") in ended.err
    assert set(files(tmp_path)) == {"bad.py"}


# ------------------------------------------------------------------------------------------------ processes


@pytest.mark.slow
def test_out_of_memory_is_caught_and_said(process: Run, tmp_path: Path) -> None:
    """1e11 samples of 4 numbers are 1.6 TB. A child of its own, which may use only the memory that is there."""
    pytest.importorskip("torch")
    ended = process(*MLP, "--batch", "100000000000", *OUT)
    said(ended, 4, "Out of memory on the CPU: use a smaller --batch, --seq or --size.")
    assert files(tmp_path) == {}


@pytest.fixture
def running(
    tmp_path: Path, users_file: dict[str, Any], variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[subprocess.Popen[str]]:
    """`roofline profile` of a step that never ends, in a session of its own, with its own folder for temporary files.

    Whatever the test finds, nothing of it outlives the test.
    """
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    # A shell starts what runs in the background with Ctrl-C ignored, nohup with SIGHUP, and children inherit that.
    listen = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    listen += "signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    listen += "runpy.run_module('roofline', run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-c", listen, "profile", "mine.py:waits", "--backend", "jax", *SMALL[2:], *OUT]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, **variables, "TMPDIR": str(tmp_path_factory.mktemp("scratch")), "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (tmp_path / "started").unlink(missing_ok=True)
    assert files(tmp_path) == users_file


def child_of(process: subprocess.Popen[str], step_runs: Path | None) -> int:
    """The measuring child's number, as soon as there is one or as soon as the user's step has written its file."""
    if step_runs is not None:
        wait_for(lambda: step_runs.exists() and step_runs.read_text() != "")
    wait_for(lambda: bool(psutil.Process(process.pid).children()))
    (child,) = psutil.Process(process.pid).children()
    return int(child.pid)


@pytest.mark.slow
@pytest.mark.parametrize("step_runs", [False, True], ids=["the child starts", "a step runs"])
def test_ctrl_c_in_the_middle(
    running: subprocess.Popen[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, step_runs: bool
) -> None:
    """SIGINT reaches the whole group, as from a terminal; neither a file nor a process may stay behind."""
    child = child_of(running, tmp_path / "started" if step_runs else None)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate()

    assert (running.returncode, out) == (130, "")
    assert err == "roofline: Stopped; nothing was written.\n"
    assert wait_for_end([child]) == []
    assert not list(tmp_path_factory.getbasetemp().glob("scratch*/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.thorough), signal.SIGKILL]
)
def test_an_end_from_outside_leaves_nothing(
    running: subprocess.Popen[str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, ending: signal.Signals
) -> None:
    """Only the parent gets the signal; its child, what the child's step forked and all folders go along.

    Of the two that it forked one is in a session of its own.
    """
    child = child_of(running, tmp_path / "started")
    forked = [int(number) for number in (tmp_path / "started").read_text().split()]
    assert len(forked) == 2
    os.kill(running.pid, ending)
    out, err = running.communicate()
    if ending != signal.SIGKILL:
        assert (running.returncode, out) == (128 + ending, "")
        assert err == "roofline: Stopped; nothing was written.\n"
    assert wait_for_end([child, *forked]) == []
    assert not list(tmp_path_factory.getbasetemp().glob("scratch*/*"))


def wait_for(condition: Callable[[], bool], seconds: float = 300) -> None:
    """How long it takes is not what is tested: the limit is for what hangs."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


# ------------------------------------------------------------------------------------------------ what is missing


@pytest.fixture(scope="session")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment with all that is installed here but torch."""
    folder = tmp_path_factory.mktemp("without") / "venv"
    venv.EnvBuilder(symlinks=True).create(folder)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for there in map(Path, site.getsitepackages()):
        for entry in there.iterdir():
            if not entry.name.lower().startswith(("torch", "functorch", "pip", "__pycache__")):
                (packages / entry.name).symlink_to(entry)
    return str(folder / "bin" / "python")


#: Runs commands one after another; prints [code, output, errors] of each, and what `roofline.profile` raises.
SEVERAL = """
import contextlib, io, json, sys
import roofline
from roofline import cli

for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            cli.main(words)
        except SystemExit as left:
            code = left.code
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
try:
    roofline.profile(lambda: None)
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
def test_without_torch_the_rest_works(
    recorded: Path, tmp_path: Path, without_torch: str, variables: dict[str, str]
) -> None:
    shutil.copy(recorded, tmp_path / "p.json")
    before = files(tmp_path)
    verify = ("verify", "mlp", "--backend", "torch", "--device", "cpu")
    commands = (("show", "p.json"), ("backends",), (*MLP, *OUT), (*MLP, "--count-only", *OUT), verify)
    done = subprocess.run(
        [without_torch, "-c", SEVERAL, json.dumps(commands)],
        cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    *ends, raised = done.stdout.splitlines()
    shown, backends, *refused = (Ended(*json.loads(end)) for end in ends)
    assert shown.code == 0
    assert (backends.code, "torch is missing: pip install 'roofline[torch]'" in backends.out) == (0, True)
    assert len(refused) == 3
    for ended in refused:
        said(
            ended, 3, "The torch backend needs torch, which is not installed here: run `pip install 'roofline[torch]'`."
        )
    assert raised == "MissingError", done.stderr
    assert files(tmp_path) == before


@pytest.mark.skipif(nvidia.unavailable() is None, reason="there is a GPU here")
@pytest.mark.usefixtures("_no_child")
def test_there_is_no_gpu(roofline: Run, tmp_path: Path) -> None:
    said(roofline(*MLP, "--device", "cuda", *OUT), 3, "Use `--device cpu`.")
    said(roofline("calibrate", "--device", "cuda"), 3, "Use `--device cpu`.")
    assert files(tmp_path) == {}


@pytest.mark.usefixtures("_no_child")
def test_torch_without_a_gpu_beside_one(measuring: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver is there, but this torch was built without CUDA."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    from roofline.core.step import Workload
    from roofline.errors import MissingError
    from roofline.recording import child as _child
    from roofline.recording.request import Request

    with pytest.raises(MissingError, match="finds no CUDA device here: use --device cpu"):
        _child._run(Request(backend="torch", workload=Workload(model="mlp", device="cuda")))


# -------------------------------------------------------------------------------------- inputs are no outputs


def spellings(folder: Path, name: str, suffix: str = ".json") -> Iterator[str]:
    """Other names of a file in `folder`, in which the command runs; each ends in `suffix`."""
    (folder / "sub").mkdir()
    os.symlink(name, folder / f"soft{suffix}")
    os.link(folder / name, folder / f"hard{suffix}")
    os.symlink(folder, folder / "loop")
    yield from (
        f"soft{suffix}",
        f"hard{suffix}",
        f"loop/soft{suffix}",
        f"sub/../soft{suffix}",
        str(folder / f"soft{suffix}"),
    )
    if name.endswith(suffix):
        yield from (name, f"./{name}", f"loop/{name}")


@pytest.mark.parametrize(
    ("words", "inputs", "suffix"),
    [
        (("import", "t.json"), "t.json", ".json"),
        (("import", "t.json", "--capture", "c.json"), "c.json", ".json"),
        (("import", "t.json", "--device", "d.toml"), "d.toml", ".json"),
        (("plot", "p.svg", "q.json"), "p.svg", ".svg"),
        (("plot", "q.json", "p.svg"), "p.svg", ".svg"),
        (("profile", "mine.py:f", *SMALL), "mine.py", ".json"),
    ],
)
@pytest.mark.usefixtures("_no_child")
def test_an_input_is_never_an_output(
    roofline: Run, tmp_path: Path, words: tuple[str, ...], inputs: str, suffix: str
) -> None:
    (tmp_path / inputs).write_bytes(b"mine")
    for other in spellings(tmp_path, inputs, suffix):
        before = files(tmp_path)
        ended = roofline(*words, "-o", other, "--force")
        said(ended, 2, f"Cannot write {Path(other)}: it is also the input, {inputs}; choose another name with -o.")
        assert files(tmp_path) == before


@pytest.mark.parametrize(("verb", "suffix"), [("report", "html"), ("plot", "svg"), ("export", "csv")])
def test_what_standard_input_reads_is_never_an_output(
    roofline: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, suffix: str
) -> None:
    profile = tmp_path / f"p.{suffix}"
    save(handmade.profile(), profile)
    before = profile.read_bytes()
    with profile.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        said(roofline(verb, "-", "-o", str(profile), "--force"), 2, "it is also the input, -; choose another name")
    assert profile.read_bytes() == before


def test_a_link_to_nothing_is_replaced_by_force_alone(roofline: Run, tmp_path: Path) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    (tmp_path / "out.csv").symlink_to("nothing.csv")
    said(roofline("export", "p.json", "-o", "out.csv"), 2, "out.csv exists; add --force to replace it")
    assert (tmp_path / "out.csv").is_symlink()
    assert roofline("export", "p.json", "-o", "out.csv", "--force").code == 0
    assert not (tmp_path / "out.csv").is_symlink()


def test_ranks_do_not_replace_their_traces(roofline: Run, tmp_path: Path) -> None:
    for rank in range(2):
        text = json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": []})
        (tmp_path / f"job-rank{rank}.json").write_text(text)
    before = files(tmp_path)
    ended = roofline("import", "job-rank0.json", "job-rank1.json", "-o", "job.json", "--force")
    said(ended, 2, "Cannot write job-rank0.json: it is also the input, job-rank0.json")
    assert files(tmp_path) == before


@pytest.mark.usefixtures("_no_child")
def test_profiles_of_a_comparison_do_not_replace_its_step(roofline: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(): ...")
    (tmp_path / "torch.json").symlink_to("mine.py")
    before = files(tmp_path)
    ended = roofline(
        "compare", "mine.py:f", "--backends", "torch,torch-compile", "--device", "cpu", "-o", ".", "--force"
    )
    said(ended, 2, "Cannot write torch.json: it is also the input, mine.py")
    assert files(tmp_path) == before
