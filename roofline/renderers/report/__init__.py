"""Write one HTML file of one or more profiles, or of a sweep: self-contained, offline, for a screen and paper.

`report(profiles)` and `report_sweep(grid)` are all of it. Each section is a file here, made of the pieces in `parts/`;
sentences and numbers are those of the text output, from the same sources. Pictures are made here as SVG. `assets/` has
the style and the script, which shows and hides and computes no number. Names in profiles come from anywhere:
`parts/html.py` escapes all text that it did not make, and the page forbids itself everything but its own style and
script, by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from roofline import units
from roofline.analysis.analysis import analyze
from roofline.analysis.run_names import called
from roofline.comparison.ranking import Ranking, rank
from roofline.content import palette, wording
from roofline.content.facts import sweep as facts
from roofline.core.schema import Profile
from roofline.errors import InputError
from roofline.renderers.report import sweep
from roofline.renderers.report.comparison import TITLE, comparison
from roofline.renderers.report.groups import groups
from roofline.renderers.report.measured import how
from roofline.renderers.report.memory import memory
from roofline.renderers.report.modules import modules
from roofline.renderers.report.ops import ops
from roofline.renderers.report.parts.html import Html, data, join, name, tag
from roofline.renderers.report.parts.run import Run, runs_of, section
from roofline.renderers.report.roofline import roofline
from roofline.renderers.report.timeline import timeline
from roofline.renderers.report.verdict import verdict
from roofline.renderers.report.wall import wall
from roofline.renderers.report.where import where
from roofline.sweeping.grid import Grid
from roofline.version import __version__

#: Before anything is drawn: what the script will hide is never laid out.
_EARLY = 'document.documentElement.className = "scripted";'
#: The parts of the script, in the order in which they run.
_SCRIPTS = ("page.js", "ops.js", "roofline.js", "timeline.js")


def report(profiles: Sequence[Profile], allow: bool = False) -> str:
    """Write the page of one or more profiles; of several also why they differ: two as A - B, more against the fastest.

    allow: explain the difference of runs that are not comparable, with a warning, instead of only refusing it. Raises
    InputError for no profile at all.
    """
    if not profiles:
        raise InputError("There is nothing to report: give at least one profile.")
    ranking, why_not = _ranked(profiles)
    # Compared runs are under one set of ceilings, in every section.
    analyses = [analyze(profile) for profile in profiles] if ranking is None else ranking.runs
    runs = runs_of(list(zip(called(profiles), analyses, strict=True)))
    refused = section("comparison", TITLE, tag("p", why_not, class_="note")) if why_not else None
    picture, points = roofline(runs)
    listed, rows = ops(runs)
    line, steps = timeline(runs)
    sections = [
        ("verdict", "Verdict", section("verdict", "Verdict", verdict(runs, ranking, allow))),
        ("comparison", "Comparison", comparison(ranking, allow) if ranking is not None else refused),
        ("where", "Time", where(runs)),
        ("wall", "Work", wall(runs)),
        ("tables", "Tables", groups(runs)),
        ("roofline", "Roofline", picture),
        ("ops", "Ops", listed),
        ("modules", "Modules", modules(runs)),
        ("timeline", "Timeline", line),
        ("memory", "Memory", memory(runs)),
        ("measured", "Measured", how(runs)),
    ]
    script_data = [
        {"ops": rows[run.number], "points": points[run.number], "timeline": steps[run.number]} for run in runs
    ]
    title = _title(runs)
    return _page(title, _header(runs, title), _choice(runs), sections, data({"runs": script_data}))


def report_sweep(grid: Grid) -> str:
    """Write the page of a sweep: the map, the sentences, what limits each backend, and all points."""
    title = wording.plain(f"Sweep of {facts.subject(grid)}", 200)
    on = join([name(device, 80) for device in grid.devices[:4]], ", ")
    backends = join([name(backend, 60) for backend in grid.backends], ", ")
    line = tag("p", backends, " on " if on else "", on, class_="about")
    sections = [
        ("verdict", "Verdict", sweep.verdict(grid)),
        ("map", "Map", sweep.fastest(grid)),
        ("borders", "Borders", sweep.borders(grid)),
        ("limits", "Limits", sweep.limits(grid)),
        ("points", "Points", sweep.points(grid)),
    ]
    header = tag("header", tag("h1", name(title, 120)), line)
    return _page(title, header, None, sections, data({"runs": []}))


def _ranked(profiles: Sequence[Profile]) -> tuple[Ranking | None, str]:
    """Compare the runs, or say why they cannot be compared."""
    if len(profiles) < 2:
        return None, ""
    try:
        return rank(profiles, as_given=True), ""
    except InputError as error:
        return None, f"The runs are not compared: {error}"


# ------------------------------------------------------------------------------------------------------- the page


def _page(
    title: str, header: Html, choice: Html | None, sections: Sequence[tuple[str, str, Html | None]], script_data: str
) -> str:
    """Write the page. choice: between its runs; sections: id, label of the link, and content; None is left out."""
    style = palette.variables() + _asset("report.css")
    script = "\n".join(_asset(file) for file in _SCRIPTS)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(_EARLY)}' '{_hash(script)}'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} · roofline"),
        tag("script", Html(_EARLY)),
        tag("style", Html(style)),
    ]
    above = [
        tag("a", "To the verdict", href="#verdict", class_="skip screen"),
        _hatch(),
        header,
        _bar(sections, choice),
    ]
    below = [
        tag("footer", tag("p", f"Made by roofline {__version__}. One file, no network: it can be kept and sent.")),
        # JSON runs nothing; what stands in it cannot end it.
        tag("script", Html(script_data), type="application/json", id="data"),
        tag("script", Html(script)),
    ]
    main = [part for _, _, part in sections if part is not None]
    body = ["<body>", *above, '<main id="main">', *main, "</main>", *below, "</body>"]
    # Joined once: each copy of a page takes a millisecond.
    return "".join(["<!doctype html>\n", '<html lang="en">', tag("head", head), *body, "</html>\n"])


def _hatch() -> Html:
    """Define the fill of time in which nothing runs."""
    paper = tag("rect", width=6, height=6, class_="hatch-paper")
    line = tag("path", d="M0 6L6 0M-1 1L1 -1M5 7L7 5", class_="hatch-line")
    pattern = tag("pattern", paper, line, id="hatch", width=6, height=6, patternUnits="userSpaceOnUse")
    return tag("svg", tag("defs", pattern), width=0, height=0, class_="defs", aria_hidden="true")


def _title(runs: Sequence[Run]) -> str:
    subjects = list(dict.fromkeys(wording.subject(run.analysis) for run in runs))
    return wording.plain(" against ".join(subjects[:2]) + (" and others" if len(subjects) > 2 else ""), 200)


def _header(runs: Sequence[Run], title: str) -> Html:
    devices = list(dict.fromkeys(filter(None, (wording.device(run.analysis) for run in runs))))
    about = [name(device, 80) for device in devices[:4]]
    dates = sorted({wording.plain(run.analysis.profile.date)[:10] for run in runs})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    backends = [name(run.called, 60) for run in runs[:4]]
    if len(runs) > 4:
        backends.append(Html(f"{units.count(len(runs) - 4)} more"))
    line = join([join(backends, ", "), " on " if about else "", join(about, ", "), f" · {when}"])
    return tag("header", tag("h1", name(title, 120)), tag("p", line, class_="about"))


def _choice(runs: Sequence[Run]) -> Html | None:
    """Write the choice between several runs."""
    if len(runs) < 2:
        return None
    boxes = [
        tag(
            "label",
            tag("input", type="radio", name="run", value=run.number, checked=run.number == 0),
            tag("span", run.title),
        )
        for run in runs
    ]
    return tag("fieldset", tag("legend", "run"), boxes, class_="choice", id="runs")


def _bar(sections: Sequence[tuple[str, str, Html | None]], choice: Html | None) -> Html:
    """Write the bar that stays on the screen: links to the sections, the choice of the run, and the theme."""
    links = [tag("a", label, href=f"#{key}") for key, label, part in sections if part is not None]
    light = tag(
        "label",
        tag("span", "theme"),
        tag("select", [tag("option", theme) for theme in ("auto", "light", "dark")], id="theme", aria_label="theme"),
    )
    paper = tag("button", "Print", type="button", id="print")
    return tag(
        "div",
        tag("nav", links, aria_label="Sections"),
        tag("div", choice, light, paper, class_="controls"),
        class_="topbar screen",
    )


def _asset(file: str) -> str:
    return (files(__name__) / "assets" / file).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    """Hash an inline element for the content-security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
