"""Every format's whole output for the hand-made profile. Expected numbers are derived in handmade.py."""

from __future__ import annotations

import json
from collections.abc import Callable

import handmade
import pytest
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis.analysis import analyze

Golden = Callable[[str, str], None]

#: What the file of a format is called, where not by the format's name.
ENDINGS = {"text": "txt", "markdown": "md", "latex": "tex", "perfetto": "perfetto.json"}

CASES = [
    *((name, None) for name in plugins.names("roofline.renderers")),
    *(("text", by) for by in ("class", "op", "scope", "block", "phase", "kernel", "source")),
    ("csv", "op"),
    ("markdown", "block"),
]


@pytest.mark.parametrize(("name", "by"), CASES)
def test_output(name: str, by: str | None, golden: Golden) -> None:
    renderer = plugins.load("roofline.renderers", name, "format")
    text = renderer.render(analyze(handmade.lined() if by == "source" else handmade.profile()), by)
    ending = ENDINGS.get(name, name)
    if ending.endswith("json"):  # the last digits of sums may differ between versions of numpy
        text = json.dumps(_rounded(json.loads(text)), indent=1) + "\n"
    golden(f"handmade{f'-{by}' if by else ''}.{ending}", text)


def test_many_rows_are_cut_and_counted() -> None:
    # 30 distinct ops of 100 µs and room for 25 rows: 5 more, with 500 µs.
    signatures = tuple(replace(handmade.SIGNATURES[2], name=f"op{number}") for number in range(30))
    ops = tuple(handmade.op(number, 1, 1, 100, number, (5,), (6,)) for number in range(30))
    analysis = analyze(handmade.profile(signatures=signatures, ops=ops))
    lines = plugins.load("roofline.renderers", "text", "format").render(analysis, "op").splitlines()
    assert sum(" op" in line and "[100, 1000]" in line for line in lines) == 25
    more = next(line for line in lines if line.endswith("(5 more)"))
    assert more.split()[0] == "5"
    assert "500 µs" in more


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
