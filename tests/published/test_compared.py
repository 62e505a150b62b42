"""Profiles by the rows of a preset: who is fastest by which statistic, what is published of the pair, and the means."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from synthetic import step

from roofline import devices
from roofline.core.schema import Profile, Wall
from roofline.errors import InputError
from roofline.published.presets.averages import averages
from roofline.published.presets.compared import PublishedPair, rows

A100 = replace(devices.load("a100-40gb"), name="NVIDIA A100-SXM4-40GB")


def run(backend: str, *milliseconds: float, **changes: Any) -> Profile:
    """A step of synthetic.py as BERT fit, whose plain steps took these times."""
    steps = tuple(each * 1e-3 for each in milliseconds) or (20e-3,) * 10
    fields = {"preset": "keras-benchmark", "model": "bert", "mode": "train", "batch": 32, "seq": 512}
    return step(backend=backend, **fields | {"wall": Wall(steps=steps)} | changes)


def test_the_statistic_decides_and_the_median_is_kept() -> None:
    """torch: mean (4 x 10 + 60) / 5 = 20 ms, median 10 ms. keras-jax: both 15 ms, which is 20/15 faster by the mean."""
    (row,) = rows("keras-benchmark", [run("torch", 10, 10, 10, 10, 60), run("keras-jax", *[15] * 5)]).compared
    assert row.row.task == "BERT fit"
    assert row.means == pytest.approx((20e-3, 15e-3))
    assert (row.ranking.fastest, row.fastest_by_median) == (1, 0)
    (pair,) = row.pairs
    assert (pair.a, pair.b) == (0, 1)
    assert pair.factor == pytest.approx(20 / 15)
    assert pair.ranked.comparison.speedup == pytest.approx(10 / 15)


def test_runs_of_another_size_are_another_row() -> None:
    """A small model is not the fastest of the large ones, with which nothing compares."""
    found = rows("keras-benchmark", [run(each, size=size) for each in ("torch", "jax") for size in ("tiny", "base")])
    assert [[one.profile.size for one in row.ranking.runs] for row in found.compared] == [["base"] * 2, ["tiny"] * 2]


def test_the_sizes_of_the_columns_are_one_row() -> None:
    """Native BERT is `base`, KerasNLP's `base-tanh`, as the preset asks: what they differ in is parity's to say."""
    sizes = {"torch": "base", "keras-jax": "base-tanh"}
    found = rows("keras-benchmark", [run(backend, size=size) for backend, size in sizes.items()])
    (row,) = found.compared
    assert {one.profile.backend: one.profile.size for one in row.ranking.runs} == sizes
    assert not any(difference.setting == "size" for each in row.besides for difference in each.differences)
    assert len(rows("keras-benchmark", [run("torch", size="published"), run("torch", size="base")]).compared) == 1
    assert [each.comparable for each in row.pairs] == [True]


def test_a_row_is_a_model_a_mode_its_sizes_and_a_device() -> None:
    found = rows(
        "keras-benchmark",
        [
            run("torch"),
            run("torch", mode="infer", batch=256),
            run("keras-jax", mode="infer", batch=256),
            run("keras-jax", batch=2),
            run("keras-jax", device=A100),
            run("jax", model="mlp"),
            run("jax", mode="generate"),
            run("keras-jax"),
        ],
    )
    assert [[run.profile.backend for run in row.ranking.runs] for row in found.compared] == [["torch", "keras-jax"]] * 2
    assert [row.row.task for row in found.compared] == ["BERT fit", "BERT predict"], "in the order of the preset"
    assert [(each.profile.batch, each.profile.device.name) for each in found.alone] == [(2, "Round Device"),
                                                                                        (32, A100.name)]  # fmt: skip
    assert [each.reason for each in found.strangers] == [
        "keras-benchmark did not run mlp; it has: bert, gemma, mistral, segment-anything, stable-diffusion.",
        "keras-benchmark has no generate of bert: use --mode train or infer.",
    ]


def test_the_table_beside_the_pair() -> None:
    """BERT fit on the A100: 693.37 ms native eager; the other column's figure is read from the table by its name."""
    (row,) = rows("keras-benchmark", [run("torch", *[20] * 5), run("torch-compile", *[10] * 5)]).compared
    (pair,) = row.pairs
    (published,) = pair.published
    assert published == PublishedPair("A100 40 GB", 693.37e-3, 202.43e-3, False, False, True)
    assert published.ratio == pytest.approx(693.37 / 202.43)


def test_several_published_runs_are_one_time_and_all_epochs_are_steps() -> None:
    """Of 10,000 steps on the i9: PyTorch (15.28 + 15.22 + 15.25) / 3 = 15.25 s, JAX (9.26 + 8.98 + 9.01) / 3 s."""
    mlp = {"preset": "simplechains", "model": "mlp", "batch": 10_000, "seq": None}
    (row,) = rows("simplechains", [run("torch", *[2] * 5, **mlp), run("jax", *[1] * 5, **mlp)]).compared
    first = row.pairs[0].published[0]
    assert first.hardware == "i9-10980XE"
    assert (first.a, first.b) == pytest.approx((1.525e-3, 27.25 / 3 * 1e-4))
    assert first.citable


def test_a_backend_without_a_column_has_nothing_published() -> None:
    (row,) = rows("keras-benchmark", [run("torch", *[20] * 5), run("jax", *[10] * 5)]).compared
    assert row.pairs[0].published == ()


def test_means_of_factors_and_what_they_leave_out() -> None:
    """torch / keras-jax: 40/10 = 4 in fit, 10/20 = 0.5 in predict: (4 + 0.5)/2 = 2.25, and sqrt(4 x 0.5) = 1.414.

    Left out: batch 1 of fit, in two precisions; batch 2, with two runs of keras-jax; batch 4, with torch only.
    """
    predict: dict[str, Any] = {"mode": "infer", "batch": 256}
    found = rows(
        "keras-benchmark",
        [
            run("keras-jax", *[10] * 5),
            run("torch", *[40] * 5),
            run("keras-jax", *[20] * 5, **predict),
            run("torch", *[10] * 5, **predict),
            run("keras-jax", *[10] * 5, batch=1, precision="bf16"),
            run("torch", *[10] * 5, batch=1, precision="fp32"),
            run("keras-jax", *[10] * 5, batch=2),
            run("keras-jax", *[11] * 5, batch=2),
            run("torch", *[10] * 5, batch=2),
            run("torch", *[10] * 5, batch=4),
        ],
    )
    (mean,) = averages(found)
    assert (mean.baseline, mean.backend) == ("torch", "keras-jax"), "native PyTorch is the page's baseline"
    assert mean.mean is not None
    assert (mean.mean.rows, mean.mean.arithmetic, mean.mean.geometric) == (2, 2.25, pytest.approx(2**0.5))
    assert (mean.not_comparable, mean.several, mean.absent) == (1, 1, 1)


def test_of_two_rows_that_are_not_comparable_there_is_no_mean() -> None:
    found = rows(
        "keras-benchmark",
        [
            run(backend, batch=batch, precision=precision)
            for batch in (1, 2)
            for backend, precision in (("torch", "fp32"), ("keras-jax", "bf16"))
        ],
    )
    (mean,) = averages(found)
    assert (mean.mean, mean.not_comparable) == (None, 2)
    assert averages(rows("keras-benchmark", [run("torch"), run("keras-jax")])) == (), "of one row"


def test_a_profile_that_was_only_counted_is_told_so() -> None:
    counted = replace(run("jax"), profiled=None, wall=Wall(steps=()))
    with pytest.raises(InputError, match="counted and not timed"):
        rows("keras-benchmark", [run("torch"), counted])


def test_pairs_stand_in_the_order_of_the_means() -> None:
    """Means 40, 24 and 10 ms, medians 20, 24 and 10: the next fastest by the statistic comes first, and not by ours."""
    runs = [run("torch", *[20] * 4, 120), run("torch-compile", *[24] * 5), run("keras-jax", *[10] * 5)]
    (row,) = rows("keras-benchmark", runs).compared
    assert [pair.factor for pair in row.pairs] == pytest.approx([2.4, 4.0])
    assert [row.ranking.names[pair.a] for pair in row.pairs] == ["torch-compile", "torch"]
    assert [pair.ranked.names[0] for pair in row.pairs] == ["torch-compile", "torch"], "with its own causes"


def test_prompts_of_another_batch_are_told_of_the_columns_that_had_them() -> None:
    asked: dict[str, Any] = {"model": "segment-anything", "mode": "infer", "batch": 4, "seq": None}
    (row,) = rows("keras-benchmark", [run("torch", **asked), run("keras-jax", **asked)]).compared
    told = {each.column.name: each.apart_in_row for each in row.besides if each.column}
    assert "one prompt for its four images" in " ".join(told["Native PyTorch (eager)"])
    assert told["Keras 3 (JAX)"] == ()
