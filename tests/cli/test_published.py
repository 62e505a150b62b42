"""`roofline published`, and that its closed forms are what `profile --count-only` counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofline import published
from roofline.analysis.analysis import analyze
from roofline.core.schema import load

Run = Callable[..., Any]
SIMPLECHAINS = published.load("simplechains")


@pytest.mark.parametrize("name", published.names())
def test_both_formats_show_every_figure(roofline: Run, name: str) -> None:
    text, document = roofline("published", name, "--all"), roofline("published", name, "--all", "--format", "json")
    assert text.code == document.code == 0, text.err + document.err
    shown = json.loads(document.out)
    cells = published.load(name).cells
    assert [(one["task"], one["column"], one["value"]) for one in shown["cells"]] == [
        (cell.task, cell.column, cell.value) for cell in cells
    ]
    for cell in cells:
        assert cell.value is None or f"{cell.value:,.6g} {cell.unit}" in text.out
        assert cell.source in " ".join(text.out.split())
    assert all(line == line.rstrip() for line in text.out.splitlines())


def test_what_a_row_says(roofline: Run) -> None:
    """9.277 TFLOP in 693.37 ms are 13.4 TFLOP/s, 68.6 % of 19.5 and 8.6 % of 156; in 202.43 ms 45.8, 235 % and 29.4 %.

    The Trainer's clock holds 99 of 100 steps: 13.38 x 0.99 = 13.2 TFLOP/s.
    """
    lines = roofline("published", "keras-benchmark").out.splitlines()
    start = lines.index("BERT fit, batch 32, 2024-04 (v0.0.5)")
    task = [" ".join(line.split()) for line in lines[start : start + 11]]
    assert task[1] == "9.28 TFLOP (3 x forward: each product has two gradients), stated fp32"
    assert task[2].startswith("least time on NVIDIA A100 40 GB: 476 ms in IEEE FP32 (19.5 TFLOP/s), 59.5 ms in TF32")
    assert task[3] == "published rate of FP32 of TF32 what that implies"
    eager, compiled = task[5:7]
    assert eager.startswith("Native PyTorch (eager) 693.37 ms 13.4 TFLOP/s 68.6 % 8.6 % corrected 13.2 TFLOP/s [")
    assert compiled.startswith(
        "Native PyTorch (compiled) 202.43 ms 45.8 TFLOP/s 235.0 % 29.4 % ! above IEEE FP32: TF32 or less; "
    )
    assert "Keras 3 (PyTorch eager) 808.68 ms 11.5 TFLOP/s 58.8 % 7.4 %" in task


def test_a_row_that_reads_has_a_share_of_the_memory_roof_too(roofline: Run) -> None:
    """751 GB in 703.46 ms are 1.07 TB/s, 68.7 % of 1.555; of 312 TFLOP/s 2.17 are 0.7 %. No column mixes the two."""
    lines = roofline("published", "keras-benchmark").out.splitlines()
    start = lines.index("Gemma generate, batch 1, 2024-04 (v0.0.5)")
    task = [" ".join(line.split()) for line in lines[start : start + 30]]
    assert "published rate read of BF16 of memory what that implies" in task
    assert "Keras 3 (JAX) 703.46 ms 2.17 TFLOP/s 1.07 TB/s 0.7 % 68.7 %" in task


def test_the_table_is_drawn(roofline: Run, tmp_path: Path) -> None:
    file = str(tmp_path / "keras.svg")
    ended = roofline("published", "keras-benchmark", "-o", file, "--width", "7in")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Wrote {file}\nKeras 3 benchmarks (April 2024). Published times, not measured here: ")
    assert "4.94 times as fast" in Path(file).read_text(encoding="utf-8")
    assert "add --force" in roofline("published", "keras-benchmark", "-o", file).err


def test_what_nobody_read_is_marked(roofline: Run) -> None:
    out = " ".join(roofline("published", "ivanov").out.split())
    assert "cuDNN 131 ms ? [" in out
    assert "DeepSpeed 7.6 ms 44.1 TFLOP/s" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mlperf",), "There is no publication called 'mlperf'; there are: hf2019, ivanov, keras-benchmark,"),
        (("--all",), "--format, --all and --output need the NAME of a publication: give one."),
        (("ivanov", "-o", "x.txt"), "Cannot write x.txt: the name must end in .svg or .pdf or .png."),
        (("ivanov", "-o", "x.svg", "--width", "1in"), "A figure cannot be 1in wide: choose 2.5in to 20in."),
        (("keras-benchmark", "-o", "x.svg", "--all"), "--output draws the table's first version: leave out --format"),
        (("ivanov", "-o", "x.svg", "--format", "json"), "--output draws the table's first version: leave out --format"),
        (("ivanov", "--format", "html"), "There is no format called 'html'; there are: json, text."),
    ],
)
def test_wrong_words_are_told(roofline: Run, words: tuple[str, ...], message: str) -> None:
    ended = roofline("published", *words)
    assert ended.code == 2
    assert message in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "batch", "asked"),
    [
        ("mlp", 10_000, SIMPLECHAINS.work("mlp-training", "10000").flops / 10_000),  # a step of 10,000
        ("lenet5", 64, SIMPLECHAINS.work("lenet5-training", "").flops / 600_000 * 64),  # 64 images of 10 x 60,000
    ],
)
def test_count_only_counts_the_closed_form(
    measuring: Run, tmp_path: Path, model: str, batch: int, asked: float
) -> None:
    words = (
        f"profile {model} --backend torch --mode train --device cpu --batch {batch} --threads 1 --count-only -o p.json"
    )
    ended = measuring(*words.split())
    assert ended.code == 0, ended.err
    assert analyze(load(tmp_path / "p.json")).total.model_flops == asked
