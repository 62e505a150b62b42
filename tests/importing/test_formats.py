"""Trace formats are found by their file: each claims suffixes, and the rest is torch.profiler's."""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

import pytest

from roofline import importing, plugins
from roofline.errors import InputError

FORMATS = [
    plugins.load("roofline.importing", name, "trace format")
    for name in plugins.names("roofline.importing")
    if name.startswith("from-")
]


def test_no_two_formats_claim_one_suffix() -> None:
    claimed = [suffix for form in FORMATS for suffix in form.SUFFIXES]
    assert ".pb" in claimed
    assert len(claimed) == len(set(claimed))
    assert all(suffix.startswith(".") for suffix in claimed)


def test_the_help_of_import_names_every_format() -> None:
    """It reads the files and imports none of them."""
    command = plugins.load("roofline.cli", "import", "command").command
    told = get_type_hints(command, include_extras=True)["traces"].__metadata__[0].help
    for form in FORMATS:
        assert all(f"{suffix}," in told or f"{suffix})" in told for suffix in form.SUFFIXES)


@pytest.mark.parametrize("form", [form for form in FORMATS if form.SUFFIXES], ids=lambda form: form.__name__)
def test_what_a_format_claims_is_imported_by_itself(form, tmp_path: Path) -> None:
    """Neither with another trace nor with a capture; the sentence says what the file is."""
    one, other = tmp_path / f"a{form.SUFFIXES[0]}", tmp_path / "b.json"
    for paths, capture in (([other, one], None), ([one], other)):
        with pytest.raises(InputError, match=f"{form.WORDS} is imported by itself"):
            importing.read(paths, capture=capture)
