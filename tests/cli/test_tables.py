"""Tables as their readers meet them: terminals of any width, pipes, colours, rows that are asked for, completion."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis.analysis import KEYS
from roofline.cli.options import terminal
from roofline.cli.options.terminal import coloured
from roofline.core.schema import Profile, Wall, save

Run = Callable[..., Any]

#: Kernels that begin alike for longer than any terminal is wide.
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(%s)::{lambda(%s)#1}>(int)"


def traced() -> Profile:
    """The hand-made step with kernels as a GPU's trace names them, each of one op, and a fused op."""
    plain = handmade.profile()
    many = "at::TensorIteratorBase&, " * 12
    names = tuple(GELU % (many, kind) for kind in ("c10::BFloat16", "float", "c10::Half"))
    names = (*names, "Memset (Device)")
    ops = [replace(op, kernels=((number % len(names), 1000),)) for number, op in enumerate(plain.ops)]
    ops[4] = replace(ops[4], constituents=(0, 5))
    return replace(plain, kernels=names, ops=tuple(ops))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """a.json, b.json and c.json: three runs with long names."""
    slow = Wall(steps=tuple(step * 1.3 for step in handmade.profile().wall.steps))
    save(traced(), tmp_path / "a.json")
    save(replace(traced(), backend="jax-with-quite-a-long-name", wall=slow), tmp_path / "b.json")
    save(replace(traced(), backend="jax-with-quite-a-longer-name", wall=slow, batch=8), tmp_path / "c.json")
    return tmp_path


@pytest.fixture
def columns(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes standard output a terminal of so many columns."""

    def set_to(width: int) -> None:
        monkeypatch.setattr(terminal, "_is_terminal", lambda: True)
        monkeypatch.setitem(variables, "COLUMNS", str(width))
        monkeypatch.setitem(variables, "TERM", "xterm")

    return set_to


def lines(text: str) -> list[str]:
    """What a reader sees, without the hint of what to type next, which is to be copied."""
    return [re.sub(r"\x1b\[\d+m", "", line) for line in text.splitlines() if not line.startswith("Next: ")]


# ----------------------------------------------------------------------------------------------------------- widths


@pytest.mark.parametrize("width", [40, 61, 100, 173])
def test_no_line_is_wider_than_the_terminal(
    files: Path, roofline: Run, columns: Callable[[int], None], width: int
) -> None:
    columns(width)
    runs = ("a.json", "b.json")
    for words in [
        ("show", "a.json"),
        *(("show", "a.json", "--by", key) for key in KEYS),
        *(("show", "a.json", "--by", "kernel", "--sort", column) for column in ("floor", "loss", "rate")),
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
    told = " ".join(" ".join(lines(roofline("show", "a.json").out)).split())
    assert (
        "No room for FLOP %, bytes %, floor %, loss %, FLOP/s vs matmul and roof above: --width N takes more." in told
    )
    assert "No room" not in roofline("show", "a.json", "--width", "120").out


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
    assert ended.err == "roofline: --width is not for --format csv: leave it out, or give another format.\n"


# ---------------------------------------------------------------------------------------------------------- colours


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
    assert coloured(environment, terminal) is colour


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


# ------------------------------------------------------------------------------------------------------------- rows


def test_rows_that_are_asked_for(files: Path, roofline: Run) -> None:
    def ops(*words: str) -> list[str]:
        found = re.findall(r"(?:aten|mylib)::(\w+)", roofline("show", "a.json", "--by", "op", *words).out)
        return [name for name in found if name not in ("native_layer_norm",)]

    assert ops("--top", "2") == ["addmm", "_fused_adamw_"]
    assert ops("--top", "1", "--sort", "bytes") == ["_fused_adamw_"]
    assert ops("--filter", "GELU") == ["gelu"]
    assert ops("--filter", "embedding") == ["_softmax", "embedding"], "an embedding was fused into the softmax"
    assert len(ops("--all")) == len(ops()) == 6
    assert "(6 filtered out)" in roofline("show", "a.json", "--by", "op", "--filter", "gelu").out
    rows = csv.reader(io.StringIO(roofline("show", "a.json", "--by", "op", "--top", "1", "--format", "csv").out))
    assert [row[0] for row in rows] == ["op", "aten::addmm [1000] [100, 1000] [1000, 1000]", "(6 more)"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--top", "0"), "--top 0 is not possible: give at least 1, or --all."),
        (("--top", "2", "--all"), "--top and --all exclude each other: give one of them."),
        (("--sort", "colour"), "There is no column 'colour' to sort by; there are: name, ops, flop, bytes, time, "),
        (("--filter", ""), "--filter needs a text: give a part of a name."),
        (("--filter", "xyz"), "No group has 'xyz' in its name: give another text to --filter."),
        (("--top", "1", "--format", "json"), "--top, --all, --sort and --filter are not for --format json: leave "),
        (("--columns", "1"), "--columns is not for --format text: leave it out, or give another format."),
        (("--columns", "3", "--format", "latex"), "--columns 3 is not possible: a table is as wide as 1 or 2 columns."),
        (("--caption", "long"), "--caption is not for --format text: leave it out, or give another format."),
        (("--caption", "none", "--format", "latex"), "There is no caption called 'none'; there are: short, long."),
    ],
)
def test_what_cannot_be_asked_for(files: Path, roofline: Run, words: tuple[str, ...], why: str) -> None:
    ended = roofline("show", "a.json", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"roofline: {why}")


def test_tables_of_a_paper(files: Path, roofline: Run) -> None:
    wide = roofline("show", "a.json", "--format", "latex", "--columns", "2", "--caption", "long").out
    assert r"\begin{table*}[t]" in wide
    assert "torch 2.13.0" in re.search(r"\\caption\{(.*)\}", wide)[1]
    both = roofline("compare", "a.json", "b.json", "--format", "latex", "--columns", "2").out
    assert both.count(r"\begin{table*}[t]") == both.count(r"\end{table*}") >= 1
    assert r"\label{tab:torch-jax-with-quite-a-long-name-where}" in both


@pytest.mark.parametrize("format", plugins.names("roofline.renderers.comparison"))
def test_compare_prints_nothing_but_the_document(files: Path, roofline: Run, format: str) -> None:
    for runs in (("a.json", "b.json"), ("a.json", "b.json", "c.json")):
        ended = roofline("compare", *runs, "--allow", "--format", format)
        assert (ended.code, ended.err) == (0, "")
        assert ("Next: " in ended.out) == (format == "text")


# --------------------------------------------------------------------------------------------------- standard input


@pytest.mark.parametrize(
    "words",
    [
        ("show", "-"),
        ("compare", "-", "b.json"),
        ("whatif", "-", "--device", "h100-sxm"),
        ("check", "a.json", "-"),
        ("export", "-", "-o", "ops.csv"),
        ("plot", "-", "-o", "x.svg"),
        ("report", "-", "b.json", "-o", "x.html"),
    ],
)
def test_a_profile_comes_from_standard_input(
    files: Path, roofline: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    from_file = roofline(*(word if word != "-" else "a.json" for word in words), *force(words))
    monkeypatch.setattr(sys, "stdin", piped((files / "a.json").read_bytes()))
    ended = roofline(*words, *force(words))
    assert ended.err == ""
    assert ended.code == from_file.code == 0
    same = [line for line in from_file.out.splitlines() if not line.startswith("Next: ")]
    told = [line.replace("-: passed", "a.json: passed") for line in ended.out.splitlines()]
    assert told == same


def force(words: tuple[str, ...]) -> tuple[str, ...]:
    return ("--force",) if "-o" in words else ()


def piped(data: bytes) -> Any:
    return SimpleNamespace(buffer=io.BytesIO(data), closed=False, isatty=lambda: False)


def test_what_is_no_profile_on_standard_input(files: Path, roofline: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", piped(b""))
    assert roofline("show", "-").err.startswith("roofline: Standard input cannot be read as a profile: ")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(closed=False, isatty=lambda: True))
    assert roofline("show", "-").err == (
        "roofline: Standard input is a terminal: pipe a profile into it, or name a file.\n"
    )
    monkeypatch.setattr(sys, "stdin", None)
    assert roofline("show", "-").err == "roofline: There is no standard input to read a profile from: name a file.\n"
    for words in (("compare", "-", "-"), ("check", "-", "-"), ("report", "-", "-", "-o", "x.html")):
        assert roofline(*words).err == (
            "roofline: Standard input can be read once: give - for one profile, and files for the others.\n"
        )


# ------------------------------------------------------------------------------------------------------- completion


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("roofline sh", {"show"}),
        ("roofline show p.json --by k", {"kernel"}),
        ("roofline show p.json --format ", set(plugins.names("roofline.renderers"))),
        ("roofline show p.json --sort a", {"attained"}),
        ("roofline show ", set()),  # the shell completes names of files
        ("roofline compare a b --format l", {"latex"}),
        ("roofline compare bert --backends torch,keras-j", {"torch,keras-jax"}),
        ("roofline profile ber", {"bert", "bert-layer"}),
        ("roofline profile bert --backend tensorflow-", {"tensorflow-xla"}),
        ("roofline plot a.json --kind w", {"waterfall"}),
        ("roofline whatif a.json --device h100-s", {"h100-sxm"}),
        ("roofline check a b --format g", {"github"}),
    ],
)
def test_the_shell_completes(roofline: Run, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, words: str,
                             some: set[str]) -> None:  # fmt: skip
    for name, value in {
        "_ROOFLINE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }.items():
        monkeypatch.setitem(variables, name, value)
    ended = roofline()
    assert ended.err == ""
    assert set(ended.out.split()) == some


def test_the_script_for_a_shell_is_printed(tmp_path: Path, variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "roofline", "--show-completion", "bash"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    assert "complete -o default -F _roofline_completion roofline" in done.stdout, done.stderr
