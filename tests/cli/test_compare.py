"""`roofline compare`: saved profiles and backends measured in turns, what it prints, writes and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline.cli import compare
from roofline.core.schema import Imported, Profile, Turns, Wall, load, save
from roofline.core.step import Workload
from roofline.measuring import requests as measuring_requests
from roofline.measuring import rounds
from roofline.measuring import turns as measuring_turns
from roofline.recording.request import Request

Run = Callable[..., Any]


def write(folder: Path, name: str, milliseconds: float = 12.5, **changes: object) -> str:
    """A saved profile of the hand-made step with another wall; its name, for a command that runs in its folder."""
    steps = tuple(milliseconds * 1e-3 * (1 + n / 1000) for n in (-2, -1, 0, 1, 2))
    save(handmade.profile(wall=Wall(steps=steps), **changes), folder / name)
    return name


def refused(ended: Any, code: int, *parts: str) -> None:
    """One sentence on standard error, nothing on standard output."""
    assert ended.code == code, ended.err
    assert ended.out == ""
    assert ended.err.startswith("roofline: "), ended.err
    assert ended.err.count("\n") == 1, ended.err
    for part in parts:
        assert part in ended.err


# -------------------------------------------------------------------------------------------------- saved profiles


def test_two_profiles(roofline: Run, tmp_path: Path) -> None:
    a, b = write(tmp_path, "a.json", 12.5), write(tmp_path, "b.json", 20, backend="jax")
    ended = roofline("compare", a, b)
    assert ended.code == 0, ended.err
    # In the order given: A is the faster one.
    assert ended.out.startswith("jax took 1.60x longer than torch in these two runs (20.0 against 12.5 ms a step")
    assert "Why jax (B) took 7.50 ms more than torch (A) (minus: A takes longer):" in ended.out
    assert ended.out.endswith("Next: roofline compare a.json b.json --again\n")


def test_what_is_shown_of_the_account(roofline: Run, tmp_path: Path) -> None:
    a, b = write(tmp_path, "a.json", 12.5), write(tmp_path, "b.json", 20, backend="jax")
    every, row = roofline("compare", a, b, "--all"), roofline("compare", a, b, "--row", "1")
    assert "smaller row" not in every.out
    assert "Row 1: +7.50 ms, 100 %" in row.out
    assert "Next:" not in row.out
    assert "passes " in roofline("compare", a, b, "--why").out
    refused(roofline("compare", a, b, "--row", "99"), 2, "There is no row 99: the account has ")
    c = write(tmp_path, "c.json", 15, backend="third")
    refused(roofline("compare", a, b, c, "--row", "1"), 2, "--row needs two profiles, and 3 are compared")
    refused(
        roofline("compare", a, b, "--why", "--format", "json"),
        2,
        "--all, --row, --why and --details have no meaning for",
    )
    refused(
        roofline("compare", a, b, "--preset", "keras-benchmark", "--all"), 2, "--all cannot be combined with --preset"
    )


def test_rows_by_the_key_that_is_asked_for(roofline: Run, tmp_path: Path) -> None:
    a, b = write(tmp_path, "a.json", 12.5), write(tmp_path, "b.json", 20, backend="jax")
    by_class = roofline("compare", a, b, "--by", "class").out
    assert "\nclass [ms] " in by_class
    assert "\nall ops  " in by_class
    assert roofline("compare", a, b, "--by", "block").out == roofline("compare", a, b, "--details").out
    assert "columns  " not in roofline("compare", a, b).out
    assert json.loads(roofline("compare", a, b, "--by", "op", "--format", "json").out)["breakdown"]["by"] == "op"
    refused(
        roofline("compare", a, b, "--by", "layer"),
        *(2, "There is no table by 'layer'; there are: class, group, phase, block, scope, op, kernel, source."),
    )


def test_the_document_is_all_there_is_on_standard_output(roofline: Run, tmp_path: Path) -> None:
    a, b = write(tmp_path, "a.json", 12.5), write(tmp_path, "b.json", 20, backend="jax")
    found = json.loads(roofline("compare", a, b, "--format", "json").out)
    assert found["difference"] == pytest.approx(-7.5e-3)
    assert [run["name"] for run in found["runs"]] == ["torch", "jax"]
    back = json.loads(roofline("compare", b, a, "--format", "json").out)
    assert back["difference"] == -found["difference"]
    assert back["rest"] == pytest.approx(-found["rest"])
    assert sum(row["seconds"] or 0.0 for row in found["account"]) == pytest.approx(found["difference"])


def test_the_same_file_twice_is_zero_everywhere(roofline: Run, tmp_path: Path) -> None:
    a = write(tmp_path, "a.json")
    found = json.loads(roofline("compare", a, a, "--format", "json").out)
    assert found["difference"] == found["residual"] == found["rest"] == 0.0
    assert {row["seconds"] for row in found["account"]} == {0.0}
    assert {term["seconds"] for term in found["terms"] + found["kernel_terms"]} == {0.0}
    assert found["findings"] == []
    assert found["parity"] == {"verdict": "comparable", "differences": []}
    ended = roofline("compare", a, a)
    assert ended.out.startswith("These runs do not say which is faster: torch (A) took 12.5 ms a step and torch (B)")


def test_more_than_two_profiles(roofline: Run, tmp_path: Path) -> None:
    names = [write(tmp_path, f"{n}.json", n, backend=name) for n, name in ((20, "a"), (12.5, "b"), (15, "c"))]
    ended = roofline("compare", *names)
    assert ended.code == 0, ended.err
    assert (
        "of 3 runs b took the least time as recorded, 12.5 ms a step, and a the most, 20.0 ms. a took 1.60x longer"
        in " ".join(ended.out.split())
    )
    assert ended.out.index("c took 1.20x longer than b") < ended.out.rindex("a took 1.60x longer than b")
    assert ended.out.endswith("Next: roofline plot 20.json 12.5.json 15.json --kind speedup -o speedup.svg\n")


def test_runs_that_are_not_comparable(roofline: Run, tmp_path: Path) -> None:
    a, b = write(tmp_path, "a.json"), write(tmp_path, "b.json", 20, batch=8, backend="jax")
    refused(roofline("compare", a, b), 1, "not comparable", "batch (4 against 8)", "--allow")
    assert roofline("compare", a, b, "--allow").out.endswith("Next: roofline compare a.json b.json --again --allow\n")
    for format in ("text", "markdown", "json"):
        ended = roofline("compare", a, b, "--allow", "--format", format)
        assert ended.code == 0
        assert "NOT COMPARABLE, compared anyway" in " ".join(ended.out.split())
    c = write(tmp_path, "c.json", 15, backend="third")
    refused(roofline("compare", a, b, c), 1, "Not comparable with torch, the fastest of 3 runs: jax (", "--allow")
    assert roofline("compare", a, b, c, "--allow").code == 0


@pytest.mark.parametrize(
    ("changes", "why"), [({"mode": "infer"}, "mode"), ({"model": "other", "parameters": 7, "trainable": 7}, "model")]
)
def test_another_mode_or_model(roofline: Run, tmp_path: Path, changes: dict[str, object], why: str) -> None:
    a, b = write(tmp_path, "a.json"), write(tmp_path, "b.json", **changes)
    refused(roofline("compare", a, b), 1, "not comparable", why)


def test_what_is_no_profile(roofline: Run, tmp_path: Path) -> None:
    good = write(tmp_path, "good.json")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "newer.json").write_text('{"schema": 999}')
    (tmp_path / "other.json").write_text('{"a": 1}')
    write(tmp_path, "counted.json", profiled=None)
    for name, parts in {
        "folder": ("folder is a folder: name the profiles in it, as in folder/*.json",),
        "text.json": ("text.json cannot be read as a profile",),
        "newer.json": ("newer.json was made by a newer roofline", "upgrade"),
        "other.json": ("other.json is not a roofline profile: it has no schema number",),
        "absent.json": ("Cannot read absent.json",),
        "bert": ("There is no file bert; to measure a model, add --backends a,b",),
        "counted.json": ("counted.json was counted and not timed: measure it again without --count-only",),
    }.items():
        refused(roofline("compare", good, name), 2, *parts)
        refused(roofline("compare", name, good), 2, *parts)
    refused(roofline("compare", good), 2, "give two or more, or one MODEL and --backends a,b")
    refused(roofline("compare"), 2, "There is nothing to compare: give two or more profiles, or one MODEL and --back")
    refused(roofline("compare", "--backends", "torch,jax"), 2, "--backends needs a MODEL")
    refused(roofline("compare", good, "h100/bert-torch-infer-b32-tf33"), 2, "did you mean h100/bert-torch-infer-b32-tf")
    refused(
        roofline("compare", good, good, "--format", "xml"),
        2,
        "no format called 'xml'; there are: csv, json, latex, markdown",
    )


def test_no_times_of_steps(roofline: Run, tmp_path: Path) -> None:
    good = write(tmp_path, "good.json")
    damaged = json.loads((tmp_path / good).read_text())
    damaged["wall"]["steps"] = []
    (tmp_path / "none.json").write_text(json.dumps(damaged))
    refused(roofline("compare", good, "none.json"), 2, "none.json is damaged: it has no times of steps")


@pytest.mark.parametrize(
    "words",
    ["--mode train", "--batch 2", "--size tiny", "--rounds 2", "--no-optimizer", "-o out", "--force", "--device cpu"],
)
def test_options_of_measuring_mean_nothing_for_profiles(roofline: Run, tmp_path: Path, words: str) -> None:
    a = write(tmp_path, "a.json")
    refused(roofline("compare", a, a, *words.split()), 2, f"{words.split()[0]} is for measuring: leave it out")


# ------------------------------------------------------------------------------------------------------- in turns


@pytest.fixture
def took(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, ...]]:
    """The medians of each run that takes turns, which takes as long as it was recorded; all can be run again."""
    taken: list[tuple[float, ...]] = []
    request = Request(backend="torch", workload=Workload(model="toy"))

    def settle(names: Sequence[str], profiles: Sequence[Profile], *_: object, most_turns: int) -> list[Profile]:
        turned = []
        for profile in profiles:
            medians = (profile.wall.steps[2],) * min(most_turns, 4)
            taken.append(medians)
            number = len(medians)
            turns = Turns(token="1", medians=medians, waited=(None,) * number, disturbed=(False,) * number)
            turned.append(replace(profile, wall=replace(profile.wall, turns=(turns,))))
        return turned

    monkeypatch.setattr(measuring_turns, "settle_runs", settle)
    monkeypatch.setattr(measuring_requests, "request_of", lambda profile: request)
    return taken


def test_saved_profiles_take_turns_and_keep_them(roofline: Run, tmp_path: Path, took: list[Any]) -> None:
    a, b = write(tmp_path, "a.json", 20), write(tmp_path, "b.json", 12.5, backend="jax")
    assert "For a factor that holds, run both alternately where they were measured: --again." in " ".join(
        roofline("compare", a, b).out.split()
    )
    ended = roofline("compare", a, b, "--again")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("torch is 1.60x slower than jax: 20.0 against 12.5 ms a step, difference 7.50 ms")
    assert ended.err.splitlines() == ["Saved the turns in a.json", "Saved the turns in b.json"]
    # From now on the files know.
    document = json.loads(roofline("compare", a, b, "--format", "json").out)
    assert (document["settled"], document["factor"]) == (True, pytest.approx(1.6))
    assert document["factor_ci95"] == [pytest.approx(1.6, rel=0.02)] * 2
    assert len(took) == 2
    # So that a proof asks for no more of them, and who asks for them gets them.
    assert roofline("compare", a, b, "--prove").code == 0
    assert len(took) == 2
    assert roofline("compare", a, b, "--again", "--rounds", "2").code == 0
    assert took[2:] == [(0.02, 0.02), (0.0125, 0.0125)]


def test_a_proof_takes_turns(roofline: Run, tmp_path: Path, took: list[Any]) -> None:
    a, b = write(tmp_path, "a.json", 20), write(tmp_path, "b.json", 12.5, backend="jax")
    assert "is 1.60x slower than" in roofline("compare", a, b, "--prove").out
    assert len(took) == 2
    c, d = write(tmp_path, "c.json", 20), write(tmp_path, "d.json", 12.5, backend="jax")
    assert "took 1.60x longer than" in roofline("compare", c, d, "--prove", "--rounds", "1").out
    assert len(took) == 2


def test_a_proof_takes_turns_where_earlier_ones_did_not_settle(roofline: Run, tmp_path: Path, took: list[Any]) -> None:
    a, b = write(tmp_path, "a.json", 12.5), write(tmp_path, "b.json", 12.5, backend="jax")
    assert roofline("compare", a, b, "--again").code == 0
    assert json.loads(roofline("compare", a, b, "--format", "json").out)["settled"] is False
    assert len(took) == 2
    assert roofline("compare", a, b, "--prove").code == 0
    assert len(took) == 4


def test_what_cannot_be_run_again_is_said(roofline: Run, tmp_path: Path) -> None:
    a = write(tmp_path, "a.json", 20, imported=Imported())
    b = write(tmp_path, "b.json", 12.5, backend="jax")
    refused(
        roofline("compare", a, b, "--again"),
        2,
        "torch cannot be run again. It was imported from a trace, which holds no step",
    )
    ended = roofline("compare", a, b, "--prove")
    assert ended.code == 0
    assert "torch cannot be run again. It was imported from a trace" in ended.err
    assert "took 1.60x longer than" in ended.out


# ------------------------------------------------------------------------------------------------------- measuring


@pytest.fixture
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(*_: object, **__: object) -> None:
        raise AssertionError("something was measured")

    monkeypatch.setattr(rounds, "measure", measure)


SMALL = ("--size", "tiny", "--batch", "64", "--device", "cpu", "--threads", "1", "--steps", "3")


def test_measured_in_turns(measuring: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ended = measuring("compare", "mlp", "--backends", "torch,torch", *SMALL, "--rounds", "2", "--format", "json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert [run["name"] for run in found["runs"]] == ["torch (A)", "torch (B)"]
    # The slower one is A.
    assert found["difference"] >= 0
    folder = tmp_path / "mlp-infer-compare-1"
    assert sorted(path.name for path in folder.iterdir()) == ["torch-2.json", "torch.json"]
    for path in folder.iterdir():
        profile = load(path)
        assert len(profile.wall.processes) == 2
        assert len(profile.wall.turns[0].medians) == 2
        assert profile.command.startswith("roofline profile mlp --backend torch --batch 64 --size tiny")
    lines = ended.err.splitlines()
    assert lines[0] == "2 backends: torch, torch. Each is profiled in a process of its own, which runs 3 plain steps."
    assert lines.count("Profiling torch.") == 2
    assert sum(line.startswith("In turns until settled: torch (") for line in lines) == 1
    assert [line.partition(":")[0] for line in lines if line.startswith("Turn ")] == [
        f"Turn {number} of at most 2" for number in (1, 2)
    ]
    assert lines[-2:] == [f"Saved the turns in mlp-infer-compare-1/{name}" for name in ("torch.json", "torch-2.json")]
    assert found["settled"] is None  # which two turns do not tell


@pytest.mark.usefixtures("_nothing_runs")
def test_what_cannot_be_measured(roofline: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "torch.json").write_text("mine")
    (tmp_path / "file").write_text("mine")
    both = ("--backends", "torch,torch", *SMALL)
    for words, parts in [
        (("mlp", "--backends", "torch"), ("give two or more, as in --backends torch,jax",)),
        (("mlp", "--backends", "torch,pytorc"), ("There is no backend called 'pytorc'; there are: jax",)),
        (("mlp", "--backends", "torch,torch:jit=on"), ("torch backend has no option 'jit'",)),
        (("mlp", "bert", *both), ("--backends takes one MODEL, and 2 are given",)),
        (("nothing", *both), ("There is no model called 'nothing'",)),
        (("mlp", *both, "--rounds", "0"), ("--rounds 0 is not possible",)),
        (("mlp", *both, "--again"), ("--again is for saved profiles",)),
        (("mlp", *both, "--mode", "sleep"), ("There is no mode 'sleep'",)),
        (("mlp", *both, "-o", "no/where"), ("Cannot make no/where: there is no folder no",)),
        (("mlp", *both, "-o", "file"), ("file is a file: give a folder",)),
        (("mlp", *both, "-o", "there"), ("there/torch.json exists; add --force",)),
    ]:
        ended = roofline("compare", *words)
        assert ended.code == 2
        assert ended.err.splitlines()[-1].startswith("roofline: ")
        for part in parts:
            assert part in ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "there"]
    assert (tmp_path / "there" / "torch.json").read_text() == "mine"


@pytest.mark.usefixtures("_nothing_runs")
def test_a_backend_that_has_no_such_model_is_left_out(roofline: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two others would be measured; of two, one is not enough."""
    pytest.importorskip("torch")
    from roofline.cli.options import request
    from roofline.errors import InputError

    real = request.make_request

    def make(model: str, backend: str, **asked: Any) -> Any:
        if backend == "jax":
            raise InputError("There is no model called 'mlp'.")
        return real(model, backend, **asked)

    monkeypatch.setattr(compare, "make_request", make)
    ended = roofline("compare", "mlp", "--backends", "torch,jax,torchscript", *SMALL)
    assert (ended.code, "something was measured" in ended.err) == (70, True)
    ended = roofline("compare", "mlp", "--backends", "torch,jax", *SMALL)
    refused(ended, 2, "There is no model called 'mlp'")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("torch,jax", ["torch", "jax"]),
        ("a:x=1,y=2,b", ["a:x=1,y=2", "b"]),
        ("a:x=1,b:y=2,z=3", ["a:x=1", "b:y=2,z=3"]),
        (" a , b ,", ["a", "b"]),
        ("a,x=1", ["a:x=1"]),
        ("x=1,a", ["x=1", "a"]),
        ("", []),
    ],
)
def test_names_and_options_of_backends(text: str, names: list[str]) -> None:
    assert compare.split_backends(text) == names
