"""Measure points of a sweep, each as the command line measures what it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roofline.core.schema import Profile
    from roofline.recording.prepared import PreparedProcesses
    from roofline.recording.request import Request
    from roofline.sweeping.plan import Point


def request_of(point: Point) -> Request:
    """Make the request that `roofline profile` makes of the options of a point."""
    import msgspec

    from roofline.cli.options.request import make_request

    asked: dict[str, Any] = msgspec.structs.asdict(point)
    model, backend, _ = asked.pop("model"), asked.pop("backend"), asked.pop("rounds")
    return msgspec.structs.replace(make_request(model, backend, **asked), quiet=True)


def measure(point: Point, prepared: PreparedProcesses | None = None) -> Profile:
    """Measure a point as `roofline profile` does, in forks of `prepared` where these serve it."""
    from roofline.cli.options import words
    from roofline.measuring import session
    from roofline.measuring.rounds import profile_command

    request = request_of(point)
    return session.measure(
        request,
        command=profile_command(request),
        rounds=point.rounds,
        say=lambda text: None,
        progress=words.calibrating,
        prepared=prepared,
    )


def settle(points: Sequence[Point], profiles: Sequence[Profile]) -> list[Profile]:
    """Run two points in turns, as `roofline compare` does."""
    from roofline.measuring.turns import settle_runs

    names = [point.backend for point in points]
    return settle_runs(names, profiles, list(map(request_of, points)), lambda text: None)
