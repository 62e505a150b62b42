"""Standard error that is missing, closed, or an object of the user's."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from roofline.standard_error import quiet, tell


class OnlyWrites:
    """As what some libraries put in the place of standard error."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, closed()], ids=["missing", "closed"])
def test_nowhere_to_write(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stream: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    tell("lost")
    with quiet():
        pass
    assert capsys.readouterr().out == "", "print(file=None) writes to standard output"


def test_an_object_that_only_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OnlyWrites()
    monkeypatch.setattr(sys, "stderr", stream)
    tell("kept")
    assert stream.text == "kept\n"


QUIET = """
import os
from roofline.standard_error import quiet
with quiet():
    os.write(2, b"lost")
try:
    os.write(2, b"2 is open")
except OSError:
    print("closed again")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a shell closes it")
def test_a_closed_descriptor_stays_closed() -> None:
    command = ["sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, QUIET]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("closed again\n", "")
