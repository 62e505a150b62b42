"""Locks: a folder of the user's own where no home can be written, and file systems without locks."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

import pytest

from roofline.sweeping import lock

fcntl = pytest.importorskip("fcntl")


def test_without_a_home_each_user_has_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "file" / "below"))  # no folder can be made there
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):  # made once, found the second time
        with lock.alone("cpu", print):
            pass
    own = tmp_path / f"roofline-{os.getuid()}"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert [file.suffix for file in own.iterdir()] == [".lock"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def none(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    said: list[str] = []
    with lock.locked(tmp_path / "a.lock", lambda: said.append("waiting")):
        said.append("inside")
    assert said == ["inside"]
