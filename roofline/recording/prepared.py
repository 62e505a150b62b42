"""Keep processes that have imported a framework, and measure in forks of them: the parent's half of `fork_server`.

A fork begins after Python's start and the framework's import. All forks of a server share the places of libraries in
memory and the seed of hashes, by which times of fresh processes differ. Rounds and turns, whose processes must be
independent of each other, take fresh ones.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from roofline.recording.backend import load
from roofline.recording.fork_server import LARGEST, READY, Order
from roofline.recording.request import Request


class ServerDied(Exception):
    """Report that a server ended before its fork, which is killed then."""


class Fork:
    """Hold a fork as `subprocess.Popen` holds a child: the server, whose child it is, reports its end."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._status: int | None = None
        self._is_in_socket = True
        self.pid = 0
        self.pid = self._receive()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status. Raises ServerDied, or TimeoutExpired after `timeout` [s].

        The server tells it once. It stays in the socket until it is kept here: a Ctrl-C in between leaves it to be read
        by the next call.
        """
        if self._status is None:
            self._status = self._receive(timeout, socket.MSG_PEEK)
        if self._is_in_socket:
            with suppress(BlockingIOError, ServerDied):  # a Ctrl-C came between this and the next line
                self._receive(0)
            self._is_in_socket = False
        return self._status

    def terminate(self) -> None:
        """Send SIGTERM."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def _receive(self, timeout: float | None = None, flags: int = 0) -> int:
        self._connection.settimeout(timeout)
        try:
            packet = self._connection.recv(LARGEST, flags)
        except TimeoutError:
            raise subprocess.TimeoutExpired("a fork", timeout or 0) from None
        except ConnectionError:
            packet = b""
        if packet:
            return int(packet)
        if self.pid:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        raise ServerDied


class Server:
    """Hold a process that has imported modules with `variables` in its environment."""

    def __init__(self, modules: Sequence[str], variables: Mapping[str, str]) -> None:
        self._connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "roofline.recording.fork_server", str(other.fileno()), *modules],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # an import that fails is repeated in a fresh process, which reports it
                stderr=subprocess.DEVNULL,
                pass_fds=(other.fileno(),),
                process_group=0,
            )
        self.serves = False
        with suppress(ConnectionError):
            self.serves = self._connection.recv(LARGEST) == READY

    def fork(self, arguments: Sequence[str], variables: Mapping[str, str], gone: int, output: int) -> Fork:
        """Start a measuring process. Raises ServerDied. For the rest see `fork_server.Order`."""
        order = msgspec.json.encode(Order(dict(variables), list(arguments)))
        try:
            socket.send_fds(self._connection, [order], [gone, output])
        except OSError:
            raise ServerDied from None
        return Fork(self._connection)

    def close(self) -> None:
        """End the process; its forks have ended."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


class PreparedProcesses:
    """Hold a server for each set of modules and environment, started when it is first needed, until `close`."""

    def __init__(self) -> None:
        self._servers: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], Server | None] = {}

    def __enter__(self) -> PreparedProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def server(self, request: Request, variables: Mapping[str, str]) -> Server | None:
        """Find or start the server for a request; None where it needs a fresh process.

        Linux alone tells a process's threads; on a GPU it has not been shown that forks measure the same.
        variables: those of its environment that are the same for all measurements.
        """
        if sys.platform != "linux" or request.python is not None or request.workload.device != "cpu":
            return None
        backend = load(request.backend)
        if backend.prepares is None:
            return None
        modules = (*backend.requires, *backend.prepares)
        key = (modules, tuple(sorted(variables.items())))
        if key not in self._servers:
            server = Server(modules, variables)
            if not server.serves:
                server.close()
            self._servers[key] = server if server.serves else None
        return self._servers[key]

    def drop(self, server: Server) -> None:
        """Forget a server that died; the next request starts another."""
        server.close()
        self._servers = {key: other for key, other in self._servers.items() if other is not server}

    def close(self) -> None:
        """End all servers."""
        for server in filter(None, self._servers.values()):
            server.close()
        self._servers.clear()
