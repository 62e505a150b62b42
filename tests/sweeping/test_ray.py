"""A sweep on a Ray cluster ends each point once, whatever becomes of its processes and nodes, and leaves none behind.

The nodes are processes of this machine, so the points take turns on its processor.
"""

from __future__ import annotations

import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import brief_recording
import psutil
import pytest

from roofline import plugins
from roofline.core.schema import Profile, load
from roofline.sweeping import folder
from roofline.version import __version__

pytest.importorskip("torch")
# Ray itself is not imported: it changes where this process finds modules.
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(not plugins.importable("ray"), reason="Ray is not installed: pip install 'roofline[ray]'"),
]

#: Of the clusters of these tests: none is written into the home of the user, and nobody else joins. It also marks their
#: processes.
TOKEN = secrets.token_hex(32)
MLP = ("mlp", "--backends", "torch", "--threads", "1", "--steps", "3")


@pytest.fixture(autouse=True)
def _nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each test no process is left that it began, of Ray or one that measures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    yield
    assert wait_until(lambda: not begun_here(), 60), begun_here()


def begun_here() -> list[str]:
    """The command lines of processes with our token."""
    return [line for process in psutil.process_iter() if has_token(process) and (line := command(process))]


def has_token(process: psutil.Process) -> bool:
    try:
        return process.environ().get("RAY_AUTH_TOKEN") == TOKEN
    except psutil.Error:
        return False


def command(process: psutil.Process) -> str:
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else " ".join(process.cmdline())
    except psutil.Error:
        return ""


def wait_until(holds: Callable[[], Any], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def sweep(*arguments: object) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "roofline", "sweep", *map(str, arguments)]
    return subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[str], seconds: float = 300) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    return process.returncode, out, err


def but_times(profile: Profile) -> dict[str, Any]:
    """All that depends neither on how long something took, as a nested call too short to be seen, nor on addresses.

    Which freed memory an allocator gives an op anew is no matter of the step.
    """
    names = ("model", "backend", "mode", "size", "precision", "command", "batch", "seq", "framework", "options")
    names += ("scopes", "phases", "blocks", "signatures", "parameters", "trainable", "samples", "tokens")
    names += ("versions", "switches", "environment", "sources")
    columns = ("signature", "scope", "phase", "block", "launches", "constituents", "places", "times")
    ops = [[*(getattr(op, column) for column in columns), len(op.reads), len(op.writes)] for op in profile.ops]
    return {**{name: getattr(profile, name) for name in names}, "device": profile.device.name, "ops": ops}


@pytest.mark.skipif(not plugins.importable("jax"), reason="jax is not installed")
def test_one_node(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the user's own is measured; one that is not there is refused by the node as it is here."""
    for name, setting in brief_recording.variables(tmp_path_factory.mktemp("brief")).items():
        monkeypatch.setenv(name, setting)
    (tmp_path / "mine.py").write_text(
        "import jax\n\ndef step():\n    a = jax.numpy.ones((64, 64))\n    f = jax.jit(lambda: a @ a)\n    return f\n"
    )
    steps = ("mine.py:step,nobodys.py:step", "--backends", "jax", "--threads", "1", "--steps", "3")
    status, _, err = ended(sweep(*steps, "--ray", "local", "-o", "grid"))
    assert (status, "2 points: 1 measured, 1 refused." in err) == (0, True), err
    point, refused = folder.read_plan(tmp_path / "grid")
    failure = folder.failure(tmp_path / "grid", refused)
    assert failure is not None
    assert (failure.kind, failure.attempts) == ("refused", 1)
    attempts = {attempt.point: attempt for attempt in folder.attempts(tmp_path / "grid")}
    assert {key: (attempt.number, attempt.end) for key, attempt in attempts.items()} == {
        point.key: (1, "measured"),
        refused.key: (1, "refused"),
    }
    profile = load(folder.profile_path(tmp_path / "grid", point))
    assert list(profile.sources) == ["mine.py"]
    assert sum(profile.signatures[op.signature].cost.flops or 0 for op in profile.ops) == 2 * 64**3
    versions = attempts[point.key].versions
    assert (versions["roofline"], versions["jax"]) == (__version__, profile.versions["jax"])


def test_what_is_written_down_of_a_cluster_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray would look for it for many minutes; nothing listens at port 1."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
    status, _, err = ended(sweep(*MLP, "--ray", "auto", "-o", "grid"), 60)
    assert status == 2, err


class Nodes(NamedTuple):
    """Two nodes as `ray start --block` runs them, and the address of the first."""

    address: str
    first: subprocess.Popen[str]
    second: subprocess.Popen[str]


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Nodes]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    started: list[subprocess.Popen[str]] = []
    try:
        for role in (["--head", f"--port={port}", "--include-dashboard=false"], [f"--address={address}"]):
            log = tmp_path / f"node-{len(started)}.log"
            line = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1", *role]
            with log.open("w") as output:
                started.append(subprocess.Popen(line, text=True, stdout=output, stderr=output))
            assert wait_until(lambda log=log: "Ray runtime started" in log.read_text(), 120), log.read_text()
        yield Nodes(address, *started)
    finally:
        for node in reversed(started):
            node.terminate()
        for node in started:
            node.wait(60)


def raylet(node: subprocess.Popen[str]) -> psutil.Process:
    return next(process for process in psutil.Process(node.pid).children() if "raylet" in process.name())


def measuring(node: subprocess.Popen[str]) -> list[psutil.Process]:
    """Ray's process on a node that measures a point, and that which it waits for; empty until there is one."""
    for worker in raylet(node).children():
        for child in worker.children():
            if "roofline.cli" in command(child):
                return [worker, child]
    return []


@pytest.mark.thorough
def test_a_killed_worker_and_a_lost_node(tmp_path: Path, nodes: Nodes) -> None:
    asked = ("mlp", "--backends", "torch,torchscript", "--batch", "1,2", "--threads", "1", "--steps", "3")
    driver = sweep(*asked, "--ray", nodes.address, "-o", "ray")
    assert wait_until(lambda: measuring(nodes.first), 120)
    worker, child = measuring(nodes.first)
    worker.send_signal(signal.SIGKILL)
    # What measured goes with it, before anything else is measured.
    assert wait_until(lambda: not command(child), 10)
    assert wait_until(lambda: measuring(nodes.second), 120)
    _, child = measuring(nodes.second)
    raylet(nodes.second).kill()
    assert wait_until(lambda: not command(child), 10)
    status, _, err = ended(driver)
    assert (status, "4 points: 4 measured." in err) == (0, True), err
    points = folder.read_plan(tmp_path / "ray")
    assert sorted(file.name for file in (tmp_path / "ray" / "points").iterdir()) == sorted(
        f"{point.key}.json" for point in points
    )
    attempts = folder.attempts(tmp_path / "ray")
    assert Counter(attempt.end for attempt in attempts) == {"measured": 4, "lost": 2}
    assert Counter(attempt.point for attempt in attempts if attempt.end == "measured") == {p.key: 1 for p in points}
    assert sorted(attempt.number for attempt in attempts if attempt.end == "lost") == [1, 1]

    status, _, err = ended(sweep(*asked, "-o", "here"))
    assert status == 0, err
    for point in points:
        there, here = (but_times(load(folder.profile_path(tmp_path / at, point))) for at in ("ray", "here"))
        assert there == here


@pytest.mark.thorough
def test_another_token_is_refused(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    status, _, err = ended(sweep(*MLP, "--ray", nodes.address, "-o", "grid"))
    assert (status, "Cannot join a Ray cluster" in err) == (2, True), err


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_stopped_driver_goes_on(tmp_path: Path, nodes: Nodes, number: signal.Signals) -> None:
    """It is stopped when the first point has ended and another one is being measured."""
    asked = (*MLP, "--batch", "1,2,4", "--ray", nodes.address, "-o", "grid")
    driver, points = sweep(*asked), tmp_path / "grid" / "points"
    both = nodes.first, nodes.second
    assert wait_until(lambda: points.is_dir() and any(points.iterdir()) and any(map(measuring, both)), 120)
    children = [process for node in both for process in measuring(node)[1:]]
    first = {file: file.read_bytes() for file in points.iterdir()}
    driver.send_signal(number)
    status, _, _ = ended(driver, 30)
    assert status == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    assert wait_until(lambda: not any(map(command, children)), 30)
    status, _, err = ended(sweep(*asked))
    assert status == 0, err
    assert {file: file.read_bytes() for file in first} == first
    attempts = folder.attempts(tmp_path / "grid")
    assert sorted(attempt.point for attempt in attempts) == sorted(p.key for p in folder.read_plan(tmp_path / "grid"))
