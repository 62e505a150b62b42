"""Remember the user's own steps that were measured here, so that they may be run again.

A profile may come from anywhere, so nothing that it names is run. Instead the user's cache remembers the requests of
steps that were measured on this machine; a profile only selects one of them, by its command and the digest of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from roofline.core import files
from roofline.core.decoding import UndecodableError, from_json
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.recording.request import Request
from roofline.recording.user_step import digest
from roofline.units import printable

#: Number of remembered requests, by choice; the oldest are forgotten.
_MOST = 1000
#: [byte] A request takes less than a kilobyte.
_LARGEST = 1 << 16


def remember(request: Request, command: str, sources: Mapping[str, str]) -> None:
    """Remember the request of a user's own step; do nothing for our models, or where the cache cannot be written."""
    if request.file is None or Path(request.file).name not in sources:
        return
    file = Path(request.file).resolve()
    place = _request_path(sources[Path(request.file).name], command)
    remembered = msgspec.structs.replace(request, file=str(file))
    with suppress(OSError, InputError):
        place.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(place, msgspec.json.encode(remembered))
        stored = sorted(place.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in stored[:-_MOST]:
            old.unlink(missing_ok=True)


def recall(profile: Profile) -> Request:
    """Return the request of a profile's step. Raises InputError where it is not known or its file has changed.

    Only the file is checked here; its imports are compared after it has run.
    """
    match = None
    for name, recorded in profile.sources.items():
        with suppress(InputError, UndecodableError):
            asked = from_json(files.read(_request_path(recorded, profile.command), _LARGEST, "a step"), Request)
            if asked.file is not None and Path(asked.file).name == name:
                match = asked, recorded
    if match is None:
        raise InputError(
            "Its step is a file of your own that was not measured on this machine, and such a file is not run: measure "
            "it here again, or use `roofline compare FILE.py:function --backends ... --prove`."
        )
    request, recorded = match
    file = Path(str(request.file))
    if not file.is_file():
        raise InputError(
            f"{printable(file.name)} is no longer where it was measured: put it back, or measure it again."
        )
    if digest(file) != recorded:
        raise InputError(f"{printable(file.name)} has changed since this was measured: measure it again.")
    return request


def _request_path(digest_: str, command: str) -> Path:
    """Return the path of a remembered request."""
    from roofline.devices import calibration

    key = hashlib.sha256(f"{digest_}\n{command}".encode()).hexdigest()[:32]
    return calibration.folder() / "steps" / f"{key}.json"
