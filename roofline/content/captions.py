"""Say what a table of a paper is of: what was measured, on what and how, in the sentences of a caption."""

from __future__ import annotations

from collections.abc import Sequence

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import wording
from roofline.content.facts import doubts
from roofline.content.wording import plain

#: Letters of a name.
_LONGEST = 60
#: What the rows are, by the key of the table.
_ROWS = {"group": "group of ops", "class": "class of ops", "scope": "layer", "source": "line of source"}


def measured(analysis: WorkAnalysis, by: str) -> str:
    """Say what was measured, how, and what makes its times doubtful. by: the key of the table.

    "One step of bert inference (batch 1 x 512 tokens, fp32) by group of ops; torch 2.13.0, AMD EPYC, 1 thread. Median
    of 10 steps 1.15 s (95 % interval 1.11–1.20 s), back to back."
    """
    step = "call" if analysis.profile.mode == "generate" else "step"
    where = ", ".join(filter(None, (wording.software(analysis.profile), wording.device(analysis))))
    measured = how(analysis)
    sentences = [f"One {step} of {subject(analysis)} by {_ROWS.get(by, by)}; {where}."]
    sentences.append(f"{measured[0].upper()}{measured[1:]}.")
    return " ".join([*sentences, *(doubts.reasons(analysis) if isinstance(analysis, Analysis) else ())])


def compared(runs: Sequence[Analysis], names: Sequence[str], letters: Sequence[str] = ()) -> str:
    """Say the same of several runs: what they share once, then of each its name, its software and its time.

    letters: what stands before each.
    """
    subjects = " against ".join(dict.fromkeys(map(subject, runs)))
    devices = " and ".join(dict.fromkeys(filter(None, map(wording.device, runs))))
    sentences = [f"{', '.join(filter(None, (subjects, devices)))}."]
    for run, name, letter in zip(runs, names, letters or [""] * len(runs), strict=True):
        shown, written = plain(name, _LONGEST), wording.software(run.profile)
        called = written if written.startswith(shown) else f"{shown}, {written}"
        sentences += [f"{letter}{called}, {how(run)}.", *doubts.reasons(run)]
    return " ".join(sentences)


def subject(analysis: WorkAnalysis) -> str:
    """Say what was run: "bert inference (batch 1 x 512 tokens, fp32)"."""
    model, mode, lengths = wording.subject_parts(analysis.profile)
    settings = ", ".join(filter(None, (lengths, wording.arithmetic(analysis))))
    return f"{model} {mode}{f' ({settings})' if settings else ''}"


def how(analysis: WorkAnalysis) -> str:
    """Say how long a step took, and how that was measured: "median of 10 steps 1.15 s (95 % interval ...), ..."."""
    wall = analysis.profile.wall
    if analysis.wall is None:
        return "counted and not timed"
    interval = analysis.wall_interval
    steps = "one step" if len(wall.steps) == 1 else f"median of {len(wall.steps)} steps"
    across = f" over {1 + len(wall.processes)} processes" if wall.processes else ""
    spread = f" (95 % interval{across} {units.seconds_between(*interval)})" if interval else ""
    return f"{steps} {units.seconds(analysis.wall)}{spread}, {wording.protocol(wall)}"
