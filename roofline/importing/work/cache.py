"""Keep the costs of calls on disk: a second import of a trace needs no torch.

The file is MessagePack, of a schema that this module checks: nothing in it is executed, a damaged or foreign file is
an empty cache, and a new one is written beside it and moved into its place. Entries hang on the rules that made them
(a digest of their source text, in the file's name and head) and, where torch's own decompositions were counted, on
the version of torch.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from roofline import plugins
from roofline.core.cost import Cost
from roofline.core.decoding import UndecodableError, undecodable
from roofline.core.files import user_cache
from roofline.core.vocabulary import OpClass
from roofline.costs.calls import Call, Tensor
from roofline.costs.counted import Access, Costed
from roofline.version import __version__

SCHEMA = 2
#: Entries at most, the newest kept; a trace has 10 to 600. And bytes of a file that is looked at.
MOST, LARGEST = 50_000, 64 << 20
#: Where the rules lie that decide what a call costs.
_RULES = ("costs", "pytorch/aten", "core/cost.py")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A `Costed` without parts, and the version of torch that it hangs on, "" for none."""

    torch: str
    cost: Cost
    kind: str
    op_class: OpClass
    shapes: str
    dtype: str | None
    output: str | None
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    inplace: bool
    view: bool
    layout: str

    def costed(self) -> Costed:
        """Return the cost as the engine gives it."""
        return Costed(**{name: getattr(self, name) for name in _OF_COSTED})


_OF_COSTED = tuple(name for name in Entry.__struct_fields__ if name != "torch")


class _File(msgspec.Struct, frozen=True):
    """Lay out the file. names: the kind of each op by its name; wrappers: for a call whether it is a mere wrapper."""

    schema: int
    rules: str
    torch: str
    names: dict[str, str]
    wrappers: dict[str, bool]
    calls: dict[str, Entry]


class Cache:
    """Entries by the digest of their call. path None: nothing is read and nothing is written."""

    def __init__(self, path: Path | None = None) -> None:
        """Read what is there, as far as it is of these rules."""
        self.path = path
        self._rules = rules()
        self._torch = torch_version()
        read = _read(path, self._rules)
        # What torch is asked by name may differ between its versions.
        same_torch = read is not None and self._torch in ("", read.torch)
        self.names: dict[str, str] = dict(read.names) if read and same_torch else {}
        self.wrappers: dict[str, bool] = dict(read.wrappers) if read and same_torch else {}
        self._calls: dict[str, Entry] = dict(read.calls) if read else {}
        self._of = self._torch or (read.torch if read else "")
        self._kept = self._size()

    def get(self, key: str) -> Costed | None:
        """The cost of a call, None where it is not known to these rules and this torch."""
        entry = self._calls.get(key)
        if entry is None or (entry.torch and self._torch and entry.torch != self._torch):
            return None
        return entry.costed()

    def put(self, key: str, costed: Costed, by_torch: bool) -> None:
        """Keep a cost. by_torch: torch's decompositions were counted, which its next version may change."""
        if not costed.parts and not costed.executor:
            values = {name: getattr(costed, name) for name in _OF_COSTED}
            self._calls[key] = Entry(torch=self._torch if by_torch else "", **values)

    def save(self) -> bool:
        """Write what was learned; False where nothing was, or where the folder cannot be written."""
        if self.path is None or self._size() == self._kept:
            return False
        # Others may have written since: theirs stay, and of too many the oldest go.
        saved = _read(self.path, self._rules)
        calls = {**(saved.calls if saved else {}), **self._calls}
        names, wrappers = self.names, self.wrappers
        if saved and saved.torch == self._of:
            names, wrappers = {**saved.names, **names}, {**saved.wrappers, **wrappers}
        file = _File(SCHEMA, self._rules, self._of, _last(names), _last(wrappers), _last(calls))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.name)
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(msgspec.msgpack.encode(file))
                os.replace(name, self.path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError:
            return False
        self._kept = self._size()
        return True

    def _size(self) -> tuple[int, int, int]:
        return len(self.names), len(self.wrappers), len(self._calls)


def _last(entries: Mapping[str, Any]) -> dict[str, Any]:
    return dict(list(entries.items())[-MOST:])


def _read(path: Path | None, of: str) -> _File | None:
    if path is None:
        return None
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        with undecodable():
            saved = msgspec.msgpack.decode(path.read_bytes(), type=_File)
    except (OSError, UndecodableError):
        return None
    return saved if saved.schema == SCHEMA and saved.rules == of else None


def location(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file of the user's own cache."""
    return user_cache(environment) / "costs.msgpack"


def key(call: Call) -> str:
    """A digest of a call: op, overload, and every argument with its type; storages by first appearance."""
    # Written out with the types: 1, 1.0 and True are equal in Python and choose different overloads.
    text = msgspec.msgpack.encode((call.name, call.overload, _plain(call.inputs), _plain(call.outputs)))
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        layout = (value.shape, value.stride, value.dtype, value.storage, value.offset, value.device)
        return ["t", *layout, value.stored, value.places]
    if isinstance(value, tuple):
        return ["l", *(_plain(item) for item in value)]
    # Numbers beyond 64 bits are no MessagePack.
    return value if value is None or isinstance(value, bool | float | str) else ["i", str(value)]


def rules() -> str:
    """A digest of the rules: whoever changes one need not remember to say so."""
    package, digest = Path(__file__).parents[2], hashlib.blake2b(digest_size=12)
    for name in _RULES:
        place = package / name
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        for file in files:
            digest.update(file.read_bytes())
        if not files:  # packed in an archive: the version has to do
            digest.update(__version__.encode())
    return digest.hexdigest()


def torch_version() -> str:
    """The version of torch that is installed, found without importing it; "" for none."""
    return plugins.version_of("torch") or ""
