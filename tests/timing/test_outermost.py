"""Tasks that are reported at their ends: what lies in another one counts once."""

from __future__ import annotations

from roofline.timing.outermost import Outermost


def test_tasks_in_tasks_count_once() -> None:
    now = [0.0]
    tasks = Outermost(lambda: now[0])
    for end, duration in (
        (2.0, 1.0),  # 1 to 2
        (3.0, 0.5),  # 2.5 to 3, in the one from 2.2 to 5
        (4.0, 0.5),  # 3.5 to 4, in the same
        (5.0, 2.8),
        (9.0, 1.0),
    ):
        now[0] = end
        tasks.ended(duration)
    assert tasks.seconds == 1.0 + 2.8 + 1.0
