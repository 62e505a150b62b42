"""Running `roofline` in a test: in this process where that shows the same, in a process of its own where it matters."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import brief_recording
import pytest

from roofline import cli


class Ended(NamedTuple):
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture(scope="session")
def variables(cache: Path) -> dict[str, str]:
    """What a command needs in its environment; the wait policy keeps a busy machine from measuring twice."""
    return {"ROOFLINE_CACHE": str(cache), "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


@contextlib.contextmanager
def children_here() -> Iterator[None]:
    """While active, a measuring child runs in this process: seconds of imports are spent once.

    It must leave no trace: it limits no memory, and threads and switches are put back. The ceilings that a child
    measures anew beside the steps, and the cost of a profiler event, are not what is tested here.
    """
    torch = pytest.importorskip("torch")
    from roofline.models.torch import _step
    from roofline.pytorch.recording import profiler
    from roofline.recording import child, launch, record
    from roofline.timing.timed import EventCost

    class Here:
        pid = 1 << 30  # of no group of processes

        def __init__(self, command: list[str], **_: object) -> None:
            self.arguments = command[-2:]

        def wait(self, timeout: float | None = None) -> int:
            return child.main(self.arguments)

    gc.freeze()  # what a collection or a search of a recording would go through, of all frameworks that are loaded
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch, _step.user_state_kept():
        patch.setattr(
            launch, "subprocess", SimpleNamespace(Popen=Here, DEVNULL=subprocess.DEVNULL, TimeoutExpired=TimeoutError)
        )
        patch.setattr(child, "_limit_memory", lambda device: None)
        patch.setattr(record, "bandwidth", lambda plan, threads: {})
        patch.setattr(profiler, "event_cost", lambda: EventCost(2e-7, 2e-7))
        patch.setattr(sys, "path", list(sys.path))  # a user's folder goes in front of it
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def call(words: tuple[str, ...], folder: Path, variables: Mapping[str, str]) -> Ended:
    """`roofline WORDS...` in this process, in `folder`."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["roofline", *words])
        for name, value in variables.items():
            patch.setenv(name, value)
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as left,
        ):
            cli.main(list(words))
    return Ended(int(left.value.code or 0), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def full(bytes: int) -> Iterator[None]:
    """No file may grow beyond so many bytes, as on a disk that has no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def roofline(tmp_path: Path, variables: dict[str, str]) -> Run:
    """Runs a command in this process, in the test's own folder; a measuring child is a process all the same."""
    return lambda *words: call(words, tmp_path, variables)


@pytest.fixture
def measuring(tmp_path: Path, variables: dict[str, str]) -> Iterator[Run]:
    """The same, with the measuring child in this process too."""
    with children_here():
        yield lambda *words: call(words, tmp_path, variables)


#: Seconds that a process may take before it counts as hung: no test is about how long one takes.
PATIENCE = 500


def start(words: tuple[str, ...], folder: Path, variables: Mapping[str, str], python: str = sys.executable) -> Ended:
    """`python -m roofline WORDS...` as the user runs it, in a process of its own, in `folder`."""
    done = subprocess.run(
        [python, "-m", "roofline", *words],
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def process(tmp_path: Path, variables: dict[str, str]) -> Run:
    """Runs a command as the user does, in a process of its own; `more` is added to its environment."""

    def run(*words: str, python: str = sys.executable, more: Mapping[str, str] | None = None) -> Ended:
        return start(words, tmp_path, {**variables, **(more or {})}, python)

    return run


@pytest.fixture(scope="session")
def brief(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which a measuring child leaves out what takes half of its time and is not tested."""
    return brief_recording.variables(tmp_path_factory.mktemp("brief"))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> Callable[..., Ended]:
    """Runs a command in this process, but each only once in a module; what it writes is in `once.folder`.

    A measuring child is a process all the same; `more` is added to its environment.
    """
    folder = tmp_path_factory.mktemp("once")
    ended: dict[tuple[str, ...], Ended] = {}

    def run(*words: str, more: Mapping[str, str] | None = None) -> Ended:
        if words not in ended:
            ended[words] = call(words, folder, {**variables, **(more or {})})
        return ended[words]

    run.folder = folder  # type: ignore[attr-defined]
    return run


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> Path:
    """A real profile: a training step of the smallest network."""
    folder = tmp_path_factory.mktemp("recorded")
    words = (
        "profile mlp --size tiny --batch 64 --mode train --backend torch --device cpu --threads 1 --steps 3 -o p.json"
    )
    with children_here():
        ended = call(tuple(words.split()), folder, variables)
    assert ended.code == 0, ended.err
    return folder / "p.json"
