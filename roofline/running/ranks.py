"""Tell which rank of a job this process is: of torchrun, mpirun or srun."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from roofline.core.numerals import whole

#: Variables that launchers set: (number of the rank, how many there are). torchrun and accelerate, Open MPI, Slurm.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # SLURM_NTASKS is that of the allocation
)


@dataclass(frozen=True, slots=True)
class Rank:
    """Name a process of a job. number: from 0 on. of: how many there are, two or more."""

    number: int
    of: int


def of_launcher(variables: Mapping[str, str] = os.environ) -> Rank | None:
    """Read the rank that a launcher gave this process; None where it is the only one, or none launched it."""
    for number, of in _VARIABLES:
        rank, ranks = whole(variables.get(number, "")), whole(variables.get(of, ""))
        if rank is not None and ranks is not None and ranks > 1:
            return Rank(rank, ranks)
    return None
