"""Shorten the names of one table to the room that there is, so that no two of them are alike.

A name is cut in its middle where a cut at its end would make two alike: `vectorized_elementwise<Gelu(bf16)>` and
`vectorized_elementwise<Mul(bf16)>` begin alike. Names that no cut keeps apart get the first digits of a hash of the
whole name (`~3fa2`), which are the same in every table.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

from roofline.content.names.kernels import brief
from roofline.content.wording import plain
from roofline.units import cut

#: No name gets less room, however narrow the page is.
LEAST = 12
#: Letters of what differs, beside a short name that another kernel has too.
_DIFFERENCE = 40
#: How far a window goes back to the beginning of a word.
_BACK = 12
_TOKEN = re.compile(r"#?\w+|[^\w\s]")


def distinct(
    names: Sequence[str], room: int | None = None, by: str = "", sanitize: Callable[[str], str] = plain
) -> list[str]:
    """Write each of `names` so that different names stay different.

    room: letters for each, at least LEAST; None: as many as it takes. by: the kind of the names: kernels are shortened,
    scopes and lines of source are cut at their beginning. sanitize: make a text fit for the format; two names may
    become one by that.
    """
    unique = list(dict.fromkeys(names))
    shown = {name: sanitize(name) for name in unique}
    if by in ("kernel", "op"):
        shown = _short({name: shown[name] for name in unique}, by)
    if room is not None:
        shown = _fitted(shown, max(room, LEAST), by in ("scope", "source"))
    shown = _apart(shown, room if room is None else max(room, LEAST))
    return [shown[name] for name in names]


def _short(shown: Mapping[str, str], by: str) -> dict[str, str]:
    """Shorten kernel names; where two become one, add more of their template's arguments, or their differences."""
    # An op is called by its own name; where the trace has none, by that of its kernel.
    kernels = [name for name in shown if by == "kernel" or shown[name].startswith(("void ", "_Z"))]
    texts = dict(shown)
    texts |= {name: brief(shown[name]) for name in kernels}
    namesakes_by_text = _alike(texts)
    texts |= {name: brief(shown[name], True) for name in kernels if len(namesakes_by_text[texts[name]]) > 1}
    for namesakes in _alike(texts).values():
        if len(namesakes) > 1:
            for name, difference in zip(namesakes, _differences([shown[name] for name in namesakes]), strict=True):
                texts[name] += f" [{difference}]" if difference else ""
    return texts


def _alike(shown: Mapping[str, str]) -> dict[str, list[str]]:
    """Group the names by their shown text."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in shown.items():
        names_by_text.setdefault(text, []).append(name)
    return names_by_text


def _differences(names: Sequence[str]) -> list[str]:
    """Find the words of each name in which the names differ; "" for each where these words are many."""
    words = [_TOKEN.findall(name) for name in names]
    if len({len(name_words) for name_words in words}) > 1:
        return [""] * len(names)
    places = [place for place, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
    differences = [" ".join(dict.fromkeys(name_words[place] for place in places)) for name_words in words]
    return (
        differences
        if len(set(differences)) == len(differences) and max(map(len, differences)) <= _DIFFERENCE
        else [""] * len(names)
    )


def _fitted(shown: Mapping[str, str], room: int, keep_end: bool) -> dict[str, str]:
    """Fit each text into `room` letters, by its differing part where a plain cut would make two alike."""
    fitted = {name: cut(text, room, keep_end) for name, text in shown.items()}
    for namesakes in _alike(fitted).values():
        if len(namesakes) > 1:
            texts = [shown[name][::-1] if keep_end else shown[name] for name in namesakes]
            for name, text in zip(namesakes, _windows(texts, room), strict=True):
                fitted[name] = text[::-1] if keep_end else text
    return fitted


def _windows(texts: Sequence[str], room: int) -> list[str]:
    """Show the beginning of each text and the part where they diverge, around an ellipsis."""
    windows = list(texts)
    groups = [list(range(len(texts)))]
    while groups:
        group = groups.pop()
        common = _common([texts[number] for number in group])
        start = _word(texts[group[0]], common)
        for number in group:
            windows[number] = _joined(texts[number], start, room)
        same_text = _alike({str(number): windows[number] for number in group}).values()
        unresolved = [[int(number) for number in numbers] for numbers in same_text if len(numbers) > 1]
        # What is one text all the same cannot be parted: a hash does that.
        groups += [numbers for numbers in unresolved if len(numbers) < len(group)]
    return windows


def _joined(text: str, start: int, room: int) -> str:
    """Show `text` from `start` on, after as much of its beginning as fits: a third of `room` at least."""
    head = max(room // 3, room - (len(text) - start))
    if len(text) <= room or start <= head:
        return cut(text, room)
    return f"{text[: head - 1]}…{cut(text[start:], room - head)}"


def _common(texts: Sequence[str]) -> int:
    """Count the letters that all texts begin with."""
    first, last = min(texts), max(texts)  # what lies between begins as both do
    return next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


def _word(text: str, place: int) -> int:
    """Find the start of the word around `place`, if it is near."""
    begin = place
    while begin > 0 and place - begin < _BACK and text[begin - 1].isalnum():
        begin -= 1
    return begin if place - begin < _BACK else place


def _apart(shown: Mapping[str, str], room: int | None) -> dict[str, str]:
    """Add a hash to the texts that are still alike."""
    marked, digits = dict(shown), 4
    while any(len(namesakes) > 1 for namesakes in _alike(marked).values()):
        for namesakes in _alike(marked).values():
            for name in namesakes if len(namesakes) > 1 else ():
                mark = f"~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:digits]}"
                text = shown[name] if room is None else cut(shown[name], max(room - len(mark) - 1, 1))
                marked[name] = f"{text} {mark}".strip()
        digits += 2
    return marked
