"""Describe the measurements of a step: throughput, MFU, memory, compilation, and how it was timed."""

from __future__ import annotations

from collections.abc import Iterator

from roofline import units
from roofline.analysis.analysis import Analysis, WorkAnalysis
from roofline.content import wording
from roofline.content.facts import compiling, energy, generation, memory, notes, preset
from roofline.core.vocabulary import PASSES


def facts(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Yield the names of facts and their words."""
    profile = analysis.profile
    if words := ", ".join(f"{units.significant(rate)} {unit}/s" for rate, unit in rates(analysis)):
        yield "throughput", words
    if words := generation.describe_generation(analysis):
        yield "generating", words
    if analysis.mfu is not None:
        peak = f"{units.flop_rate(analysis.peak)} ({wording.plain(analysis.precision or '')})"
        why = notes.mfu(analysis)
        yield "MFU", f"{notes.least(analysis)}{units.percent(analysis.mfu)} of {peak}{f': {why}' if why else ''}"
    yield from energy.facts(profile)
    yield from memory.facts(profile)
    if profile.wall.first is not None:
        yield "first step", f"{units.seconds(profile.wall.first)}, build and compilation included"
    if words := compiling.describe_compiling(analysis):
        yield "compiling", words
    yield from compiled(analysis)
    yield "steps", wording.spread(analysis)
    yield from preset.facts(analysis)


def rates(analysis: Analysis) -> Iterator[tuple[float, str]]:
    """Yield how many samples and tokens a second takes, where the step says how many it has."""
    profile = analysis.profile
    samples, each = profile.samples, profile.new_tokens
    are_new = samples is not None and each is not None and profile.tokens == samples * each
    # A pass of decode of which no number of new tokens is known has drafted ones, or prompts.
    is_pass = each is None and PASSES in profile.switches
    tokens = "new tokens" if are_new else "tokens processed" if is_pass else "tokens"
    for number, unit in ((profile.samples, "samples"), (profile.tokens, tokens)):
        if number is not None:
            yield number / analysis.wall, unit


def compiled(analysis: WorkAnalysis) -> Iterator[tuple[str, str]]:
    """Describe the compilation; yield nothing where none is recorded."""
    for number, words in enumerate(wording.compilation(analysis)):
        yield "" if number else "compiled", words
