"""`roofline sweep`: a plan, what is measured of it, and what it refuses before it measures anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from roofline import cli
from roofline.cli.options import points as cli_points
from roofline.cli.options import words
from roofline.core.schema import load
from roofline.recording.prepared import PreparedProcesses
from tests.cli.conftest import children_here

pytest.importorskip("torch")
MLP = ("sweep", "mlp", "--backends", "torch", "--threads", "1", "--steps", "3")


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With measurements in this process: those in forks of a prepared one are tested in tests/recording."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(PreparedProcesses, "server", lambda *_: None)
    with children_here():
        yield


def test_a_sweep_measures_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*MLP, "--batch", "2,4", "-o", "grid", "--plan-only") == 0
    assert run("sweep", "-o", "grid", "--shard", "1/2") == 0
    (first,) = (tmp_path / "grid" / "points").glob("*.json")
    assert load(first).batch == 2
    assert "1 point not measured yet" in capsys.readouterr().out
    assert run("sweep", "-o", "grid", "--budget", "9") == 0
    told = capsys.readouterr()
    assert "corner: torch: mlp infer, batch 4" in told.err
    assert "2 points: 1 measured." in told.err
    assert "not measured yet" not in told.out
    assert run("show", "grid", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert [cell["batch"] for cell in document["cells"]] == [2, 4]
    assert all(one["wall"] > 0 for cell in document["cells"] for one in cell["runs"])
    # A profile of a point is one like any other: it says how to measure it again.
    assert load(first).command == "roofline profile mlp --backend torch --batch 2 --device cpu --threads 1 --steps 3"


def test_what_is_stopped_says_what_it_keeps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_points, "measure", stop)
    assert run(*MLP, "-o", "grid") == 130
    assert "roofline: Stopped; grid has the plan and all points that were done" in capsys.readouterr().err
    assert run("profile", "mlp", "--steps", "0") == 2
    assert words.KEPT == []


def test_a_length_without_positions_is_recorded_and_nothing_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("sweep", "bert", "--backends", "torch", "--seq", "1024", "-o", "grid") == 0
    assert "1 point: 1 refused." in capsys.readouterr().err
    (record,) = (tmp_path / "grid" / "points").iterdir()
    assert "positions for 512 tokens" in json.loads(record.read_text())["text"]


def test_a_file_that_only_a_plan_names_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(
        "import pathlib\ndef step():\n    pathlib.Path('ran').touch()\n    return lambda: None\n"
    )
    asked = ("sweep", "mine.py:step", "--backends", "torch", "--threads", "1", "--steps", "1", "-o", "grid")
    assert run(*asked, "--plan-only") == 0
    assert run("sweep", "-o", "grid") == 2
    assert "The plan runs mine.py:step" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()
    assert run(*asked) == 0
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("mlp", "--backends", "torch"), "add -o DIR"),
        (("mlp", "-o", "grid"), "Give --backends"),
        ((), "add -o DIR"),
        (("-o", "grid"), "holds no plan"),
        (("mlp", "--backends", "nothing", "-o", "grid"), "There is no backend called 'nothing'"),
        (("mlp", "--backends", "torch", "--batch", "0", "-o", "grid"), "--batch"),
        (("mlp", "--backends", "torch", "--mode", "fly", "-o", "grid"), "There is no mode 'fly'"),
        (("mlp", "--backends", "torch", "--rounds", "0", "-o", "grid"), "--rounds 0"),
        (("mlp", "--backends", "torch", "-o", "no/where"), "Cannot write in"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    assert run("sweep", *arguments) == 2
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
