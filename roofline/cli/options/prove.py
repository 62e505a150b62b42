"""`roofline compare --prove`: takes each cause away where there is a switch for it, and measures what that gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roofline.comparison.ranking import Ranking
    from roofline.recording.request import Request


def prove(ranking: Ranking, say: Callable[[str], None], requests: Mapping[int, Request] | None = None) -> Ranking:
    """The ranking with the proofs of each of its pairs.

    requests: by the number of the run, what was asked for to measure it, where it was measured just now: in turns with
    the others, so that the difference need not be measured again.
    """
    from roofline.measuring import experiments

    asked = requests or {}
    pairs = []
    for pair in ranking.pairs:
        numbers = [ranking.names.index(name) for name in pair.names]
        one, other = (asked.get(number) for number in numbers)
        proofs = experiments.prove(
            pair.comparison,
            pair.findings,
            say,
            names=pair.names,
            requests=(one, other),
            whole=one is None or other is None,
        )
        pairs.append(replace(pair, proofs=proofs))
    return replace(ranking, pairs=tuple(pairs))
