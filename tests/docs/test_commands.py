"""Pages that show commands with their output: each command is run, in order, and prints what the page says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parent))
from pages import ROOT, Command, File, flat, labels, typed

PAGES = sorted(
    page
    for pages in ("README.md", "docs/**/*.md")
    for page in ROOT.glob(pages)
    if "```console" in page.read_text(encoding="utf-8")
)
#: Exit codes of those that do not end with 0.
ENDS = {"check": 1}
#: What of a page that measures holds in every run, and why. What `compare` finds does not: a busy machine hides it.
HOLDS = {
    "ten-minutes.md": (
        "6.29 MFLOP",  # 2 * 12 heads, two products each: 24 * 2 * 2 * 32 * 32 * 64 FLOP
        "2 of 5 gates failed",
        "4 49 +45 0 FAILED",  # 12 heads of product, division, softmax, product, and one stack, against 4 ops
    ),
    "continuous-integration.md": ("2 of 5 gates failed", "FAILED: kernels +1 (limit 0)"),  # one clone
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the commands run: saved profiles are where they are in a checkout."""
    for name in ("docs", "profiles", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page(page: Path, folder: Path, measuring: Callable[..., object]) -> None:
    steps = list(typed(page))
    measures = any(isinstance(step, Command) and "profile" in step.words for step in steps)
    printed, shown = [], []
    for step in steps:
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        program, verb = step.words[:2]
        assert program == "roofline"
        ended = measuring(*step.words[1:])
        assert ended.code == ENDS.get(verb, 0), f"{step.words}: {ended.err}"
        output = flat(ended.out)
        for part in step.shown:
            wanted = [flat(label) for label in labels(part)] if measures else [flat(part)]
            assert not [text for text in wanted if text not in output], (
                f"{step.words} prints no longer what {page} says"
            )
        printed.append(output)
        shown += step.shown
    for fact in HOLDS.get(page.name, ()):
        assert fact in flat("".join(shown)), f"{page} no longer says {fact!r}"
        assert fact in " ".join(printed), f"{fact!r} is no longer so"
