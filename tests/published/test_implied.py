"""What a published time implies: every figure computed anew, from the time and a form that is written out here."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from roofline import devices, published
from roofline.errors import InputError
from roofline.published.implied import Implied, cells_implied, implied
from roofline.published.means import speedups

ROOT = Path(__file__).resolve().parents[2]
KERAS = published.load("keras-benchmark")
#: BERT-base, one sequence of 512, as tests/benchmarks/test_forms.py derives it [FLOP].
SEQUENCE = 512 * 12 * (8 * 768**2 + 4 * 768 * 3072 + 4 * 512 * 768) + 2 * 768**2 + 2 * 768 * 2


def cell(task: str, column: str, batch: str = "") -> Implied:
    return implied(KERAS, KERAS.find(task, column, batch=batch))


@pytest.mark.parametrize(
    ("column", "milliseconds", "roof"),
    [
        ("Native PyTorch (eager)", 693.37, "fp32"),
        ("Native PyTorch (compiled)", 202.43, "tf32"),
        ("Keras 2 (TF)", 486.00, "fp32"),
        ("Keras 3 (TF)", 214.49, "tf32"),
        ("Keras 3 (JAX)", 222.37, "tf32"),
        ("Keras 3 (PyTorch eager)", 808.68, "fp32"),
    ],
)
def test_bert_fit(column: str, milliseconds: float, roof: str) -> None:
    """Batch 32, 3 x forward; an A100 multiplies at 19.5 TFLOP/s in IEEE FP32 and 156 in TF32."""
    one = cell("BERT fit", column)
    rate = 3 * 32 * SEQUENCE / (milliseconds * 1e-3)
    peak = {"fp32": 19.5e12, "tf32": 156e12}
    assert one.rate == pytest.approx(rate)
    assert one.roof == roof == ("fp32" if rate <= 19.5e12 else "tf32")
    assert one.share == pytest.approx(rate / peak[roof])
    assert one.faster == (milliseconds * 1e-3 < 3 * 32 * SEQUENCE / 19.5e12)
    assert one.floors == pytest.approx({name: 3 * 32 * SEQUENCE / value for name, value in peak.items()})


def test_the_two_sentences_of_the_benchmark() -> None:
    """13.4 TFLOP/s of 19.5 are within IEEE FP32; 42 to 46 TFLOP/s are above it."""
    assert cell("BERT fit", "Native PyTorch (eager)").rate == pytest.approx(13.4e12, rel=2e-3)
    assert cell("BERT fit", "Keras 3 (JAX)").rate == pytest.approx(41.7e12, rel=1e-3)
    assert cell("BERT fit", "Native PyTorch (compiled)").rate == pytest.approx(45.8e12, rel=1e-3)


def test_generate_has_a_share_of_both_roofs() -> None:
    """Gemma at batch 1: 44 passes over 17.08 GB at 1555 GB/s are 483 ms of JAX's 703.46; bf16 is 312 TFLOP/s."""
    one = cell("Gemma generate", "Keras 3 (JAX)", batch="1")
    floor, flops = 44 * 2 * 8_537_680_896 / 1555e9, KERAS.work("gemma-generate-keras", "1").flops
    assert (one.roof, one.faster, set(one.shares)) == ("memory", False, {"memory", "bf16"})
    assert one.floor_memory == pytest.approx(floor)
    assert one.share == one.shares["memory"] == pytest.approx(floor / 0.70346)
    assert one.floors == {"bf16": pytest.approx(flops / 312e12)}
    assert one.rate == pytest.approx(flops / 0.70346)
    assert one.shares["bf16"] == pytest.approx(flops / 312e12 / 0.70346)


@pytest.mark.parametrize("column", ["Native PyTorch (eager)", "Native PyTorch (compiled)"])
def test_a_clock_that_holds_99_of_100_steps(column: str) -> None:
    """A step of BERT fit took 100/99 of the figure: eager 13.25 TFLOP/s, and not 13.38."""
    one = cell("BERT fit", column)
    assert one.rate is not None
    assert one.corrected == pytest.approx(one.rate * 0.99)
    assert cell("BERT predict", column).corrected is None


def test_what_is_not_published_implies_nothing() -> None:
    one = cell("Gemma fit", "Keras 2 (TF)")
    assert (one.cell.value, one.rate, one.share, one.roof, one.faster) == (None, None, None, "", False)


@pytest.mark.parametrize("name", published.names())
def test_every_rate_is_work_over_time_and_no_cell_is_above_all_ceilings(name: str) -> None:
    publication = published.load(name)
    for one in cells_implied(publication, everything=True):
        time = one.cell.seconds
        if one.work is None or time is None:
            assert (one.rate, one.speed, one.share) == (None, None, None)
            continue
        if one.work.flops is not None:
            assert one.rate == pytest.approx(one.work.flops / time)
        if one.device is not None:
            assert one.roof, f"{one.cell.task}, {one.cell.column}: faster than the device"
            assert 0 < (one.share or 0) <= 1
        else:
            assert (one.roof, one.share, one.floors) == ("", None, {})


@pytest.mark.parametrize("name", published.names())
def test_every_name_in_a_setup_is_in_its_table(name: str) -> None:
    """A task, column or machine that is misspelt would be about nothing."""
    publication = published.load(name)
    cells = publication.cells
    assert {row.task for row in publication.rows} == {one.task for one in cells}
    assert set(publication.devices) <= {one.hardware for one in cells}
    assert publication.baseline in {"", *(one.column for one in cells)}
    for device in publication.devices.values():
        assert devices.load(device)
    for note in publication.notes:
        assert set(note.tasks) <= {one.task for one in cells}, note
        assert set(note.columns) <= {one.column for one in cells}, note
        assert set(note.hardware) <= {one.hardware for one in cells}, note
        assert any(note.on(one) for one in cells), note
    assert all(one.source and one.status for one in cells)


def test_what_nobody_read_is_not_citable() -> None:
    ivanov = {one.column: one for one in published.load("ivanov").cells if one.batch == "8"}
    assert {name for name, one in ivanov.items() if not one.citable} == {"cuDNN", "Substation (paper)"}
    assert all(one.citable for one in (*KERAS.cells, *published.load("simplechains").cells))


def test_a_time_of_unknown_work_implies_no_rate() -> None:
    """Whether cuDNN's 131 ms are those of the whole layer nobody knows."""
    ivanov = published.load("ivanov")
    one = implied(ivanov, ivanov.find("BERT-large encoder layer, length 512", "cuDNN"))
    assert (one.work, one.rate, one.share) == (None, None, None)
    one = implied(ivanov, ivanov.find("BERT-large encoder layer, length 512", "PyTorch"))
    layer = 3 * 8 * 512 * (2 * 12 * 1024**2 + 4 * 512 * 1024)
    assert one.rate == pytest.approx(layer / 9.14e-3)
    assert one.share == pytest.approx(layer / 9.14e-3 / 125e12)


def test_the_notes_that_a_cell_carries() -> None:
    kinds = {column: [note.kind for note in cell("SAM predict", column).notes] for column in ("Keras 2 (TF)",)}
    assert kinds == {"Keras 2 (TF)": ["jit", "precision"]}
    assert [n.kind for n in cell("SAM predict", "Native PyTorch (eager)").notes] == ["batch", "timing"]
    assert [n.kind for n in cell("Gemma generate", "Native PyTorch (compiled)", "1").notes] == ["eager"]
    assert [n.kind for n in cell("Gemma generate", "Keras 3 (PyTorch eager)", "1").notes] == ["asterisk"]
    assert [n.kind for n in cell("SAM fit", "Native PyTorch (eager)").notes] == ["timing"]
    assert [n.kind for n in cell("BERT fit", "Native PyTorch (eager)").notes] == ["timing"]
    assert cell("BERT fit", "Keras 3 (PyTorch eager)").notes == ()


def test_means_of_ratios() -> None:
    """Keras 2 has six rows; the geometric mean is the sixth root of the product of its ratios."""
    eager = (1305.52, 1573.48, 481.48, 783.43, 693.37, 1849.80)
    keras2 = (386.93, 1859.27, 1023.21, 649.71, 486.00, 470.12)
    ratios = [one / other for one, other in zip(eager, keras2, strict=True)]
    (mean,) = (one for one in speedups(KERAS) if one.column == "Keras 2 (TF)")
    assert mean.rows == 6
    assert mean.arithmetic == pytest.approx(sum(ratios) / 6)
    assert mean.geometric == pytest.approx(math.prod(ratios) ** (1 / 6))
    assert speedups(published.load("hf2019")) == ()


def test_versions_are_shown_on_request() -> None:
    assert len(cells_implied(KERAS)) == 72  # 12 rows, 6 columns
    assert len(cells_implied(KERAS, everything=True)) == 72 + 48 + 60  # without native PyTorch; the first version


def test_an_unknown_name_is_told_with_the_others() -> None:
    with pytest.raises(InputError, match="there are: hf2019, ivanov, keras-benchmark, simplechains"):
        published.load("mlperf")


def test_the_rows_that_are_measured_again_on_a_gpu_are_cells() -> None:
    """benchmarks/gpu has some figures beside the command that measures the same; others are rows of presets."""
    rows = tomllib.loads((ROOT / "benchmarks" / "gpu" / "published" / "single.toml").read_text(encoding="utf-8"))["row"]
    found = {cell.value for name in ("keras-benchmark", "ivanov") for cell in published.load(name).cells}
    assert [row["what"] for row in rows if row["published"] not in found] == []
    assert len(rows) == 2
