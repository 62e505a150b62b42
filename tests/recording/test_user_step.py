"""What is kept of a file of the user's: digests, by which it is known whether it is the same."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from roofline.core.step import Workload
from roofline.recording.request import Request
from roofline.recording.user_step import MODULES, load_step, sources


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that imports a module beside it and one that is installed there."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages"), *sys.path])
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "installed_thing.py").write_text("")
    (tmp_path / "beside_thing.py").write_text("number = 1\n")
    (tmp_path / "mine.py").write_text("import beside_thing, installed_thing\n\ndef make():\n    return print\n")
    return tmp_path


def read(folder: Path) -> dict[str, str]:
    before = frozenset(sys.modules)
    request = Request(backend="torch", workload=Workload(model="mine"), file=str(folder / "mine.py"), function="make")
    load_step(request)
    try:
        return sources(folder / "mine.py", before)
    finally:
        for name in ("beside_thing", "installed_thing", "_roofline_user_mine"):
            sys.modules.pop(name)


def test_the_file_and_what_it_imports_from_its_folder(folder: Path) -> None:
    found = read(folder)
    assert list(found) == ["mine.py", MODULES]  # no name of a module, and no folder
    assert found["mine.py"] == hashlib.sha256((folder / "mine.py").read_bytes()).hexdigest()
    assert read(folder) == found
    (folder / "site-packages" / "installed_thing.py").write_text("number = 2\n")  # versions tell of that
    assert read(folder) == found
    (folder / "beside_thing.py").write_text("number = 22\n")
    again = read(folder)
    assert again["mine.py"] == found["mine.py"]
    assert again[MODULES] != found[MODULES]


def test_a_file_alone_has_no_modules(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import installed_thing, beside_thing\ndel beside_thing\ndef make(): return print\n"
    )
    assert set(read(folder)) == {"mine.py", MODULES}
    (folder / "mine.py").write_text("def make(): return print\n")
    assert set(sources(folder / "mine.py", frozenset(sys.modules))) == {"mine.py"}
