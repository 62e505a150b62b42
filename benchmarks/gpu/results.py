"""The results of a piece as one archive, so that they can leave a machine that gives few files back."""

from __future__ import annotations

import tarfile
from pathlib import Path

#: What one file may have, and how many there may be.
MOST_BYTES, MOST_FILES = 16 * 2**20, 8


def pack(piece: Path, out: Path) -> Path:
    """Write out/PIECE.tar.gz, whole or not at all, and return it. Raises ValueError where it is too large."""
    out.mkdir(parents=True, exist_ok=True)
    archive = out / f"{piece.name}.tar.gz"
    partial = out / f".{piece.name}.partial"
    with tarfile.open(partial, "w:gz", compresslevel=6) as file:
        for path in sorted(piece.rglob("*")):
            if path.is_file() and path.suffix != ".partial":
                file.add(path, f"{piece.name}/{path.relative_to(piece)}", filter=_without_owner)
    size = partial.stat().st_size
    partial.replace(archive)
    if size > MOST_BYTES:
        raise ValueError(f"{archive} has {size} bytes, more than the {MOST_BYTES} that a file may have.")
    return archive


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
