"""The verbs `show` and `plot`, called as functions: what they print, write and refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline import devices
from roofline.analysis.analysis import KEYS
from roofline.cli import plot, show
from roofline.cli.options import paths, width
from roofline.core import schema, shipped
from roofline.core.schema import save
from roofline.errors import InputError

Run = Callable[..., Any]

NAME = "h100/bert-torch-infer-b32-tf32"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    save(handmade.profile(), tmp_path / "p.json")
    return tmp_path / "p.json"


def test_show_prints_the_document(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show.command([profile])
    assert capsys.readouterr().out.startswith("toy tiny · training · batch 4 x 25 tokens")
    show.command([profile], details=True)
    assert capsys.readouterr().out.startswith("toy train, b4 s25 on Round Device")
    show.command([profile], by="op", format="csv")
    assert capsys.readouterr().out.startswith("op,ops,kernels,")


def test_show_names_the_alternatives(profile: Path) -> None:
    with pytest.raises(InputError, match=r"no format called 'xml'; there are: csv, json, latex, markdown, .*text"):
        show.command([profile], format="xml")
    with pytest.raises(InputError, match=r"no table by 'colour'; there are: class, group"):
        show.command([profile], by="colour")
    with pytest.raises(InputError, match="Cannot read"):
        show.command([profile.with_name("absent.json")])


@pytest.fixture(scope="module")
def _read_once() -> Iterator[None]:
    """All profiles that ship, and their analyses: seconds of each list."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "load", cache(schema.load))
        yield


@pytest.mark.usefixtures("_read_once")
def test_show_alone_lists_what_ships(capsys: pytest.CaptureFixture[str]) -> None:
    show.command(None)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert set(shipped.paths()) <= {line.partition(" ")[0] for line in lines}
    assert "h100 on NVIDIA H100 80GB HBM3" in lines
    show.command(None, width=140)
    wide = capsys.readouterr().out.splitlines()
    (row,) = (line.split() for line in wide if line.startswith("h100/bert-torch-infer-b32-tf32 "))
    assert row[1:] == ["bert", "infer", "32", "tf32", "torch", "10.6"]


@pytest.mark.usefixtures("_read_once")
def test_the_list_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    show.command(None, format="json")
    listed = json.loads(capsys.readouterr().out)
    assert listed["schema"] == 1
    assert [profile["name"] for profile in listed["profiles"]] == list(shipped.paths())
    rows = {profile["name"]: profile for profile in listed["profiles"]}
    row = rows["h100/bert-jax-buffers-off-infer-b32-tf32"]
    assert row["seconds"] == pytest.approx(4.740e-3, rel=1e-3)  # docs/h100.md
    del row["seconds"]
    assert row == {
        "name": "h100/bert-jax-buffers-off-infer-b32-tf32",
        "model": "bert",
        "size": "base",
        "mode": "infer",
        "batch": 32,
        "seq": 128,
        "precision": "tf32",
        "backend": "jax",
        "options": {"command_buffers": "off"},
        "device": "NVIDIA H100 80GB HBM3",
    }
    assert rows["keras-benchmark/segment-anything-infer-b1-torch"]["seq"] is None


def test_a_list_takes_no_options_of_a_profile() -> None:
    for options in ({"by": "op"}, {"top": 3}, {"every": True}, {"contains": ""}, {"caption": "long"}):
        with pytest.raises(InputError, match=r"Give a PROFILE"):
            show.command(None, **options)
    with pytest.raises(InputError, match=r"There is no format of the list called 'csv'; there are: json, text\."):
        show.command(None, format="csv")


def test_one_table_and_the_whole_summary_are_not_asked_for_together(profile: Path) -> None:
    with pytest.raises(InputError, match="--details and --by exclude each other"):
        show.command([str(profile)], by="op", details=True)


def test_help_lists_the_keys_there_are() -> None:
    listed = re.search(r"by ([a-z|]+)\.", show.command.__annotations__["by"])
    assert listed is not None
    assert sorted(listed[1].split("|")) == sorted(KEYS)


def test_plot_writes_a_figure_and_prints_its_caption(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for suffix, caption in ((".svg", "short"), (".png", "long")):  # neither is in the way of the other
        figure = profile.with_name(f"x{suffix}")
        plot.command([str(profile)], figure, kind="bound", width="84mm", caption=caption)
        first, second = capsys.readouterr().out.splitlines()
        assert first == f"Wrote {figure}"
        assert second.startswith("toy tiny training, batch 4 x 25 tokens: 43 % memory-limited, ")
        told.append(second)
    assert "n = 10 steps" not in told[0]
    assert "n = 10 steps" in told[1]
    assert {file.name for file in profile.parent.iterdir()} == {"p.json", "x.svg", "x.png"}
    with pytest.raises(InputError, match="no caption called 'none'; there are: short, long"):
        plot.command([str(profile)], profile.with_name("y.svg"), caption="none")


def test_plot_takes_devices_by_name(tmp_path: Path) -> None:
    plot.command(["h100-sxm", "a100-sxm"], tmp_path / "x.png", kind="devices")
    assert (tmp_path / "x.png").exists()
    with pytest.raises(InputError, match="no device called 'h1000'"):
        plot.command(["h1000"], tmp_path / "y.png", kind="devices")
    plot.command(["h100/bert-torch-infer-b1-tf32", "a100-sxm"], tmp_path / "z.png", kind="devices")
    assert not set(shipped.paths()) & set(devices.names())


def test_every_verb_finds_a_profile_that_ships(tmp_path: Path, roofline: Run) -> None:
    a, b = NAME, "h100/bert-jax-buffers-on-infer-b32-tf32"
    for words in (
        ("show", a),
        ("compare", a, b),
        ("plot", a, b, "--kind", "waterfall", "-o", "a.png"),
        ("report", a, b, "-o", "a.html"),
        ("export", a, "-o", "a.csv"),
        ("whatif", a, "--device", "a100-sxm"),
        ("check", a, a, "--counts-only"),
    ):
        ended = roofline(*words)
        assert (ended.code, ended.err) == (0, ""), words
        if "-o" in words:
            assert (tmp_path / words[-1]).exists()
        elif words[0] != "check":
            assert "NVIDIA H100 80GB HBM3" in " ".join(ended.out.split())


def test_a_profile_that_ships_is_never_written_over() -> None:
    with pytest.raises(InputError, match="it is also the input, h100/bert-torch-infer-b32-tf32"):
        paths.check_output(shipped.paths()[NAME], True, inputs=[NAME])


@pytest.mark.parametrize(
    ("text", "inches"), [("3.3in", 3.3), ("8.4cm", 8.4 / 2.54), ("84mm", 84 / 25.4), ("7 in", 7.0)]
)
def test_widths(text: str, inches: float) -> None:
    assert width.read_inches(text) == pytest.approx(inches)


@pytest.mark.parametrize("text", ["3.3", "wide", "-3in", "1e9in", "0in", "nanin", "3.3inch", "٣in", "1mm"])
def test_what_is_no_width(text: str) -> None:
    with pytest.raises(InputError):
        width.read_inches(text)


def test_outputs_are_checked_before_anything_is_drawn(profile: Path, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.json")  # would be refused too, but later
    (tmp_path / "there.svg").write_text("mine")
    for name, why in [
        ("there.svg", "exists; add --force"),
        ("no/folder.svg", "there is no folder"),
        ("x.jpg", "must end in .svg or .pdf or .png"),
    ]:
        with pytest.raises(InputError, match=why.replace(".", r"\.")):
            plot.command([absent], tmp_path / name)
    assert (tmp_path / "there.svg").read_text() == "mine"
    plot.command([str(profile)], tmp_path / "there.svg", force=True)
    assert (tmp_path / "there.svg").read_text() != "mine"


def test_an_output_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "d.svg").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        paths.check_output(tmp_path / "d.svg", force=True)


def test_json_has_all_rows_or_says_how_many_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 6,000 ops all are written."""
    base = handmade.profile()
    save(replace(base, ops=(base.ops[0],) * 6_000), tmp_path / "w.json")
    for by, key, number in (("op", "ops", 6_000), ("kernel", "kernels", None)):
        show.command([tmp_path / "w.json"], by=by, format="json")
        whole = json.loads(capsys.readouterr().out)
        assert (len(whole[key]), whole["rows_left_out"]) == (number or len(whole[key]), 0)
        show.command([tmp_path / "w.json"], by=by, format="json", limit=1)
        cut = json.loads(capsys.readouterr().out)
        assert (len(cut[key]), cut["rows_left_out"]) == (1, len(whole[key]) - 1)
    for options in ({"limit": 0, "format": "json"}, {"limit": 3}, {"limit": 3, "wall": True}):
        with pytest.raises(InputError, match="--limit"):
            show.command([tmp_path / "w.json"], **options)
