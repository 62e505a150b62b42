"""Draws docs/figures/architecture.png from the imports of roofline/: which room takes from which.

    python docs/figures/draw_architecture.py

Read from the code: the rooms (the folders of roofline/, and models/), who imports whom (functions included), and which
rooms are found by name (`plugins.load`). An arrow that follows from two others is left out: cli -> comparison, where
cli -> measuring -> comparison is there. The numbers behind it stand in architecture.txt, which a test holds up to date.
Written by hand: where a room stands in the picture, and the words in its box.
"""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterable, Mapping
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

#: Used everywhere and importing nothing above them; their arrows would say nothing.
GROUND = ("errors", "units", "version", "plugins", "protobuf", "repr_mixin")

Arrow = tuple[str, str]


class Box(NamedTuple):
    """Where the middle of a room's box stands, what the room is for, and which colour it has."""

    x: float
    y: float
    words: str
    part: str


WIDTH, HEIGHT = 1.5, 0.7
#: The figure, in the units of the boxes.
LEFT, RIGHT, BOTTOM, TOP = -0.55, 11.0, -0.6, 10.15
PLACES = {
    "cli": Box(4.6, 9.75, "one verb per file", "both"),
    "callbacks": Box(7.0, 9.75, "profile a training\nthat runs anyway", "both"),
    "running": Box(2.9, 8.3, "a program as it is:\nwhere its steps end", "make"),
    "api": Box(5.8, 8.75, "import roofline:\none verb per file", "both"),
    "measuring": Box(5.9, 7.5, "a measurement,\nfrom start to end", "make"),
    "backends": Box(3.3, 6.75, "one file per\n--backend", "make"),
    "importing": Box(0.6, 6.75, "a trace from elsewhere\nbecomes a profile", "make"),
    "pytorch": Box(2.1, 5.75, "PyTorch's ops:\neager, compiled", "make"),
    "tensorflow": Box(4.1, 5.75, "nodes of\nTensorFlow's graphs", "make"),
    "xla": Box(0.6, 4.8, "instructions of\nXLA's programs; JAX", "make"),
    "recording": Box(3.3, 3.1, "the child process and\nits three runs", "make"),
    "keras": Box(1.0, 3.95, "what is the same for\nKeras on any engine", "make"),
    "timing": Box(2.2, 2.3, "times of ops,\nof host and of idle", "make"),
    "traces": Box(1.25, 1.45, "file formats", "make"),
    "costs": Box(3.15, 1.45, "the work of an op,\nwhatever its language", "make"),
    "devices": Box(4.8, 1.45, "ceilings: datasheets,\nmeasurements", "make"),
    "models": Box(6.45, 1.45, "bert, gpt2, ... in each\nframework", "make"),
    "ranks": Box(0.3, 2.65, "profiles of one job:\nwho waits for whom", "make"),
    "sweeping": Box(9.4, 5.3, "a step at many\npoints", "read"),
    "counters": Box(9.6, 3.0, "what hardware counted,\njoined to ops", "make"),
    "renderers": Box(8.6, 7.5, "one file per format", "read"),
    "content": Box(7.1, 5.9, "rows, points, words:\nwhat formats share", "read"),
    "published": Box(5.45, 4.45, "benchmarks of others:\nwhat they imply", "read"),
    "regression": Box(7.55, 5.0, "what check does", "read"),
    "projection": Box(9.6, 4.3, "what whatif does", "read"),
    "comparison": Box(7.55, 3.3, "two profiles: parity,\nterms, causes, proof", "read"),
    "memory": Box(5.6, 3.15, "what a step holds,\nop by op", "read"),
    "analysis": Box(8.4, 1.45, "a profile under its\ndevice's ceilings", "read"),
    "core": Box(4.975, 0.55, "the saved profile and its words: step, op, cost, device, vocabulary", "both"),
}
CORE_WIDTH = 10.75
FILL = {"make": "#DCEBF7", "read": "#DDF1E4", "both": "#F3E9D2"}
EDGE = {"make": "#0072B2", "read": "#00795A", "both": "#9A6B00"}


def room(module: str) -> str:
    """The room of a module: "roofline.xla.count" is in "xla"; "" outside of roofline."""
    top, _, rest = module.partition(".")
    return rest.partition(".")[0] if top == "roofline" else ""


def drawn() -> dict[str, list[Path]]:
    """The Python files of each room, the ground left out."""
    found = {init.parent.name: sorted(init.parent.rglob("*.py")) for init in (ROOT / "roofline").glob("*/__init__.py")}
    return found | {"models": sorted((ROOT / "models").rglob("*.py"))}


def imported(nodes: Iterable[ast.AST]) -> Iterable[str]:
    """The modules that a file imports, wherever in it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def named(nodes: Iterable[ast.AST]) -> Iterable[str]:
    """The packages that a file looks into by name: first arguments like "roofline.backends" of `plugins.load`."""
    for node in nodes:
        if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Attribute):
            owner, first = node.func.value, node.args[0]
            if isinstance(owner, ast.Name) and owner.id == "plugins" and isinstance(first, ast.Constant):
                yield str(first.value)


def arrows() -> tuple[set[Arrow], set[Arrow]]:
    """(who imports whom, who finds whom by name), from room to room."""
    files = drawn()
    imports, by_name = set(), set()
    for name, paths in files.items():
        for path in paths:
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            imports |= {(name, room(module)) for module in imported(nodes)}
            by_name |= {(name, room(module)) for module in named(nodes)}
    both = [{(a, b) for a, b in some if a != b and b in files} for some in (imports, by_name)]
    return both[0], both[1] - both[0]


def direct(some: Iterable[Arrow]) -> list[Arrow]:
    """The arrows that do not follow from two or more others: the transitive reduction. ValueError for a circle."""
    below: dict[str, set[str]] = {}
    for a, b in some:
        below.setdefault(a, set()).add(b)

    def reached(name: str, path: tuple[str, ...] = ()) -> set[str]:
        if name in path:
            raise ValueError(f"These rooms import each other in a circle: {' -> '.join((*path, name))}.")
        return {name}.union(*(reached(other, (*path, name)) for other in below.get(name, ())))

    all_below = {name: reached(name) for name in {*below}.union(*below.values())}
    return sorted(
        (a, b)
        for a, targets in below.items()
        for b in targets
        if not any(b in all_below[other] for other in targets if other != b)
    )


def text(imports: Iterable[Arrow], by_name: Iterable[Arrow]) -> str:
    """What the picture is drawn from, in words."""
    imports = sorted(imports)

    def lines(some: Iterable[Arrow]) -> list[str]:
        targets: dict[str, list[str]] = {}
        for a, b in sorted(some):
            targets.setdefault(a, []).append(b)
        return [f"  {name} -> {', '.join(others)}" for name, others in targets.items()]

    return "\n".join(
        [
            "Made by docs/figures/draw_architecture.py. Rooms, and which of them imports which.",
            f"Not drawn, as everybody uses them: {', '.join(GROUND)}.",
            *("", "Arrows of the picture: imports that do not follow from others", *lines(direct(imports))),
            *("", "All imports", *lines(imports)),
            *("", "Found by name and not imported (dashed where it is below)", *lines(by_name), ""),
        ]
    )


def edges(place: Box, name: str) -> tuple[float, float]:
    """Half the width and half the height of a room's box."""
    return (CORE_WIDTH if name == "core" else WIDTH) / 2, HEIGHT / 2


#: Shares of the four corners of a Bezier curve in each of its points.
SHARES = [((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3) for t in (step / 40 for step in range(41))]


def curve(start: tuple[float, float], end: tuple[float, float], out: float, back: float) -> list[tuple[float, float]]:
    """Points of a curve that leaves and reaches its boxes upright; out, back: how far its ends are pulled sideways."""
    (x0, y0), (x1, y1) = start, end
    reach = min(0.9, 0.5 * (y0 - y1))
    x, y = (x0, x0 + out, x1 + back, x1), (y0, y0 - reach, y1 + reach, y1)
    return [
        (a * x[0] + b * x[1] + c * x[2] + d * x[3], a * y[0] + b * y[1] + c * y[2] + d * y[3]) for a, b, c, d in SHARES
    ]


def hits(points: list[tuple[float, float]], ends: Arrow, places: Mapping[str, Box]) -> int:
    """How many points of a curve lie in or close to a box that it does not belong to."""
    count = 0
    for name, place in places.items():
        half_width, half_height = (half + 0.07 for half in edges(place, name))
        if name not in ends:
            count += sum(abs(x - place.x) < half_width and abs(y - place.y) < half_height for x, y in points)
    return count


def route(arrow: Arrow, ends: tuple[float, float], places: Mapping[str, Box]) -> list[tuple[float, float]]:
    """The shortest curve from box to box that meets no third one. ends: shifts of both ends along their sides."""
    a, b = places[arrow[0]], places[arrow[1]]
    start = (a.x + ends[0], a.y - HEIGHT / 2)
    end = (b.x + ends[1], b.y + HEIGHT / 2)
    pulls = [x / 2 for x in range(-8, 9)]
    curves = sorted((curve(start, end, *pulled) for pulled in product(pulls, pulls)), key=length)
    return next((points for points in curves if not hits(points, arrow, places)), curves[0])


def length(points: list[tuple[float, float]]) -> float:
    """How long a curve is."""
    return sum(math.dist(one, other) for one, other in pairwise(points))


def shifts(some: list[Arrow], places: Mapping[str, Box]) -> dict[Arrow, tuple[float, float]]:
    """Where along its two boxes each arrow begins and ends: side by side, in the order of what they lead to."""
    found = {arrow: [0.0, 0.0] for arrow in some}
    for side in (0, 1):
        for name in places:
            here = sorted((arrow for arrow in some if arrow[side] == name), key=lambda arrow: places[arrow[1 - side]].x)
            if name == "core":
                for arrow in here:
                    found[arrow][side] = places[arrow[0]].x - places[name].x
                continue
            gap = min(0.26, 1.1 / max(1, len(here)))
            for number, arrow in enumerate(here):
                found[arrow][side] = (number - (len(here) - 1) / 2) * gap
    return {arrow: (one, two) for arrow, (one, two) in found.items()}


def draw(imports: set[Arrow], by_name: set[Arrow], file: Path) -> None:
    """Draw the picture. KeyError for a room without a place, ValueError for an arrow that would point up."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
    from matplotlib.path import Path as Line

    figure = Figure(figsize=((RIGHT - LEFT) * 1.02, (TOP - BOTTOM) * 0.82), dpi=140)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(LEFT, RIGHT), ylim=(BOTTOM, TOP))
    axes.axis("off")
    for x, part, words in ((LEFT + 0.15, "make", "makes profiles"), (RIGHT - 0.15, "read", "reads profiles")):
        side = "left" if part == "make" else "right"
        axes.text(x, 8.8, words, color=EDGE[part], fontsize=13, ha=side, va="center", style="italic")

    solid = direct(imports)
    dashed = [(a, b) for a, b in sorted(by_name) if PLACES[a].y > PLACES[b].y and a != "cli"]
    for a, b in solid:
        if PLACES[a].y <= PLACES[b].y:
            raise ValueError(f"{a} imports {b}, which stands above it: move one of them in PLACES.")
    beginnings = shifts([*solid, *dashed], PLACES)
    for arrow in (*solid, *dashed):
        points = route(arrow, beginnings[arrow], PLACES)
        axes.add_patch(
            FancyArrowPatch(
                path=Line(points),
                arrowstyle="-|>,head_length=5,head_width=2.4",
                linewidth=1.1,
                linestyle="--" if arrow in dashed else "-",
                color=EDGE[PLACES[arrow[0]].part],
                alpha=0.85,
                shrinkA=0,
                shrinkB=0,
                zorder=1,
            )
        )
    for name in drawn():
        box = PLACES[name]
        half_width, half_height = edges(box, name)
        axes.add_patch(
            FancyBboxPatch(
                (box.x - half_width, box.y - half_height),
                2 * half_width,
                2 * half_height,
                boxstyle="round,pad=0,rounding_size=0.07",
                facecolor=FILL[box.part],
                edgecolor=EDGE[box.part],
                linewidth=1.2,
                zorder=2,
            )
        )
        up, down = (0.19, 0.1) if "\n" in box.words else (0.12, 0.14)
        middle: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 3}
        axes.text(box.x, box.y + up, name, fontsize=11, weight="bold", **middle)
        axes.text(box.x, box.y - down, box.words, fontsize=8, linespacing=1.05, **middle)
    note: dict[str, Any] = {"ha": "center", "va": "center", "color": "#444444"}
    ground = f"below all of them: {' · '.join(GROUND)}"
    legend = "arrow: imports (left out where it follows from others)      dashed: finds by name, imports nothing"
    axes.text((LEFT + RIGHT) / 2, -0.04, ground, fontsize=9, **note)
    axes.text((LEFT + RIGHT) / 2, -0.38, legend, fontsize=8.5, **note)
    FigureCanvasAgg(figure)
    figure.savefig(file, metadata={"Software": None})


def main() -> None:
    """Write the picture and what it is drawn from."""
    imports, by_name = arrows()
    (HERE / "architecture.txt").write_text(text(imports, by_name), encoding="utf-8")
    draw(imports, by_name, HERE / "architecture.png")
    print(f"Wrote {HERE / 'architecture.png'} and {HERE / 'architecture.txt'}", file=sys.stderr)


if __name__ == "__main__":
    main()
