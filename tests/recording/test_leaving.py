"""The end of a measuring process: nothing of its step keeps it, and nothing of it goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

#: Leaves a thread that Python would wait for, a forked copy, and a daemon: a process whose parent has ended.
LEAVES = """
import atexit, os, subprocess, threading, time
from roofline.recording import leaving

leaving.adopt_orphans()
atexit.register(print, "handler")
{handler}
threading.Thread(target=time.sleep, args=(600,)).start()
copy = os.fork()
if not copy:
    time.sleep(600)
daemon = subprocess.run(["sh", "-c", "setsid sleep 600 > /dev/null 2>&1 & echo $!"], capture_output=True, check=True)
print(copy, int(daemon.stdout), flush=True)
print("not flushed")
leaving.leave({status})
"""

#: A handler that waits for ever, and how long it is waited for [s].
WAITS = "atexit.register(time.sleep, 600); leaving._HANDLERS = 0.1"


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.parametrize(("handler", "status"), [("", 0), (WAITS, 3)])
def test_nothing_of_a_step_stays_behind(handler: str, status: int) -> None:
    script = LEAVES.format(handler=handler, status=status)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    processes, *lines = done.stdout.splitlines()
    # Handlers run last come first: behind one that waits for ever no other runs.
    assert lines == (["not flushed"] if handler else ["not flushed", "handler"])
    assert (done.returncode, done.stderr) == (status, "")
    assert not [number for number in processes.split() if psutil.pid_exists(int(number))]


#: Leaves files open, and shared memory that another process holds, too.
OPEN = """
import gc, os, sys, tempfile, time
from multiprocessing import shared_memory
from roofline.recording import leaving

log = open(sys.argv[1], "w")
log.write("text")
data = open(sys.argv[2], "w+b")
data.write(b"bytes")
named = tempfile.NamedTemporaryFile()
memory = shared_memory.SharedMemory(create=True, size=8)
if not os.fork():
    time.sleep(600)
print(named.name, "/dev/shm/" + memory.name, *map(os.path.exists, (named.name, "/dev/shm/" + memory.name)), flush=True)
gc.freeze()
leaving.leave(0)
"""


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="shared memory has no files here")
def test_files_are_written_out_and_temporary_ones_removed(tmp_path: Path) -> None:
    log, data = tmp_path / "log", tmp_path / "data"
    done = subprocess.run(
        [sys.executable, "-c", OPEN, log, data], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    named, memory, *were_there = done.stdout.split()
    assert were_there == ["True", "True"]
    assert (log.read_text(), data.read_bytes()) == ("text", b"bytes")
    assert not Path(named).exists()
    assert not Path(memory).exists()
