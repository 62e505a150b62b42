"""The rows of presets in the plan of `make gpu`, and what is reported of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import piece
import pytest
import report
import results
from item import Item, Setting
from msgspec.structs import replace
from plan import pieces
from published import rows as planned
from published import told
from synthetic import step

from roofline import devices, plugins
from roofline.core.schema import Profile, Wall, save
from roofline.published import presets
from roofline.recording.backend import load

ROWS = list(planned.rows())
CHOSEN = planned._read(planned.HERE / "presets.toml")
#: What is there beside PyTorch, JAX and transformers, without being named.
THERE = {"torch", "jax"}


@pytest.mark.parametrize("preset", ["keras-benchmark", "hf2019"])
def test_every_row_and_column_that_can_be_built_is_planned(preset: str) -> None:
    """By the backends' own lists of models, which the plan cannot import."""
    loaded = presets.load(preset)
    wanted = set()
    for row in loaded.row:
        absent = {name for each in row.absent for name in each.columns}
        for column in loaded.column:
            built = row.model in plugins.names(load(column.backend).models, sorted_by_kind=True)
            if built and column.name not in absent:
                wanted.add((row.model, row.mode, row.batch, column.backend))
                if row.batches:
                    wanted.add((row.model, row.mode, max(row.batches), column.backend))
    assert {(row.model, row.mode, row.batch, row.backend) for row in ROWS if row.preset == preset} == wanted
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_a_row_asks_for_the_modules_of_its_backend() -> None:
    for name, known in CHOSEN["backend"].items():
        described = load(name)
        assert described.models == f"roofline.models.{known['models']}"
        assert set(described.requires) - THERE == set(known.get("needs", ()))
    needs = {(row.model, row.backend): row.needs for row in ROWS}
    assert needs["bert", "torch"] == ()
    assert needs["stable-diffusion", "torch"] == ("diffusers",)
    assert needs["gemma", "keras-jax"] == ("keras", "keras_hub")


def test_the_figure_of_a_row_decides_how_often_it_runs() -> None:
    """12 s of steps: BERT fit on JAX 12 / 0.22237 = 53; SAM fit at 1.30552 s 10 at least; generate of 11 s 3."""
    by_name = {row.name: row for row in ROWS}
    jax = by_name["keras-benchmark-bert-keras-jax-train-b32"]
    assert (jax.published, jax.steps) == (pytest.approx(0.22237), 53)
    assert jax.seconds == pytest.approx(25 + 70 + 3.2 * 53 * 0.22237)
    assert by_name["keras-benchmark-segment-anything-torch-train-b1"].steps == 10
    assert by_name["keras-benchmark-mistral-keras-torch-generate-b1"].steps == 3
    assert by_name["hf2019-bert-torch-infer-b1"].steps is None, "as many as the preset says"


def test_the_least_important_comes_last() -> None:
    order = [(row.preset, row.model, row.mode) for row in ROWS]
    assert order[0] == ("keras-benchmark", "bert", "train")
    assert [row.backend for row in ROWS[:4]] == ["keras-jax", "torch", "keras-torch", "torch-compile"]
    last = {
        name: max(number for number, each in enumerate(order) if each[0] == name)
        for name in ("keras-benchmark", "hf2019")
    }
    assert last["keras-benchmark"] < order.index(("hf2019", "bert", "infer"))
    names = [item.name for item in pieces(Setting())["published"]]
    assert names[:2] == ["environment", "ceilings"]
    largest = next(item for item in pieces(Setting())["published"] if item.name.endswith("gpt2-torch-infer-b8-largest"))
    assert " --preset hf2019 --batch 8 --device cuda --seq 1024 -o " in " ".join(largest.command)
    assert [name for name in names if name.startswith("bert-layer")] == names[-2:]


def test_what_a_row_needs_is_looked_for_where_wheels_are_installed(tmp_path: Path) -> None:
    here = piece.Run(setting=Setting(), work=tmp_path, out=tmp_path, site=tmp_path / "site", end=time.monotonic() + 60)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "no_such_thing.py").write_text("", encoding="utf-8")
    assert piece._has("module:no_such_thing", here)
    assert not piece._has("module:nor_this", here)
    item = Item(name="row", command=("true",), seconds=1, limit=5, machine=("module:nor_this",))
    assert piece.run("toy", [item], here) == 0, "it is left out, and is nothing that is left to run"


def test_a_row_that_does_not_fit_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log"
    item = Item(name="row", command=("true",), seconds=1, limit=5)
    for words, why in (("torch.OutOfMemoryError: CUDA out of memory.", "exit 4, out of memory"), ("else", "exit 4")):
        log.write_text(words, encoding="utf-8")
        assert piece._failure(item, tmp_path, 4, log) == why


def test_what_makes_an_archive_too_large_stays_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random bytes do not shrink: 3000 of them and the rest are more than 2500, 1000 and the rest are not."""
    import random

    folder = tmp_path / "work" / "toy"
    folder.mkdir(parents=True)
    for name, size in (("small.json", 1000), ("large.json", 3000)):
        (folder / name).write_bytes(random.Random(size).randbytes(size))
    (folder / "state.json").write_text('{"items": {}}', encoding="utf-8")
    monkeypatch.setattr(results, "MOST_BYTES", 2500)
    results.pack(folder, tmp_path / "out")
    assert (folder / "large.json").is_file()
    results.unpack("toy", tmp_path / "new", [tmp_path / "out"])
    assert sorted(path.name for path in (tmp_path / "new" / "toy").iterdir()) == [
        "left-out.txt",
        "small.json",
        "state.json",
    ]
    assert report.left_out([tmp_path / "new" / "toy"]) == [
        "toy/large.json: left out of the archive, for which it is too large"
    ]
    assert report.left_out([folder]) == []
    # Another machine goes on, and has one that is too large of its own: what the first one lost is still named.
    again = tmp_path / "new" / "toy"
    (again / "other.json").write_bytes(random.Random(1).randbytes(3000))
    results.pack(again, tmp_path / "out")
    results.unpack("toy", tmp_path / "third", [tmp_path / "out"])
    assert (tmp_path / "third" / "toy" / "left-out.txt").read_text(encoding="utf-8") == "large.json\nother.json\n"
    monkeypatch.setattr(results, "MOST_BYTES", 10)
    with pytest.raises(ValueError, match="more than the 10 bytes"):
        results.pack(folder, tmp_path / "out")


#: As NVIDIA's driver calls them.
NAMES = {"a100-40gb": "NVIDIA A100-SXM4-40GB", "h100-sxm": "NVIDIA H100 80GB HBM3"}


def run(backend: str, device: str, milliseconds: float, **changes: Any) -> Profile:
    """A step of synthetic.py as BERT fit, measured on a device of that datasheet."""
    fields = {"preset": "keras-benchmark", "model": "bert", "mode": "train", "batch": 32, "seq": 512, "size": "base"}
    options = {"torch": {"attention": "eager"}}.get(backend, {"jit": "on"})
    switches = {"input": "host", "optimizer": "AdamW", "optimizer lr": "5e-05", "optimizer weight_decay": "0"}
    return step(
        backend=backend,
        device=replace(devices.load(device), name=NAMES[device]),
        **fields
        | {"wall": Wall(steps=(milliseconds * 1e-3,) * 10), "precision": "default", "options": options}
        | {"switches": switches}
        | changes,
    )


def cells(line: str) -> dict[str, str]:
    return dict(zip(told.COLUMNS, [cell.strip() for cell in line.strip("|").split(" | ")], strict=True))


def test_a_figure_of_another_device_has_no_ratio_and_that_of_its_own_has_one(tmp_path: Path) -> None:
    """Published: 693.37 ms on the A100 of 40 GB. 346.685 ms there are half of it."""
    here, elsewhere = run("torch", "a100-40gb", 346.685), run("torch", "h100-sxm", 200.0)
    there, other = (cells(told.table([profile])[2]) for profile in (here, elsewhere))
    assert (there["row"], there["column"]) == ("BERT fit b32 s512", "Native PyTorch (eager)")
    assert (there["published ms"], there["of that"], there["mean ms"]) == ("693.4 on A100 40 GB", "0.5", "346.7")
    assert (other["of that"], other["mean ms"]) == ("another device", "200")
    assert "H100" in other["measured on"]
    assert cells(told.table([replace(here, batch=8)])[2])["of that"] == "another step"


def test_the_report_has_the_words_of_the_tool(tmp_path: Path) -> None:
    files = []
    for name, profile in (
        ("a", run("torch", "h100-sxm", 200.0)),
        ("b", run("keras-jax", "h100-sxm", 100.0)),
        ("c", step(backend="torch")),
    ):
        files.append(tmp_path / f"{name}.json")
        save(profile, files[-1])
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    text = "\n".join(told.measured([*files, tmp_path / "broken.json"]))
    assert text.count("## ") == 1
    assert "keras-jax has the least mean, 100 ms" in text
    assert "Native PyTorch (eager) 693 ms, Keras 3 (JAX) 222 ms, 3.12x as long; that is another device" in text
    assert "99 steps, and divides by 100" in text, "what is known of the figure"
    assert told.measured([files[-1]]) == [], "of no preset"


def test_least_times_by_shape() -> None:
    """BERT fit: 9.2773 TFLOP at 19.5 and 156 TFLOP/s are 475.8 and 59.47 ms; Gemma's 44 passes of 17.08 GB 483.2 ms."""
    lines = told.predicted(["a100-40gb"])
    assert "| BERT fit b32 | 9.28 TFLOP | 475.8 (fp32), 59.47 (tf32) |" in lines
    (line,) = (each for each in lines if each.startswith("| Gemma generate b1, Native PyTorch") or "b1 | 831" in each)
    assert line.endswith("831 GFLOP, 751 GB to read | 2.663 (bf16), 483.2 (memory) |")
