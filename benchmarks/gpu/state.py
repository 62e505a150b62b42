"""What became of the items of a piece, in a file that travels with its results."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from item import Item, Setting

#: Ended well; ended otherwise, or took longer than its limit, or left no output: repeated only when asked for.
#: What has neither was never begun, or was ended in the middle by something else, and is begun (again).
WELL, FAILED = "well", "failed"
#: Written when an item begins: found later, it means that the machine or the driver went away.
BEGUN = "begun"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item. command: its words, as planned: an item of another command is another item.

    why: what a failure was. seconds: how long it took. began: UTC. machine: as the driver of that run saw it.
    """

    command: tuple[str, ...]
    how: str
    why: str = ""
    seconds: float = 0.0
    began: str = ""
    machine: str = ""


class State:
    """The entries of one piece; each change is written at once, whole or not at all."""

    def __init__(self, file: Path, setting: Setting) -> None:
        """Raises ValueError where the file is of another setting: a rehearsal is no measurement."""
        self._file, self._setting = file, setting
        self._entries: dict[str, Entry] = {}
        if file.exists():
            kept = json.loads(file.read_text(encoding="utf-8"))
            if kept["setting"] != asdict(setting):
                raise ValueError(
                    f"{file.parent} holds results of {kept['setting']}, and this run is {asdict(setting)}: "
                    "give another --work and --out."
                )
            self._entries = {
                name: Entry(**{**entry, "command": tuple(entry["command"])}) for name, entry in kept["items"].items()
            }

    def of(self, item: Item) -> Entry | None:
        """The entry of this very item."""
        entry = self._entries.get(item.name)
        return entry if entry is not None and entry.command == item.command else None

    def keep(self, item: Item, entry: Entry) -> None:
        """Remember what became of it."""
        self._entries[item.name] = entry
        text = json.dumps(
            {"setting": asdict(self._setting), "items": {name: asdict(one) for name, one in self._entries.items()}},
            indent=1,
        )
        partial = self._file.with_suffix(".partial")
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(self._file)

    def ended_well(self, name: str) -> bool:
        """Whether an item of this name did."""
        entry = self._entries.get(name)
        return entry is not None and entry.how == WELL
