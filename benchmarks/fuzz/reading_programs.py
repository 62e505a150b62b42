"""Read XPlane traces into columns, and the programs (HLO) that lie in them."""

from __future__ import annotations

import mutation
import trace_seeds
from target import Target

from roofline.traces.xplane import reader as xplane
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.cost import cost, op_names
from roofline.xla.hlo.schedule import schedule


def read_xplane(data: bytes) -> None:
    """Read the columns of an XPlane trace."""
    xplane.read(data)


def program(data: bytes) -> None:
    """Read a program and count each of its instructions."""
    read = hlo.read(data)
    schedule(read)
    for instruction in read.instructions.values():
        cost(read, instruction)
        op_names(read, instruction)


TARGETS = {
    "xplane": Target(read_xplane, trace_seeds.spaces, mutation.of_protobuf),
    "hlo": Target(program, trace_seeds.programs, mutation.of_protobuf),
}
