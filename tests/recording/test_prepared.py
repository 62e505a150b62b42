"""Measuring in forks: what a fresh process would give, however it ends, and a fresh process where a fork is unsafe."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec.structs import replace
from of_cli import conftest

from roofline.core.step import Workload
from roofline.errors import MeasurementError
from roofline.measuring import session
from roofline.recording.backend import load
from roofline.recording.prepared import Fork, PreparedProcesses, Server
from roofline.recording.recording import Recording
from roofline.recording.request import Request

MINE = """
import os, signal, subprocess, sys, time

def killed():
    return lambda: os.kill(os.getpid(), signal.SIGKILL)

def crashes():
    return lambda: os.kill(os.getpid(), signal.SIGSEGV)

def leaves():
    return lambda: (print("I am leaving"), os._exit(3))

def fails():
    return lambda: 1 / 0

def too_much():
    import torch
    return lambda: torch.empty(1 << 44)

def wants_input():
    return input

def closes():
    import torch
    x = torch.ones(8, 8)
    def step():
        os.closerange(3, 256)
        return x @ x
    return step

def loses_its_server():
    parent = os.getppid()
    if b"fork_server" in open(f"/proc/{parent}/cmdline", "rb").read():
        os.kill(parent, signal.SIGKILL)
        time.sleep(60)
    os._exit(5)

def waits():
    open("waits", "w").write(f"{os.getpid()} {subprocess.Popen(['sleep', '60'], start_new_session=True).pid}")
    time.sleep(60)
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")


@pytest.fixture(scope="module")
def prepared() -> Iterator[PreparedProcesses]:
    with PreparedProcesses() as processes:
        yield processes


def ask(folder: Path, function: str) -> Request:
    """Count the work of one of the functions above."""
    (folder / "mine.py").write_text(MINE)
    file = str(folder / "mine.py")
    workload = Workload(model=f"mine:{function}")
    return Request(backend="torch", workload=workload, file=file, function=function, count_only=True, quiet=True)


def servers(prepared: PreparedProcesses) -> list[int]:
    """Process ids of the servers that run."""
    return [server._process.pid for server in prepared._servers.values() if server is not None]


def record(request: Request, prepared: PreparedProcesses | None) -> Recording:
    return session.record(request, load(request.backend), {}, None, prepared)


def differing(a: Recording, b: Recording) -> set[str]:
    """Fields that differ; of a fork's memory other pages of the libraries are resident than of a fresh process's."""
    a, b = (replace(run, memory=replace(run.memory, resident=None)) for run in (a, b))
    return {name for name in Recording.__struct_fields__ if getattr(a, name) != getattr(b, name)}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("other", ["this process", pytest.param("a fresh process", marks=pytest.mark.thorough)])
def test_a_fork_counts_what_another_process_counts(prepared: PreparedProcesses, other: str) -> None:
    pytest.importorskip("torch")
    workload = Workload(model="mlp", size="tiny", batch=4, mode="train")
    request = Request(backend="torch", workload=workload, threads=1, count_only=True, quiet=True)
    fork = record(request, prepared)
    with conftest.children_here() if other == "this process" else nullcontext():
        fresh = record(request, None)
    # The first step's time, how busy the machine was, and which arrays shared an address, as fresh processes differ.
    assert differing(fork, fresh) <= {"wall", "conditions", "addresses", "storages", "ops"}
    assert len(fork.ops) > 5
    assert [op.signature for op in fork.ops] == [op.signature for op in fresh.ops]
    assert servers(prepared)


@linux
@pytest.mark.thorough
def test_a_fork_that_ends_badly_ends_as_a_fresh_process_does(
    prepared: PreparedProcesses, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    running: list[int] = []
    for function, sentence, printed in (
        ("killed", "was killed, most likely for lack of memory", ""),
        ("crashes", "died of SIGSEGV", ""),
        ("leaves", "ended with status 3 and no result", "I am leaving\n"),
        ("fails", r"raised ZeroDivisionError \(see above\)", "ZeroDivisionError: division by zero\n"),
        ("too_much", "Out of memory on the CPU", ""),
        ("wants_input", r"raised EOFError \(see above\)", "EOFError: EOF when reading a line\n"),
        ("closes", "closes no file but its own", ""),
    ):
        with pytest.raises(MeasurementError, match=sentence):
            record(ask(tmp_path, function), prepared)
        assert capfd.readouterr().err.endswith(printed)
        running = running or servers(prepared)
    assert servers(prepared) == running, "one server has forked them all"


@linux
@pytest.mark.thorough
def test_a_server_that_dies_is_started_again(prepared: PreparedProcesses, tmp_path: Path) -> None:
    pytest.importorskip("torch")

    def lose(function: str, status: int) -> set[int]:
        """Servers after a process that ended with this status."""
        with pytest.raises(MeasurementError, match=f"ended with status {status} and"):
            record(ask(tmp_path, function), prepared)
        return set(servers(prepared))

    before = lose("leaves", 3)
    assert len(lose("loses_its_server", 5)) == len(before) - 1, "a fresh process has measured it"
    (server,) = lose("leaves", 3) - before
    os.kill(server, signal.SIGKILL)  # while it waits for an order
    assert server not in lose("leaves", 3)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@linux
@pytest.mark.thorough
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_fork_and_its_server_end_with_the_command(tmp_path: Path, ending: signal.Signals) -> None:
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(MINE)
    command = [sys.executable, "-m", "roofline", "sweep", "mine.py:waits", "--backends", "torch", "-o", "grid"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as sweep:
        while not (tmp_path / "waits").exists() or " " not in (tmp_path / "waits").read_text():
            time.sleep(0.05)
        fork, _ = pids = [int(pid) for pid in (tmp_path / "waits").read_text().split()]
        server = psutil.Process(fork).ppid()
        assert psutil.Process(server).ppid() == sweep.pid
        sweep.send_signal(ending)
        assert sweep.wait(30) != 0
    deadline = time.monotonic() + 30
    while not all(map(gone, [server, *pids])) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in [server, *pids] if not gone(pid)] == []
    assert not list((tmp_path / "grid" / "points").glob("*.json"))


@linux
@pytest.mark.parametrize(
    ("source", "serves"),
    [
        ("", True),
        ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()", False),
        ("raise RuntimeError('no such symbol')", False),
    ],
)
def test_what_starts_a_thread_when_it_is_imported_is_not_forked(tmp_path: Path, source: str, serves: bool) -> None:
    (tmp_path / "a_framework.py").write_text(source)
    server = Server(["a_framework"], {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])})
    server.close()
    assert server.serves is serves


def test_other_interpreters_devices_and_backends_take_fresh_processes() -> None:
    with PreparedProcesses() as prepared:
        for request in (
            Request(backend="torch", workload=Workload(model="mlp", device="cuda")),
            Request(backend="torch", workload=Workload(model="mlp"), python="python3"),
            Request(backend="jax", workload=Workload(model="mlp")),
            Request(backend="tensorflow", workload=Workload(model="mlp")),  # it starts a thread when it is imported
        ):
            assert prepared.server(request, {}) is None
        assert not prepared._servers


class Interrupted(socket.socket):
    """A socket whose next packet arrives as Ctrl-C does: behind it, and before anybody has kept it."""

    interrupts = False

    def recv(self, *arguments: Any) -> bytes:
        packet = super().recv(*arguments)
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return packet


@linux
def test_a_ctrl_c_between_a_status_and_its_keeping_loses_nothing() -> None:
    """The next fork's packets follow on the same socket."""
    ours, server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection = Interrupted(fileno=ours.detach())
    with connection, server:
        server.send(b"123")
        fork = Fork(connection)
        server.send(b"7")
        connection.interrupts = True
        with pytest.raises(KeyboardInterrupt):
            fork.wait(5)
        assert (fork.pid, fork.wait(5), fork.wait(5)) == (123, 7, 7)
        server.send(b"124")
        assert Fork(connection).pid == 124
