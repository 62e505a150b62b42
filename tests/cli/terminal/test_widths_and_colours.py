"""Tables as their readers meet them: on terminals of any width, in pipes, with colours and without."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofline import plugins
from roofline.analysis.analysis import KEYS
from roofline.cli.options.terminal import wants_colour

Run = Callable[..., Any]


def lines(text: str) -> list[str]:
    """What a reader sees, without the hint of what to type next, which is to be copied."""
    return [re.sub(r"\x1b\[\d+m", "", line) for line in text.splitlines() if not line.startswith("Next: ")]


@pytest.mark.parametrize("width", [40, 100])
def test_no_line_is_wider_than_the_terminal(
    files: Path, roofline: Run, columns: Callable[[int], None], width: int
) -> None:
    columns(width)
    runs = ("a.json", "b.json")
    for words in [
        ("show", "a.json"),
        *(("show", "a.json", "--by", key) for key in KEYS),
        *(("show", "a.json", "--by", "kernel", "--sort", column) for column in ("floor", "loss", "rate")),
        ("whatif", "a.json", "--device", "h100-sxm"),
        ("check", "a.json", "a.json"),
        ("compare", *runs),
        ("compare", *runs, "c.json", "--allow"),
        *(("compare", *runs, "c.json", "--allow", "--by", key) for key in ("op", "kernel", "class")),
    ]:
        ended = roofline(*words)
        assert ended.code == 0, ended.err
        assert max(map(len, lines(ended.out))) <= width, words


def test_a_narrow_terminal_drops_columns_and_names_them(
    files: Path, roofline: Run, columns: Callable[[int], None]
) -> None:
    columns(40)
    told = " ".join(" ".join(lines(roofline("show", "a.json", "--details").out)).split())
    heads = "known FLOP %, known bytes %, % of busy, minimum %, above %, FLOP/s vs matmul and limited by"
    assert f"No room for {heads}: --width N takes" in told
    assert "No room" not in roofline("show", "a.json", "--details", "--width", "120").out


@pytest.mark.parametrize("width", [None, 40, 100])
@pytest.mark.parametrize("verb", [("show", "a.json"), ("compare", "a.json", "b.json")])
def test_kernels_can_be_told_apart_at_any_width(
    files: Path, roofline: Run, columns: Callable[[int], None], width: int | None, verb: tuple[str, ...]
) -> None:
    if width is not None:
        columns(width)
    text = roofline(*verb, "--by", "kernel").out
    shown = [match[0] for line in lines(text) if (match := re.search(r"(vectorized|Memset).*", line))]
    assert len(shown) == len(set(shown)) == 4
    if width is None:  # a pipe has room for any name
        assert {"vectorized_elementwise<Gelu(bf16)>", "vectorized_elementwise<Gelu(float)>"} < set(shown)


def test_the_width_of_a_real_terminal_is_asked_for(files: Path, variables: dict[str, str]) -> None:
    text = on_terminal(files, variables, 52, "show", "a.json", "--by", "op")
    assert "\x1b[" in text
    rules = {len(line) for line in lines(text) if set(line) == {"─"}}
    assert max(rules) <= 52
    assert max(map(len, lines(text))) <= 52
    assert "\x1b" not in on_terminal(files, variables | {"NO_COLOR": "1"}, 52, "show", "a.json")


def on_terminal(folder: Path, variables: dict[str, str], width: int, *words: str) -> str:
    """What a terminal of `width` columns gets from `roofline WORDS`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    given = {**os.environ, **variables, "TERM": "xterm"}
    given.pop("COLUMNS")
    command = [sys.executable, "-m", "roofline", *words]
    process = subprocess.Popen(command, cwd=folder, env=given, stdout=theirs, stdin=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    told = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        told += part
    os.close(ours)
    error = process.communicate()[1]
    assert process.returncode == 0, error
    return told.decode().replace("\r\n", "\n")


def test_a_width_that_is_no_width(files: Path, roofline: Run) -> None:
    for width in ("39", "0", "-5"):
        ended = roofline("show", "a.json", "--width", width)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"roofline: --width {width} is too narrow for a table: give at least 40.\n"
    ended = roofline("compare", "a.json", "b.json", "--width", "50", "--format", "csv")
    assert ended.err == "roofline: --width has no meaning for --format csv: leave it out, or give another format.\n"


@pytest.mark.parametrize(
    ("environment", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),  # no-color.org: when present and not an empty string
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_when_there_are_colours(environment: dict[str, str], terminal: bool, colour: bool) -> None:
    assert wants_colour(environment, terminal) is colour


@pytest.mark.parametrize(
    "words", [("show", "a.json"), ("show", "a.json", "--by", "op"), ("compare", "a.json", "b.json")]
)
def test_colours_change_no_letter(
    files: Path, roofline: Run, columns: Callable[[int], None], variables: dict[str, str], words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    columns(100)
    bright = roofline(*words).out
    monkeypatch.setitem(variables, "NO_COLOR", "1")
    plain = roofline(*words).out
    assert "\x1b[" in bright
    assert "\x1b" not in plain
    assert lines(bright) == lines(plain)


@pytest.mark.parametrize("format", plugins.names("roofline.renderers"))
def test_a_pipe_gets_no_colours(files: Path, roofline: Run, format: str) -> None:
    assert "\x1b" not in roofline("show", "a.json", "--format", format).out
