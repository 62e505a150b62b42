"""Names for one table: short, in the room that there is, and no two of them alike.

A name is cut in its middle where only then what differs stays: of `vectorized_elementwise<Gelu(bf16)>` and
`vectorized_elementwise<Mul(bf16)>` the beginnings are one. What cannot be told apart otherwise gets the first digits of
a hash of the whole name (`~3fa2`), which are the same in every table.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

from roofline.renderers._names.kernels import brief
from roofline.renderers._words import plain

#: No name gets less room, however narrow the page is.
LEAST = 12
#: Letters of what differs, beside a short name that another kernel has too.
_DIFFERENCE = 40
#: How far a window goes back to the beginning of a word.
_BACK = 12
_TOKEN = re.compile(r"#?\w+|[^\w\s]")


def distinct(
    names: Sequence[str], room: int | None = None, by: str = "", made: Callable[[str], str] = plain
) -> list[str]:
    """What is written for each of `names`: where these differ, it differs.

    room: letters for each, at least LEAST; None: as many as it takes. by: what they are names of: kernels are made
    short, of a scope the end says most. made: how text is made fit for the format; it may make two names one.
    """
    every = list(dict.fromkeys(names))
    shown = {name: made(name) for name in every}
    if by in ("kernel", "op"):
        shown = _short({name: shown[name] for name in every}, by)
    if room is not None:
        shown = _fitted(shown, max(room, LEAST), by == "scope")
    shown = _apart(shown, room if room is None else max(room, LEAST))
    return [shown[name] for name in names]


def _short(shown: Mapping[str, str], by: str) -> dict[str, str]:
    """Kernels by their short names; where two have one, with more of what they were made with, or what differs."""
    # An op is called by its own name; where the trace has none, by that of its kernel.
    kernels = [name for name in shown if by == "kernel" or shown[name].startswith(("void ", "_Z"))]
    found = dict(shown)
    for numbers in (False, True):
        again = kernels if not numbers else [name for name in kernels if len(_alike(found)[found[name]]) > 1]
        found |= {name: brief(shown[name], numbers) for name in again}
    for some in _alike(found).values():
        if len(some) > 1:
            for name, told in zip(some, _differences([shown[name] for name in some]), strict=True):
                found[name] += f" [{told}]" if told else ""
    return found


def _alike(shown: Mapping[str, str]) -> dict[str, list[str]]:
    """The names by what is shown for them."""
    found: dict[str, list[str]] = {}
    for name, text in shown.items():
        found.setdefault(text, []).append(name)
    return found


def _differences(names: Sequence[str]) -> list[str]:
    """The words of each name that not all of them have at that place; empty where these are many."""
    words = [_TOKEN.findall(name) for name in names]
    if len({len(each) for each in words}) > 1:
        return [""] * len(names)
    places = [place for place, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
    told = [" ".join(dict.fromkeys(each[place] for place in places)) for each in words]
    return told if len(set(told)) == len(told) and max(map(len, told)) <= _DIFFERENCE else [""] * len(names)


def _fitted(shown: Mapping[str, str], room: int, keep_end: bool) -> dict[str, str]:
    """Each in `room` letters, by what differs where a plain cut would make two alike."""
    found = {name: _cut(text, room, keep_end) for name, text in shown.items()}
    for some in _alike(found).values():
        if len(some) > 1:
            texts = [shown[name][::-1] if keep_end else shown[name] for name in some]
            for name, text in zip(some, _windows(texts, room), strict=True):
                found[name] = text[::-1] if keep_end else text
    return found


def _cut(text: str, room: int, keep_end: bool) -> str:
    if len(text) <= room:
        return text
    return f"…{text[-room + 1 :]}" if keep_end else f"{text[: room - 1]}…"


def _windows(texts: Sequence[str], room: int) -> list[str]:
    """The beginning of each and what follows where they part, around an ellipsis."""
    found = list(texts)
    left = [list(range(len(texts)))]
    while left:
        some = left.pop()
        common = _common([texts[number] for number in some])
        start = _word(texts[some[0]], common)
        for number in some:
            found[number] = _joined(texts[number], start, room)
        same = _alike({str(number): found[number] for number in some}).values()
        again = [[int(number) for number in each] for each in same if len(each) > 1]
        # What is one text all the same cannot be parted: a hash does that.
        left += [each for each in again if len(each) < len(some)]
    return found


def _joined(text: str, start: int, room: int) -> str:
    """`text` from `start` on, behind as much of its beginning as there is room for: a third of it at least."""
    head = max(room // 3, room - (len(text) - start))
    if len(text) <= room or start <= head:
        return _cut(text, room, False)
    return f"{text[: head - 1]}…{_cut(text[start:], room - head, False)}"


def _common(texts: Sequence[str]) -> int:
    """How many letters all begin with."""
    first, last = min(texts), max(texts)  # what lies between begins as both do
    return next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


def _word(text: str, place: int) -> int:
    """Where the word begins that `place` is in, if that is near."""
    begin = place
    while begin > 0 and place - begin < _BACK and text[begin - 1].isalnum():
        begin -= 1
    return begin if place - begin < _BACK else place


def _apart(shown: Mapping[str, str], room: int | None) -> dict[str, str]:
    """The same, with a hash where two are alike still."""
    found, digits = dict(shown), 4
    while any(len(some) > 1 for some in _alike(found).values()):
        for some in _alike(found).values():
            for name in some if len(some) > 1 else ():
                mark = f"~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:digits]}"
                text = shown[name] if room is None else _cut(shown[name], max(room - len(mark) - 1, 1), False)
                found[name] = f"{text} {mark}".strip()
        digits += 2
    return found
