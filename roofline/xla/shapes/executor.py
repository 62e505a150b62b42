"""Count what a CPU would run of programs that were compiled and did not run.

XLA's executor runs every instruction of an optimised program that is more than a name of a value: those of the entry
once, those of a loop as often as the loop turns, which the compiler knows where it depends on no data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from roofline.costs.counted import Counted
from roofline.recording.backend import NeedsData
from roofline.xla import count
from roofline.xla.executed import Key
from roofline.xla.hlo import loops
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.schedule import Unit, schedule
from roofline.xla.lines import by_stack

#: The place of a loop's condition among what it calls.
_CONDITION = 1
#: What XLA marks a call with that is to be one kernel (openxla/xla: ThunkEmitter::EmitCallThunk).
_SMALL = "xla_cpu_small_call"


def counted(
    programs: Mapping[int, hlo.Module],
    started: Sequence[int],
    before: Iterable[tuple[int, str, bytes]],
    optimizers: tuple[str, ...],
) -> Counted:
    """The ops of a step that starts these programs (ids), in this order. before, optimizers: as in `xla.count.count`.

    Raises NeedsData where data decide what runs.
    """
    times: dict[Key, float] = {}
    for program in started:
        for unit in schedule(programs[program]):
            if often := _often(programs[program], unit):
                key = (program, unit.instruction.name)
                times[key] = times.get(key, 0.0) + often
    runs = {program: float(started.count(program)) for program in programs}
    return count.of_instructions(times, programs, runs, list(before), optimizers, line=by_stack())


def _often(module: hlo.Module, unit: Unit) -> int:
    """Count how often a unit runs in one run of its program."""
    return prod(
        _turns(module, *control_and_branch) for control_and_branch in zip(unit.path, unit.branches, strict=True)
    )


def _turns(module: hlo.Module, control: hlo.Instruction, branch: int) -> int:
    """Count how often a control instruction runs what it calls, as units of their own."""
    if control.opcode == "conditional":
        raise NeedsData(f"which branch of {control.name} is taken")
    if control.opcode == "call":
        return 0 if _is_one_kernel(control) else 1
    trips = loops.trips(module, control)
    if trips is None:
        raise NeedsData(f"how often the loop {control.name} turns")
    if branch != _CONDITION:
        return trips
    return 0 if loops.noted(control) is not None else trips + 1  # a loop whose turns are noted counts them


def _is_one_kernel(call: hlo.Instruction) -> bool:
    """Tell whether XLA's CPU backend makes one kernel of a call, as it does of loops over a few numbers."""
    return any(
        attribute.key == _SMALL and attribute.value == "true" for attribute in call.message.frontend_attributes.map
    )
