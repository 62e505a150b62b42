"""Draw figures of an odd profile as SVG."""

from __future__ import annotations

from collections.abc import Callable

import escaping
import seeds
import typed
from target import Target

from roofline import plugins
from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile, decode
from roofline.renderers import figures

OTHER = seeds.small()


def drawn(kind: str) -> Callable[[bytes], None]:
    """Return what draws a figure of a kind."""

    def run(data: bytes) -> None:
        runs = [analyze(decode(data)), analyze(OTHER)]
        svg, caption = figures.render(kind, runs[: 2 if kind in ("speedup", "waterfall") else 1], ".svg")
        escaping.is_xml(svg)
        escaping.printable(caption)

    return run


TARGETS = {
    f"figure-{kind}": Target(drawn(kind), seeds.profiles, typed.json_of(Profile))
    for kind in plugins.names("roofline.renderers.figures")
    if kind != "sweep"  # of folders
}
