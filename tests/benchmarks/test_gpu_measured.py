"""The profiles that an H100 left: the page says what they say, and none refutes a count, a ceiling or a prediction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measured import PAGE, page, profiles
from measured import analysed as analysed_file
from predictions import COUNTED
from report import least_time

from roofline.analysis.analysis import Analysis

ROWS = sorted(profiles())


def analysed(row: str) -> Analysis:
    return analysed_file(profiles()[row])


def test_the_page_is_what_the_profiles_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run `python benchmarks/gpu/measured.py`"


def test_most_rows_of_the_plan_are_there() -> None:
    assert len(ROWS) >= 28


@pytest.mark.parametrize("row", ROWS)
def test_no_step_is_faster_than_was_predicted(row: str) -> None:
    least = least_time(row, analysed(row), json.loads(COUNTED.read_text(encoding="utf-8")))
    assert least is not None
    assert analysed(row).wall > least
    # What was predicted is the `ideal` of the analysis under the datasheet; a measured ceiling is none above it.
    ideal = analysed(row).roofs["ideal"]
    assert ideal is not None
    assert ideal > 0.95 * least


@pytest.mark.parametrize("row", ROWS)
def test_all_kernels_have_ops_and_no_op_is_above_its_roof(row: str) -> None:
    analysis = analysed(row)
    assert analysis.above_ceiling == 0
    assert not [flag for flag in analysis.flags if "unattributed" in flag]
    assert (analysis.coverage["time"] or 0) > 0.999
    assert (analysis.coverage["bytes"] or 0) > 0.995
    assert (analysis.coverage["flops"] or 0) > 0.995
    for phase, products in analysis.products.items():
        # torch's cuDNN attention computes its scores again in the backward pass; nothing else runs twice.
        assert 0.999 < products.executed / products.model < 1.05, phase


@pytest.mark.parametrize("row", ROWS)
def test_the_work_of_a_step_is_that_of_every_other_way_to_run_it(row: str) -> None:
    """Model FLOPs of products do not depend on the backend, the compiler or the precision."""
    *_, mode, batch, _ = row.split("-")
    same = f"bert-torch-{mode}-{batch}-fp32"
    if same not in ROWS:
        pytest.skip(f"no {same} was measured")
    assert set(analysed(row).products) == set(analysed(same).products)
    for phase, products in analysed(row).products.items():
        assert products.model == pytest.approx(analysed(same).products[phase].model, rel=1e-3), phase


def test_files_are_where_the_page_points() -> None:
    assert all(path.parent == Path(PAGE).parents[1] / "profiles" / "h100" for path in profiles().values())
