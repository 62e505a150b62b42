"""The verb `report`: what it writes, and what it refuses before it reads anything."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import handmade
import pytest

from roofline.cli import report
from roofline.core.schema import save
from roofline.errors import InputError


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    save(handmade.profile(), tmp_path / "p.json")
    return tmp_path / "p.json"


def test_it_writes_one_page(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = profile.with_name("x.html")
    report.command([profile], page)
    assert capsys.readouterr().out == f"Wrote {page}\n"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(each.name for each in profile.parent.iterdir()) == ["p.json", "x.html"]


def test_a_page_to_look_at_needs_no_name(
    profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", "true")  # nobody looks
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    report.command([profile], show=True)
    (page,) = folder.glob("roofline-*/report.html")
    assert capsys.readouterr().out.splitlines()[0] == f"Wrote {page}"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(InputError, match=r"No output is given: add -o REPORT\.html, or --open"):
        report.command([profile])
    assert len([*folder.iterdir()]) == 1


@pytest.mark.parametrize(
    ("ci", "has_browser", "opened", "words"),
    [("", True, True, ""), ("", False, True, "no browser"), ("true", True, False, "CI")],
)
def test_it_opens_the_page_or_says_why_not(
    ci: str,
    has_browser: bool,
    opened: bool,
    words: str,
    profile: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pages: list[str] = []

    class Browser(webbrowser.BaseBrowser):
        """A browser that notes its pages, or cannot start."""

        def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
            pages.append(url)
            return has_browser

    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(webbrowser, "_tryorder", ["notes"])
    monkeypatch.setattr(webbrowser, "_browsers", {"notes": [None, Browser("notes")]})
    page = profile.with_name("x.html")
    report.command([profile], page, show=True)
    assert pages == ([page.as_uri()] if opened else [])
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f"Wrote {page}"
    assert len(others) == bool(words)
    assert words in "".join(others)


def test_several_profiles_are_one_page(profile: Path) -> None:
    page = profile.with_name("x.html")
    report.command([profile, profile, profile], page)
    assert page.read_text(encoding="utf-8").count('data-ops="') == 3


def test_what_is_there_is_replaced_only_when_asked(profile: Path) -> None:
    page = profile.with_name("x.html")
    page.write_text("mine")
    with pytest.raises(InputError, match="exists; add --force"):
        report.command([profile], page)
    assert page.read_text() == "mine"
    report.command([profile], page, force=True)
    assert page.read_text() != "mine"


def test_an_input_is_never_replaced(profile: Path) -> None:
    before = profile.read_bytes()
    page = profile.with_name("x.html")
    page.symlink_to(profile)
    for output in (profile, page):
        with pytest.raises(InputError, match="it is also the input"):
            report.command([profile], output, force=True)
    assert profile.read_bytes() == before


def test_outputs_and_inputs_are_checked_first(profile: Path, tmp_path: Path) -> None:
    absent = tmp_path / "absent.json"
    for name, why in [("x.pdf", "must end in .html or .htm"), ("no/x.html", "there is no folder")]:
        with pytest.raises(InputError, match=why):
            report.command([absent], tmp_path / name)
    with pytest.raises(InputError, match=r"is a folder: name the profiles in it, as in .*\*\.json"):
        report.command([tmp_path], tmp_path / "x.html")
    with pytest.raises(InputError, match="Cannot read"):
        report.command([profile, absent], tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
