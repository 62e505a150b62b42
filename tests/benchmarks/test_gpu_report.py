"""What is reported of a folder of results: a line per profile, and what did not end well."""

from __future__ import annotations

import json
from pathlib import Path

import evidence
import handmade
import msgspec
import report
import results

from roofline.core.schema import save


def piece(folder: Path, name: str, device: str = "Round Device") -> None:
    """A piece with one profile, whose wall is 12.5 ms, and one item that failed."""
    folder.mkdir(parents=True)
    profile = handmade.profile()
    if device != "Round Device":
        profile = msgspec.structs.replace(
            profile, device=msgspec.structs.replace(profile.device, name=device, kind="cuda", memory=85e9)
        )
    save(profile, folder / f"{name}.json")
    common = {"why": "", "seconds": 30.0, "began": "", "machine": ""}
    items = {
        name: {"command": ["roofline", "profile", "bert"], "how": "well", **common},
        "other": {"command": ["pytest"], "how": "failed", **common, "why": "exit 1"},
    }
    (folder / "state.json").write_text(json.dumps({"setting": {}, "items": items}), encoding="utf-8")


def test_a_line_per_profile_and_what_did_not_end_well(tmp_path: Path) -> None:
    piece(tmp_path / "toy", "bert-torch-infer-b32-tf32")
    results.pack(tmp_path / "toy", tmp_path / "out")
    profiles, states = report.gathered(report.pieces([tmp_path / "out"], tmp_path / "scratch"))
    assert list(profiles) == ["bert-torch-infer-b32-tf32"]
    head, _, line = report.table(profiles)
    cells = dict(
        zip([cell.strip() for cell in head.split("|")], [cell.strip() for cell in line.split("|")], strict=True)
    )
    assert cells["wall ms"] == "12.500"
    assert cells["predicted ms"] == "–"  # of a device without a datasheet nothing was predicted
    assert cells["joined"] == "100.00 %"
    assert cells["gap"] == "14.4 %"  # 1.8 of 12.5 ms
    assert report.ended(states) == [
        "1 of 2 items ended well; together they took 1.0 min.",
        "toy/other: failed, exit 1",
    ]


def test_the_prediction_is_that_of_the_device_it_ran_on(tmp_path: Path) -> None:
    piece(tmp_path / "toy", "bert-torch-infer-b32-bf16", device="NVIDIA H100 80GB HBM3")
    profiles, _ = report.gathered(report.pieces([tmp_path], tmp_path / "scratch"))
    cells = report.table(profiles)[2].split("|")
    # BERT-base without its embeddings has 85.6 million parameters in products, of which each of 32 x 128 tokens takes 2
    # FLOP, and attention 2 x 2 x 128 x 768 FLOP per token and layer: about 0.72 TFLOP, 0.73 ms at 989.5 TFLOP/s.
    assert 0.70 < float(cells[3]) < 0.76


def test_ceilings_beside_the_datasheet_and_another_measurement(tmp_path: Path) -> None:
    """Of 3350 GB/s on the datasheet 2680 were measured at last, which is 0.8 of it."""
    for name, value in (("short-1", 2.5e12), ("full", 2.68e12)):
        content = {
            "name": "NVIDIA H100 80GB HBM3",
            "kind": "cuda",
            "memory": 85e9,
            "ceilings": {"dram.copy": {"value": value}},
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "short-2.json").write_text("{", encoding="utf-8")  # of a calibration that was ended
    other = {"independent": {"dram.copy": {"best": 2.7e12}}}
    (tmp_path / "independent.json").write_text(json.dumps(other), encoding="utf-8")
    head, _, line, _ = evidence.ceilings([tmp_path])
    assert head == "| ceiling | short-1 | full | another way | datasheet | of it |"
    assert line == "| dram.copy | 2.5e+12 | 2.68e+12 | 2.7e+12 | 3.35e+12 | 0.800 |"


def test_the_usable_size_of_each_calibration_beside_the_datasheets(tmp_path: Path) -> None:
    """By the sheet 34,603,008 bytes, 33 MiB by reads and writes; the first file is older than the probe."""
    base = {"name": "NVIDIA H100 80GB HBM3", "kind": "cuda", "memory": 85e9, "ceilings": {}}
    level = {"level": "llc", "size": 32e6, "source": "measured with reads and writes"}
    (tmp_path / "short-1.json").write_text(json.dumps(base), encoding="utf-8")
    (tmp_path / "full.json").write_text(json.dumps({**base, "caches": [level]}), encoding="utf-8")
    lines = evidence.ceilings([tmp_path])
    assert lines[2] == "| usable size of llc | – | 3.2e+07 | – | 3.46e+07 | – |"
    assert "llc: measured with reads and writes." in lines


def test_bytes_by_rule_beside_bytes_by_counters(tmp_path: Path) -> None:
    names = ("read", "written", "cold_read", "cold_written", "dram_read", "dram_written", "l2")
    sums = {name: 1e6 * number for number, name in enumerate(names, 1)}
    kernels = {"of the profile": 8, "of the counters": 9, "joined": 7}
    content = {"kernels": kernels, "all ops": {"ops": 7, **sums}}
    (tmp_path / "ncu-train-none.json").write_text(json.dumps(content), encoding="utf-8")
    assert evidence.counted_bytes([tmp_path])[2] == (
        "| ncu-train-none | 7 of 8 and 9 | 1.0 | 2.0 | 3.0 | 4.0 | 5.0 | 6.0 | 7.0 |"
    )
    assert evidence.counted_bytes([]) == []
