"""Say what each flag of a profile means, which makes its numbers doubtful, and what to do about it."""

from __future__ import annotations

import re

from roofline.analysis.step_times import FALSE_ALARM

#: How often a trend is seen where there is none.
_FALSE_ALARM = f"less than 1 in {1 / FALSE_ALARM:.0f}"


#: By slug. The first clause says what was seen, and stands alone where two runs are compared.
FLAGS = {
    "few-steps": "Fewer than 10 plain steps were timed, so the median and its interval are rough.",
    "growing": "Plain steps took longer and longer over the run: the median holds only for the steps that were timed, "
    f"and more --steps give a longer one. Of runs with equal steps, {_FALSE_ALARM} gets this flag.",
    "shrinking": "Plain steps took less and less time over the run: the median holds only for the steps that were "
    f"timed, and more --steps give a shorter one. Of runs with equal steps, {_FALSE_ALARM} gets this flag.",
    "compiling": "Programs were traced or compiled in the plain steps, not only in the first step.",
    "oversubscribed": "More threads ran the step than the process has cores.",
    "few-traced-steps": "The trace holds fewer than 10 complete steps, so the median and its interval are rough.",
    "model-flops-derived": "Model FLOPs are those of the ops that ran, without recomputation by checkpointing; a trace "
    "does not record the model.",
    "steps-inferred": "No mark of the trace says where a step begins: its steps were found by what repeats in it.",
    "no-shapes": "The trace was recorded without shapes, so no work is known.",
    "no-ceilings": "No ceilings are known for the trace's device, so no op has a minimum time.",
    "command-buffers": "Kernels were replayed from command buffers, which do not name their instructions.",
    "inflated": "Profiled steps took over 5 % longer than plain ones, even without the profiler's cost; op times were "
    "scaled down by one factor.",
    "above-ceiling": "Some ops ran faster than their minimum time; a count or a ceiling is wrong.",
    "in-process": "The step ran inside the caller's process, with its threads and environment.",
    "contended": "The machine was busy with other programs; times are too long.",
    "contended-ceilings": "Other programs used the device while the ceilings were measured, so the ceilings may be "
    "far too low.",
    "given-ceilings": "The ceilings were given, not measured with the step; their device is in brackets.",
    "unjoined": "Counted and profiled steps differ in their ops, so shares of roofs may be wrong. Some events of the "
    "profiler match no counted op, or some counted ops were not seen: times and work may belong to different ops.",
    "optimised-only": "The program before compilation was not found, so model FLOPs are those of the compiled program, "
    "without recomputation; what the compiler merged, removed or padded is not known.",
    "phases-unresolved": "Forward, backward and optimizer cannot be separated; no op that ran is marked as part of the "
    "backward pass.",
    "trains": "The step computes gradients or updates weights, so it is recorded as training, though --mode train "
    "was not given.",
    "several-devices": "Several devices share the step: FLOPs and bytes are sums over all of them.",
    "shapes-vary": "The amount of work changes from step to step, so the counted step is not one of the timed steps; "
    "model FLOPs are those of the counted step.",
    "opaque-regions": "The contents of some compiled regions are not known; each counts as one op of unknown work.",
    "compiled-code": "The step runs compiled code, whose kernels this backend does not see.",
    "nothing-compiled": "No part of the step was compiled, although compilation was requested; it ran without the "
    "compiler.",
    "nothing-returned": "The step returned nothing and kept no array, so the end of its work was not seen: unless it "
    "waits for JAX itself, its times cover only the launch.",
    "replays-unattributed": "Some kernels replayed from a graph could not be assigned to ops; their work is unknown.",
    "replays-uncaptured": "Some kernels replayed from a graph could not be assigned to ops with the captures that were "
    "given; their work is unknown.",
    "replays-by-order": "Replayed kernels were assigned to ops by their order, names, grids and blocks; the profiler "
    "of this PyTorch writes no ids of graph nodes.",
    "beyond-step": "Some ops, alone or together, took longer than the step they ran in; the recorded times are wrong.",
    "throttled": "The device's clock may have been lowered: times may be too long. The driver reported a reason, and "
    "the ceilings assume that there is none.",
}
#: What to do about a flag, by slug, where something helps.
CURES = {
    "few-steps": "raise --steps",
    "oversubscribed": "set as many threads as cores, with --threads or the framework's own function",
    "few-traced-steps": "record more steps (schedule(active=10))",
    "steps-inferred": "mark each step (prof.step(), or a range of roctx), or choose by hand (--between, --trim)",
    "no-shapes": "record PyTorch with torch.profiler.profile(record_shapes=True, ...)",
    "no-ceilings": "name a device that `roofline devices` lists, with --device",
    "command-buffers": "record with XLA_FLAGS=--xla_gpu_enable_command_buffer= to get the work of replayed kernels",
    "contended": "measure again while nothing else runs",
    "contended-ceilings": "measure again while nothing else runs",
    "phases-unresolved": "trace the step as one program, which marks the backward pass",
    "compiled-code": "use --backend torch-compile",
    "nothing-returned": "return the step's outputs",
    "replays-unattributed": "import with --capture, which assigns replayed kernels to ops",
    "replays-uncaptured": "give captures that fit, of the same program with the shapes that it replays",
    "throttled": "measure again at one clock (nvidia-smi --lock-gpu-clocks)",
}


def clause(text: str) -> str:
    """Return the first clause of a text, which says what was seen, without what follows from it and without its end."""
    return re.split(r"[;:] |, so |\. |\.$", text)[0]
