"""The accounts of pairs that ship, in docs/h100.md: `make annotations` writes them.

A test holds the page to what this writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from roofline import units
from roofline.comparison.ranking import rank
from roofline.content.signed import signed
from roofline.core.schema import load

PAGE = Path(__file__).resolve().parents[1] / "docs" / "h100.md"
BEGIN, END = "<!-- accounts -->\n", "<!-- /accounts -->\n"
#: Rows of less than this part of the longer step are summed up.
LEAST = 5e-3
#: Pairs of profiles/h100, the slower one first, and what they show.
PAIRS = (
    ("torch-infer-b32-bf16", "torch-compile-default-infer-b32-bf16", "op by op against compiled"),
    ("torch-infer-b1-bf16", "torch-compile-reduce-overhead-infer-b1-bf16", "op by op against a CUDA graph"),
    ("torch-train-b32-bf16", "torch-compile-default-train-b32-bf16", "training, op by op against compiled"),
    ("torch-infer-b32-fp32", "torch-infer-b32-tf32", "fp32 against TF32"),
    ("torch-infer-b32-tf32", "jax-buffers-on-infer-b32-tf32", "PyTorch against JAX"),
    ("torch-train-b32-tf32", "jax-buffers-on-train-b32-tf32", "training, PyTorch against JAX"),
)


def section() -> str:
    """Return the accounts of all pairs as Markdown."""
    return "\n".join(line for pair in PAIRS for line in lines(*pair)) + "\n"


def lines(a: str, b: str, title: str) -> Iterator[str]:
    """Yield the account of one pair: a heading, its settings and a table of its rows."""
    (pair,) = rank([load(f"h100/bert-{name}") for name in (a, b)], as_given=True).pairs
    comparison = pair.comparison
    walls = f"{units.seconds(comparison.a.wall)} and {units.seconds(comparison.b.wall)} a step"
    yield f"**{title[0].upper()}{title[1:]}** (`{a}` and `{b}`): {walls}."
    yield ""
    yield from (f"Settings: {row.text}\n" for row in pair.account.rows if row.kind == "setting")
    yield "| A − B | row |"
    yield "|---:|---|"
    least = LEAST * max(comparison.a.wall, comparison.b.wall)
    shown = [row for row in pair.account.rows if abs(row.seconds or 0.0) >= least]
    yield from (f"| {signed(row.seconds or 0.0)} | {row.text.replace('*', chr(92) + '*')} |" for row in shown)
    rest = comparison.difference - sum(row.seconds or 0.0 for row in shown)
    yield f"| {signed(rest)} | all other rows |"
    yield ""


def written() -> str:
    """Return the page with the accounts as they are now."""
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{section()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(written(), encoding="utf-8")
    else:
        print(section())
