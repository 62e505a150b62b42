"""What a compiler did to the step, as each format shows it: facts in words and fields, and what was fused."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable

import handmade
import pytest
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis.analysis import Analysis, analyze
from roofline.content import wording
from roofline.core.schema import Compilation, Profile

FACTS = Compilation(
    compiler="torch.compile",
    seconds=0.21,
    graphs=2,
    breaks={"a print: not traced (in forward at net.py:7)": 2, "a branch on data": 1},
    recompilations=("forward at net.py:7: tensor 'x' dtype mismatch",),
    guards=1978,
    eager={"optimizer": (45, 3.1e-3)},
    notes=("mode=reduce-overhead: CUDA graphs need a GPU; on a CPU it compiles as default does",),
)


def compiled(facts: Compilation | None = FACTS, **changes: object) -> Profile:
    """The hand-made step whose softmax is a fused kernel of the embedding's and the layer norm's signatures.

    The second of the parts stands in another place: scope toy/norm, block norm + residual + dropout.
    """
    signatures = list(handmade.SIGNATURES)
    signatures[3] = replace(signatures[3], name="cpp_fused_native_layer_norm_embedding_0", shapes="")
    ops = list(handmade.OPS)
    ops[4] = replace(ops[4], constituents=(0, 5), places=((0, 0, 0), (4, 0, 3)))
    return handmade.profile(signatures=tuple(signatures), ops=tuple(ops), compilation=facts, **changes)


def render(name: str, analysis: Analysis, by: str | None) -> str:
    text = plugins.load("roofline.renderers", name, "format").render(analysis, by)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("by", [None, "op"])
def test_text(by: str | None, golden: Callable[[str, str], None]) -> None:
    golden(f"compiled{f'-{by}' if by else ''}.txt", render("text", analyze(compiled()), by))


def test_facts_in_words() -> None:
    head, *rest = wording.compilation(analyze(compiled()))
    assert head == (
        "torch.compile (mode default) in 210 ms, inside the first step: 2 graphs per step, 1,978 guards, 3 graph "
        "breaks, 1 recompilation; outside them 45 ops of the optimizer (3.10 ms)"
    )
    assert rest == [
        "graph break: a print: not traced (in forward at net.py:7) (2 times)",
        "graph break: a branch on data",
        "recompiled: forward at net.py:7: tensor 'x' dtype mismatch",
        *FACTS.notes,
    ]


def test_what_is_not_known_is_not_told_and_one_is_not_plural() -> None:
    facts = Compilation(compiler="TorchScript", mode="frozen", graphs=1, opaque=1, eager={"decode": (1, 2e-6)})
    assert wording.compilation(analyze(compiled(facts))) == [
        "TorchScript (mode frozen): 1 graph per step, 1 region whose inside is not known, no graph break; outside them "
        "1 op of decode (2.00 µs)"
    ]
    nothing = Compilation(compiler="torch.compile", notes=("nothing was compiled: no frame was traced",))
    assert wording.compilation(analyze(compiled(nothing))) == [
        "torch.compile (mode default): no compiled graph runs in a step, no graph break",
        "nothing was compiled: no frame was traced",
    ]


@pytest.mark.parametrize("first", [0.2, None])
def test_what_took_longer_than_the_first_step_was_not_all_in_it(first: float | None) -> None:
    words = wording.compilation(analyze(compiled(wall=replace(handmade.profile().wall, first=first))))
    assert words[0].startswith("torch.compile (mode default) in 210 ms: 2 graphs per step")


def test_times_outside_graphs_are_scaled_as_those_of_the_ops() -> None:
    # Profiled steps of 25 ms after correction, twice a plain one: op times count half.
    profiled = handmade.profile().profiled
    assert profiled is not None
    analysis = analyze(compiled(profiled=replace(profiled, corrected=(25e-3,) * 3)))
    assert wording.compilation(analysis)[0].endswith("outside them 45 ops of the optimizer (1.55 ms)")
    document = json.loads(render("json", analysis, None))
    assert document["compilation"]["eager"]["optimizer"]["seconds"] == pytest.approx(1.55e-3)


def test_of_many_reasons_the_first_are_told_and_the_rest_counted() -> None:
    facts = Compilation(compiler="torch.compile", breaks={f"reason {n}": 1 for n in range(9)})
    assert wording.compilation(analyze(compiled(facts)))[-2:] == [
        "graph break: reason 4",
        "graph break: for 4 more reasons",
    ]


def test_fields_for_programs() -> None:
    document = json.loads(render("json", analyze(compiled()), "op"))
    assert document["compilation"] == {
        "compiler": "torch.compile",
        "mode": "default",
        "seconds": 0.21,
        "graphs": 2,
        "breaks": FACTS.breaks,
        "recompilations": list(FACTS.recompilations),
        "guards": 1978,
        "eager": {"optimizer": {"ops": 45, "seconds": 3.1e-3}},
        "opaque": 0,
        "notes": list(FACTS.notes),
    }
    assert [len(op["constituents"]) for op in document["ops"]] == [0, 0, 0, 0, 2, 0, 0, 0]
    assert document["ops"][4]["constituents"][1] == {
        "name": "aten::native_layer_norm",
        "kind": "layer-norm",
        "class": "normalisation",
        "phase": "forward",
        "scope": "toy/norm",
        "block": "norm + residual + dropout",
        "shapes": "[1, 1000]",
    }
    assert json.loads(render("json", analyze(compiled(None)), None))["compilation"] is None


def test_parts_without_places_stand_where_the_op_does() -> None:
    profile = compiled()
    ops = tuple(replace(op, places=()) for op in profile.ops)
    analysis = analyze(replace(profile, ops=ops))
    parts = analysis.constituents(ops[4])
    assert {(part.scope, part.phase, part.block) for part in parts} == {("toy/attention", "forward", "attention core")}
    # The phase decides the class of a part as it does that of an op.
    inside = analyze(replace(profile, ops=tuple(replace(op, phase=1, places=()) for op in profile.ops)))
    assert {part.op_class for part in inside.constituents(inside.profile.ops[4])} == {"optimizer"}


@pytest.mark.parametrize("name", ["markdown", "latex", "csv", "perfetto"])
def test_every_format_tells_what_was_fused(name: str) -> None:
    text = render(name, analyze(compiled()), "op").replace("\\", "")  # in LaTeX as a comment
    told = {"csv": "aten::embedding; aten::native_layer_norm", "perfetto": "aten::native_layer_norm toy/norm"}
    assert told.get(name, "cpp_fused_native_layer_norm_embedding_0 [embedding, native_layer_norm]") in text


def test_a_table_has_the_column_only_where_something_was_fused() -> None:
    fused, plain = (
        list(csv.DictReader(io.StringIO(render("csv", analyze(profile), "op"))))
        for profile in (compiled(), handmade.profile())
    )
    assert "constituents" not in plain[0]
    assert sorted(row["constituents"] for row in fused)[:6] == [""] * 6


def test_many_parts_take_two_lines_at_most() -> None:
    profile = compiled()
    names = tuple(replace(handmade.SIGNATURES[2], name=f"aten::quite_a_long_name_{n}") for n in range(20))
    first = len(profile.signatures)
    ops = list(profile.ops)
    ops[4] = replace(ops[4], constituents=tuple(range(first, first + 20)), places=())
    text = render("text", analyze(replace(profile, signatures=profile.signatures + names, ops=tuple(ops))), "op")
    assert max(map(len, text.splitlines())) <= 100
    lines = [line.strip() for line in text.splitlines() if "quite_a_long" in line]
    assert len(lines) == 2
    assert lines[0].startswith("[quite_a_long_name_0,")
    assert lines[1].endswith(" …")


def test_a_step_that_was_only_counted_tells_them_too() -> None:
    text = render("text", analyze(compiled(profiled=None)), None)
    assert (
        "cpp_fused"
        in render("text", analyze(compiled(profiled=None)), "op").partition("\n  [embedding, native_layer_norm]\n")[0]
    )
    below = text.partition("Work known of 7 of 8 ops.\n\n")[2]
    assert re.search(r"^compiled +torch\.compile \(mode default\) in 210 ms", below, re.MULTILINE)
