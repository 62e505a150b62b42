"""What flags say."""

from __future__ import annotations

import pytest

from roofline.analysis.flags import clause


@pytest.mark.parametrize(
    "after", ["; that is wrong.", ": a count is wrong.", ", so a count is wrong.", ". Again.", "."]
)
def test_a_clause_holds_its_commas_and_nothing_of_what_follows(after: str) -> None:
    assert clause(f"Ops, alone or together, took 1.5 ms{after}") == "Ops, alone or together, took 1.5 ms"
