"""The T, P and C runs of a step put together into a recording."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from roofline.core.step import Step
from roofline.costs.counted import PHASES, Counted
from roofline.recording.recording import Plan, Recording
from roofline.recording.rows import op_rows
from roofline.recording.step_recorder import Plain, StepRecorder, Trace, Work
from roofline.timing.timed import Timed, profiled
from roofline.units import seconds

#: Below this share of the time of a step's events that belong to counted ops, steps and counts are not of the same.
JOINED = 0.999


def assemble(step: Step, plan: Plan, recorder: StepRecorder[Trace], plain: Plain, work: Work) -> Recording:
    """What was measured of a step, in the form of a profile."""
    counted, timed = work.counted, work.timed
    switches = recorder.switches(step)
    rows = op_rows(counted, timed, _block_of_scopes(step, counted.scopes), switches, plan.device)
    return Recording(
        wall=plain.wall,
        profiled=None if timed is None else profiled(timed, recorder.mechanism(timed)),
        scopes=counted.scopes,
        phases=PHASES,
        blocks=rows.blocks,
        signatures=rows.signatures,
        ops=rows.ops,
        kernels=rows.kernels,
        memory=recorder.memory(step),
        parameters=step.parameters,
        trainable=step.trainable,
        samples=step.samples,
        tokens=step.tokens,
        mode=step.mode,
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
            **recorder.conditions(plain, work),
            **plain.clocks.conditions(),
        },
        flags=(*_flags(plan, recorder, plain, timed), *recorder.flags(step, work)),
        ceilings={**plain.ceilings, **work.ceilings},
        notes=_notes(counted, timed),
        compilation=recorder.compilation(rows),
    )


def _flags(plan: Plan, recorder: StepRecorder[Trace], plain: Plain, timed: Timed | None) -> tuple[str, ...]:
    """What a reader must know of the measurement; nothing of one that timed no ops."""
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


def _block_of_scopes(step: Step, scopes: Sequence[str]) -> list[str]:
    """The block of each scope: by the model's map, else the scope's first part."""
    if not step.blocks:
        return [path.partition("/")[0] or "(top)" for path in scopes]
    return [next((block for pattern, block in step.blocks if fnmatchcase(path, pattern)), "other") for path in scopes]


def _notes(counted: Counted, timed: Timed | None) -> tuple[str, ...]:
    """What the profile cannot say, by name: ops whose work is unknown, and events that no counted call explains."""
    unknown = [f"the work of {name} ({why})" for name, why in sorted(counted.unknown.items())]
    lost = timed.unmatched if timed else {}
    return (*unknown, *(f"what {name} is ({seconds(time)} per step)" for name, time in sorted(lost.items())))
