"""The examples of CONTRIBUTING.md and docs/adding.md: each is read or run as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any

import handmade
import pytest
import typer
from msgspec.structs import replace

from roofline import devices, units
from roofline.analysis.analysis import WorkAnalysis, analyze, timed
from roofline.comparison.account.annotate import read_annotation
from roofline.content.wording import plain
from roofline.core.cost import Cost
from roofline.core.schema import Profile, save
from roofline.core.switch import DROPOUT
from roofline.costs import custom
from roofline.costs.calls import Tensor
from roofline.costs.custom import formula

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:^(?: {4,}\S.*)?\n)+", re.MULTILINE)


def example(page: str, beginning: str) -> str:
    """The indented block of a page that begins so."""
    blocks = (dedent(match[0]).strip("\n") for match in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")))
    (found,) = (block for block in blocks if block.startswith(beginning))
    return f"{found}\n"


def run(page: str, beginning: str, **names: object) -> dict[str, Any]:
    """What an example defines, beside names that the page says where to find."""
    namespace: dict[str, Any] = {"Any": Any, **names}
    exec(compile(f"from __future__ import annotations\n{example(page, beginning)}", page, "exec"), namespace)
    return namespace


def test_a_device(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(example("CONTRIBUTING.md", "name ="))
    device = devices.load(str(tmp_path / "mine.toml"))
    # 12.7 TFLOP/s over 360 GB/s
    assert device.ridge_point("fp32") == pytest.approx(12.7e12 / 360e9)


def test_an_annotation_is_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(example("docs/adding.md", "title ="))
    shipped = read_annotation(ROOT / "roofline" / "comparison" / "annotations" / "sort-for-topk.toml")
    mine = read_annotation(tmp_path / "mine.toml")
    assert (mine.title, mine.rule, mine.advice) == (shipped.title, shipped.rule, shipped.advice)


def test_a_kernel_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "_FORMULAS", {})
    defined = run("CONTRIBUTING.md", "@formula", formula=formula, Tensor=Tensor, Cost=Cost)
    cost = defined["rotary"](Tensor((2, 8), (8, 1), "fp32"))
    assert cost.vector_flops == 3 * 16  # 6 FLOP for each of 8 pairs
    assert cost.bytes_read == cost.bytes_written == 16 * 4


def test_a_format_of_traces() -> None:
    defined = run("CONTRIBUTING.md", "SUFFIXES")
    assert defined["SUFFIXES"] == (".kernels.tsv",)
    assert callable(defined["profile"])


def test_an_output_format() -> None:
    defined = run("CONTRIBUTING.md", "def render", WorkAnalysis=WorkAnalysis, timed=timed, units=units, plain=plain)
    assert "5.00 ms matmul\n" in defined["render"](analyze(handmade.profile()), None)


def test_a_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    defined = run("CONTRIBUTING.md", "def command", Annotated=Annotated, Path=Path, typer=typer)
    save(replace(handmade.profile(), flags=("contended", "unjoined")), tmp_path / "p.json")
    defined["command"](tmp_path / "p.json")
    assert capsys.readouterr().out == "contended\nunjoined\n"


def test_a_backend() -> None:
    names = {"JIT": DROPOUT, "variables": lambda threads, device, options: {}, "MyThingRecorder": object}
    backend = run("docs/adding.md", '"""MyThing', **names)["BACKEND"]
    assert (backend.framework, backend.options) == ("mything", {"jit": ("on", "off")})
    assert isinstance(handmade.profile(), Profile)
