"""Read profiles, and the list of a folder of them."""

from __future__ import annotations

from collections.abc import Iterator

import seeds
import typed
from target import Target, scratch

from roofline.core.schema import Profile, decode, encode
from roofline.ranks import folder as folder_of_ranks


def profile(data: bytes) -> None:
    """Decode a profile; one that can be read can be written, and is then the same."""
    read = decode(data)
    if decode(encode(read)) != read:
        raise AssertionError("another profile is read from what was written")


def manifest(data: bytes) -> None:
    """Read the list of a folder of ranks, whose profiles are not there: the first that it lists cannot be read."""
    folder = scratch("ranks")
    folder.mkdir(exist_ok=True)
    (folder / folder_of_ranks.MANIFEST).write_bytes(data)
    folder_of_ranks.read(folder)


def _profiles() -> Iterator[bytes]:
    yield from seeds.profiles()
    yield from (b'{"schema": 0}', b'{"schema": 99}', b"[]")


TARGETS = {
    "profile": Target(profile, _profiles, typed.json_of(Profile)),
    "ranks-manifest": Target(
        manifest,
        lambda: [b'{"schema": 1, "of": 2, "ranks": [{"rank": 0, "file": "a"}, {"rank": 1, "file": "b"}]}'],
        typed.json_of(folder_of_ranks.Manifest),
    ),
}
