"""Files that appear while a command works: nothing of another process is lost, and nothing that was measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import pytest

from roofline.cli.options import paths
from roofline.core.schema import load, save
from roofline.measuring import session

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("verb", "output"),
    [
        ("export", "ops.csv"),
        ("plot", "f.svg"),
        ("report", "r.html"),
    ],
)
def test_a_file_that_appears_behind_the_check(
    roofline: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, output: str
) -> None:
    save(handmade.profile(), tmp_path / "p.json")

    def appears(path: Path, *more: Any) -> Path:
        checked = paths.check_output(path, *more)
        Path(path).write_text("theirs")
        return checked

    monkeypatch.setattr(f"roofline.cli.{verb}.check_output", appears)
    ended = roofline(verb, "p.json", "-o", output)
    assert (ended.code, ended.err) == (
        2,
        f"roofline: {output} exists; add --force to replace it, or choose another name.\n",
    )
    assert (tmp_path / output).read_text() == "theirs"
    assert roofline(verb, "p.json", "-o", output, "--force").code == 0
    assert (tmp_path / output).read_text() != "theirs"


def test_what_was_measured_gets_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    profile, output = handmade.profile(), tmp_path / "p.json"
    for number in (1, 2, 3):
        assert paths.save_measured(profile, output, force=False).name == f"p{f'-{number}' if number > 1 else ''}.json"
    assert capsys.readouterr().err.count("appeared meanwhile") == 2
    assert paths.save_measured(profile, output, force=True) == output
    own = {paths.save_measured(profile, None, force=True).name for _ in range(2)}
    assert len(own) == 2, "a name of its own replaces nothing"
    assert all(load(file).model == profile.model for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 3 + 2


def test_a_link_to_nothing_takes_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    profile = handmade.profile()
    first = session.default_name(profile, tmp_path)
    first.symlink_to("absent")
    assert paths.save_measured(profile, None, force=False).name == f"{first.stem[:-1]}2.json"
    assert (first.is_symlink(), first.exists()) == (True, False)
