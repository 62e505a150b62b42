"""Faults of a machine, against the verbs that take long: a row each of docs/reliability.md.

Programs and steps here load no framework, or one process does for several rows.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import handmade
import psutil
import pytest
import toy_sweeps
from ended_processes import wait_for_end

from roofline.core.schema import encode, load
from roofline.errors import InputError
from roofline.sweeping import folder
from roofline.sweeping.plan import points
from roofline.sweeping.run import run
from tests.cli.conftest import call, full

sys.path.append(str(Path(__file__).parents[1] / "data"))

import make_ranks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits, capabilities and locales of Linux")

Run = Callable[..., Any]
#: [s] After so long a process that should have ended hangs: no test is about how long one takes.
PATIENCE = 120


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """A folder of the traces of three ranks."""
    place = tmp_path / "traces"
    place.mkdir()
    for rank, trace in enumerate(make_ranks.ranks(number=3)):
        (place / f"net_rank{rank}.json").write_bytes(trace)
    return place


def names(place: Path) -> list[str]:
    """What lies there, but for what Python compiled of a step's file."""
    return sorted(file.name for file in place.iterdir() if file.name != "__pycache__")


def start(
    *words: str, at: Path, variables: Mapping[str, str], before: tuple[str, ...] = (), first: str = ""
) -> subprocess.Popen[str]:
    """Start a command. before: of a program that starts it; first: Python that it begins with."""
    ours = "import runpy, sys; sys.argv[0] = 'roofline'; "
    ours += "runpy.run_module('roofline', run_name='__main__', alter_sys=True)"
    return subprocess.Popen(
        [*before, sys.executable, "-c", f"{first}\n{ours}", *words],
        cwd=at,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# ------------------------------------------------------------------------------------------ processes of an import


@pytest.fixture(scope="module")
def _known_costs(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> None:
    """Fill the cache of costs in this process, which has loaded torch: no command here has to."""
    place = tmp_path_factory.mktemp("known")
    (place / "trace.json").write_bytes(make_ranks.ranks(number=1)[0])
    assert call(("import", "trace.json", "--device", "h100-sxm", "-o", "p.json"), place, variables).code == 0


@pytest.mark.slow
@pytest.mark.usefixtures("_known_costs")
@pytest.mark.parametrize("ended", ["a reading process", "the command", "Ctrl-C"])
def test_an_import_that_is_ended(tmp_path: Path, traces: Path, variables: dict[str, str], ended: str) -> None:
    """A further process reads: of three traces the first is read here. It is at its start, or at a trace."""
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    words = ("import", "traces", "--device", "h100-sxm", "--workers", "3", "-o", "job")
    command = start(*words, at=tmp_path, variables=variables, first=listen)
    process = psutil.Process(command.pid)
    while not (readers := process.children()):
        assert command.poll() is None
        time.sleep(0.01)
    if ended == "a reading process":
        readers[0].kill()
    else:
        command.send_signal(signal.SIGINT if ended == "Ctrl-C" else signal.SIGKILL)
    out, err = command.communicate(timeout=PATIENCE)
    assert wait_for_end([reader.pid for reader in readers], PATIENCE) == []
    assert (out, names(tmp_path)) == ("", ["traces"])
    sentence = err.splitlines()[-1:]
    if ended == "a reading process":
        assert command.returncode == 4
        assert sentence[0].endswith(" ended: import with fewer processes (--workers 1).")
    else:
        assert command.returncode == (130 if ended == "Ctrl-C" else -signal.SIGKILL)
        assert sentence == (["roofline: Stopped; nothing was written."] if ended == "Ctrl-C" else [])


#: Leaves so many bytes to a process that has loaded what reads traces.
LIMITED = """
import resource
import roofline.importing.from_kineto, roofline.renderers.text
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + {bytes},) * 2)
"""


def test_an_import_that_runs_out_of_memory(tmp_path: Path, traces: Path, variables: dict[str, str]) -> None:
    """A trace of 64 MB with room for 32 MB."""
    event = b'{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1, "dur": 1},'
    whole = (traces / "net_rank0.json").read_bytes()
    begin = whole.index(b"[", whole.index(b'"traceEvents"')) + 1
    (traces / "net_rank0.json").write_bytes(whole[:begin] + event * ((64 << 20) // len(event)) + whole[begin:])
    words = ("import", "traces", "-o", "job", "--workers", "1")
    command = start(*words, at=tmp_path, variables=variables, first=LIMITED.format(bytes=32 << 20))
    out, err = command.communicate(timeout=PATIENCE)
    assert (command.returncode, out, err.count("\n")) == (4, "", 1), err
    assert err.startswith("roofline: Out of memory: ")
    assert names(tmp_path) == ["traces"]


def test_a_calibration_ends_with_its_command(tmp_path: Path) -> None:
    """Nobody reads its pipe any more, as after SIGKILL of the command: it does not wait for its next probe."""
    code = "import time; from roofline.devices import measure; measure.measure = lambda *_: time.sleep(3600); "
    code += "print('begun', file=measure.sys.stderr, flush=True); measure.main(['--threads', '1'])"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert child.stdout is not None
    assert child.stderr is not None
    with child.stderr:
        assert child.stderr.readline() == b"begun\n"
    child.stdout.close()
    try:
        assert child.wait(PATIENCE) == -signal.SIGTERM
    finally:
        child.kill()
        child.wait()


# ------------------------------------------------------------------------------------------------- disks and rights


#: A folder of 4 KiB around a command; what is left in it stands in a file beside it.
SMALL_DISK = 'mount -t tmpfs -o size=4k tmpfs small || exit 99; "$@"; code=$?; ls -A small > left; exit $code'
ON_SMALL_DISK = ("unshare", "--mount", "sh", "-c", SMALL_DISK, "sh")


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--steps", "3", "-o", "small/p.json"), 2, "Cannot write small/p.json: No space left on device; "),
        (("--count-only", "-o", "p.json"), 4, "could not write all of its result; make room there, or set TMPDIR "),
    ],
    ids=["for the profile", "for temporary files"],
)
def test_a_profile_onto_a_full_disk(
    tmp_path: Path, variables: dict[str, str], brief: dict[str, str], words: tuple[str, ...], code: int, sentence: str
) -> None:
    """A profile of 5 KB, and a result that is larger; the temporary folder is the small one where it is counted."""
    pytest.importorskip("torch")
    (tmp_path / "small").mkdir()
    (tmp_path / "noisy.py").write_text(NOISY)
    place = {"TMPDIR": str(tmp_path / "small")} if "--count-only" in words else {}
    about = ("--backend", "torch", "--device", "cpu", "--threads", "1", *words)
    command = start(
        *("profile", "noisy.py:make", *about), at=tmp_path, variables=variables | brief | place, before=ON_SMALL_DISK
    )
    _, err = command.communicate(timeout=PATIENCE)
    if command.returncode not in (2, 4):
        pytest.skip("only root mounts a disk here")
    assert command.returncode == code
    assert sentence in err.splitlines()[-1]
    assert names(tmp_path) == ["left", "noisy.py", "small"]
    assert (tmp_path / "left").read_text() == ""


@pytest.mark.parametrize("output", ["job", "job.json"])
def test_an_import_onto_a_full_disk(roofline: Run, traces: Path, tmp_path: Path, output: str) -> None:
    """The first two profiles find room, the third, of a longer name, does not: none stays, nor does the folder."""
    words = ("import", "traces", "--device", "h100-sxm", "--workers", "1")
    assert roofline(*words, "-o", "measured").code == 0
    room = (tmp_path / "measured" / "rank-0.json").stat().st_size + 100
    shutil.rmtree(tmp_path / "measured")
    (traces / "net_rank2.json").rename(traces / f"net_rank2{'n' * 200}.json")
    with full(room):
        ended = roofline(*words, "-o", output)
    assert (ended.code, ended.out) == (2, "")
    last = ended.err.splitlines()[-1]
    assert last.startswith("roofline: Cannot write job")
    assert last.endswith("File too large; choose another place.")
    assert "rank-2" in last or "rank2" in last
    assert names(tmp_path) == ["traces"]


def test_a_sweep_onto_a_full_disk_stops_and_goes_on_later(tmp_path: Path) -> None:
    """It is no fault of the point, which has no record and is measured again."""
    every = folder.write_plan(tmp_path, points(["toy"], ["torch", "jax"], ["infer"], ["default"], [1], [32]))

    def measure(point: Any) -> Any:
        return toy_sweeps.measured(point)

    size = len(encode(measure(every[0])))
    with full(size // 2), pytest.raises(InputError, match="File too large"):
        run(tmp_path, every, measure, lambda line: None)
    assert names(tmp_path / "points") == []
    assert run(tmp_path, every, measure, lambda line: None) == {"measured": 2}


SAVES = """
import sys
from pathlib import Path
import handmade
from roofline.cli.options.paths import save_measured
from roofline.cli.run import _start
from roofline.running.measurement import Wanted
from roofline.running.program import Program

def report(ended):
    save_measured(handmade.profile(), Path("p.json"), False)

_start(Program(script="program.py", module=None, arguments=()), Wanted(), (), report)
"""


def test_a_run_onto_a_full_disk(tmp_path: Path) -> None:
    """The program has run to its end; its output is there, and the exit code is that of the error."""
    (tmp_path / "program.py").write_text("print('ran')\n")
    paths = os.pathsep.join([str(Path(handmade.__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        ["prlimit", "--fsize=1000", sys.executable, "-c", SAVES],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (2, "ran\n")
    assert ended.stderr == "roofline: Cannot write p.json: File too large; choose another place.\n"
    assert names(tmp_path) == ["program.py"]


def without_rights() -> tuple[str, ...]:
    """Begin a command of root's with this: root may write everywhere."""
    if os.getuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and there is no setpriv to give that up")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("profile", "mlp", "--backend", "torch", "--device", "cpu", "-o", "closed/p.json"),
        ("run", "-o", "closed/p.json", "program.py"),
        ("sweep", "mlp", "--backends", "torch", "-o", "closed/grid"),
        ("import", "traces", "-o", "closed/job"),
    ],
    ids=lambda words: words[0],
)
def test_a_folder_without_permission(
    tmp_path: Path, traces: Path, variables: dict[str, str], words: tuple[str, ...]
) -> None:
    """Said before a step, a program or a trace is touched."""
    (tmp_path / "closed").mkdir(mode=0o555)
    (tmp_path / "program.py").write_text("print('ran')\n")
    command = start(*words, at=tmp_path, variables=variables, before=without_rights())
    out, err = command.communicate(timeout=PATIENCE)
    assert (command.returncode, out) == (2, "")
    assert err == "roofline: Cannot write in closed: Permission denied; choose another place with -o.\n"
    assert names(tmp_path / "closed") == []


# -------------------------------------------------------------------------------------------------------- two at once


def _save(place: Path, number: int) -> None:
    from roofline.cli.options.paths import save_measured

    for batch in range(number, number + 10):
        save_measured(handmade.profile(batch=batch), place / "p.json", False)


def test_two_commands_that_write_to_one_name(tmp_path: Path) -> None:
    """Twice ten profiles: each is there under a name of its own, whole."""
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_save, args=(tmp_path, number)) for number in (10, 20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(load(file).batch or 0 for file in tmp_path.iterdir()) == list(range(10, 30))


# ------------------------------------------------------------------------------------------------------- surroundings

#: A locale that there is not, and no home that takes a file.
BARE = {"LC_ALL": "xx_YY.broken", "HOME": "/dev/null"}


def on_one_core_without_a_network() -> tuple[str, ...]:
    """Begin a command with this; with a network where only root may leave it."""
    can_leave = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0
    return (*(("unshare", "--net") if can_leave else ()), "taskset", "-c", str(min(os.sched_getaffinity(0))))


@pytest.mark.slow
def test_an_import_in_bare_surroundings(tmp_path: Path, traces: Path, variables: dict[str, str]) -> None:
    words = ("import", "traces", "--device", "h100-sxm", "-o", "job")
    command = start(*words, at=tmp_path, variables=variables | BARE, before=on_one_core_without_a_network())
    out, err = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, err
    assert "Wrote job/rank-0.json to job/rank-2.json" in out
    assert names(tmp_path / "job") == ["rank-0.json", "rank-1.json", "rank-2.json", "ranks.json"]


@pytest.mark.parametrize("locale", ["xx_YY.broken", "C"])
def test_a_program_in_bare_surroundings(tmp_path: Path, variables: dict[str, str], locale: str) -> None:
    """It prints as under `python`; it has no step, which is 4."""
    (tmp_path / "program.py").write_text(
        "import locale, os, sys\nprint(locale.getlocale(), sys.stdout.encoding, '\\xb5')\n"
    )
    before, more = on_one_core_without_a_network(), {**os.environ, **variables, **BARE, "LC_ALL": locale}
    plain = subprocess.run(
        [*before, sys.executable, "program.py"], cwd=tmp_path, env=more, capture_output=True, text=True, check=True
    )
    command = start("run", "program.py", at=tmp_path, variables=more, before=before)
    out, err = command.communicate(timeout=PATIENCE)
    assert (command.returncode, out) == (4, plain.stdout), err
    assert err.startswith("roofline: No step was found")


def test_a_user_whom_the_system_does_not_know(tmp_path: Path) -> None:
    """As in a container that is started with a number for a user; who may read all, as the tests lie in root's."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root becomes another user")
    read = "+dac_override,+dac_read_search"
    ids = ("--reuid=12345", "--regid=12345", "--clear-groups", f"--inh-caps={read}", f"--ambient-caps={read}")
    unset = ("env", "-u", "HOME", "-u", "XDG_CACHE_HOME", "-u", "ROOFLINE_CACHE")
    command = start("doctor", at=tmp_path, variables={}, before=("setpriv", *ids, *unset))
    _, err = command.communicate(timeout=PATIENCE)
    assert (command.returncode, err) == (0, "")


#: A step with effects of all kinds; its work is two products of 8 x 8 x 8, on two threads.
NOISY = """
import os, sys, threading
import torch

x, kept = torch.ones(8, 8), []

def make():
    def step():
        print("out of a step")
        os.write(1, b"of its descriptor\\n")
        print("as an error", file=sys.stderr)
        if not (copy := os.fork()):
            os._exit(0)
        os.waitpid(copy, 0)
        threading.Thread(target=lambda: None).start()
        torch.set_num_threads(2)
        kept.append(bytearray(1 << 20))
        os.chdir("/")
        return x @ x @ x
    return step
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_a_step_with_effects_in_bare_surroundings(
    tmp_path: Path, variables: dict[str, str], brief: dict[str, str]
) -> None:
    """Its prints go to standard error, and the profile holds its work and the threads that it set."""
    pytest.importorskip("torch")
    (tmp_path / "noisy.py").write_text(NOISY)
    words = ("profile", "noisy.py:make", "--backend", "torch", "--device", "cpu", "--threads", "1", "--steps", "3")
    command = start(
        *words, "-o", "p.json", at=tmp_path, variables=variables | brief | BARE, before=on_one_core_without_a_network()
    )
    out, err = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, err
    profile = load(tmp_path / "p.json")
    assert sum(profile.signatures[op.signature].cost.flops or 0 for op in profile.ops) == 2 * 2 * 8**3
    assert profile.environment["threads"] == "2"
    assert out.startswith("noisy:make ")
    assert out.splitlines()[-2:] == ["Wrote p.json", "Next: roofline show p.json --details"]
    for line in ("out of a step", "of its descriptor", "as an error"):
        assert (err.count(line) > 3, line in out) == (True, False)
    assert names(tmp_path) == ["noisy.py", "p.json"]


# ---------------------------------------------------------------------------------------------------- steps that change

CHANGES = """
import torch

x, runs = torch.ones(8, 8), []

def stops():
    def step():
        runs.append(1)
        if len(runs) < 3:
            return x @ x
    return step

def varies():
    def step():
        runs.append(1)
        for _ in range(1 if len(runs) % 2 else 100):
            x @ x
    return step
"""
SMALL = ("--backend", "torch", "--device", "cpu", "--threads", "1")


def test_a_step_whose_work_is_done_once(measuring: Run, tmp_path: Path) -> None:
    """It works in its first two calls, the second of which is counted: the profiler records no op, which is no 0 s."""
    (tmp_path / "mine.py").write_text(CHANGES)
    ended = measuring("profile", "mine.py:stops", *SMALL, "--steps", "3", "-o", "p.json")
    assert ended.code == 4
    assert ended.err.splitlines()[-1].startswith("roofline: The profiler recorded none of the step's ops")
    assert names(tmp_path) == ["mine.py"]


def test_the_times_of_a_step_that_varies_are_all_kept(measuring: Run, tmp_path: Path) -> None:
    """Of 20 steps every second one computes 100 products and the others one."""
    (tmp_path / "mine.py").write_text(CHANGES)
    assert measuring("profile", "mine.py:varies", *SMALL, "--steps", "20", "-o", "p.json").code == 0
    steps = load(tmp_path / "p.json").wall.steps
    assert len(steps) == 20
    assert max(steps) > 10 * min(steps)
    assert "Steps are uneven: " in measuring("show", "p.json").out
