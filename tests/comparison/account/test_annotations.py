"""Names on rows: what they ask for, which run a sentence is about, and that advice was measured."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from msgspec.structs import replace

from roofline.analysis import gap_parts
from roofline.analysis.gap_parts import NOT_KNOWN, PAGE_FAULTS, SLEEPING
from roofline.comparison.account.annotate import annotate, known_annotations, read_annotation, rule_of
from roofline.comparison.account.annotation import Pattern
from roofline.comparison.account.row import Amount, OpChange, Row
from roofline.core.framework import framework
from roofline.core.schema import load
from roofline.core.shipped import paths
from roofline.core.switch import COMPILED_AWAY, FLOAT32, LAUNCHED_AWAY, MEMORY, THREADS
from roofline.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
PARTS = {value for name, value in vars(gap_parts).items() if name.isupper() and isinstance(value, str)}
KINDS = {"attention", "dropout", "optimizer", COMPILED_AWAY, FLOAT32, LAUNCHED_AWAY, MEMORY, THREADS}


@cache
def script(name: str) -> ModuleType:
    """A file of benchmarks/, which is no package: its files import one another as scripts do."""
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


plants = script("plants")


def row(*ops: tuple[str, str | None, float, float, float], kind: str = "only", **more: object) -> Row:
    """A row of ops: name, type, how often A and B execute it, microseconds of A less B."""
    changes = tuple(OpChange(name=name, type=of, a=a, b=b, seconds=seconds * 1e-6) for name, of, a, b, seconds in ops)
    a, b = (Amount(launches=sum(op[side] for op in ops), bytes=1e6) for side in (2, 3))
    more = {"a": a, "b": b, **more}
    return Row(kind=kind, seconds=sum(seconds for *_, seconds in ops) * 1e-6, ops=changes, **more)  # type: ignore[arg-type]


TORCH = ("torch", "torch")


def names(*rows: Row, alike: bool = True) -> list[tuple[str, ...]]:
    return [each.annotations for each in annotate(rows, TORCH, alike=alike)]


def swapped(some: Row) -> Row:
    """The same with A for B."""
    changes = tuple(replace(each, a=each.b, b=each.a, seconds=-(each.seconds or 0.0)) for each in some.ops)
    return replace(some, seconds=-(some.seconds or 0.0), ops=changes, a=some.b, b=some.a)


NORM = (
    ("aten::native_layer_norm", "fp32", 0, 12, -6),
    ("aten::mean", "fp32", 24, 0, 20),
    ("aten::rsqrt", "fp32", 12, 0, 5),
)
DOUBLE = (("aten::gelu", "fp64", 3, 0, 80), ("aten::gelu", "fp32", 0, 3, -15), ("aten::_to_copy", "fp64", 3, 0, 8))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (row(*NORM), ("norm-written-out",)),
        (row(*NORM[1:]), ()),  # means and roots may be anything
        (row(*DOUBLE), ("double-precision",)),
        (row(("aten::gelu", "fp32", 3, 0, 80), ("aten::tanh", "fp32", 0, 3, -15)), ()),
        (row(("aten::repeat", "fp32", 2, 0, 16), ("aten::gather", "fp32", 2, 0, 18)), ("broadcast-copy",)),
        # the sentence does not name it
        (row(*((f"aten::op{n}", "fp32", 1, 0, 9) for n in "abc"), ("aten::repeat", "fp32", 2, 0, 1)), ()),
        (row(("aten::cat", "fp32", 24, 0, 17), ("aten::stack", "fp32", 0, 1, -2)), ("growing-concatenation",)),
        (row(("aten::cat", "fp32", 24, 0, 17)), ()),
        (row(("aten::clone", "fp32", 12, 0, 8)), ("copies",)),
        (row(("aten::clone", "fp32", 12, 0, 8), ("aten::bmm", "fp32", 6, 0, 30)), ()),  # not most of it
        (row(("input_transpose_fusion", "fp32", 36, 0, 42)), ("copies",)),
        (row(("input_transpose_add_fusion", "fp32", 36, 0, 42)), ()),
        (row(("aten::sort", "fp32", 2, 0, 49), ("aten::topk", "fp32", 0, 2, -18)), ("sort-for-topk",)),
        (row(("aten::sort", "fp32", 2, 0, 49)), ()),
        (row(("dot", "fp32", 2, 0, 54), ("bitcast_gather_fusion", "fp32", 0, 1, -1)), ("product-for-gather",)),
        (row(("dot", "fp32", 3, 2, 54), ("bitcast_gather_fusion", "fp32", 0, 1, -1)), ()),  # products in both
        (row(("aten::gelu", "fp32", 48, 3, 29), ("aten::cat", "fp32", 3, 0, 2)), ("in-pieces",)),
        (row(("aten::gelu", "fp32", 4, 3, 29)), ()),
        # as large as in the other run
        (row(("aten::gelu", "fp32", 6, 3, 29), a=Amount(launches=6, bytes=2e6), b=Amount(launches=3, bytes=1e6)), ()),
        (row(("aten::gelu", "fp32", 48, 3, 29), times=48), ()),
        (
            row(("aten::addmm", "fp32", 12, 0, 200), ("aten::gelu", "fp32", 3, 0, 9), phase="backward"),
            ("recomputation",),
        ),
        (row(("aten::mm", "fp32", 12, 0, 200), phase="backward"), ()),
        (row(("aten::mul_", "fp32", 51, 0, 30), ("aten::_fused_adamw_", "fp32", 0, 1, -9)), ("tensor-by-tensor",)),
        (row(("xla_ffi_python_cpu_callback", "fp32", 4, 0, 34)), ("callback",)),
        (row(("aten::native_dropout", "bf16", 24, 0, 91)), ("dropout",)),
        (
            row(("aten::addmm", "fp32", 74, 0, 1686), ("aten::addmm", "tf32", 0, 74, -257), kind="rate"),
            ("another-type",),
        ),
        (row(("aten::addmm", "fp32", 74, 74, 16), kind="rate"), ()),
    ],
    ids=lambda value: None if isinstance(value, tuple) else value.ops[0].name,
)
def test_a_name_asks_for_its_definition(shown: Row, expected: tuple[str, ...]) -> None:
    assert names(shown) == [expected] == names(swapped(shown))


@pytest.mark.parametrize("fused", ["aten::_scaled_dot_product_flash_attention", "aiter::_flash_attn_forward", "my::op"])
def test_attention_is_one_op_by_what_it_does_and_not_by_its_name(fused: str) -> None:
    written_out = [("gemm", 24, 0, ("contraction", "pointwise")), ("triton", 12, 0, ("softmax",))]

    def shown(one_op: tuple[str, ...]) -> Row:
        changes = [*written_out, (fused, 0, 12, one_op)]
        ops = [
            OpChange(name=name, a=a, b=b, classes=classes, seconds=(a - b) * 1e-6) for name, a, b, classes in changes
        ]
        return Row(kind="only", seconds=24e-6, ops=tuple(ops))

    some = shown(("attention",))
    assert names(some) == [("attention-written-out",)] == names(swapped(some))
    assert names(some, alike=False) == [("attention-written-out",)]
    assert names(shown(("contraction", "softmax"))) == [()]
    assert names(replace(some, ops=some.ops[::2])) == [()]  # products alone


def test_what_one_run_does_not_name_may_be_inside_of_its_other_ops() -> None:
    dropout = row(("aten::native_dropout", "bf16", 24, 0, 91), ("fusion", "fp32", 0, 94, -9))
    assert names(dropout) == [("dropout",)]
    assert names(dropout, alike=False) == [()]
    assert names(row(*NORM), alike=False) == [("norm-written-out",)]


def test_a_loop_that_the_other_run_has_elsewhere_is_in_both() -> None:
    loop = row(("bitcast_dynamic-update-slice_fusion", "fp32", 8, 0, 24), times=64)
    assert names(loop) == [("loop-over-pieces",)]
    assert names(loop, row(("dynamic-update-slice_fusion", "fp32", 0, 8, -1)))[0] == ()


def test_no_name_stands_on_noise() -> None:
    asleep = Row(kind="gap", place=SLEEPING, seconds=1e-3)
    assert names(asleep) == [("sleeping",)]
    assert names(asleep, Row(kind="gap", place=NOT_KNOWN, seconds=-2e-3)) == [(), ()]
    assert names(asleep, Row(kind="rate", seconds=2e-3))[0] == ()
    clones = row(("aten::clone", "fp32", 12, 0, 8), ci95=(-1e-6, 9e-6))
    assert names(clones) == [()]


def test_settings_are_named_in_either_order() -> None:
    def setting(name: str, a: str | None, b: str | None) -> Row:
        return Row(kind="setting", ops=(OpChange(name=name, a=a, b=b),))

    assert names(setting("threads", "1", "2")) == [("threads",)]
    for a, b in (("op by op", "compiled by XLA"), ("compiled by XLA", "op by op")):
        assert names(setting("jit", a, b)) == [("op-by-op",)]
    assert names(setting("jit", "compiled by XLA", "compiled by torch.compile, mode default")) == [()]
    assert names(setting("versions", "torch 2.12", "torch 2.13")) == [()]
    said = known_annotations()["attention-written-out"].sentence(
        setting("attention", "written out", None), ("torch", "jax")
    )
    assert said == "One run computes attention from products and a softmax, the other one with one op."


def test_a_sentence_names_the_run_that_spends_more() -> None:
    sentence = known_annotations()["norm-written-out"].sentence
    assert sentence(row(*NORM), ("torch", "jax")).startswith("torch computes")
    assert sentence(swapped(row(*NORM)), ("torch", "jax")).startswith("jax computes")


@pytest.mark.parametrize("name", known_annotations())
def test_an_annotation_is_whole(name: str) -> None:
    annotation = known_annotations()[name]
    assert annotation.patterns or annotation.definition
    for pattern in annotation.patterns:
        assert pattern != Pattern(), "fits every row"
        assert pattern.gap is None or pattern.gap in PARTS
        for expression in (pattern.setting, *(pattern.values or ()), *pattern.more, pattern.less):
            assert expression is None or re.compile(expression)
    assert annotation.says.endswith(".")
    assert annotation.says.format(more="A", less="B")
    assert set(annotation.advice) <= set(annotation.pairs), "advice needs a measured pair of its framework"
    assert annotation.switch is None or annotation.switch in KINDS
    for key, pair in annotation.pairs.items():
        assert key in set(_frameworks(pair))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('switches = "threads"', "unknown field `switches`"),
        ("says = 3", "Expected `str`, got `int`"),
        ("patterns = [{ settings = 'threads' }]", "unknown field `settings`"),
        ("patterns = [{ setting = 'threads', loop = 'yes' }]", "Expected `bool`, got `str`"),
        ("patterns = [{ more = 'cat' }]", "Expected `array`, got `str`"),
        ('definition = "in peaces"', "Invalid enum value 'in peaces'"),
        ("rule =", "Invalid value"),
        ("", "missing required field `says`"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "threads.toml"
    says = "" if "says" in line or not line else 'says = "The runs differ."\n'
    file.write_text(f'title = "Threads."\nrule = "threads"\n{says}{line}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"threads\.toml is not an annotation") as raised:
        read_annotation(file)
    assert words in str(raised.value)


def _frameworks(pair: str) -> Iterator[str]:
    """The frameworks of both runs."""
    if " " in pair:
        yield from (framework(load(paths()[name])) for name in pair.split())
    else:
        folder, _, planted = pair.partition("/")
        yield from map(framework, plants.pairs(folder)[planted].profiles())


def test_advice_is_given_where_a_pair_shows_its_gain() -> None:
    written_out = known_annotations()["attention-written-out"]
    assert written_out.advice_in("torch")
    assert written_out.advice_in("jax") is None, "jax.nn.dot_product_attention is unfused but for cuDNN in 16 bits"
    assert not any("--rounds" in advice for each in known_annotations().values() for advice in each.advice.values())


def test_advice_is_for_the_run_that_spends_more() -> None:
    norm = row(*NORM)
    (torch,) = annotate([norm], ("torch", "jax"))
    assert "layer_norm" in torch.advice
    assert [each.advice for each in annotate([norm], ("jax", "torch"))] == [""]
    assert "layer_norm" in annotate([swapped(norm)], ("jax", "torch"))[0].advice
    threads = Row(kind="setting", ops=(OpChange(name="threads", a="1", b="2"),))
    assert "--threads" in annotate([threads], TORCH)[0].advice
    assert annotate([threads], ("torch", "jax"))[0].advice == "", "which run they cost more is not known"


def test_a_name_that_noise_may_have_made_is_left_out_and_noted() -> None:
    """An interval that holds 0; and 1 us asleep where the same ops differ by 2."""
    (around,) = annotate([replace(row(*NORM), ci95=(-1e-6, 1e-3))], TORCH)
    asleep, _ = annotate([Row(kind="gap", place=SLEEPING, seconds=1e-6), Row(kind="rate", seconds=2e-6)], TORCH)
    for noisy, name in ((around, "norm-written-out"), (asleep, "sleeping")):
        assert noisy.annotations == ()
        assert [(note.step, name in note.reason) for note in noisy.notes] == [("annotate", True)]


def test_ops_that_were_not_seen_are_no_noise() -> None:
    unseen = Row(kind="gap", place=NOT_KNOWN, seconds=2e-6, a=Amount(seconds=None), b=Amount(seconds=1e-6))
    asleep, _ = annotate([Row(kind="gap", place=SLEEPING, seconds=1e-6), unseen], TORCH)
    assert asleep.annotations == ("sleeping",)
    assert asleep.notes == ()


def test_a_finding_is_called_as_before() -> None:
    (named,) = annotate([row(*NORM)], TORCH)
    assert rule_of(named) == "fusion"


def test_page_faults_are_named_by_their_place() -> None:
    assert names(Row(kind="gap", place=PAGE_FAULTS, seconds=1e-3)) == [("page-faults",)]
