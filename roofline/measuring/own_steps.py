"""Steps in files of the user's own: which of them were measured here, so that they may be run again.

A profile may come from anywhere, so nothing that it names is run. What was measured on this machine is remembered in
the user's cache instead, as it was asked for; a profile only says which of that it is, by its command and the digest of
the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from roofline.core import files
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.recording.request import Request
from roofline.recording.user_step import digest

#: So many are remembered, by choice; the oldest are forgotten.
_MOST = 1000
#: [byte] A request takes less than a kilobyte.
_LARGEST = 1 << 16


def remember(request: Request, command: str, sources: Mapping[str, str]) -> None:
    """Keep what was asked for; nothing of a model of ours, and nothing where the cache cannot be written."""
    if request.file is None or Path(request.file).name not in sources:
        return
    file = Path(request.file).resolve()
    place = _place(sources[Path(request.file).name], command)
    kept = msgspec.structs.replace(request, file=str(file))
    with suppress(OSError, InputError):
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(place, msgspec.json.encode(kept))
        known = sorted(place.parent.glob("*.json"), key=lambda each: each.stat().st_mtime)
        for old in known[:-_MOST]:
            old.unlink(missing_ok=True)


def recall(profile: Profile) -> Request:
    """What was asked for when this profile was measured. Raises InputError where that is not known or no longer holds.

    Only the file is looked at here; what it imports is compared when it has run.
    """
    known = None
    for name, recorded in profile.sources.items():
        with suppress(InputError, msgspec.MsgspecError, UnicodeDecodeError):
            asked = msgspec.json.decode(files.read(_place(recorded, profile.command), _LARGEST, "a step"), type=Request)
            if asked.file is not None and Path(asked.file).name == name:
                known = asked, recorded
    if known is None:
        raise InputError(
            "Its step is a file of yours, which is not run because a profile names it, and it was not measured here: "
            "measure it here again, or, to prove a difference, use `roofline compare FILE.py:function --backends ... "
            "--prove`."
        )
    request, recorded = known
    file = Path(str(request.file))
    if not file.is_file():
        raise InputError(f"{_named(file)} is no longer where it was measured: put it back, or measure it again.")
    if digest(file) != recorded:
        raise InputError(
            f"{_named(file)} has changed since this was measured, so that running it proves nothing about it: "
            "measure it again."
        )
    return request


def _named(file: Path) -> str:
    return "".join(character if character.isprintable() else "?" for character in file.name)


def _place(digest_: str, command: str) -> Path:
    """Where a step is remembered."""
    from roofline.devices import calibration

    key = hashlib.sha256(f"{digest_}\n{command}".encode()).hexdigest()[:32]
    return calibration.folder() / "steps" / f"{key}.json"
