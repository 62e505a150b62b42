"""A profile that was counted and not timed, in every verb: it has work, and no time anywhere."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import handmade
import pytest

import roofline as package
from roofline import plugins
from roofline.core.schema import save
from tests.cli.conftest import call, children_here

Run = Callable[..., Any]

#: Forward products of 64 samples: 2 * 64 * (4*8 + 8*8 + 8*4) FLOP.
FLOPS = 16384
MLP = ("profile", "mlp", "--backend", "torch", "--batch", "64", "--size", "tiny", "--threads", "1", "--count-only")
#: What only a time can say.
TIMES = re.compile(r"per step|host time|\bnan\b|attained \d|\d (ns|µs|ms|s)\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, str]) -> Path:
    """A folder with c.json, an mlp that was counted, and m.json, a measured step."""
    folder = tmp_path_factory.mktemp("counted")
    with children_here():
        ended = call((*MLP, "-o", "c.json"), folder, variables)
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1] == "Next: roofline plot c.json --kind breakdown -o c.svg"
    save(handmade.profile(), folder / "m.json")
    return folder


@pytest.fixture
def counted(folder: Path, roofline: Run, tmp_path: Path) -> Run:
    """Runs a command beside copies of them."""
    for name in ("c.json", "m.json"):
        shutil.copy(folder / name, tmp_path)
    return roofline


def test_the_next_line_of_a_counted_profile_draws_it(counted: Run) -> None:
    ended = counted("plot", "c.json", "--kind", "breakdown", "-o", "c.svg")
    assert ended.code == 0, ended.err
    assert not TIMES.search(ended.out)


def test_show(counted: Run) -> None:
    for form in plugins.names("roofline.renderers"):
        for by in ((), *(("--by", key) for key in ("group", "op", "scope", "kernel", "source"))):
            ended = counted("show", "c.json", "--format", form, *by)
            if form == "perfetto":
                assert (ended.code, ended.err.count("\n")) == (2, 1)
                assert "counted and not timed: measure it again without --count-only." in ended.err
                continue
            assert ended.code == 0, ended.err
            assert not TIMES.search(ended.out), ended.out
    document = json.loads(counted("show", "c.json", "--format", "json", "--by", "op").out)
    assert document["groups"]["matmul"]["flops"] == FLOPS
    assert {name: document["wall"][name] for name in ("median", "mean", "p10", "p90", "first", "single", "ci95")} == (
        dict.fromkeys(("median", "mean", "p10", "p90", "first", "single", "ci95"))
    )
    assert document["gap"] is None
    assert list(numbers(document, ("seconds", "own_seconds", "floor", "loss", "uncosted"))) == []


def numbers(value: Any, names: tuple[str, ...]) -> Iterator[float]:
    """All numbers that stand under these names, at any depth."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if name in names and isinstance(inside, int | float):
                yield inside
            yield from numbers(inside, names)
    elif isinstance(value, list):
        for inside in value:
            yield from numbers(inside, names)


def test_rows_are_sorted_by_what_is_known(counted: Run) -> None:
    for column in ("name", "ops", "flop", "bytes"):
        assert counted("show", "c.json", "--sort", column).code == 0
    ended = counted("show", "c.json", "--sort", "time")
    assert ended.code == 2
    assert "sort by name, ops, flop, bytes" in ended.err


@pytest.mark.parametrize("other", [(), ("m.json",)])
def test_plot(counted: Run, other: tuple[str, ...], tmp_path: Path) -> None:
    drawn = []
    for kind in plugins.names("roofline.renderers.figures"):
        ended = counted("plot", "c.json", *other, "--kind", kind, "-o", f"{kind}.svg")
        if ended.code == 0:
            drawn.append(kind)
            continue
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        assert not (tmp_path / f"{kind}.svg").exists()
        if kind not in ("devices", "sweep"):  # a count-only profile knows none of the one, and is none of the other
            assert "was counted and not timed" in ended.err
            assert "draw --kind breakdown (the shares of FLOP and bytes) or --kind memory" in ended.err
    # The devices of both: one of them has ceilings.
    of_counted = ["breakdown", "memory", "roofline", "wall"]
    assert drawn == (sorted([*of_counted, "devices"]) if other else of_counted)
    if not other:
        for kind in drawn:
            assert not TIMES.search((tmp_path / f"{kind}.svg").read_text())


def test_report(counted: Run, tmp_path: Path) -> None:
    assert counted("report", "c.json", "-o", "c.html").code == 0
    page = (tmp_path / "c.html").read_text()
    body = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert "the work of one step, counted and not timed" in body
    assert "Each tick stands at the FLOP" in body
    assert not re.search(r"\d (ns|µs|ms|s) per step|host time|not measured", body)
    assert counted("report", "c.json", "m.json", "-o", "both.html").code == 0
    assert "was counted and not timed" in (tmp_path / "both.html").read_text()


def test_compare(counted: Run) -> None:
    for names in (("c.json", "m.json"), ("m.json", "c.json"), ("c.json", "m.json", "--format", "json")):
        ended = counted("compare", *names)
        assert (ended.code, ended.out) == (2, "")
        assert "c.json was counted and not timed: measure it again without --count-only." in ended.err


def test_check(counted: Run) -> None:
    assert counted("check", "c.json", "c.json", "--counts-only").code == 0
    ended = counted("check", "c.json", "c.json")
    assert ended.code == 2
    assert "was counted and not timed: measure it again without --count-only, or add --counts-only." in ended.err


def test_whatif(counted: Run) -> None:
    ended = counted("whatif", "c.json", "--device", "h100-sxm")
    assert ended.code == 0
    assert "counted and not run; on NVIDIA H100 SXM at least" in ended.out


def test_export(counted: Run, tmp_path: Path) -> None:
    for suffix in (".csv", ".parquet"):
        assert counted("export", "c.json", "-o", f"c{suffix}").code == 0
    for suffix in (".perfetto.json", ".speedscope.json"):
        ended = counted("export", "c.json", "-o", f"c{suffix}")
        assert ended.code == 2
        assert "counted and not timed" in ended.err
        assert not (tmp_path / f"c{suffix}").exists()


def test_in_python(counted: Run, tmp_path: Path) -> None:
    profile = package.load(tmp_path / "c.json")
    analysis = package.analyze(profile)
    assert profile.wall.steps == profile.wall.single == ()
    assert profile.wall.first is not None
    unknown = (analysis.wall, analysis.busy, analysis.gap, analysis.gap_interval, analysis.gap_causes, analysis.mfu)
    assert unknown == (None,) * 6
    assert analysis.total.flops == FLOPS
    assert not hasattr(analysis.total, "seconds")
    assert not hasattr(analysis.by("group")["matmul"], "floor")
    for result in (profile, analysis):
        assert "counted and not timed" in str(result)
        assert not TIMES.search(result._repr_html_())
        assert result.to_dict()["wall"]["median"] is None
        assert result.to_pandas().seconds.isna().all()
    with pytest.raises(package.errors.InputError, match="counted and not timed"):
        package.plot(profile)
    assert not TIMES.search(package.plot(profile, kind="breakdown").caption)
    with pytest.raises(package.errors.InputError, match="counted and not timed"):
        package.compare(profile, handmade.profile())
