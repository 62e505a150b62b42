"""Causes planted on purpose (`make plants`): what accounts of the saved pairs show, and the pages of what has a name.

See docs/plants.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def script(name: str) -> ModuleType:
    """A file of benchmarks/, which is no package: what is measured and what is tested is judged by one code."""
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)  # dataclasses look their module up, and scripts one another
    spec.loader.exec_module(module)
    return module


plants = script("plants")
written = script("annotations")
#: Planted causes that no account shows, each with a reason in docs/plants.md.
NOT_SHOWN = {
    "first": {"item"},
    "second": {
        "jax-decoder-sleep",
        "unet-pieces-and-checks",
        "jax-decoder-no-fusion-against-sleep",
    },
    "third": {"graph-anomaly-train"},
    "fourth": {"recommender-metric-and-loader"},
    "fifth": {"spectrum-double-and-dithered"},
    "sixth": {"gpt-scaled-and-smoothing-train"},
    "seventh": {"tabular-retraced-train"},
}
#: Undisturbed pairs whose rows hold about the difference, at least, and how many have such a share.
IN_SIZE = {
    "first": (22, 27),
    "second": (27, 34),
    "third": (20, 26),
    "fourth": (12, 22),
    "fifth": (23, 41),
    "sixth": (4, 7),
    "seventh": (13, 17),
}
#: Pairs that were planted and are refused, as what one run asks for more can be why it is slower: without that share of
#: its step it is not. No pair that a manifest calls refused is an explanation by this rule.
REFUSED = {
    "fifth": {"rivals-watched-train", "tiles-predicted-train"},
    "sixth": {"gpt-from-the-start", "lru-merging", "lru-wide-and-merging"},
    "seventh": {"conformer-still-dropping-train", "swin-half-precision"},
}


#: How many planted causes of each set have a name on a row that shows them. The others' rows are as true.
NAMED = {"first": 31, "second": 41, "third": 21, "fourth": 29, "fifth": 29, "sixth": 12, "seventh": 18}


@cache
def judged(name: str) -> list[Any]:
    """Judge the pairs of a set, once for all tests of it."""
    return [plants.judge(pair) for pair in plants.pairs(name).values()]


#: `make test` judges two sets, which have every kind of pair and of cause, on PyTorch, JAX and TensorFlow, and
#: `make test-all` the others too.
JUDGED = ("first", "sixth")
sets = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in JUDGED else pytest.mark.thorough) for name in plants.SETS]
)
some_and_all = pytest.mark.parametrize(
    "names", [JUDGED, pytest.param(tuple(plants.SETS), marks=pytest.mark.thorough)], ids=["some", "all"]
)


@sets
def test_planted_causes_are_shown(name: str) -> None:
    pairs = plants.pairs(name)
    assert all(pair.measured for pair in pairs.values())
    verdicts = judged(name)
    for verdict in verdicts:
        total = sum(row.seconds or 0.0 for row in verdict.account.rows)
        assert total == pytest.approx(verdict.comparison.difference, abs=1e-12), verdict.pair.name
    planted = [verdict for verdict in verdicts if verdict.pair.kind == "planted"]
    assert {verdict.pair.name for verdict in planted if None in verdict.shown} == NOT_SHOWN[name]
    calm = [verdict for verdict in planted if verdict.share is not None and not verdict.pair.disturbed]
    assert (sum(bool(verdict.in_size) for verdict in calm), len(calm)) == IN_SIZE[name]
    assert {verdict.pair.name for verdict in planted if verdict.refused} == REFUSED.get(name, set())
    assert all(verdict.refused for verdict in verdicts if verdict.pair.kind == "refused")


@sets
def test_no_null_has_a_name(name: str) -> None:
    nulls = [verdict for verdict in judged(name) if verdict.pair.kind == "null"]
    named = {verdict.pair.name: [row for row in verdict.account.rows if row.annotations] for verdict in nulls}
    assert named == {name: [] for name in named}


@sets
def test_planted_causes_have_names(name: str) -> None:
    named = [
        any(plants.names(row, cause.shows) and row.annotations for row in verdict.account.rows[: plants.FIRST])
        for verdict in judged(name)
        if verdict.pair.kind == "planted"
        for cause in verdict.pair.causes
    ]
    assert sum(named) >= NAMED[name]


@some_and_all
def test_no_run_of_one_process_is_settled(names: tuple[str, ...]) -> None:
    nulls = [pair for name in names for pair in plants.pairs(name).values() if pair.kind == "null"]
    assert len(nulls) >= 6 * len(names)
    headlines = [plants.headline(pair.compared(), ("A", "B")) for pair in nulls]
    assert {headline.settled for headline in headlines} == {None}
    assert not [headline.text for headline in headlines if "slower than" in headline.text]


@some_and_all
def test_pages_are_current(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of a pair of another set is taken from the page."""
    measure = written._measured

    def measured(name: str, framework: str, pair: str) -> Iterator[str]:
        if " " in pair or pair.partition("/")[0] in names:
            return measure(name, framework, pair)
        paragraphs = (written.FOLDER / f"{name}.md").read_text(encoding="utf-8").split("\n\n")
        (first,) = [n for n, text in enumerate(paragraphs) if text.startswith(f"**{written.FRAMEWORKS[framework]}**")]
        return iter(paragraphs[first : first + 2])

    monkeypatch.setattr(written, "_measured", measured)
    made = written.pages()
    assert {file.name for file in written.FOLDER.iterdir()} == set(made), "make annotations"
    for name, text in made.items():
        assert (written.FOLDER / name).read_text(encoding="utf-8") == text, f"{name}: make annotations"
