"""Every cause that lies in ops/ and time/: found, complete, and in its order."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from graphlib import CycleError
from pathlib import Path

import pytest
from explained import facts
from synthetic import step

from roofline import plugins
from roofline.analysis.analysis import analyze
from roofline.comparison.causes.cause import Cause, Rule
from roofline.comparison.causes.order import causes, ordered, rules

PACKAGES = ("roofline.comparison.causes.ops", "roofline.comparison.causes.time")
FILES = [path for package in PACKAGES for path in sorted(plugins.folder(package).glob("[a-z]*.py"))]
COMPARISON = sorted(path for path in plugins.folder("roofline.comparison").rglob("*.py") if path.stem != "__init__")
CAUSES = sorted(causes().values(), key=lambda cause: cause.name)

each = pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)


def test_the_order_in_which_causes_claim() -> None:
    """Which of two causes gets what both could claim: to change it changes what is found. New ones stand anywhere."""
    known = [
        *("communication", "synchronisation", "data-input", "optimizer", "recomputation", "attention", "random"),
        *("unknown-work", "padding", "more-work", "precision", "layout", "fusion", "threads", "hardware", "allocation"),
        *("host-idle", "after-others", "efficiency", "host-bound"),
    ]
    assert [rule.name for rule in rules() if rule.name in known] == known


def test_the_page_lists_the_rules_in_their_order_and_names_all_causes() -> None:
    page = (Path(__file__).parents[3] / "docs/explaining.md").read_text(encoding="utf-8")
    table = page.partition("| rule |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == [rule.name for rule in rules()]
    assert set(re.findall("`([a-z-]+)`", page)) >= set(causes())


def test_the_names_of_causes() -> None:
    """Users and scripts read them in the findings, so none goes away."""
    assert set(causes()) >= {
        *("allocation", "attention", "communication", "compilation", "compiled-not-used", "data-input", "efficiency"),
        *("fusion", "graph-breaks", "hardware", "host-bound", "host-idle", "jit-not-in-effect", "layout", "more-work"),
        *("optimizer", "padding", "precision", "random", "recomputation", "small-model", "synchronisation", "threads"),
        *("tiny-ops", "unknown-work"),
    }


@each
def test_a_cause_says_what_was_found_and_what_to_try(cause: Cause) -> None:
    found = facts(about_more="2", about_less="1")
    text, advice = cause.sentence(found), cause.advised(found)
    assert text.endswith(".")
    assert text.isprintable()
    assert "torch" in text
    assert advice
    assert advice.isprintable()
    assert not advice.endswith(".")


@each
def test_a_label_is_words_and_no_name_of_a_cause(cause: Cause) -> None:
    label = cause.labelled(facts(about_more="2", about_less="1"))
    assert label
    assert label.isprintable()
    assert "-" not in label


@each
def test_the_neighbours_of_a_cause_are_there(cause: Cause) -> None:
    known = {*causes(), *(rule.name for rule in rules())}
    assert {*cause.after, *cause.before} <= known
    assert cause.stands_behind == "compilable" or set(cause.stands_behind) <= set(causes())
    assert bool(cause.stands_behind) == (cause.prevails is not None)


def test_what_may_stand_behind_another_cause() -> None:
    """In this order: most was not compiled, or some was not, or it is several programs. New ones stand anywhere."""
    run = analyze(step())
    not_compiled = ["jit-not-in-effect", "compiled-not-used", "graph-breaks"]
    known = [*not_compiled, "host-bound"]

    def behind(name: str) -> list[str]:
        prevailing = [replace(cause, prevails=lambda slower, other: True) for cause in causes().values()]
        return [one.name for one in prevailing if one.name in known and one.is_behind(causes()[name], run, run)]

    assert behind("fusion") == behind("tiny-ops") == known
    assert behind("host-bound") == behind("small-model") == behind("host-idle") == not_compiled
    assert behind("efficiency") == behind("optimizer") == []


@each
def test_a_cause_that_has_no_rule_is_claimed_by_another(cause: Cause) -> None:
    """By the name that a rule writes into its claim, or where it prevails."""
    sources = [path.read_text(encoding="utf-8") for path in FILES]
    assert cause.claim or cause.prevails or any(f'"{cause.name}"' in text for text in sources)


def _numeric(value: ast.expr) -> bool:
    """Whether an expression is a number, made of numbers only, or a tuple of such."""
    parts = [part for part in ast.walk(value) if isinstance(part, ast.expr)]
    made = ast.Constant | ast.BinOp | ast.UnaryOp | ast.Tuple
    numbers = [part.value for part in parts if isinstance(part, ast.Constant)]
    only = all(isinstance(part, made) for part in parts) and all(type(number) in (int, float) for number in numbers)
    return only and bool(numbers)


def _said(lines: list[str], first: int) -> str:
    """The `#:` comment above a line; lines are counted from 1."""
    start = first - 1
    while start and lines[start - 1].startswith("#:"):
        start -= 1
    return " ".join(lines[start : first - 1])


@pytest.mark.parametrize("path", COMPARISON, ids=lambda path: path.stem)
def test_a_threshold_says_where_it_comes_from(path: Path) -> None:
    """A number at the top of a file stands below a comment: by choice or definition, calibrated, or where measured."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _numeric(node.value):
            said = _said(text.splitlines(), node.lineno)
            sources = ("y choice", "y definition", "calibrat", "the profile", "(docs/")
            assert any(source in said for source in sources), f"{path.name}:{node.lineno} does not say where it is from"


@pytest.mark.parametrize("path", COMPARISON, ids=lambda path: path.stem)
def test_a_threshold_has_a_name(path: Path) -> None:
    """No fraction stands inside a function, but for units (1e-9) and the ends of 95 % intervals."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = (0.0, 1.0, 1e-9, 1e9, 2.5, 97.5)
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.Constant) and isinstance(node.value, float):
                assert node.value in known, f"{path.name}:{node.lineno} has a {node.value} without a name"


def test_an_order_is_what_the_rules_say_and_then_the_alphabet() -> None:
    some = [Rule(name="d"), Rule(name="b", after=("c",)), Rule(name="c"), Rule(name="a", after=("d",), before=("c",))]
    assert [rule.name for rule in ordered(some)] == ["d", "a", "c", "b"]
    assert [rule.name for rule in ordered(some[::-1])] == ["d", "a", "c", "b"]
    assert [rule.name for rule in ordered([Rule(name="b"), Rule(name="a")])] == ["a", "b"]


def test_an_order_that_cannot_be_is_refused() -> None:
    with pytest.raises(CycleError):
        ordered([Rule(name="a", after=("b",)), Rule(name="b", after=("a",))])
    with pytest.raises(ValueError, match="a stands beside b, which is no cause"):
        ordered([Rule(name="a", before=("b",))])
    with pytest.raises(ValueError, match="two causes called a"):
        ordered([Rule(name="a"), Rule(name="a", after=("a",))])
