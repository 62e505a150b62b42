"""The memory of a step in words, in JSON, in a figure and on the page: the same figures everywhere."""

from __future__ import annotations

import json
import re

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.content.facts import memory as facts
from roofline.core.schema import Memory
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.errors import InputError
from roofline.renderers import json as as_json
from roofline.renderers.report import report

OPS = len(handmade.OPS)
#: 400 kB throughout, 100 kB from op 1 to 3, and 50 kB in op 3, where most is in use.
PARTS = (("parameters", 400_000, 0, OPS - 1), ("activations", 100_000, 1, 3), ("workspace", 50_000, 3, 3))


def profile(**changes):
    recorded = replace(handmade.storages(*PARTS, source="allocator"), **changes)
    return handmade.profile(storages=recorded, memory=Memory(resident=3e8))


def test_the_peak_its_place_and_its_parts_in_words():
    said = dict(reversed(list(facts.facts(profile()))))
    op = handmade.OPS[3]
    assert said["peak memory"].startswith("550 kB")
    assert handmade.SIGNATURES[op.signature].name in said[""]
    assert handmade.BLOCKS[op.block] in said[""]
    assert said[""].endswith("parameters 400 kB, activations 100 kB, workspace 50.0 kB")
    assert said["process"].startswith("300 MB")


def test_in_json():
    made = json.loads(as_json.render(analyze(profile()), None))["memory"]
    assert (made["peak"], made["at_least"], made["resident"]) == (550_000, False, 3e8)
    assert made["reached"]["op"] == 3
    assert made["reached"]["phase"] == handmade.PHASES[handmade.OPS[3].phase]
    assert {kind: size for kind, size in made["parts"].items() if size} == {
        "parameters": 400_000,
        "activations": 100_000,
        "workspace": 50_000,
    }


def test_the_figure_stacks_what_is_in_use():
    pytest.importorskip("matplotlib")
    from roofline.renderers import figures

    drawn, caption = figures.build("memory", [analyze(profile(assigned=600_000.0))])
    (axes,) = drawn.axes
    tops = [max(y for _, y in area.get_path().vertices) for area in axes.patches]
    assert tops == pytest.approx([550, 500, 400])  # kB, the lowest in front
    lines = {tuple(line.get_ydata()) for line in axes.lines}
    assert lines == {(600.0, 600.0), (550.0,)}
    assert "550 kB" in caption.text(long=False)
    assert "600 kB" in caption.text(long=False)


def test_what_the_allocator_measured_is_drawn_above_what_the_ops_use():
    pytest.importorskip("matplotlib")
    from roofline.renderers import figures

    measured = replace(profile(), memory=Memory(peak=700_000.0, source="allocator's peak"))
    drawn, caption = figures.build("memory", [analyze(measured)])
    (axes,) = drawn.axes
    assert {tuple(line.get_ydata()) for line in axes.lines} == {(700.0, 700.0), (550.0,)}
    assert axes.get_ylim()[1] > 700
    assert "700 kB" in caption.title
    assert "550 kB" in caption.text(long=False)
    # On the page 700 kB are the top: 550 kB end 1 - 550 / 700 = 0.2143 of the height below it.
    section = report([measured]).partition('id="memory"')[2].partition("</section>")[0]
    (highest,) = re.findall(r'<path d="([^"]+)" class="part storage-workspace"', section)
    assert min(int(y) for y in re.findall(r"V(\d+)", highest)) == 2143
    assert "700 kB at the top" in section


def test_a_run_whose_memory_is_not_known_is_left_out_and_named():
    pytest.importorskip("matplotlib")
    from roofline.renderers import figures

    unknown = handmade.profile(backend="tensorflow", framework="tensorflow")
    drawn, caption = figures.build("memory", [analyze(unknown), analyze(profile())])
    assert len(drawn.axes) == 1
    assert "Not known of tensorflow." in caption.text(long=False)
    assert "Not known of tensorflow." in [text.get_text() for text in drawn.texts]


def test_a_profile_without_buffers_has_no_figure():
    pytest.importorskip("matplotlib")
    from roofline.renderers import figures

    ops = tuple(replace(op, reads=(), writes=()) for op in handmade.OPS)
    signatures = tuple(replace(signature, reads=(), writes=()) for signature in handmade.SIGNATURES)
    with pytest.raises(InputError, match="not known"):
        figures.build("memory", [analyze(handmade.profile(ops=ops, signatures=signatures))])


def test_the_page_draws_it_with_a_table():
    page = report([profile()])
    section = page.partition('id="memory"')[2].partition("</section>")[0]
    # Of 10,000 units of height parameters have 400 / 550: they end 2,727 from the top; the peak is at the top, 0.
    heights = {
        kind: min(int(y) for y in re.findall(r"V(\d+)", path))
        for path, kind in re.findall(r'<path d="([^"]+)" class="part storage-(\w+)"', section)
    }
    assert heights == {"parameters": 2727, "activations": 909, "workspace": 0}
    rows = re.findall(r"<tr>.*?</tr>", section)
    words = [re.sub(r"<[^>]+>", " ", row).split() for row in rows[1:]]
    assert ["activations", "100", "kB", "100", "kB"] in words
    assert set(STORAGE_KINDS) >= {"activations"}


def test_a_long_step_is_drawn_by_its_highest_ops():
    from roofline.memory.timeline import timeline

    made = timeline(profile())
    # Two stretches of OPS / 2 ops: op 3 is the highest of the first; of the second all are alike, and its first counts.
    assert made.outline(2).tolist() == [3, OPS // 2]
    assert made.outline(100).tolist() == list(range(OPS))
