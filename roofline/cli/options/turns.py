"""Run saved profiles in turns for `roofline compare`, save their times, and prove rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from roofline.cli.options.paths import STDIN, check_writable
from roofline.errors import InputError, RooflineError
from roofline.units import printable

if TYPE_CHECKING:
    from roofline.comparison.ranking import Ranking
    from roofline.core.schema import Profile
    from roofline.recording.request import Request

Say = Callable[[str], None]


def requests_of(profiles: Sequence[Profile], names: Sequence[str], say: Say, *, needed: bool) -> list[Request | str]:
    """Return what must be asked for to run each of saved profiles again, or why it cannot be run, which is also said.

    Raises InputError where all are `needed` and one cannot be run.
    """
    from roofline.measuring.requests import request_of

    requests: list[Request | str] = []
    for profile, name in zip(profiles, names, strict=True):
        try:
            requests.append(request_of(profile))
        except RooflineError as error:
            if needed:
                raise InputError(f"{printable(name)} cannot be run again. {error}") from None
            say(f"{name} cannot be run again. {error}")
            requests.append(str(error))
    return requests


def are_wanted(
    ranking: Ranking, requests: Sequence[Request | str], rounds: int | None, *, rerun: bool, asked: bool
) -> bool:
    """Tell whether the runs take turns: all can be run, and their earlier turns do not settle it."""
    settled = all(pair.headline.settled for pair in ranking.pairs)
    can_run = not any(isinstance(request, str) for request in requests)
    return asked and rounds != 1 and can_run and (rerun or not settled)


def settle(
    paths: Sequence[Path],
    profiles: Sequence[Profile],
    names: Sequence[str],
    requests: Sequence[Request | str],
    say: Say,
    rounds: int | None,
) -> list[Profile]:
    """Run all in turns, and save these times in the files of the profiles."""
    from roofline.comparison.turns import MOST
    from roofline.core.schema import save
    from roofline.measuring.turns import settle_runs

    for path in paths:
        if path.exists():
            check_writable(path.parent)
    asked = [request for request in requests if not isinstance(request, str)]
    settled = settle_runs(names, profiles, asked, say, most_turns=MOST if rounds is None else rounds)
    for path, profile, before in zip(paths, settled, profiles, strict=True):
        if profile is not before and path != STDIN and path.exists():
            save(profile, path)
            say(f"Saved the turns in {printable(path)}")
    return settled


def prove(ranking: Ranking, say: Say, requests: Sequence[Request | str], rounds: int | None) -> Ranking:
    """Return the ranking with the proofs of each of its pairs. requests: of each run, or why it cannot be run."""
    from roofline.comparison.turns import MOST
    from roofline.measuring import experiments

    pairs = []
    for pair in ranking.pairs:
        first, second = (requests[ranking.names.index(name)] for name in pair.names)
        proofs = experiments.prove(pair, (first, second), say, most_turns=MOST if rounds is None else rounds)
        pairs.append(replace(pair, proofs=proofs))
    return replace(ranking, pairs=tuple(pairs))
