"""Put the T, P and C runs of a step together into a recording."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from roofline.core import scopes
from roofline.core.executor import ASLEEP, COMPILING
from roofline.core.step import Step
from roofline.costs import generation
from roofline.costs.counted import PHASES, Counted
from roofline.costs.weight import weight
from roofline.errors import MeasurementError
from roofline.recording.recording import Plan, Recording
from roofline.recording.rows import op_rows
from roofline.recording.step_recorder import Plain, StepRecorder, Trace, Work
from roofline.timing.timed import Timed, profiled
from roofline.units import seconds

#: Least share of event time that must belong to counted ops; with less, the profiled and the counted steps differ.
JOINED = 0.999
#: Of profiled steps without an event of any op: times of 0 s would say what nobody saw.
NO_EVENTS = (
    "The profiler recorded none of the step's ops, so their times are not known: let each step do the same work and "
    "run again, or count the work alone with --count-only."
)
#: Names of events in a note. By choice: it stays one line.
_NAMED = 3


def assemble(step: Step, plan: Plan, recorder: StepRecorder[Trace], plain: Plain, work: Work) -> Recording:
    """Put the measurements of a step together, in the form of a profile."""
    counted, timed = work.counted, work.timed
    if timed is not None and counted.ops and not timed.own.any():
        raise MeasurementError(NO_EVENTS)
    if step.mode == "generate":
        counted = generation.told_apart(counted)
    switches = recorder.switches(step)
    compiling = None if recorder.compiling() is None else plain.compiling  # which the traces may show to be unknown
    trains = step.mode == "infer" and _trains(counted)
    rows = op_rows(counted, timed, _block_of_scopes(step, counted), switches, plan.device)
    return Recording(
        wall=plain.wall,
        profiled=None if timed is None else profiled(timed, recorder.mechanism(timed)),
        scopes=counted.scopes,
        phases=PHASES,
        blocks=rows.blocks,
        signatures=rows.signatures,
        ops=rows.ops,
        kernels=rows.kernels,
        addresses=rows.addresses,
        devices=counted.devices,
        storages=rows.storages,
        lines=rows.lines,
        waits=rows.waits,
        energy=plain.energy if counted.devices == 1 else None,  # the counter is that of one
        memory=recorder.memory(step),
        parameters=step.parameters,
        trainable=step.trainable,
        samples=step.samples,
        tokens=step.tokens,
        new_tokens=step.new_tokens,
        mode="train" if trains else step.mode,
        batch=step.batch,
        seq=step.seq,
        versions=recorder.versions(),
        switches=switches,
        environment=recorder.environment(),
        conditions={
            "cpu_share": plain.usage.share(recorder.threads()),
            "involuntary_switches_per_second": plain.usage.switch_rate,
            "load": plain.usage.load,
            **plain.system.per_step(plain.ran),
            **plain.system.queued_per_step(plain.ran),
            **({} if plain.asleep is None else {ASLEEP: plain.asleep}),
            **({} if compiling is None or not plain.ran else {COMPILING: compiling / plain.ran}),
            **recorder.conditions(plain, work),
            **plain.clocks.conditions(),
        },
        flags=(*(("trains",) if trains else ()), *_flags(plan, recorder, plain, timed), *recorder.flags(step, work)),
        ceilings={**plain.ceilings, **work.ceilings},
        notes=_notes(counted, timed),
        compilation=recorder.compilation(rows),
    )


def _flags(plan: Plan, recorder: StepRecorder[Trace], plain: Plain, timed: Timed | None) -> tuple[str, ...]:
    """List the flags of the measurement that a reader must know; none where no ops were timed."""
    if timed is None:
        return ()
    flags = []
    if plan.device == "cpu" and recorder.contended(plain.usage):
        flags.append("contended")
    if plan.in_process:
        flags.append("in_process")
    flags.extend(plain.clocks.flags())
    if timed.joined < JOINED or timed.unseen:
        flags.append("unjoined")
    return tuple(flags)


def _trains(counted: Counted) -> bool:
    """Tell whether a step computes gradients or changes weights, whatever its mode says."""
    return counted.updates or any(PHASES[phase] in ("backward", "optimizer") for phase in set(counted.phase.tolist()))


def _block_of_scopes(step: Step, counted: Counted) -> list[str]:
    """Name the block of each scope: by the model's map, else derived from the scopes (`core.scopes.blocks`)."""
    if not step.blocks:
        return scopes.blocks(counted.scopes, *_work_of_scopes(counted))
    return [
        next((block for pattern, block in step.blocks if fnmatchcase(path, pattern)), "other")
        for path in counted.scopes
    ]


def _work_of_scopes(counted: Counted) -> tuple[list[float], list[str]]:
    """Sum the work of the ops of each scope (`weight`), and name the class of most of it; without the optimizer's."""
    by_class: list[dict[str, float]] = [{} for _ in counted.scopes]
    for row, op in enumerate(counted.ops):
        parts = op.costed.parts if op.places else (op.costed,)
        places = op.places or ((int(counted.scope[row]), int(counted.phase[row])),)
        for part, (scope, phase) in zip(parts, places, strict=True):
            if PHASES[phase] != "optimizer":
                sums = by_class[scope]
                sums[part.op_class] = sums.get(part.op_class, 0.0) + weight(part.cost)
    return [sum(sums.values()) for sums in by_class], [max(sums, key=sums.__getitem__, default="") for sums in by_class]


def _notes(counted: Counted, timed: Timed | None) -> tuple[str, ...]:
    """List the gaps of the profile by name: ops of unknown work, and events that no counted call explains."""
    unknown_work = [f"the work of {name} ({why})" for name, why in sorted(counted.unknown.items())]
    return (*unknown_work, *_unmatched(timed.unmatched if timed else {}))


def _unmatched(times: Mapping[str, float]) -> list[str]:
    """Name the events that no counted call explains, the longest first, in one sentence: steps of a program may differ.

    times: name -> seconds per step.
    """
    if len(times) <= _NAMED:
        return [f"what {name} is ({seconds(time)} per step)" for name, time in sorted(times.items())]
    longest = sorted(times, key=lambda name: -times[name])[:_NAMED]
    together = seconds(sum(times.values()))
    return [f"what {', '.join(longest)} and {len(times) - _NAMED} more are ({together} per step)"]
