"""Read the batch of each step of a serving engine from its annotations: how many sequences, of how many tokens.

Engines name the range of a step after its batch. The sums that attention needs are in the names of patched ones only:

    execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)
    step[EXTEND bs=2 toks=14721 c_sq=14721 c_sqsq=108745533 c_sqsk=108745533 c_sk=14721]
    decode[bs=32 tok=128 d=32 sqsq=512 sqsk=262144 sk=65536]

sq: queries, sk: keys, sqsq: queries^2, sqsk: queries x keys, each summed over sequences; c_ of those whose prompt is
read (context), g_ of those that are continued (generation). vLLM and SGLang say otherwise no more than this:

    execute_context_2(14721)_generation_3(3)      step[EXTEND bs=2 toks=14721]      step[DECODE bs=64]
    prefill[bs=2 tok=14721 ctx=[7803, 6918]]
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from roofline.core.batch import Batch, Sequences
from roofline.traces import nesting
from roofline.traces.kineto.reader import KinetoTrace

_NOBODY = Sequences(0, 0, 0, 0, 0)
_N = r"(\d{1,12})"  # longer numbers are of no batch
_SUMS = rf"\(sq{_N}sk{_N}sqsq{_N}sqsk{_N}\)"
_VLLM_SUMS = re.compile(rf"execute_\d+_context_{_N}{_SUMS}_generation_{_N}{_SUMS}")
_VLLM = re.compile(rf"execute_context_{_N}\({_N}(?:_\d+)?\)_generation_{_N}\({_N}(?:_\d+)?\)")
_STEP = re.compile(r"step\[(EXTEND|DECODE|MIXED)\b([^\]]*)\]")
_PHASE = re.compile(r"(prefill|decode)\[(.*)\]")
_FIELD = re.compile(rf"(\w+)={_N}(?!\d)")
_LONGEST = 1000  # characters of a name that is read


def batch(name: str) -> Batch | None:
    """Return the batch that the name of an annotation tells, None where it tells none."""
    name = name[:_LONGEST]
    if match := _VLLM_SUMS.fullmatch(name):
        numbers = list(map(int, match.groups()))
        return Batch(_sequences(*numbers[:5]), _sequences(*numbers[5:]))
    if match := _VLLM.fullmatch(name):
        prefills, queries, decodes, continued = map(int, match.groups())
        return Batch(_sequences(prefills, queries), _sequences(decodes, continued))
    if match := _STEP.fullmatch(name):
        return _of_step(match[1], {key: int(value) for key, value in _FIELD.findall(match[2])})
    if match := _PHASE.fullmatch(name):
        fields = {key: int(value) for key, value in _FIELD.findall(match[2])}
        names = ("bs", "tok", "sk", "sqsq", "sqsk")
        told = _sequences(*(fields.get(key) for key in names)) if "bs" in fields and "tok" in fields else None
        return None if told is None else Batch(told, _NOBODY) if match[1] == "prefill" else Batch(_NOBODY, told)
    return None


def _of_step(kind: str, fields: dict[str, int]) -> Batch | None:
    number = fields.get("bs")
    if number is None:
        return None
    if kind == "MIXED":
        if "c" not in fields or "g" not in fields:
            return None
        return Batch(_summed(fields["c"], "c", fields, None), _summed(fields["g"], "g", fields, None))
    if kind == "EXTEND":
        return Batch(_summed(number, "c", fields, fields.get("toks")), _NOBODY)
    return Batch(_NOBODY, _summed(number, "g", fields, number))


def _summed(number: int, part: str, fields: dict[str, int], queries: int | None) -> Sequences:
    """The sums of a part of the batch, "c" or "g". queries: where the name does not tell them."""
    sums = [fields.get(f"{part}_{name}") for name in ("sq", "sk", "sqsq", "sqsk")]
    return _sequences(number, queries if sums[0] is None else sums[0], *sums[1:])


def _sequences(
    number: int | None,
    queries: int | None,
    keys: int | None = None,
    squares: int | None = None,
    products: int | None = None,
) -> Sequences:
    """Sequences by their sums, without those that cannot be: as many keys as queries at least, q^2 <= qk summed up."""
    if not number or queries is None:
        return _NOBODY
    if keys is None or squares is None or products is None:
        return Sequences(number, queries)
    possible = number <= queries <= keys and queries <= squares <= products and queries**2 <= number * squares
    return Sequences(number, queries, keys, squares, products) if possible else Sequences(number, queries)


class Batches:
    """The batches of a trace, by time."""

    def __init__(self, trace: KinetoTrace) -> None:
        """Of ranges that lie in each other, those that tell how many keys there are go first."""
        marks = trace.annotations
        by_code = {code: told for code in np.unique(marks.name).tolist() if (told := batch(trace.names[code]))}
        steps = marks.select(np.isin(marks.name, list(by_code)))
        self._start, self._end, self._batch = steps.start, steps.end, [by_code[code] for code in steps.name.tolist()]
        self._with_keys = [row for row, told in enumerate(self._batch) if _has_keys(told)]
        self._told = nesting.Innermost(self._start[self._with_keys], self._end[self._with_keys])
        self._any = nesting.Innermost(self._start, self._end)

    def __len__(self) -> int:
        return len(self._batch)

    def near(self, time: int) -> Batch | None:
        """Return the batch of the last range that began before a time [ns], else of the first one.

        An engine prepares a step before its range, and picks the new tokens behind it.
        """
        if not self._batch:
            return None
        row = max(0, int(np.searchsorted(self._start, time, "right")) - 1)
        return self.at(int(self._start[row]))

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends [ns] of the ranges that lie in no other."""
        before = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, self._end))[:-1]
        outer = self._end > before
        return self._start[outer], self._end[outer]

    def at(self, time: int) -> Batch | None:
        """Return the batch of the innermost range around a time [ns], None where there is none."""
        told = self._told.at(time)
        row = self._with_keys[told] if told >= 0 else self._any.at(time)
        return self._batch[row] if row >= 0 else None


@dataclass(frozen=True, slots=True)
class Always:
    """One batch at all times, None for none: that of a step which replays what was captured elsewhere."""

    batch: Batch | None

    def at(self, time: int) -> Batch | None:
        """Return the batch."""
        return self.batch


def _has_keys(batch: Batch) -> bool:
    return all(not part.number or part.keys is not None for part in (batch.prefill, batch.decode))
