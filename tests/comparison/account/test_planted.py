"""Causes planted on purpose (`make plants`): what accounts of the saved pairs show. See docs/plants.md."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def _module() -> ModuleType:
    """benchmarks/plants.py, which is no package: what is measured and what is tested is judged by one code."""
    spec = spec_from_file_location("plants", ROOT / "benchmarks" / "plants.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


plants = _module()
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


#: `make test` judges four sets, with pairs on PyTorch, JAX and TensorFlow, and `make test-all` the others too.
sets = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("first", "third", "sixth", "seventh") else pytest.mark.thorough)
        for name in plants.SETS
    ],
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


def test_no_run_of_one_process_is_settled() -> None:
    nulls = [pair for name in plants.SETS for pair in plants.pairs(name).values() if pair.kind == "null"]
    assert len(nulls) > 30
    headlines = [plants.headline(pair.compared(), ("A", "B")) for pair in nulls]
    assert {headline.settled for headline in headlines} == {None}
    assert not [headline.text for headline in headlines if "slower than" in headline.text]
