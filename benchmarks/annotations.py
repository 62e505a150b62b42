"""The pages of docs/annotations, one for each annotation: `make annotations` writes them.

A page is made of the annotation (roofline/comparison/annotations) and of the accounts of measured pairs that show it,
planted ones (plants.py) or profiles that ship. A test holds the pages to what this writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import fill

import plants

from roofline import units
from roofline.comparison.account.account import account
from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.annotation import Annotation, Pattern
from roofline.comparison.account.definitions import DEFINITIONS
from roofline.comparison.account.row import Row
from roofline.comparison.account.words import class_name
from roofline.comparison.terms import Comparison, compare
from roofline.core.schema import load
from roofline.core.shipped import paths

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "annotations"
WIDTH = 120
CODE = "    "

FRAMEWORKS = {"torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}

HEAD = """\
# Annotations

A row of an [account](../explaining.md) says what was seen. Where that is the definition of something that has a name,
the name stands on the row. A row without one is as true. No row has one that may be noise: an interval that holds 0, or
a part of the gap that is less than what the same ops and the rest of the host differ by.

Advice is given where a measured pair shows what it gains, in that framework. Each name is one file of
`roofline/comparison/annotations/`; these pages are made of them and of the pairs by `make annotations`.

| name | what it is | measured in |
| --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Make each page, by the name of its file."""
    index = "".join(
        f"| [{name}]({name}.md) | {annotation.title} | {', '.join(FRAMEWORKS[each] for each in annotation.pairs)} |\n"
        for name, annotation in known_annotations().items()
    )
    made = {"index.md": HEAD + index}
    for name, annotation in known_annotations().items():
        made[f"{name}.md"] = "\n\n".join(_page(name, annotation)) + "\n"
    return made


def _page(name: str, annotation: Annotation) -> Iterator[str]:
    """Yield the paragraphs of a page."""
    yield f"# {name}"
    yield annotation.title
    yield f"> {annotation.sentence(Row(kind='only'), ('A', 'B'))}"
    yield "## What a row shows"
    shown = [_pattern(pattern) for pattern in annotation.patterns]
    if annotation.definition:
        definition = DEFINITIONS[annotation.definition].__doc__ or ""
        shown.append(" ".join(definition.split()).removeprefix("Return whether "))
    yield "\n".join(_wrapped(f"- {words[0].upper()}{words[1:]}", "  ") for words in shown)
    if annotation.pairs:
        yield "## Measured"
        for framework, pair in annotation.pairs.items():
            yield from _measured(name, framework, pair)
    if annotation.advice:
        yield "## What to do"
        yield "\n".join(
            _wrapped(f"- {FRAMEWORKS[framework]}: {annotation.advice_in(framework)}.", "  ")
            for framework in annotation.advice
        )
    switch = f"; `--prove` turns a switch of the kind `{annotation.switch}`" if annotation.switch else ""
    yield _wrapped(f"In the JSON its finding has the rule `{annotation.rule}`{switch}.")


def _measured(name: str, framework: str, pair: str) -> Iterator[str]:
    """Yield what a pair of runs shows: the row that has most of it, and its part of the difference."""
    comparison = _compared(pair)
    rows = [row for row in account(comparison).rows if name in row.annotations]
    row = max(rows, key=lambda row: abs(row.seconds or 0.0))
    whole = units.seconds(abs(comparison.difference))
    a, b = (units.seconds(run.wall) for run in (comparison.a, comparison.b))
    if row.seconds is None:
        part = f"They differ by {whole}; what of it this setting costs is not in its row:"
    else:
        share = units.percent(row.seconds / comparison.difference, 0)
        part = f"Of {whole} that they differ by, the row holds {units.seconds(abs(row.seconds))} ({share}):"
    yield _wrapped(f"**{FRAMEWORKS[framework]}**, {_runs(pair)}: A takes {a} per step, B {b}. {part}")
    yield fill(row.text, WIDTH, initial_indent=CODE, subsequent_indent=CODE, break_long_words=False)


def _runs(pair: str) -> str:
    """Say which runs a pair is."""
    if " " in pair:
        a, b = pair.split()
        return f"`{a}` (A) and `{b}` (B)"
    planted = plants.pairs(pair.partition("/")[0])[pair.partition("/")[2]]
    a, b = (planted.steps[side] for side in "ab")
    return f"`{pair}` ({a} and {b})" if a != b else f"`{pair}` ({a} in both)"


@cache
def _compared(pair: str) -> Comparison:
    if " " in pair:
        a, b = (load(paths()[name]) for name in pair.split())
        return compare(a, b)
    name, _, planted = pair.partition("/")
    return plants.pairs(name)[planted].compared()


def _pattern(pattern: Pattern) -> str:
    """Say what a pattern asks for."""
    if pattern.setting is not None:
        between = "" if pattern.values is None else f" between `{pattern.values[0]}` and `{pattern.values[1]}`"
        return f"the setting `{pattern.setting}` differs{between}"
    if pattern.gap is not None:
        return f'a part of the gap: "{pattern.gap}"'
    words = "ops that one run has where the other has others or none"
    words += f", in the {pattern.phase} pass" if pattern.phase else ""
    words += f", at `{pattern.place}`" if pattern.place else ""
    words += ", in a loop" if pattern.loop else ""
    more = " and ".join(f"`{names}`" for names in pattern.more)
    words += f": the run that spends more executes {more} more often" if more else ""
    words += f", and `{pattern.less}` less often" if pattern.less else ""
    classes = " and ".join(map(class_name, pattern.more_classes))
    words += f": the run that spends more executes more {classes} ops" if classes else ""
    words += f", and fewer {class_name(pattern.less_class)} ops" if pattern.less_class else ""
    words += f", and the other run {pattern.other_run}" if pattern.other_run else ""
    return words + ("; they have most of the row's time" if pattern.share == "most" else "")


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def main() -> None:
    """Write the pages that are not as they should be, and remove those of annotations that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for file in FOLDER.glob("*.md"):
        if file.name not in made:
            file.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{len(made)} pages in {FOLDER}")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit("usage: annotations.py [--write]")
    main()
