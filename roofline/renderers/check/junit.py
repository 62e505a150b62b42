"""Write JUnit's XML, as CI systems read it: a suite per profile, a test case per gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from roofline.content import wording
from roofline.regression.batch import Judged
from roofline.regression.growth import Gate
from roofline.renderers.check import _report, _sentences


def render(judged: Sequence[Judged]) -> str:
    """Write failed gates as failures, gates that were not judged as skipped, and lost profiles as errors."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {_counts(judged)}>"]
    for profile in judged:
        lines += [f"  <testsuite name={_value(profile.file)} {_counts([profile])}>", *_cases(profile), "  </testsuite>"]
    return "\n".join(map(_report.without_commands, [*lines, "</testsuites>"])) + "\n"


def _counts(judged: Sequence[Judged]) -> str:
    status = [gate.status for profile in judged if profile.result for gate in profile.result.gates]
    errors = sum(profile.result is None for profile in judged)
    failures, skipped = status.count("failed"), status.count("skipped")
    return f'tests="{len(status) + errors}" failures="{failures}" errors="{errors}" skipped="{skipped}"'


def _cases(judged: Judged) -> Iterator[str]:
    if judged.result is None:
        words = str(judged.error)
        yield f'    <testcase classname="roofline" name="profile"><error message={_value(words)}/></testcase>'
        return
    of = _value(f"roofline.{judged.result.current.profile.model}")
    for gate in judged.result.gates:
        yield f"    <testcase classname={of} name={_value(_sentences.name(gate))}>{_outcome(gate)}</testcase>"


def _outcome(gate: Gate) -> str:
    words = _sentences.sentence(gate)
    if gate.status == "failed":
        return f"<failure message={_value(words)}/>"
    if gate.status == "skipped":
        return f"<skipped message={_value(words)}/>"
    if gate.status == "unresolved":
        words = f"not resolved: {words}"
    return f"<system-out>{escape(wording.plain(words))}</system-out>"


def _value(words: str) -> str:
    """Quote the value of an attribute, without control characters, which no XML may hold."""
    return quoteattr(wording.plain(words))
