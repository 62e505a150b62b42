"""What `compare --preset` prints of saved profiles: a paragraph per row, and nothing that is not in them.

In BERT fit, keras-jax runs the four layers of synthetic.py, 4 x (1200 + 7 x 10) = 5.08 ms; torch runs their layer norms
in six ops: 180 µs instead of 30 and 5 launches more, which is 4 x (150 + 50) = 800 µs.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import handmade
import pytest
from msgspec.structs import replace
from synthetic import LAYER, UNFUSED_NORM, instead, step

from roofline import plugins
from roofline.core.schema import Api, Profile, Wall
from roofline.published.presets.compared import PresetRows, rows
from roofline.renderers.preset import json as as_json
from roofline.renderers.preset import markdown, text

Golden = Callable[[str, str], None]
FORMATS = plugins.names("roofline.renderers.preset")
FIT: dict[str, Any] = {"preset": "keras-benchmark", "model": "bert", "mode": "train", "batch": 32, "seq": 512}
PREDICT = FIT | {"mode": "infer", "batch": 256}
UNFUSED = instead(LAYER * 4, "aten::native_layer_norm", UNFUSED_NORM)


def longer(profile: Profile, number: int, factor: float) -> Profile:
    """The same with one plain step that took longer."""
    steps = list(profile.wall.steps)
    steps[number] *= factor
    return replace(profile, wall=Wall(steps=tuple(steps)))


def benchmark() -> PresetRows:
    """Fit: a change, and a run that is not comparable. Predict: another fastest by the median."""
    return rows(
        "keras-benchmark",
        [
            step(UNFUSED, **FIT),
            step(backend="keras-jax", **FIT),
            step(backend="keras-tensorflow", **FIT | {"precision": "bf16"}),
            longer(step(**PREDICT), 9, 3.0),
            step(backend="keras-jax", host=11, **PREDICT),
            step(backend="keras2", model="gemma", mode="train", batch=8, seq=128, preset="keras-benchmark"),
            step(backend="jax", model="mlp"),
        ],
    )


def joined(found: PresetRows) -> str:
    return " ".join(text.render(found).split())


@pytest.mark.parametrize(("name", "ending"), [("text", "txt"), ("markdown", "md")])
def test_output(name: str, ending: str, golden: Golden) -> None:
    golden(f"preset-rows.{ending}", plugins.load("roofline.renderers.preset", name, "format").render(benchmark()))


def test_the_paragraph_is_made_of_the_account() -> None:
    found = benchmark()
    told = joined(found)
    rows = [row for row in found.compared[0].pairs[1].ranked.account.rows if row.seconds is not None]
    # 600 µs of six ops instead of one, and 200 µs of the host between them.
    assert rows[0].seconds == pytest.approx(800e-6)
    assert f"Why: +800 µs, 100 % of the difference: {rows[0].text}" in told
    assert "torch takes 5.88 ms, 1.16x as long in these runs; the two are comparable." in told
    assert "By the medians: torch took 1.16x longer than keras-jax in these two runs (5.88 against 5.08 ms" in told
    assert "Native PyTorch (eager) 693 ms, Keras 3 (JAX) 222 ms, 3.12x as long; that is another device" in told


def test_a_pair_that_is_not_comparable_says_why_and_gets_no_cause() -> None:
    found = benchmark()
    told = joined(found)
    assert "keras-tensorflow takes 5.08 ms and is not comparable with it, so no cause is named: Different" in told
    pair = json.loads(as_json.render(found))["rows"][0]["pairs"][0]
    assert (pair["comparison"], pair["factor"], pair["median_factor_ci95"]) == (None, None, None)
    assert pair["parity"]["verdict"] == "not comparable"


def test_where_the_median_says_otherwise_it_is_told() -> None:
    """torch: nine steps of 5.08 ms and one of thrice that, 6.1 ms on average; keras-jax: 28 launches of 1 µs more."""
    told = joined(benchmark())
    assert (
        "keras-jax has the least mean, 5.11 ms of 10 plain steps; the least median is that of torch, 5.08 ms against "
        "5.11 ms. torch takes 6.10 ms, 1.19x as long" in told
    )


def test_where_nothing_differs_or_steps_are_few_that_is_said() -> None:
    alike = [step(**FIT), step(backend="keras-jax", **FIT)]
    assert "Nothing differs: each row of the account is 0." in joined(rows("keras-benchmark", alike))
    few = [replace(run, wall=Wall(steps=run.wall.steps[:2])) for run in alike]
    told = joined(rows("keras-benchmark", few))
    assert "No part of it can be separated from noise: that needs 3 plain and 3 profiled steps of each." in told
    assert "Why:" not in told


def test_the_document_holds_the_numbers() -> None:
    """The median's factor of fit, 5.88 / 5.08, lies in its interval; its pair closes as in the JSON of `compare`."""
    found = json.loads(as_json.render(benchmark()))
    fit, predict = found["rows"]
    assert [run["backend"] for run in fit["runs"]] == ["torch", "keras-jax", "keras-tensorflow"]
    assert (fit["fastest"], predict["fastest"], predict["fastest_by_median"]) == (1, 1, 0)
    pair = fit["pairs"][1]
    assert pair["factor"] == pytest.approx(5.88 / 5.08)
    low, high = pair["median_factor_ci95"]
    assert low <= pair["comparison"]["speedup"] <= high
    closing = sum(each["seconds"] or 0.0 for each in pair["comparison"]["account"])
    assert closing == pytest.approx(pair["comparison"]["difference"])
    assert fit["runs"][0]["preset"]["column"] == "Native PyTorch (eager)"
    assert [each["backend"] for each in found["alone"]] == ["keras2"]
    assert [each["backend"] for each in found["of_no_row"]] == ["jax"]
    # torch / keras-jax: 1.157 in fit, and 6.1 / 5.11 in predict
    (mean,) = found["means"]
    assert mean["arithmetic"] == pytest.approx((pair["factor"] + predict["pairs"][0]["factor"]) / 2)
    assert mean["geometric"] == pytest.approx((pair["factor"] * predict["pairs"][0]["factor"]) ** 0.5)


@pytest.mark.parametrize("hostile", handmade.HOSTILE)
@pytest.mark.parametrize("name", FORMATS)
def test_hostile_names_stay_text(name: str, hostile: str) -> None:
    """Wherever a file can put a name: of the backend, the device, blocks, switches, and a model that is of no row."""
    profile = handmade.hostile(hostile)
    device = replace(profile.device, name=hostile)
    inside = replace(profile, **FIT | {"model": "bert", "options": {hostile: hostile}})
    other = step(**FIT, device=device, backend=f"{hostile}2", switches={"input": hostile}, size=hostile)
    alone = replace(inside, batch=7, precision=hostile)
    check(name, rows("keras-benchmark", [inside, other, alone, profile]))


@pytest.mark.parametrize("hostile", handmade.HOSTILE)
@pytest.mark.parametrize("name", FORMATS)
def test_hostile_rows_stay_text(name: str, hostile: str) -> None:
    """Nobody's words decide here what is said: the names stand in sentences too."""
    found = rows("keras-benchmark", [step(UNFUSED, **FIT), step(backend=hostile, **FIT)])
    (row,) = found.compared
    (pair,) = row.ranking.pairs
    assert pair.comparison.parity.verdict != "not comparable"
    told = tuple(
        replace(each, text=hostile, place=hostile, scopes=(hostile,), advice=hostile) for each in pair.account.rows
    )
    account = replace(pair.account, rows=told)
    ranking = dataclasses.replace(row.ranking, pairs=(dataclasses.replace(pair, account=account),))
    check(name, dataclasses.replace(found, compared=(dataclasses.replace(row, ranking=ranking),)))


def check(name: str, found: PresetRows) -> None:
    """What a format prints holds no control characters, and nothing that acts."""
    out = plugins.load("roofline.renderers.preset", name, "format").render(found)
    assert all(c.isprintable() or c == "\n" for c in out)
    if name == "text":
        assert max(map(len, out.splitlines())) <= 100
    elif name == "json":
        assert out.isascii()
        json.loads(out)
    else:
        assert "<script" not in out
        body = out.replace("\\\\", "")
        assert not re.search(r"(?<!\\)[`\[|]", body)
        assert "://" not in body


def test_a_row_is_one_paragraph_in_markdown() -> None:
    found = benchmark()
    paragraphs = markdown.render(found).split("\n\n")
    assert [part.startswith("**") for part in paragraphs] == [False, True, True, False, False]


def fits(**apis: Api | None) -> str:
    """Two runs of fit: torch's plain steps take 5.88 ms, those of keras-jax 5.08 ms."""
    runs = [step(UNFUSED, **FIT), step(backend="keras-jax", **FIT)]
    return joined(rows("keras-benchmark", [replace(run, api=apis.get(run.backend.replace("-", "_"))) for run in runs]))


def test_what_the_benchmark_timed_is_compared_where_all_have_it() -> None:
    """Trainer.train 6 ms, fit 9 ms: now torch is faster, 9 / 6. Of the bare steps the medians say the opposite."""
    fit = Api(name="fit", steps=(9e-3,) * 3, data="tf.data", waiting=1e-3)
    told = fits(torch=Api(name="Trainer.train", steps=(6e-3,) * 3), keras_jax=fit)
    assert "torch has the least mean, 6.00 ms of 3 steps of Trainer.train; the least median is that of keras" in told
    assert "The means are those of what the benchmark timed: torch Trainer.train and keras-jax fit." in told
    assert "Of keras-jax, fit takes 3.92 ms more per step than the bare step" in told
    assert "+1.00 ms data input, in which it waits for tf.data, and +2.92 ms host time" in told
    assert "keras-jax takes 9.00 ms, 1.50x as long" in told
    assert "By the medians of the bare steps: torch took 1.16x longer than keras-jax" in told


def test_else_the_bare_steps_are_and_that_is_said() -> None:
    told = fits(keras_jax=Api(name="fit", steps=(9e-3,) * 3))
    assert "keras-jax has the least mean, 5.08 ms of 10 plain steps." in told
    assert "What the benchmark timed was measured only for keras-jax, so the means are those of the bare steps." in told
    assert "the benchmark timed was" not in fits()


def test_a_loop_around_the_bare_step_is_what_the_benchmark_timed_there() -> None:
    """Segment Anything's native columns are plain loops: 5.88 ms against fit's 9 ms."""
    asked = {"preset": "keras-benchmark", "model": "segment-anything", "mode": "train", "batch": 1}
    fit = Api(name="fit", steps=(9e-3,) * 3)
    runs = [step(UNFUSED, **asked), replace(step(backend="keras-jax", **asked), api=fit)]
    found = rows("keras-benchmark", runs)
    told = joined(found)
    assert (
        "The means are those of what the benchmark timed: torch a loop around the bare step and keras-jax fit." in told
    )
    assert "torch has the least mean, 5.88 ms of 10 plain steps" in told
    (row,) = json.loads(as_json.render(found))["rows"]
    assert row["as_timed"]
    assert [(run["mean"], run["compared"]) for run in row["runs"]] == [
        (pytest.approx(5.88e-3), pytest.approx(5.88e-3)),
        (pytest.approx(5.08e-3), pytest.approx(9e-3)),
    ]


def test_what_sets_some_columns_apart_is_told_of_them() -> None:
    """One prompt for four images; XLA on a CPU, which the benchmark ran on a GPU only."""
    sam: dict[str, Any] = {"preset": "keras-benchmark", "model": "segment-anything", "mode": "infer", "batch": 4}
    told = joined(rows("keras-benchmark", [step(**sam), step(backend="keras-jax", **sam)]))
    assert "In torch: The native script hands over one prompt for its four images, Keras's scripts four" in told
    asked: dict[str, Any] = {"preset": "hf2019", "model": "bert", "mode": "infer", "batch": 1, "seq": 128}
    told = joined(rows("hf2019", [step(**asked), step(backend="tensorflow-xla", **asked)]))
    assert (
        "In tensorflow-xla: XLA was run by auto-clustering on the GPU only: this run on a CPU stands for none" in told
    )
    assert told.count("The script ran AutoModel, without a head") == 1
    assert told.index("The script ran AutoModel") < told.index("bert infer"), "of all rows, in front"
