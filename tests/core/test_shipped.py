"""Short names of the profiles that ship: what they find, what they do not, and what wins."""

from __future__ import annotations

from pathlib import Path

import handmade
import pytest

import roofline
from roofline import plugins
from roofline.core import shipped
from roofline.core.schema import load, save
from roofline.errors import InputError

NAME = "h100/bert-torch-infer-b32-tf32"


def test_a_short_name_is_the_file_in_the_folder() -> None:
    assert shipped.locate(NAME) == plugins.folder("roofline.profiles") / f"{NAME}.json"
    assert load(NAME) == load(shipped.paths()[NAME])
    assert roofline.load(Path(NAME)).precision == "tf32"


def test_names_are_whole_and_in_order() -> None:
    names = list(shipped.paths())
    assert names == sorted(names)
    assert "bert-torch-infer-b1-s128-amd-epyc-1" in names
    assert all(not name.endswith(".json") and name.count("/") <= 1 for name in names)


def test_a_file_of_that_name_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h100").mkdir()
    assert load(NAME).model == "bert"
    save(handmade.profile(), NAME)
    assert load(NAME).model == "toy"


def test_a_link_to_nothing_wins_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h100").mkdir()
    (tmp_path / NAME).symlink_to("absent")
    with pytest.raises(InputError, match=r"Cannot read .*: No such file"):
        load(NAME)


@pytest.mark.parametrize(
    "name",
    [
        "h100/../../pyproject",
        "h100/../h100/bert-torch-infer-b32-tf32",
        "../profiles/h100/bert-torch-infer-b32-tf32",
        "/h100/bert-torch-infer-b32-tf32",
        "h100",
        "h100/",
        "h100/*",
        "",
        "h100/bert-torch-infer-b32-tf32\x00",
        "x" * 5000,
        "h100/" + "x" * 100_000,
    ],
)
def test_what_is_no_short_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        load(name)


def test_links_out_of_the_folder_have_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for folder in (outside, inside, inside / "gpu"):
        folder.mkdir()
    for path in (outside / "secret.json", inside / "a.json", inside / "gpu" / "b.json"):
        path.write_text("{}")
    (inside / "link.json").symlink_to(outside / "secret.json")
    (inside / "folder").symlink_to(outside)
    (inside / "gpu" / "again.json").symlink_to(inside / "a.json")  # stays inside
    monkeypatch.setattr(plugins, "folder", lambda package: inside)
    assert list(shipped.paths()) == ["a", "gpu/again", "gpu/b"]
    assert shipped.locate("folder/secret") is None


def test_an_unknown_name_is_told_with_close_ones() -> None:
    with pytest.raises(InputError, match=r"^There is no file h100/bert-torch-infer-b32-tf33.*: did you mean h100/bert"):
        load("h100/bert-torch-infer-b32-tf33")
    assert shipped.alike("h100/bert-torch-infer-b32-tf33")[0] == NAME
    assert shipped.alike("bert-torchscript-infer-b32-tf32")[0] == "h100/bert-torchscript-infer-b32-tf32"
    assert shipped.alike(f"{NAME}.json")[0] == NAME
    assert shipped.missing("bert.json") == ""  # meant as a file: reading it says what is wrong
    assert shipped.missing("bart").endswith("`roofline show` lists those that ship.")
