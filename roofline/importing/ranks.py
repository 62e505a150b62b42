"""The ranks of one job: which of them each trace is of, and how long each waits for the slower ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from roofline.core.schema import Profile
from roofline.errors import InputError

#: No job has as many ranks.
_MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class Rank:
    """Tell which process of a job a trace is of, as far as it says."""

    number: int | None
    of: int | None

    @property
    def is_out_of_range(self) -> bool:
        """Tell whether the job has no such rank."""
        return self.number is not None and self.of is not None and self.number >= self.of


def rank_of(header: Mapping[str, Any]) -> Rank:
    """Read the rank from a trace's header; what is no whole number of 0 or more says nothing."""
    info = header.get("distributedInfo")
    numbers = [info.get(key) for key in ("rank", "world_size")] if isinstance(info, dict) else [None, None]
    valid = [number if type(number) is int and 0 <= number < _MOST else None for number in numbers]
    return Rank(*valid)


def check_ranks(files: Sequence[Path], ranks: Sequence[Rank]) -> None:
    """InputError where the traces are not those of different ranks of one job."""
    file_of_rank: dict[int, Path] = {}
    for file, rank in zip(files, ranks, strict=True):
        if rank.number is None:
            raise InputError(f"{file.name} does not name its rank: import it by itself.")
        if rank.is_out_of_range:
            raise InputError(
                f"{file.name} names rank {rank.number} in a job of {rank.of} ranks (counted from 0): import it by "
                "itself."
            )
        if rank.of != ranks[0].of:
            raise InputError(
                f"{file.name} comes from a job of {rank.of} ranks and {files[0].name} from one of {ranks[0].of}: "
                "import them one by one."
            )
        if rank.number in file_of_rank:
            raise InputError(
                f"{file.name} and {file_of_rank[rank.number].name} both name rank {rank.number}: "
                "give one trace per rank."
            )
        file_of_rank[rank.number] = file


def with_waiting(profiles: Sequence[Profile]) -> list[Profile]:
    """The profiles of the ranks of a job with the time that each waits in collectives for slower ranks, per step.

    It stays None where a rank has collectives that are not on all ranks of their group.
    """
    from roofline.ranks.matching import match

    matched = match(profiles)
    if not len(matched) or matched.unmatched:
        return list(profiles)
    waiting = matched.waiting.sum(1) / len(set(matched.steps))
    return [
        msgspec.structs.replace(profile, imported=msgspec.structs.replace(profile.imported, waiting=seconds))
        for profile, seconds in zip(profiles, waiting.tolist(), strict=True)
        if profile.imported is not None
    ]
