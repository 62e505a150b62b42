"""Hold an executed HLO instruction: what a step is counted from."""

from __future__ import annotations

from dataclasses import dataclass

from roofline.costs.counted import Costed
from roofline.xla.hlo import module as hlo

#: An executed instruction: (program id, name).
Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Executed:
    """Hold an instruction as a step runs it: `times` per step; costed holds the work of all of them."""

    key: Key
    instruction: hlo.Instruction
    times: float
    costed: Costed
    reads: tuple[int, ...]
    writes: tuple[int, ...]
