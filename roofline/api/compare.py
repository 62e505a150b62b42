"""Explain why one run is faster than another: `roofline.compare`."""

from __future__ import annotations

from roofline.api._run import Run, profile
from roofline.comparison.parity import parity
from roofline.comparison.ranking import Ranking, rank
from roofline.content.wording import conjunction, plain
from roofline.errors import GateError


def compare(*runs: Run, by: str | None = None, allow: bool = False) -> Ranking:
    """Say why one run is faster than another, as a sum that closes.

    runs: two or more profiles, or paths of saved ones. Two are compared in the order given, A - B; of more, each with
    the fastest. by: break the difference down by "class", "group", "op", "scope", "block", "phase", "kernel" or
    "source". allow: compare runs that do not do the same work, with a warning in every output.

    Returns a Ranking, which prints as `roofline compare` does; its times are in seconds. Raises GateError for runs that
    are not comparable, InputError for fewer than two or for one without times.

    >>> found = roofline.compare("torch.json", "jax.json")
    >>> found.to_pandas()[["cause", "seconds", "low", "high"]]
    """
    ranking = rank([profile(run) for run in runs], as_given=True, by=by)
    refused = None if allow else refusal(ranking, "allow=True")
    if refused is not None:
        raise GateError(refused)
    return ranking


def refusal(ranking: Ranking, option: str = "--allow") -> str | None:
    """Explain why runs cannot be compared, and name the `option` that allows it; None if they can be compared."""
    refused = [pair for pair in ranking.pairs if pair.comparison.parity.verdict == "not comparable"]
    if not refused:
        return None
    if len(ranking.runs) == 2:
        return parity.refusal(refused[0].comparison.parity, option)
    fastest = plain(refused[0].names[1], 60)
    refusals = []
    for pair in refused:
        reasons = [plain(difference.what) for difference in pair.comparison.parity.of("refused")]
        refusals.append(f"{plain(pair.names[0], 60)} ({conjunction(reasons)})")
    return (
        f"Not comparable with {fastest}, the fastest of {len(ranking.runs)} runs: {'; '.join(refusals)}; leave them "
        f"out, measure the same work in all, or go on with {option}, which keeps this warning in every output."
    )
