"""Render one profile that decodes and is odd; one that the tool refuses to read counts as refused."""

from __future__ import annotations

from collections.abc import Callable

import escaping
import randomly
import seeds
import typed
from hypothesis import HealthCheck, given, settings
from target import EscapeError, Target

from roofline import devices, plugins
from roofline.analysis.analysis import KEYS, analyze
from roofline.api.whatif import whatif
from roofline.core.schema import Profile, decode
from roofline.errors import InputError, MeasurementError
from roofline.projection.least import Least
from roofline.renderers.report import report

FORMATS = plugins.names("roofline.renderers")


def shown(name: str) -> Callable[[bytes], None]:
    """Return what renders one profile in a format, by a key that follows from the input."""
    renderer = plugins.load("roofline.renderers", name, "format")

    def run(data: bytes) -> None:
        keys = (None, *KEYS)
        escaping.check(name, renderer.render(analyze(decode(data)), keys[len(data) % len(keys)]))

    return run


def details(data: bytes) -> None:
    """Render all that text tells."""
    escaping.printable(
        plugins.load("roofline.renderers", "text", "format").render(analyze(decode(data)), None, details=True)
    )


def page(data: bytes) -> None:
    """Write the page of a profile."""
    escaping.is_page(report([decode(data)]))


def projected(data: bytes) -> None:
    """Project a profile to another device."""
    projection = whatif(decode(data), devices.load("l4"))
    for name in ("text",) if isinstance(projection, Least) else ("text", "json"):
        escaping.check(name, plugins.load("roofline.renderers.whatif", name, "format").render(projection))


def exported(data: bytes) -> None:
    """Write the tables of all ops."""
    analysis = analyze(decode(data))
    for name, look in (("csv", escaping.is_csv), ("perfetto", escaping.is_json), ("speedscope", escaping.is_json)):
        look(plugins.load("roofline.renderers.export", name, "format").written(analysis).decode())


def notebook(data: bytes) -> None:
    """Show a profile in a notebook: text and HTML of what it prints."""
    profile = decode(data)
    escaping.printable(repr(profile).replace("\t", ""))
    tags = escaping.Tags(str(plugins.load("roofline.renderers.notebook", "profile", "view").html(profile))).tags
    if opened := (escaping.ACTIVE - {"img"}).intersection(tags):
        raise EscapeError(f"elements: {sorted(opened)}")


@settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
@given(randomly.profiles())
def every_format(profile: Profile) -> None:
    """Render a profile that hypothesis draws, references whole and numbers of measurements, in all formats."""
    analysis = analyze(profile)
    for name in FORMATS:
        try:
            escaping.check(name, plugins.load("roofline.renderers", name, "format").render(analysis, None))
        except (InputError, MeasurementError):
            continue


def random_profile(data: bytes) -> None:
    """Let hypothesis draw a profile from bytes, and render it."""
    if every_format.hypothesis.fuzz_one_input(data) is None:
        raise InputError("These bytes draw no profile.")


def _rendering(run: Callable[[bytes], None]) -> Target:
    return Target(run, seeds.profiles, typed.json_of(Profile))


TARGETS = {
    **{f"show-{name}": _rendering(shown(name)) for name in FORMATS},
    "show-details": _rendering(details),
    "report": _rendering(page),
    "whatif": _rendering(projected),
    "export": _rendering(exported),
    "notebook": _rendering(notebook),
    "random-profile": Target(random_profile, lambda: [bytes(range(256)) * 8]),
}
