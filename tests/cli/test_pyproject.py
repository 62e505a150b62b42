"""Defaults of options in `[tool.roofline]`: which file, which options, and that values are checked as any."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import pytest
import typer

import roofline as package
from roofline.cli import build
from roofline.cli.options import defaults
from roofline.core.schema import save
from tests.cli.conftest import call

Run = Callable[..., Any]


def table(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"[tool.other]\nbackend = 7\n\n[tool.roofline]\n{text}\n")


def test_defaults_hold_where_the_command_line_says_nothing(measuring: Run, tmp_path: Path) -> None:
    table(tmp_path, 'backend = "torch"\nbatch = 3\nwidth = 70\n[tool.roofline.profile]\nbatch = 5\ncount-only = true')
    said = measuring("profile", "mlp", "--size", "tiny", "-o", "a.json").err.splitlines()[0]
    # its own table goes first; of `width` it has no option
    assert said == "Defaults of pyproject.toml: --backend torch --batch 5 --count-only"
    first = package.load(tmp_path / "a.json")
    assert (first.backend, first.batch, first.has_times) == ("torch", 5, False)
    assert first.command == "roofline profile --backend torch --batch 5 --count-only mlp --size tiny -o a.json"
    again = measuring("profile", "mlp", "--size", "tiny", "--batch=2", "-o", "b.json")
    assert "--batch 5" not in again.err
    assert package.load(tmp_path / "b.json").batch == 2


def test_the_nearest_file_above_and_nothing_said_without_one(tmp_path: Path, variables: dict[str, str]) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    show = ("show", str(tmp_path / "p.json"), "--by", "class")
    assert call(show, below, variables).err == ""
    table(tmp_path, "width = 60")
    narrow = call(show, below, variables)
    assert narrow.err == "Defaults of ../../pyproject.toml: --width 60\n"
    assert max(map(len, narrow.out.splitlines())) <= 60
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'nearer'\n")
    assert call(show, below, variables).err == ""


def test_a_preset_goes_before_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        "roofline.cli.options.presets.fill",
        lambda preset, model, backend, asked, explicit, bare: seen.update(explicit=explicit) or sys.exit(9),
    )
    table(tmp_path, "batch = 3")
    words = ("profile", "bert", "--backend", "torch", "--preset", "hf2019", "--seq", "8", "--count-only")
    assert call(words, tmp_path, variables).code == 9
    assert seen["explicit"] == {"seq"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("colour = 1", ["colour in [tool.roofline]", "no command has an option --colour"]),
        ("[tool.roofline.profil]", ["[tool.roofline.profil]", "no command 'profil'"]),
        ("[tool.roofline.profile]\nby = 'op'", ["by in [tool.roofline.profile]", "profile has no option --by"]),
        ("profile = 3", ["profile in [tool.roofline]", "no table"]),
        ("help = true", ["help in"]),
        ("python = './evil'", ["--python is for the command line"]),
        ("[tool.roofline.profile]\noutput = 'x.json'", ["--output is for the command line"]),
        ("force = true", ["--force is for the command line"]),
        ("again = true", ["--again is for the command line"]),
        ("prove = true", ["--prove is for the command line"]),
        ("open = true", ["--open is for the command line"]),
        ("threads = 1.5", ["--threads"]),
        ("threads = 'two'", ["--threads"]),
        ("threads = true", ["threads in [tool.roofline]", "text or a number"]),
        ("backend = 'torch'\nthreads = -1", ["--threads -1 is not possible"]),
        ("batch = 1979-05-27", ["batch in [tool.roofline]"]),
        ("batch = [1, 2]", ["batch in [tool.roofline]"]),
        ("count-only = 1", ["count-only in [tool.roofline]", "true or false"]),
        ("backend = 'nothing'", ["There is no backend called 'nothing'"]),
        ('backend = "torch"\ndevice = "\\u001b[31m"', ["There is no device"]),
        ("threads = ", ["pyproject.toml is no TOML"]),
    ],
)
def test_what_cannot_be_a_default(tmp_path: Path, variables: dict[str, str], text: str, parts: list[str]) -> None:
    table(tmp_path, text)
    ended = call(("profile", "mlp", "--size", "tiny", "-o", "p.json"), tmp_path, variables)
    assert ended.code == 2, ended.err
    assert all(part in ended.err for part in parts), ended.err
    assert "\x1b" not in ended.err
    assert not (tmp_path / "p.json").exists()


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 100_000, b"tool = 3", b"[tool]\nroofline = 3", b"#" * (2 << 20)])
def test_damaged_files(tmp_path: Path, variables: dict[str, str], data: bytes) -> None:
    (tmp_path / "pyproject.toml").write_bytes(data)
    ended = call(("backends",), tmp_path, variables)
    assert ended.code == (0 if data == b"tool = 3" else 2), ended.err
    assert ended.code == 0 or "pyproject.toml" in ended.err


def test_help_and_version_read_no_file(tmp_path: Path, variables: dict[str, str]) -> None:
    table(tmp_path, "colour = 1")
    for words in (("--version",), ("--help",), ("profile", "--help")):
        assert call(words, tmp_path, variables).code == 0


@pytest.mark.parametrize("name", ["again", "force"])
def test_no_spelling_of_what_each_call_asks_for(tmp_path: Path, variables: dict[str, str], name: str) -> None:
    table(tmp_path, f"[tool.roofline.calibrate]\n{name} = true")
    ended = call(("calibrate", "--device", "cpu"), tmp_path, variables)
    assert ended.code == 2
    assert f"--{name} is for the command line" in ended.err


@pytest.mark.parametrize(
    ("verb", "key", "value", "typed", "words"),
    [
        ("profile", "steps", "7", ["mlp"], ["--steps", "7"]),
        ("profile", "steps", "7", ["mlp", "--steps", "5"], []),
        # What stands behind the program is its own.
        ("run", "every", "9", ["train.py", "--every", "5"], ["--every", "9"]),
        ("run", "every", "9", ["--every", "5", "train.py"], []),
        ("run", "every", "9", ["-m", "train", "--every=5"], ["--every", "9"]),
    ],
)
def test_defaults_in_force_are_those_that_the_parser_takes(
    verb: str, key: str, value: str, typed: list[str], words: list[str]
) -> None:
    command = typer.main.get_command(build(verb)).commands[verb]  # type: ignore[attr-defined]
    assert defaults.words_of({key: value}, verb, command, typed) == words
