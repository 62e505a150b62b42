"""`make mutants`: a seed draws the same mutants, each another program than is there, and says which a test notices."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def mutants() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        import mutants

        return mutants


def test_a_seed_draws_the_same_mutants_and_they_differ_from_the_source(
    mutants: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two rooms, and a file: of all it takes seconds to read them."""
    assert [room for room in mutants.ROOMS if not (mutants.ROOT / "roofline" / room).exists()] == []
    monkeypatch.setattr(mutants, "ROOMS", ("core", "regression", "devices/cpu.py"))
    drawn = mutants.draw(40, seed=1)
    assert drawn[:20] == mutants.draw(20, seed=1)
    assert drawn != mutants.draw(40, seed=2)
    assert {mutant.file.split("/")[1] for mutant in mutants.draw(10_000, seed=1)} == {"core", "regression", "devices"}
    for mutant in drawn:
        source = mutant.source()
        compile(source, mutant.file, "exec")
        assert ast.dump(ast.parse(source)) != ast.dump(ast.parse((mutants.ROOT / mutant.file).read_text())), mutant


RULES = '''"""A sentence."""
__all__ = ["rule"]
if TYPE_CHECKING:
    import numpy
def rule(a: int = 1, *rest: tuple[int, 2]) -> Literal[3]:
    """2 < 3"""
    for b in rest:
        if not a < b and a != f"{2 < 3}":
            a.c = a + b
            continue
    return a
'''
CHANGES = [
    ("constant", "def rule(a: int = 2, *rest: tuple[int, 2]) -> Literal[3]:"),
    ("and-or", "        if (not a < b or a != f'{2 < 3}'):"),
    ("not", '        if (a < b) and a != f"{2 < 3}":'),
    ("comparison", '        if not (a <= b) and a != f"{2 < 3}":'),
    ("comparison", "        if not a < b and (a == f'{2 < 3}'):"),
    ("statement", "            pass"),
    ("arithmetic", "            a.c = (a - b)"),
    ("loop", "            break"),
    ("return", "    return None"),
]


def test_what_is_changed(mutants: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    file = tmp_path / "rules.py"
    file.write_text(RULES)
    found = list(mutants.mutants(file))
    assert [(mutant.kind, mutant.after) for mutant in found] == CHANGES
    # Results of before are found again where their lines have moved to, and left out where they are gone.
    results = tmp_path / "results.jsonl"
    results.write_text("".join(json.dumps({key: getattr(m, key) for key in m.__slots__}) + "\n" for m in found))
    file.write_text("\n" + RULES.replace("return a", "return b"))
    assert [(m.line, m.kind) for m in mutants.drawn_before(results)] == [(m.line + 1, m.kind) for m in found[:-1]]


def test_what_is_run(mutants: Any) -> None:
    nearby, others = mutants.tests_of("roofline/sweeping/plan.py")
    assert nearby == ["tests/sweeping/test_plan.py", "tests/sweeping"]
    # What is imported does not import: of the plan of a sweep no test of a comparison can know.
    assert "tests/cli/test_sweep.py" in others
    assert "tests/comparison" not in others
    # A test of importing looks at the timeline of what is shown.
    assert "tests/importing/test_python_frames.py" in mutants.tests_of("roofline/content/timeline.py")[1]
    assert [path for path in mutants.OTHERS if not (mutants.ROOT / "tests" / path).exists()] == []


@pytest.mark.slow
def test_a_rule_that_a_test_holds_and_one_that_none_holds(
    mutants: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    rules = "def is_small(a):\n    return a < 2\n"
    for folder in (root, copy):
        (folder / "roofline" / "ranks").mkdir(parents=True)
        (folder / "roofline" / "ranks" / "number.py").write_text(rules)
    (copy / "tests" / "ranks").mkdir(parents=True)
    (copy / "tests" / "conftest.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('few')\nimport sys\nsys.path.insert(0, '.')\n"
    )
    (copy / "tests" / "ranks" / "test_number.py").write_text(
        "from roofline.ranks.number import is_small\ndef test_small(): assert is_small(1) and not is_small(3)\n"
    )
    monkeypatch.setattr(mutants, "ROOT", root)
    ends = {
        mutant.after.strip(): (result["end"], result["test"])
        for mutant in mutants.mutants(root / "roofline" / "ranks" / "number.py")
        for result in [mutants.run(mutant, ["tests/ranks"], copy, limit=120)]
    }
    killed = ("killed", "tests/ranks/test_number.py::test_small")
    # At 2 no test looks: neither at <= 2, nor at < 3 of whole numbers that are 1 and 3.
    assert ends == {"return None": killed, "return (a <= 2)": ("survived", None), "return a < 3": ("survived", None)}
    assert (copy / "roofline" / "ranks" / "number.py").read_text() == rules
