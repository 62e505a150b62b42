"""Files read to an end, and written whole or not at all."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from roofline.core import files
from roofline.core.files import TakenError, write_atomically
from roofline.core.schema import load
from roofline.devices import load as device
from roofline.errors import InputError


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_what_was_there(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.json"
    file.write_bytes(b"before")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, "replace", fail)
    expected = InputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        write_atomically(file, b"after")
    assert file.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.json"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot write .*: No such file or directory; choose another place\."):
        write_atomically(tmp_path / "absent" / "p.json", b"")


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    # A name has at most 255 bytes, and nothing longer may lie beside it meanwhile.
    write_atomically(tmp_path / f"{'n' * 250}.json", b"data")
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [b"data"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_a_file_without_a_size_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        InputError, match=r"^/dev/zero is larger than 1 MiB, so it is not a profile; give the path of one\.$"
    ):
        files.read(Path("/dev/zero"), 1 << 20, "a profile")
    monkeypatch.setattr("roofline.core.schema.MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="larger than 1 MiB"):
        load("/dev/zero")
    # A JSON may be a profile, whose device is taken.
    for suffix, most in ((".toml", 4), (".json", 1)):
        endless = tmp_path / f"d{suffix}"
        endless.symlink_to("/dev/zero")
        with pytest.raises(InputError, match=f"larger than {most} MiB, so it is not a device file"):
            device(str(endless))


def test_a_small_file_takes_no_more_memory_than_it_has() -> None:
    """Of a limit of 1 GiB nothing is reserved: asked in pieces, and never for more than the limit."""

    class Asked(io.BytesIO):
        sizes: ClassVar[list[int]] = []

        def read(self, size: int | None = -1) -> bytes:
            self.sizes.append(size or 0)
            return super().read(size)

    assert files.read_at_most(Asked(b"abc"), 1 << 30, expected=3) == b"abc"
    assert Asked.sizes == [4, 1 << 20]
    Asked.sizes.clear()
    assert files.read_at_most(Asked(b"abcdef"), 5, expected=1) == b"abcde"
    assert Asked.sizes == [2, 3, 0]


def test_a_pipe_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"data")
    os.close(writing)
    assert files.read(Path(f"/dev/fd/{reading}"), 4, "a profile") == b"data"
    os.close(reading)


def test_one_file_by_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.json"
    file.write_bytes(b"")
    (tmp_path / "soft.json").symlink_to("a.json")
    os.link(file, tmp_path / "hard.json")
    (tmp_path / "to-come.json").symlink_to("absent.json")
    for other in ("a.json", "./a.json", "../" + tmp_path.name + "/a.json", "soft.json", "hard.json"):
        assert files.is_same_file(file, Path(other))
    assert files.is_same_file(Path("absent.json"), Path("to-come.json"))
    assert not files.is_same_file(file, Path("b.json"))


@pytest.mark.parametrize("nameless", [True, False])
def test_what_is_written_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool) -> None:
    if not nameless:  # as on a system that has no files without a name
        monkeypatch.setattr(files, "_OPEN", "/nowhere")
    files.write_together({tmp_path / "a": b"one", tmp_path / "b": b"two"})
    files.write_together({tmp_path / "a": b"three"})
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a": b"three", "b": b"two"}
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~umask
    with pytest.raises(InputError, match=r"Cannot write .*absent"):
        files.write_together({tmp_path / "c": b"", tmp_path / "absent" / "d": b""})
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "b"]


def test_a_process_that_is_killed_while_it_writes_leaves_nothing(tmp_path: Path) -> None:
    # Killed by the system where a file grows beyond 1 MB: it has no time to put anything away.
    code = (
        "import resource, signal\n"
        "from pathlib import Path\n"
        "from roofline.core import files\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        f"files.write_atomically(Path({str(tmp_path / 'out')!r}), bytes(1 << 22))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == -signal.SIGXFSZ
    assert list(tmp_path.iterdir()) == []


def _without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every link, as a file system does that has none."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(files, "_OPEN", "/nowhere")
    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_is_there_is_only_replaced_where_that_is_asked_for(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        _without_links(monkeypatch)
    there = tmp_path / "there"
    there.write_bytes(b"theirs")
    with pytest.raises(TakenError):
        files.write_together({tmp_path / "a": b"one", there: b"mine"}, replace=False)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("there", b"theirs")]
    files.write_together({tmp_path / "a": b"one", tmp_path / "b": b"two"}, replace=False)
    write_atomically(there, b"mine")
    written = sorted((file.name, file.read_bytes()) for file in tmp_path.iterdir())
    assert written == [("a", b"one"), ("b", b"two"), ("there", b"mine")]
    assert (tmp_path / "a").stat().st_nlink == 1


def test_a_new_file_that_is_not_moved_into_place_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    _without_links(monkeypatch)
    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "p.json", b"data", replace=False)
    assert list(tmp_path.iterdir()) == []
