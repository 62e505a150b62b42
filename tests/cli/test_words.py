"""What a command says to a person who waits."""

from __future__ import annotations

import io
import time

import pytest

from roofline.cli.options.words import if_long


class Terminal(io.StringIO):
    """What is written to it is seen by somebody."""

    def isatty(self) -> bool:
        return True


def test_who_waits_at_a_terminal_is_told_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Terminal()
    monkeypatch.setattr("sys.stderr", seen)
    with if_long("reading p.json", after=0):
        while "\n" not in seen.getvalue():
            time.sleep(0.001)
    assert seen.getvalue() == "reading p.json ...\n"


def test_what_is_done_in_time_or_without_a_terminal_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        with if_long("reading p.json", after=1e4 if stream.isatty() else 0):
            pass
        assert not stream.getvalue()
    monkeypatch.setattr("sys.stderr", None)  # as under pythonw
    with if_long("reading p.json", after=0):
        pass
