"""Count the threads that ran the step of a profile, and its cores."""

from __future__ import annotations

from typing import NamedTuple

from roofline.core.numerals import whole
from roofline.core.schema import Profile


class Threads(NamedTuple):
    """Threads that ran the ops of a step, and processors that the process may use, None where it is not recorded."""

    number: int
    cores: int | None

    @property
    def too_many(self) -> bool:
        """Return whether there are more threads than cores, so that threads wait for cores that others of them have."""
        return self.cores is not None and self.number > self.cores


def threads_of(profile: Profile) -> Threads | None:
    """Return the threads of a step on a CPU, as its process recorded them; None where it did not."""
    number, cores = (whole(profile.environment.get(name, "")) or None for name in ("threads", "cpus"))
    return None if number is None or profile.device.kind != "cpu" else Threads(number, cores)
