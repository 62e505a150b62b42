"""Write on each row of an account the annotations that fit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import msgspec

from roofline import plugins
from roofline.analysis.gap_parts import AFTER, DISPATCHING, NOT_KNOWN, OUTSIDE
from roofline.comparison.account.annotation import Annotation
from roofline.comparison.account.oriented_row import OrientedRow, bare_names, from_slower
from roofline.comparison.account.row import Note, Row
from roofline.core.decoding import UndecodableError, from_toml
from roofline.errors import InputError

#: Parts of a gap that differ between two runs of one program, by what their names begin with.
_NOISE = (DISPATCHING, OUTSIDE, AFTER, NOT_KNOWN)


@cache
def known_annotations() -> Mapping[str, Annotation]:
    """Return all annotations by name, which is that of their file."""
    files = sorted((plugins.folder("roofline.comparison") / "annotations").glob("*.toml"))
    return MappingProxyType({file.stem: read_annotation(file) for file in files})


def read_annotation(file: Path) -> Annotation:
    """Read an annotation. Raises InputError where a key is unknown, is lacking or has a value of another type."""
    try:
        return from_toml(file.read_bytes(), Annotation)
    except UndecodableError as error:
        raise InputError(f"{file} is not an annotation ({error}); docs/adding.md shows one.") from None


def rule_of(row: Row) -> str:
    """Return what a finding of a row with a name is called in JSON and CSV, as before there was an account."""
    return known_annotations()[row.annotations[0]].rule


def annotate(rows: Sequence[Row], frameworks: tuple[str, str], *, alike: bool = True) -> list[Row]:
    """Write annotations on rows, and what to do about them.

    frameworks: of both runs. alike: whether they execute ops of the same names by and large; two frameworks do not.

    None on what may be noise, which is noted: a row whose interval holds 0, and a part of the gap that is less than
    what the same ops and the rest of the host differ by.
    """
    alike_rows = [row for row in rows if row.kind == "rate" or (row.place or "").startswith(_NOISE)]
    noise = sum(abs(row.seconds or 0.0) for row in alike_rows if None not in (row.a.seconds, row.b.seconds))
    changes = [change for row in rows if row.kind in ("only", "rate") for change in row.ops]
    executed = [frozenset(chain(*(bare_names(change) for change in changes if change.counts[side]))) for side in (0, 1)]
    annotated = []
    for row in rows:
        _, other_ops = executed[:: row.sign]
        oriented = OrientedRow(from_slower(row), alike, other_ops)
        names = tuple(name for name, annotation in known_annotations().items() if annotation.fits(oriented))
        if names and (why := _noise(row, noise)):
            notes = (Note("annotate", f"not named {name}, as {why}") for name in names)
            row = msgspec.structs.replace(row, notes=(*row.notes, *notes))
        elif names:
            row = msgspec.structs.replace(row, annotations=names, advice=_advice(row, names, frameworks))
        annotated.append(row)
    return annotated


def _advice(row: Row, names: Sequence[str], frameworks: tuple[str, str]) -> str:
    """Return what to do in the framework of the run that spends more; of a setting it is not known which that is."""
    if row.kind == "setting" and frameworks[0] != frameworks[1]:
        return ""
    framework, _ = frameworks[:: row.sign]
    return "; ".join(filter(None, (known_annotations()[name].advice_in(framework) for name in names)))


def _noise(row: Row, noise: float) -> str:
    """Say why a row may be noise; empty where it is none. noise: what the same ops and the host differ by [s]."""
    if row.kind != "setting" and row.ci95 is not None and row.ci95[0] <= 0 <= row.ci95[1]:
        return "its interval holds 0"
    if row.kind == "gap" and abs(row.seconds or 0.0) <= noise:
        return "the same ops and the rest of the host differ by more"
    return ""
