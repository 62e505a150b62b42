"""What a command does where an argument is left out, and what a name that fits several things is answered."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import pytest

from roofline import plugins, published
from roofline.cli.options.request import default_backend, parse_backend
from roofline.core.schema import save
from roofline.devices import load
from roofline.errors import InputError, MissingError

Run = Callable[..., Any]


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(plugins, "importable", lambda module: module in names)


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow"])
def test_the_only_framework_runs_the_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, name)
    assert default_backend(None) == name
    with pytest.raises(InputError, match="--backend"):
        default_backend("other/bin/python")  # what is installed there is not known here


def test_of_several_frameworks_one_is_named_and_without_any_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "torch", "jax")
    with pytest.raises(InputError, match=r"--backend torch; there are: jax, .*torchscript"):
        default_backend(None)
    installed(monkeypatch)
    with pytest.raises(MissingError):
        default_backend(None)


@pytest.mark.parametrize(("name", "backend"), [("pytorch", "torch"), ("tf", "tensorflow"), ("torch", "torch")])
def test_what_people_call_a_backend(name: str, backend: str) -> None:
    assert parse_backend(name)[0] == backend


@pytest.mark.parametrize(("name", "cards"), [("a100", 3), ("A100", 3), ("h100", 2), ("rtx", 6)])
def test_a_name_of_several_cards_lists_them_and_takes_none(name: str, cards: int) -> None:
    with pytest.raises(InputError) as raised:
        load(name)
    assert len(re.findall(rf"{name.lower()}-[\w-]+", str(raised.value))) == cards
    assert load("h100-sxm").name == "NVIDIA H100 SXM"


def test_published_alone_lists_what_there_is(roofline: Run) -> None:
    lines = roofline("published").out.splitlines()
    assert [line.split()[0] for line in lines] == list(published.names())


def test_a_figure_is_called_as_its_profile_and_kind(roofline: Run, tmp_path: Path) -> None:
    save(handmade.profile(), tmp_path / "toy.json")
    for words, name in (((), "toy-bound.svg"), (("--kind", "breakdown"), "toy-breakdown.svg")):
        assert roofline("plot", "toy.json", *words).code == 0
        assert (tmp_path / name).is_file()
        assert "exists" in roofline("plot", "toy.json", *words).err


def test_each_line_of_the_help_is_whole_and_imperative(roofline: Run) -> None:
    commands = roofline("--help").out.partition("Commands:")[2].splitlines()
    lines = [line.split(maxsplit=1) for line in commands if line.strip()]
    assert [verb for verb, _ in lines if verb in plugins.names("roofline.cli")] == [verb for verb, _ in lines]
    for _, text in lines:
        assert text.endswith(".")
        assert not text.endswith("...")
        assert not text.split()[0].endswith("s")
