"""Read the stats of events of XLA's profiler, which tell what the events belong to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from roofline.traces.xplane import columns as xplane_columns
from roofline.traces.xplane.proto import XStat, XStats

TEXTS = {"hlo_op": -1, "hlo_module": -1, "tf_op": -1, "memcpy_details": -1, "node": -1, "kernel_type": -1}
NUMBERS = {"program_id": -1, "run_id": 0, "_p": -1, "_c": -1, "cuda_graph_id": 0}
"""The stats that are kept, and what an event has that lacks one. Of a text it is the number in its Names."""

#: What TensorFlow calls a node is "name".
_ENCODED = {b"name" if stat == "node" else stat.encode(): stat for stat in TEXTS | NUMBERS}
_WHOLE = re.compile(rb"-?\d{1,18}")


class Names:
    """Texts, each numbered when it is first met."""

    def __init__(self) -> None:
        self._number: defaultdict[bytes, int] = defaultdict(count().__next__)

    def of(self, texts: Iterable[bytes]) -> np.ndarray:
        """int32: the number of each of `texts`."""
        return np.fromiter(map(self._number.__getitem__, texts), np.int32)

    def encoded(self) -> list[bytes]:
        """The texts as the trace has them, by number."""
        return list(self._number)

    def decoded(self) -> tuple[str, ...]:
        """The texts by number, what is not UTF-8 replaced."""
        return tuple(text.decode("utf-8", "replace") for text in self._number)


def empty(n: int) -> dict[str, np.ndarray]:
    """A column for each stat that is kept, of `n` events that have none: int32[n] of a text, else int64[n]."""
    texts = {stat: np.full(n, absent, np.int32) for stat, absent in TEXTS.items()}
    return texts | {stat: np.full(n, absent, np.int64) for stat, absent in NUMBERS.items()}


def fill(
    columns: dict[str, np.ndarray],
    row: np.ndarray,
    encoded: Sequence[bytes],
    stat_names: Mapping[int, bytes],
    table: Callable[[str], Names],
) -> None:
    """Writes into `columns` those of the `encoded` XStats that are kept; `row` is the row that each belongs to.

    `stat_names`: the names of stats, and the texts that stats refer to, by id. `table`: where the texts of a
    stat are numbered. Values that cannot be read are absent.
    """
    (key,) = xplane_columns.numbers(XStats, encoded, ("metadata_id",))
    order = np.argsort(key, kind="stable")
    keys, low = np.unique(key[order], return_index=True)
    for stat_key, place in zip(keys.tolist(), np.split(order, low[1:]), strict=False):
        stat = _ENCODED.get(stat_names.get(stat_key, b""))
        if stat is None:
            continue
        for at, kind, values in xplane_columns.values(list(map(encoded.__getitem__, place.tolist()))):
            if kind in ("ref_value", "str_value", "bytes_value"):
                texts, text_of = _distinct(kind, values, stat_names)
                worth = _numbers_of(texts, table(stat)) if stat in TEXTS else _parsed(texts)
                number, valid = (part[text_of] for part in worth)
            elif stat in NUMBERS:
                number, valid = _whole(kind, values)
            else:
                continue
            columns[stat][row[place[at]][valid]] = number[valid]


def _distinct(kind: str, values: Sequence[Any], stat_names: Mapping[int, bytes]) -> tuple[list[bytes], np.ndarray]:
    """The distinct texts among `values`, and which of them each is."""
    if kind == "ref_value":
        keys, text_of = np.unique(np.fromiter(values, np.uint64), return_inverse=True)
        return [stat_names.get(key, b"") for key in keys.tolist()], text_of
    names = Names()
    text_of = names.of(values)
    return names.encoded(), text_of


def _numbers_of(texts: list[bytes], names: Names) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of `texts` in `names`; an empty one is none."""
    return names.of(texts), np.array([text != b"" for text in texts], bool)


def _parsed(texts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """The int64 numbers that `texts` spell, and which of them spell one."""
    valid = [_WHOLE.fullmatch(text) is not None for text in texts]
    numbers = [int(text) if good else 0 for text, good in zip(texts, valid, strict=True)]
    return np.array(numbers, np.int64), np.array(valid, bool)


def _whole(kind: str, values: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """The int64 numbers of `values`, and which of them fit."""
    if kind == "double_value":
        number = np.fromiter(values, np.float64)
        valid = abs(number) < 2**62
        return np.where(valid, number, 0).astype(np.int64), valid
    number = np.fromiter(values, np.uint64 if kind == "uint64_value" else np.int64).view(np.int64)
    return number, np.ones(len(number), bool)


def device(plane: Any, stat_names: Mapping[int, bytes]) -> dict[str, str | int]:
    """Read a device's properties from its plane, under Kineto's names: "name" and "totalGlobalMem" [byte].

    Either is left out where the plane does not tell; jaxlib 0.11 writes both.
    """
    properties: dict[str, str | int] = {}
    for stat in map(XStat.FromString, plane.stats):
        name = stat_names.get(stat.metadata_id)
        if name == b"gpu_device_name":
            properties["name"] = (stat.str_value or stat_names.get(stat.ref_value, b"")).decode("utf-8", "replace")
        elif name == b"memory_size":
            properties["totalGlobalMem"] = stat.uint64_value or stat.int64_value
    return properties


def values(encoded: Iterable[bytes], names: Mapping[int, bytes]) -> dict[bytes, int | bytes]:
    """Read all stats of one event by their names. names: of stats, and texts that stats refer to, by id."""
    by_name: dict[bytes, int | bytes] = {}
    for stat in map(XStat.FromString, encoded):
        kind = stat.WhichOneof("value")
        content: Any = getattr(stat, kind) if kind else None
        by_name[names.get(stat.metadata_id, b"")] = names.get(content, b"") if kind == "ref_value" else content
    return by_name
