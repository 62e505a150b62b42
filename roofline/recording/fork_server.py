"""Fork measuring processes from one that has imported modules: `python -m roofline.recording.fork_server FD MODULE...`.

The server runs no op, so its forks begin as a fresh process does after its imports. It serves only where the imports
left no thread: a fork has none of its parent's threads, and a lock that one of them held stays locked.
FD: a socket of packets. The server sends "ready", or ends where it cannot serve; then takes one `Order` at a time and
sends the process id of the fork and its exit status. It ends with the process at the other end of the socket.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import msgspec
import psutil  # noqa: F401 - of the forks, as user_step

from roofline.plugins import importing
from roofline.recording import child, user_step  # noqa: F401

#: Largest order [bytes]; a packet of the system holds more.
LARGEST = 1 << 16
READY = b"ready"


class Order(msgspec.Struct):
    """Order a measuring process: its environment, beyond that of the server, and the arguments of `child`.

    The file descriptors that come with it: the end of the pipe that `child` watches, its output.
    """

    variables: dict[str, str]
    arguments: list[str]


def serve(connection: socket.socket, modules: Sequence[str]) -> list[str] | None:
    """Import modules and fork for each order; return its arguments in the fork, and None in the server at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a fresh process
    with importing():
        for module in modules:
            with suppress(ModuleNotFoundError):  # the fork reports it, if it needs it
                import_module(module)
    if not can_fork():
        return None
    connection.send(READY)
    while True:
        packet, descriptors, _, _ = socket.recv_fds(connection, LARGEST, 2)
        if not packet:  # nobody is at the other end
            return None
        order = msgspec.json.decode(packet, type=Order)
        pid = os.fork()
        if pid == 0:
            connection.close()
            gone, output = descriptors
            _become(order, output)
            return [str(gone), *order.arguments]
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def can_fork() -> bool:
    """Tell whether a fork loses no thread: of those that there are, libraries end some themselves before a fork.

    OpenBLAS does, and starts them again when it needs them.
    """
    pid = os.fork()
    if pid == 0:
        signal.raise_signal(signal.SIGKILL)  # at once, without what Python does at its end
    os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task")) == 1


def _become(order: Order, output: int) -> None:
    """Make this fork what a fresh process is: a group, an environment, arguments and an output of its own."""
    os.setpgid(0, 0)
    os.environ.update(order.variables)
    sys.argv = [str(child.__file__), *order.arguments]
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)


if __name__ == "__main__":
    ordered = serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
    if ordered is not None:
        child.measure(ordered)
