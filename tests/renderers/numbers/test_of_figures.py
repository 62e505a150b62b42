"""What figures state in numbers is what the JSON has. A new kind needs a reader."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from same_numbers import cells, check_verdict, document, holds, ops, profile, run, sums, written

from roofline import plugins, units
from roofline.analysis.analysis import analyze
from roofline.comparison.ranking import rank
from roofline.content import wording
from roofline.content.points import points
from roofline.core import shipped
from roofline.core.schema import load
from roofline.renderers import figures
from roofline.renderers.comparison import json as comparison
from roofline.renderers.report import report
from roofline.renderers.report.points import facts


def drawn(kind: str, *letters: str) -> tuple[list[str], str]:
    """The texts in a figure, in order, and its caption."""
    items = [run().device] if kind == "devices" else [run(letter) for letter in letters]
    svg, _ = figures.render(kind, items, ".svg", 7.0)
    caption = re.search(r"<desc[^>]*>(.*?)</desc>", svg.decode(), re.DOTALL)[1]
    return [text.replace("&lt;", "<") for text in re.findall(r"<text[^>]*>([^<]*)<", svg.decode())], caption


def check_ceilings(texts: Sequence[str]) -> None:
    ceilings = document()["device"]["ceilings"]
    told = [found for text in texts for found in re.findall(r"(bf16|fp32|vector|DRAM|\(llc\)) ([\d.]+ G\w+/s)", text)]
    assert told
    keys = {"bf16": ("matrix.bf16",), "fp32": ("matrix.fp32",), "vector": ("matrix.fp32", "vector.fp32"),
            "DRAM": ("dram.",), "(llc)": ("cache.llc",)}  # fmt: skip
    for name, text in told:
        values = [one["value"] for key, one in ceilings.items() if key.startswith(keys[name])]
        assert any(holds(text, value) for value in values), (name, text, values)


def draw_bound() -> None:
    texts, caption = drawn("bound", "a")
    check_verdict(caption)
    found = document()
    (wall,) = (text.removesuffix(" per step") for text in texts if text.endswith("per step"))
    assert holds(wall, found["wall"]["median"])
    for bound in ("compute", "memory"):
        parts = {part: next(t for t in texts if t.startswith(f"{bound}, {part} ")) for part in ("minimum", "above it")}
        floor = found["bounds_floor"][bound]
        assert holds(parts["minimum"].partition(", minimum ")[2], floor)
        assert holds(parts["above it"].partition(", above it ")[2], found["bounds"][bound] - floor)
    (gap,) = (text.removeprefix("host time ") for text in texts if text.startswith("host time "))
    assert holds(gap, found["gap"])
    # The report draws the same pieces, and the first screen of the text the shares of the bounds.
    page = report([profile()])
    pieces = [re.match(r"(\w+), (minimum|above it) (.*)", text) for text in texts]
    for bound, part, time in (piece.groups() for piece in pieces if piece):
        assert f"<title>{bound}, {part}: {time}</title>" in page
    screen = plugins.load("roofline.renderers", "text", "format").render(run(), None)
    for bound in ("compute", "memory"):
        share = re.search(rf"^  {bound} +[█▓]+ +([\d.]+) %", screen, re.MULTILINE)[1]
        assert holds(share, 100 * found["bounds"][bound] / found["wall"]["median"])


def draw_breakdown() -> None:
    texts, _ = drawn("breakdown", "a")
    for by in ("group", "block"):
        rows = cells(by)
        names = texts[texts.index("matmul") :] if by == "group" else texts[texts.index("layers.1") :]
        names = names[: names.index("host time")]
        numbers = iter(texts[texts.index("host time", texts.index(names[-1])) + 1 :])
        for name in names:
            for column in ("FLOP %", "bytes %", "time %"):
                assert holds(next(numbers), rows[name][column]), (name, column)
        assert holds(next(numbers), rows["host time"]["time %"])


def draw_wall() -> None:
    """Shares of the three groups together, in the order of the panels, and their rates next to that of the matmuls."""
    texts, _ = drawn("wall", "a")
    rows = [sums("group")[name] for name in ("matmul", "normalisation", "pointwise")]
    kinds = [
        [row["flops"] + row["vector_flops"] for row in rows],
        [row["bytes_read"] + row["bytes_written"] for row in rows],
        [row["seconds"] for row in rows],
    ]
    numbers = [text for text in texts if re.fullmatch(r"[<>]?[\d.]+", text)]
    shown = 0
    for parts in kinds:
        for part in parts:
            share = 100 * part / sum(parts)
            if shown < len(numbers) and holds(numbers[shown], share):  # the smallest parts have no room for theirs
                shown += 1
            else:
                assert share < 8
    assert shown == len(numbers)
    rates = [work / row["own_seconds"] for work, row in zip(kinds[0], rows, strict=True)]
    told = [text for text in texts if text.startswith("1/")]
    for text, rate in zip(told, rates[:0:-1], strict=True):  # written from the right edge
        assert float(text[2:]) == pytest.approx(rates[0] / rate, rel=0.05)


def largest_of_json(letter: str) -> list[tuple[float, float]]:
    """Share of the step and of the roof of all ops of one signature in one phase that do FLOP, by the JSON [%]."""
    found: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for op in ops(letter):
        if op["flops"] + op["vector_flops"]:
            found.setdefault((op["name"], op["shapes"], op["phase"]), []).append(op)
    wall = document(letter)["wall"]["median"]
    rows = [
        (
            100 * sum(op["seconds"] for op in some) / wall,
            100 * sum(op["floor"] for op in some) / sum(op["own_seconds"] for op in some),
        )
        for some in found.values()
    ]
    return sorted(rows, reverse=True)


def draw_roofline() -> None:
    """The largest ops as the figure lists them, as the report's points have them, and by the JSON."""
    texts, _ = drawn("roofline", "a")
    check_ceilings(texts)
    told = [
        re.search(r", (<?[\d.]+ %) of the step, at ([\d.]+) (%|times)", text).groups()
        for text in texts
        if re.match(r"\d: ", text)
    ]
    truth = largest_of_json("a")
    assert len(told) >= 3
    analysis = run("a")
    placed = points(analysis).placed
    for (share, of_roof, unit), (exact_share, exact), point in zip(told, truth, placed, strict=False):
        stated = dict(facts(analysis, point))
        assert holds(share, exact_share)
        assert share in stated["time"]
        if unit == "%":
            assert round(float(of_roof)) == round(exact)
            assert holds(stated["of roof"], exact)
        else:  # so many times the least time of a launch
            assert float(of_roof) == pytest.approx(100 / exact, rel=0.06)


def draw_speedup() -> None:
    texts, _ = drawn("speedup", "a", "b")
    walls = [document(letter)["wall"]["median"] for letter in "ab"]
    fast = next(re.search(r": ([\d.]+ ms), least time", text) for text in texts if "least time" in text)
    slow = next(re.search(r": ([\d.]+ ms), took ([\d.]+x) longer", text) for text in texts if "longer" in text)
    assert holds(fast[1], walls[1])
    assert holds(slow[1], walls[0])
    assert holds(slow[2], walls[0] / walls[1])


def draw_waterfall() -> None:
    texts, _ = drawn("waterfall", "a", "b")
    ends = [document(letter)["wall"]["median"] for letter in "ab"]
    numbers = [text for text in texts if re.fullmatch(r"[−+]?[\d.]+ [mµn]?s", text)]
    ranking = rank([profile("a"), profile("b")], as_given=True)
    rows = json.loads(comparison.render(ranking))["account"]
    shown = [row for row in rows if row["seconds"] is not None][: len(numbers) - 3]
    # These runs do not say which is faster: rows are A - B, in the account and here.
    assert holds(numbers[0], ends[1])
    assert holds(numbers[-1], ends[0])
    assert all(holds(text, row["seconds"]) for row, text in zip(shown, numbers[1:-2], strict=True))
    parts = [sum(ends) / 2 for ends in (written(text)[1:] for text in numbers[1:-1])]
    assert sum(parts) == pytest.approx(ends[0] - ends[1], abs=5e-6 * len(parts))
    # The report has these bars, with the minus of a keyboard; Markdown and CSV have the rows with the same seconds.
    page = report([profile("a"), profile("b")])
    table = page.partition("Waterfall from B to A")[2].partition("</table>")[0]
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>([^<]*)</td>", table)]
    copied = [text.replace("−", "-") for text in numbers]
    assert [cell for cell in cells if cell in copied] == copied
    rows = csv.DictReader(io.StringIO(plugins.load("roofline.renderers.comparison", "csv", "format").render(ranking)))
    seconds = [float(row["seconds"]) for row in rows if row.get("seconds")]
    for text, row in zip(numbers[1:-2], shown, strict=True):
        assert any(holds(text, value) for value in seconds), (text, row["seconds"])


def stated_idle(words: str, name: str) -> tuple[str, str, str, str]:
    """The step as profiled, its idle time, the plain step and its gap, as every writer of a timeline states them."""
    time = r"([\d.]+ \S?s)"
    found = re.search(rf"[Oo]ne profiled step {time}, {time} of it idle; plain steps {time}, {name} {time}", words)
    assert found, words
    return found.groups()


def draw_timeline() -> None:
    texts, caption = drawn("timeline", "a")
    told = stated_idle(caption, "host time")
    assert stated_idle(next(text for text in texts if "one profiled step" in text), "host time") == told
    assert holds(told[0], profile().profiled.walls[0])
    assert holds(told[2], document()["wall"]["median"])
    assert holds(told[3], document()["gap"])


@pytest.mark.parametrize("name", ["h100/bert-torch-infer-b32-bf16", "bert-torch-infer-b1-s128-amd-epyc-1"])
def test_idle_time_and_its_parts_are_the_same_in_every_writer(name: str) -> None:
    """Of one step on a GPU, whose stretches have causes, and of one on a CPU, whose stretches have none."""
    analysis = analyze(load(shipped.paths()[name]))
    gap = "GPU idle" if analysis.has_queue else "host time"
    truth = json.loads(plugins.load("roofline.renderers", "json", "format").render(analysis, "group"))
    svg, caption = figures.render("timeline", [analysis], ".svg", 7.0)
    page = report([analysis.profile]).replace("\xa0", " ")  # it keeps numbers and units on one line
    told = {stated_idle(words, gap) for words in (svg.decode(), caption, page)}
    assert len(told) == 1
    as_profiled, idle, plain, gap_told = told.pop()
    text = plugins.load("roofline.renderers", "text", "format").render(analysis, None)
    assert gap_told in text
    assert gap_told in page
    # A step as profiled is its ops and its idle time, with what ran beside others counted once: to 1 % of the step.
    busy = sum(op.own_ns[0] - op.overlap_ns for op in analysis.profile.ops) * 1e-9
    assert sum(written(idle)[1:]) / 2 + busy == pytest.approx(sum(written(as_profiled)[1:]) / 2, rel=0.01)
    assert holds(plain, truth["wall"]["median"])
    assert holds(gap_told, truth["gap"])
    parts = sorted(truth["gap_causes"].items(), key=lambda part: -part[1])[:2]
    assert f"{units.seconds(parts[0][1])} {wording.gap_part(parts[0][0])}" in text  # it has room for one part
    for part, seconds in parts:
        stated = re.search(rf"([\d.]+ \S?s) {wording.gap_part(part)}", caption)[1]
        assert holds(stated, seconds)
        assert f"{stated} {wording.gap_part(part)}" in page


def draw_memory() -> None:
    _, caption = drawn("memory", "a")
    truth = document()["memory"]
    (peak,) = re.findall(r"a step holds (?:at least )?([\d.]+ \S?B) at once", caption)
    assert holds(peak, truth["peak"])
    in_use = re.search(r"(?:at least )?([\d.]+ \S?B) in use in (\S+)", caption)
    assert holds(in_use[1], sum(filter(None, truth["parts"].values())))
    assert in_use[2] == truth["reached"]["name"]


FIGURES: dict[str, Callable[[], None]] = {
    "bound": draw_bound,
    "breakdown": draw_breakdown,
    "devices": lambda: check_ceilings(drawn("devices")[0]),
    "memory": draw_memory,
    "roofline": draw_roofline,
    "speedup": draw_speedup,
    "timeline": draw_timeline,
    "waterfall": draw_waterfall,
    "wall": draw_wall,
}


# The map of a sweep is read in test_sweep_map.py.
@pytest.mark.parametrize("kind", [kind for kind in plugins.names("roofline.renderers.figures") if kind != "sweep"])
def test_figures(kind: str) -> None:
    FIGURES[kind]()
