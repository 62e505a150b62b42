"""The picture of the rooms (docs/figures/architecture.png) is of the code as it is now."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_architecture", FIGURES / "draw_architecture.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Arrows = tuple[set[tuple[str, str]], set[tuple[str, str]]]


@pytest.fixture(scope="module")
def arrows(script: ModuleType) -> Arrows:
    return script.arrows()


def test_what_it_was_drawn_from_is_what_the_code_says(script: ModuleType, arrows: Arrows) -> None:
    """Where it is not: `python docs/figures/draw_architecture.py`, and look at the picture."""
    assert (FIGURES / "architecture.txt").read_text(encoding="utf-8") == script.text(*arrows)
    assert (FIGURES / "architecture.png").read_bytes().startswith(b"\x89PNG")


def test_every_room_has_a_place_and_every_import_points_down(script: ModuleType, arrows: Arrows) -> None:
    imports, _ = arrows
    assert set(script.PLACES) == set(script.drawn())
    assert len(imports) > 40
    assert [(a, b) for a, b in imports if script.PLACES[a].y <= script.PLACES[b].y] == []


def test_no_arrow_crosses_a_box_that_it_does_not_belong_to(script: ModuleType, arrows: Arrows) -> None:
    imports, _ = arrows
    some = script.direct(imports)
    ends = script.shifts(some, script.PLACES)
    for arrow in some:
        assert script.hits(script.route(arrow, ends[arrow], script.PLACES), arrow, script.PLACES) == 0, arrow


def test_an_import_that_follows_from_others_is_not_drawn(script: ModuleType) -> None:
    """c -> a follows from c -> b and b -> a; d -> a does not."""
    assert script.direct({("c", "b"), ("b", "a"), ("c", "a"), ("d", "a")}) == [("b", "a"), ("c", "b"), ("d", "a")]


def test_a_circle_of_imports_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="in a circle"):
        script.direct([("a", "b"), ("b", "a")])


def test_imports_in_functions_and_rooms_found_by_name_are_read(script: ModuleType) -> None:
    source = (
        "def run():\n"
        "    import roofline.core.schema\n"
        "    from roofline import plugins\n"
        "    plugins.load('roofline.backends', 'torch', 'backend')\n"
        "    print('roofline.renderers')\n"
    )
    nodes = list(ast.walk(ast.parse(source)))
    assert [script.room(name) for name in script.imported(nodes)] == ["core", "plugins"]
    assert [script.room(name) for name in script.named(nodes)] == ["backends"]
    assert script.room("numpy.linalg") == script.room("roofline") == ""
