"""A program under `roofline run` does what it does under `python`: output, arguments, exit code, exceptions, signals.

These programs import no framework, so nothing is found in them: that is exit code 4 where the program's own is 0.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from roofline import cli

NOTHING = 4

#: What a program can see of how it was started.
FACTS = """
import pickle, sys, threading, warnings
class Mine: pass
print(sys.argv, sys.path[0], __name__, __file__, __package__, __doc__, __builtins__.__name__)
print(sys.modules["__main__"].__dict__ is globals(), pickle.dumps(Mine()), sorted(globals()))
print(sys.stdout.errors, sys.stderr.errors, sys.stdin.read(), threading.active_count(), sys.getrecursionlimit())
warnings.warn("old", DeprecationWarning)
import gc; print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())
import signal; print([signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)])
"""
SPAWNED = """
import multiprocessing, sys
def square(x):
    return x * x, __name__, sys.argv
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(square, [3]))
"""
FORKED = """
import os, sys
if (child := os.fork()) == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def python(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, input=text, capture_output=True, text=True, timeout=60, check=False
    )


def both(folder: Path, *words: str, text: str = "") -> tuple[subprocess.CompletedProcess[str], ...]:
    """Run something by `python` and by `roofline run`; the last lines of the latter's errors, which are ours, go."""
    plain = python(folder, *words, text=text)
    run = python(folder, "-m", "roofline", "run", *words, text=text)
    run.stderr = "".join(
        line for line in run.stderr.splitlines(keepends=True) if not line.startswith("roofline: No step was found")
    )
    if plain.returncode == 0:
        assert run.returncode == NOTHING
        run.returncode = 0
    return plain, run


def same(folder: Path, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    plain, run = both(folder, *words, text=text)
    assert (run.stdout, run.stderr, run.returncode) == (plain.stdout, plain.stderr, plain.returncode)
    return plain


def test_a_script_sees_what_it_would_see(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "facts.py").write_text(FACTS)
    done = same(tmp_path, "below/facts.py", "-m", "--debug", "-o", "--", "x", text="typed")
    assert "typed" in done.stdout
    assert "['below/facts.py', '-m', '--debug', '-o', '--', 'x']" in done.stdout


def test_a_link_has_the_folder_of_its_file_first_and_without_a_step_there_is_no_profile(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "facts.py").write_text(FACTS)
    (tmp_path / "link.py").symlink_to(tmp_path / "real" / "facts.py")
    plain, run = python(tmp_path, "link.py"), python(tmp_path, "-m", "roofline", "run", "link.py")
    assert f"{tmp_path / 'real'} __main__" in plain.stdout
    assert (run.stdout, run.returncode) == (plain.stdout, NOTHING)
    assert "roofline: No step was found" in run.stderr
    assert sorted(os.listdir(tmp_path)) == ["link.py", "real"]


def test_a_module_a_package_a_folder_and_an_archive(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import sys\nprint(sys.argv)\n")
    (tmp_path / "package" / "__main__.py").write_text(FACTS)
    with zipfile.ZipFile(tmp_path / "archive.pyz", "w") as archive:
        archive.writestr("__main__.py", FACTS.replace("__builtins__.__name__", "1"))
    for words in (("-m", "package"), ("package",), ("archive.pyz",)):
        done = same(tmp_path, *words, "--lr", "3")
        assert "'--lr', '3']" in done.stdout
    missing = python(tmp_path, "-m", "roofline", "run", "-m", "package.no")
    assert (missing.returncode, "No module named package.no" in missing.stderr) == (1, True)


@pytest.mark.parametrize(
    "source",
    [
        *("raise SystemExit", "import sys; sys.exit((1, 2))", "import os; os._exit(6)", "1 +"),
        *("import os; os.closerange(3, 256)", "import os; os.closerange(0, 256)"),
        # Exceptions as the others are.
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("quit(5)", "bytearray(1 << 60)")),
        "raise ExceptionGroup('two', [ValueError(1), TypeError()]) from KeyError('no')",
        "import nothing_of_this_name",
        "import sys; sys.excepthook = lambda kind, error, _: print('mine', error); 1 / 0",
        "import atexit; atexit.register(print, 'last')\ndef f():\n    try: 1 / 0\n    finally: {}['k']\nf()",
    ],
)
def test_a_program_ends_as_it_would(tmp_path: Path, source: str) -> None:
    (tmp_path / "program.py").write_text(f"print('begun', flush=True)\n{source}\n")
    plain, run = both(tmp_path, "program.py")
    assert (run.stdout, run.stderr, run.returncode) == (plain.stdout, plain.stderr, plain.returncode)


@pytest.mark.parametrize(
    "number",
    [
        *(signal.SIGINT, signal.SIGTERM),
        # Of these Python sees as little as of SIGTERM.
        *(pytest.param(each, marks=pytest.mark.thorough) for each in (signal.SIGHUP, signal.SIGKILL, signal.SIGSEGV)),
    ],
    ids=lambda number: number.name,
)
def test_signals_end_it_as_they_would(tmp_path: Path, number: signal.Signals) -> None:
    """Also where these tests run in the background of a shell, or under nohup, whose processes ignore some."""
    (tmp_path / "program.py").write_text(f"import os, time\nos.kill(os.getpid(), {int(number)}), time.sleep(9)\n")
    ignored = signal.getsignal(number) == signal.SIG_IGN
    if ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        plain = same(tmp_path, "program.py")
    finally:
        if ignored:
            signal.signal(number, signal.SIG_IGN)
    assert plain.returncode == -number


def test_ctrl_c_ends_it_by_the_signal_whatever_ran_between(tmp_path: Path) -> None:
    """As named tuples are made when a profile is; `python -m` alone does not end so."""
    (tmp_path / "ended.py").write_text(
        "from roofline.running.program import raise_as_python\ntry:\n    raise KeyboardInterrupt\n"
        "except KeyboardInterrupt as error:\n    caught = error\nexec('1')\nraise_as_python(caught)\n"
    )
    assert python(tmp_path, "-m", "ended").returncode == -signal.SIGINT


def test_its_own_handlers_of_signals_stay(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import os, signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\nos.kill(os.getpid(), 15)\n"
    )
    assert same(tmp_path, "program.py").returncode == 9


def test_processes_that_it_starts(tmp_path: Path) -> None:
    (tmp_path / "spawned.py").write_text(SPAWNED)
    assert "(9, '__mp_main__', ['spawned.py', 'x'])" in same(tmp_path, "spawned.py", "x").stdout
    (tmp_path / "forked.py").write_text(FORKED)
    assert same(tmp_path, "forked.py").stdout == "7\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "no program to run"),
        (("none.py",), 2, "no file none.py"),
        (("--steps", "3", "program.py"), 2, "FIRST:LAST"),
        (("--steps", "3:9", "program.py"), 2, "too few"),
        (("--every", "2", "program.py"), 2, "too often"),
        (("--every", "200", "--stop", "program.py"), 2, "exclude each other"),
        (("--step", "program", "program.py"), 2, "module.path:function"),
        (("--step", "program:no", "program.py"), 2, "defines no function no"),
        (("-o", "program.py", "program.py"), 2, "Cannot write"),
    ],
)
def test_what_is_asked_is_checked_before_the_program_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    (tmp_path / "program.py").write_text("print('ran')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        cli.main(["run", *words])
    told = capsys.readouterr()
    assert (left.value.code, told.out) == (code, "")
    assert says in told.err
    assert os.listdir(tmp_path) == ["program.py"]
