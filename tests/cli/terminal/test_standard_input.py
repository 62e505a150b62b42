"""A profile that comes from standard input, in every verb that reads one."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Run = Callable[..., Any]


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
            "roofline: Standard input can be read only once: give - for one profile and files for the others.\n"
        )
