"""Render an odd profile together with another one: compared, checked against it, and in one chart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import escaping
import seeds
import typed
from target import Target

from roofline import plugins
from roofline.analysis.analysis import analyze
from roofline.comparison.ranking import Ranking, rank
from roofline.content.facts.wall import chart
from roofline.core.schema import Profile, decode
from roofline.regression.batch import judge
from roofline.regression.check import check
from roofline.regression.limits import Limits
from roofline.renderers.report import report

OTHER = seeds.small()


def page_of_two(data: bytes) -> None:
    """Write the page of a profile and another one."""
    escaping.is_page(report([decode(data), OTHER], allow=True))


def _ranking(data: bytes) -> Ranking:
    return rank([decode(data), OTHER], as_given=True)


def compared(name: str) -> Callable[[bytes], None]:
    """Return what compares a profile with another one, in a format."""
    renderer = plugins.load("roofline.renderers.comparison", name, "format")

    def run(data: bytes) -> None:
        escaping.check(name, renderer.render(_ranking(data)))

    return run


def walls(data: bytes) -> None:
    """Render the wall chart of a profile and another one in all its formats."""
    shown_chart = chart([analyze(decode(data)), analyze(OTHER)])
    for name in plugins.names("roofline.renderers.wall"):
        escaping.check(name, plugins.load("roofline.renderers.wall", name, "format").render(shown_chart))


def gates(data: bytes) -> None:
    """Check a profile against another one, and render the verdict in all formats."""
    profile = decode(data)
    for counts_only in (False, True):
        checked = partial(check, OTHER, limits=Limits(), counts_only=counts_only, allow_name=True)
        judged = judge([profile.model], lambda _: profile, checked)
        for name in plugins.names("roofline.renderers.check"):
            escaping.check(name, plugins.load("roofline.renderers.check", name, "format").render(judged))


def _rendering(run: Callable[[bytes], None]) -> Target:
    return Target(run, seeds.profiles, typed.json_of(Profile))


TARGETS = {
    **{f"compare-{name}": _rendering(compared(name)) for name in plugins.names("roofline.renderers.comparison")},
    "wall": _rendering(walls),
    "check": _rendering(gates),
    "report-of-two": _rendering(page_of_two),
}
