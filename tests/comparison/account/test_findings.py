"""Findings: the named rows of an account, by the names that earlier versions had, with advice where it was measured."""

from __future__ import annotations

from dataclasses import replace as change

import pytest
from msgspec.structs import replace
from synthetic import LAYER, NORM, UNFUSED_NORM, instead, step

from roofline.comparison.ranking import rank
from roofline.core.schema import Profile
from roofline.renderers.comparison import json


def unfused(**changes: object) -> Profile:
    return step(instead(LAYER * 4, NORM.name, UNFUSED_NORM), **changes)


def test_a_named_row_is_a_finding_and_others_are_none() -> None:
    (pair,) = rank([unfused(), step()], as_given=True).pairs
    (row,) = (row for row in pair.account.rows if row.annotations)
    assert row.annotations == ("norm-written-out",)
    assert pair.findings == (row,)
    (finding,) = json.pair(pair)["findings"]
    assert (finding["rule"], finding["seconds"], finding["text"]) == ("fusion", row.seconds, row.text)
    assert finding["label"].startswith("norm-written-out: ")
    assert sum(part["seconds"] for part in finding["terms"]) == pytest.approx(finding["seconds"])


@pytest.mark.parametrize(("framework", "words"), [("torch", "torch.nn.functional.layer_norm"), ("other", "")])
def test_advice_is_of_the_framework_of_the_run_that_spends_more(framework: str, words: str) -> None:
    for profiles in ([unfused(framework=framework), step()], [step(), unfused(framework=framework)]):
        (pair,) = rank(profiles, as_given=True).pairs
        (row,) = (row for row in pair.account.rows if row.annotations)
        assert words in row.advice
        assert bool(row.advice) == bool(words)


def test_what_has_no_seconds_is_no_finding() -> None:
    (pair,) = rank([unfused(), step()], as_given=True).pairs
    rows = tuple(replace(row, seconds=None) for row in pair.account.rows)
    assert change(pair, account=replace(pair.account, rows=rows)).findings == ()
