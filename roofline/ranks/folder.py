"""The folder of a job's ranks: a profile per rank, and the list of them.

    ranks.json        {"schema": 1, "of": 8, "ranks": [{"rank": 0, "file": "rank-0.json"}, ...]}
    rank-0.json       the profile of rank 0 (docs/profile-format.md)

of: how many ranks the job has; null where nothing says it. A rank whose profile is not there is not in the list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from roofline.core import files
from roofline.core.decoding import UndecodableError, from_json
from roofline.core.schema import Profile, load, save
from roofline.errors import InputError
from roofline.ranks.number import number_of, ranks_of

#: The list in a folder, and its largest size [byte].
MANIFEST, _MOST = "ranks.json", 1 << 22
SCHEMA = 1


class Listed(msgspec.Struct, frozen=True):
    """A rank of the list. file: name of its profile in the folder."""

    rank: int
    file: str


class Manifest(msgspec.Struct, frozen=True):
    """The list of a folder. of: how many ranks the job has, None where that is not known."""

    schema: int
    of: int | None
    ranks: tuple[Listed, ...]


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder of ranks."""
    return (path / MANIFEST).is_file()


def name_of(rank: int) -> str:
    """Name the profile of a rank."""
    return f"rank-{rank}.json"


def write(folder: Path, profiles: Sequence[Profile]) -> list[Path]:
    """Write the profiles of ranks into a folder, made if it is missing, and the list of them; return their paths.

    Where one of them cannot be written, none of the new ones stays, nor does a new folder.
    """
    ranks = [number_of(profile) or 0 for profile in profiles]
    of = {ranks_of(profile) for profile in profiles}
    paths = [folder / name_of(rank) for rank in ranks]
    listed = tuple(Listed(rank, path.name) for rank, path in zip(ranks, paths, strict=True))
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with _saved(profiles, paths, replace=True):
            _list(folder, Manifest(SCHEMA, of.pop() if len(of) == 1 else None, listed))
    except BaseException:
        with suppress(OSError):  # another process may have written into it
            if is_new:
                folder.rmdir()
        raise
    return paths


def save_all(profiles: Sequence[Profile], paths: Sequence[Path], *, replace: bool) -> None:
    """Save profiles of ranks without a list; where one cannot be written, none of the new files stays."""
    with _saved(profiles, paths, replace=replace):
        pass


@contextmanager
def _saved(profiles: Sequence[Profile], paths: Sequence[Path], *, replace: bool) -> Iterator[None]:
    """Save profiles one by one, and remove the new files again if that or the context fails."""
    new: list[Path] = []
    try:
        for path, profile in zip(paths, profiles, strict=True):
            is_new = not path.exists()
            save(profile, path, replace=replace)
            new += [path] if is_new else []
        yield
    except BaseException:
        for path in new:
            path.unlink(missing_ok=True)
        raise


def _list(folder: Path, manifest: Manifest) -> None:
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    files.write_atomically(folder / MANIFEST, text + b"\n")


def add(folder: Path, profile: Profile) -> Path:
    """Write the profile of a rank into a folder that exists, as each rank of a job does by itself; return its path."""
    number = number_of(profile) or 0
    path = folder / name_of(number)
    save(profile, path)
    with _alone(folder):
        before = _manifest(folder / MANIFEST).ranks if is_folder(folder) else ()
        listed = {rank.rank: rank for rank in (*before, Listed(number, path.name))}
        _list(folder, Manifest(SCHEMA, ranks_of(profile), tuple(listed[rank] for rank in sorted(listed))))
    return path


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes of this machine from changing the list meanwhile."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read(folder: Path) -> list[Profile]:
    """Read the profiles of a folder of ranks. Raises InputError where the list or a profile cannot be read."""
    return [load(folder / listed.file) for listed in _manifest(folder / MANIFEST).ranks]


def _manifest(file: Path) -> Manifest:
    try:
        manifest = from_json(files.read(file, _MOST, "the list of a folder of ranks"), Manifest)
    except UndecodableError as error:
        raise InputError(f"{file} is no list of ranks ({error}): import the traces again.") from None
    if manifest.schema != SCHEMA:
        raise InputError(f"{file} was made by another roofline (schema {manifest.schema}): import the traces again.")
    odd = [listed.file for listed in manifest.ranks if Path(listed.file).name != listed.file]
    if odd or not manifest.ranks:
        raise InputError(f"{file} lists no files of its folder: import the traces again.")
    return manifest
