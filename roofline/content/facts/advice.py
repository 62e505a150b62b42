"""Say what to try about the host time of one run, where a measured pair shows what that gains."""

from __future__ import annotations

import re
from typing import NamedTuple

from roofline.analysis.analysis import Analysis
from roofline.analysis.gap_causes import DISPATCH
from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.annotation import Annotation
from roofline.comparison.parity.mechanism import mechanism
from roofline.core.framework import framework


class Advice(NamedTuple):
    """A sentence that says what to try, its annotation, and the part of the gap that it is about [s]."""

    text: str
    annotation: str
    part: str
    seconds: float


def advise(analysis: Analysis) -> list[Advice]:
    """Return advice on the parts of a run's gap, on the largest part first.

    A part has the annotations of that part. Dispatching has those of a step that runs as the first of two values of
    the setting `jit`: op by op, where the other run of their pair has one program.
    """
    parts = analysis.gap_causes or {}
    language = framework(analysis.profile)
    advice = []
    for name, annotation in known_annotations().items():
        text, part = annotation.advice_in(language), _part(analysis, annotation, parts)
        if text and part:
            advice.append(Advice(text, name, part, parts[part]))
    return sorted(advice, key=lambda item: -item.seconds)


def _part(analysis: Analysis, annotation: Annotation, parts: dict[str, float]) -> str | None:
    """Return the part of the gap that an annotation is about; None where it is about none that the run has."""
    if annotation.switch == "launches" and not analysis.has_queue:
        return None  # nothing is launched that could be replayed
    for pattern in annotation.patterns:
        if pattern.gap is not None and parts.get(pattern.gap, 0.0) > 0:
            return pattern.gap
        if pattern.setting == "jit" and pattern.values and parts.get(DISPATCH, 0.0) > 0:
            slower, _ = pattern.values
            if re.fullmatch(slower, mechanism(analysis)):
                return DISPATCH
    return None
