"""The profiles that ship: each can be read, closes, and is what the README shows."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from roofline.analysis.analysis import analyze
from roofline.core.schema import load, slug
from roofline.published import presets
from roofline.renderers import markdown

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = sorted((ROOT / "profiles").rglob("*.json"))


def test_there_is_one_and_it_installs() -> None:
    assert SHIPPED
    assert {path.name for path in SHIPPED if path.parent.name == "profiles"} <= {
        item.name for item in files("roofline.profiles").iterdir()
    }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_shipped_profile_closes_and_has_no_defect(path: Path) -> None:
    analysis = analyze(load(path))
    assert analysis.above_ceiling == 0
    # Of steps of seconds there are few, and `show` says what a profiler cost short ops and whether others were there.
    of_presets = {"few-steps", "inflated", "contended"} if analysis.profile.preset else set()
    of_gpus = {"throttled", "replays-by-order"} if path.parent.name == "h100" else set()
    assert {slug(flag) for flag in analysis.flags} <= of_presets | of_gpus
    # wall = sum of the classes + gap, to 0.1 %
    seconds = sum(total.seconds for total in analysis.by("class").values())
    assert seconds + analysis.gap == pytest.approx(analysis.wall, rel=1e-3)
    assert analysis.profile.command.startswith("roofline profile")
    assert "/" not in analysis.profile.command
    assert path.stat().st_size < 1_000_000


def test_the_readme_shows_the_table_of_the_profile_it_names() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    path = ROOT / "profiles" / "bert-torch-infer-b1-s128-amd-epyc-1.json"
    assert path.name in readme
    assert markdown.render(analyze(load(path)), None).strip() in readme


def test_every_row_of_every_preset_has_one() -> None:
    """But those that the benchmark ran on a GPU alone; two rows of a model and mode differ in their batch."""
    rows = [(name, row) for name in presets.names() for row in presets.load(name).row if row.device in ("", "cpu")]
    wanted = sorted((name, row.model, row.mode) for name, row in rows)
    kept = [(path, load(path)) for path in SHIPPED]
    for path, profile in kept:
        if profile.preset is not None:
            assert path.parent.name == profile.preset
            assert path.stem == f"{profile.model}-{profile.mode}-b{profile.batch}"
    assert sorted((one.preset, one.model, one.mode) for _, one in kept if one.preset is not None) == wanted
