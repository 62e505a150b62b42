"""The results of a piece as one archive, so that they can leave a machine that gives few files back."""

from __future__ import annotations

import tarfile
from pathlib import Path

#: What one file may have, and how many there may be.
MOST_BYTES, MOST_FILES = 16 * 2**20, 8
#: In an archive: the results that made it too large.
LEFT_OUT = "left-out.txt"


def pack(piece: Path, out: Path) -> Path:
    """Write out/PIECE.tar.gz, whole or not at all, and return it.

    What makes it too large is left out, the largest file first, and named in its `left-out.txt`; it stays in the
    folder, and is lost with the machine. Raises ValueError where logs and state alone are too large.
    """
    out.mkdir(parents=True, exist_ok=True)
    archive = out / f"{piece.name}.tar.gz"
    partial = out / f".{piece.name}.partial"
    told = piece / LEFT_OUT
    left: list[str] = []
    if told.exists():  # what stayed on a machine that was given back is on none
        left = [name for name in told.read_text(encoding="utf-8").splitlines() if not (piece / name).exists()]
        told.unlink()
    files = [path for path in sorted(piece.rglob("*")) if path.is_file() and path.suffix != ".partial"]
    results = sorted((path for path in files if path.parent == piece), key=lambda path: path.stat().st_size)
    results = [path for path in results if path.name != "state.json"]
    while _write(partial, piece, files, left) > MOST_BYTES:
        if not results:
            raise ValueError(f"{archive} has more than the {MOST_BYTES} bytes that a file may have.")
        largest = results.pop()
        files.remove(largest)
        left.append(largest.name)
    partial.replace(archive)
    return archive


def _write(archive: Path, piece: Path, files: list[Path], left: list[str]) -> int:
    """Pack these files; its size [byte]. left: names that are not in it."""
    if left:
        (piece / LEFT_OUT).write_text("".join(f"{name}\n" for name in left), encoding="utf-8")
        files = [*files, piece / LEFT_OUT]
    with tarfile.open(archive, "w:gz", compresslevel=6) as file:
        for path in dict.fromkeys(files):
            file.add(path, f"{piece.name}/{path.relative_to(piece)}", filter=_without_owner)
    return archive.stat().st_size


def unpack(piece: str, work: Path, places: list[Path]) -> Path | None:
    """Put an archived piece where it is worked on, unless something is there; the archive that was taken."""
    if (work / piece).exists():
        return None
    for place in places:
        archive = place / f"{piece}.tar.gz"
        if archive.is_file():
            work.mkdir(parents=True, exist_ok=True)
            with tarfile.open(archive) as file:
                file.extractall(work, filter="data")
            return archive
    return None


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who ran it is nobody's business."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry
