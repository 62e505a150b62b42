"""Say what each flag of a profile means: what makes its numbers doubtful, and what to do about it."""

from __future__ import annotations

import re

from roofline.analysis.step_times import FALSE_ALARM

#: How often a trend is seen where there is none.
_FALSE_ALARM = f"less than 1 in {1 / FALSE_ALARM:.0f}"


#: By slug. The first clause says what was seen, and stands alone where two runs are compared.
FLAGS = {
    "few-steps": "Fewer than 10 plain steps were timed, so the median and its interval are rough; raise --steps.",
    "growing": "Each plain step took longer than the one before, so the step has no time of its own: the median is of "
    f"the steps that were timed, and more --steps give a longer one. Of runs of equal steps {_FALSE_ALARM} is flagged.",
    "shrinking": "Each plain step took less time than the one before: the median is of the steps that were timed, and "
    f"more --steps give a shorter one. Of runs of equal steps {_FALSE_ALARM} is flagged.",
    "compiling": "Programs were traced or compiled in the plain steps, and not only in the first one.",
    "oversubscribed": "More threads ran the step than the process has cores, so that some wait for cores that others "
    "of them have; --threads, or the framework's own function, sets as many as there are cores.",
    "few-traced-steps": "The trace holds fewer than 10 complete steps, so the median and its interval are rough; "
    "record more (schedule(active=10)).",
    "model-flops-derived": "A trace shows what ran and not what was asked for: model FLOPs are those of the ops that "
    "ran, without what checkpointing computes again.",
    "no-shapes": "The trace was recorded without shapes, so no work is known; add record_shapes=True to "
    "torch.profiler.profile(...).",
    "no-ceilings": "The device of the trace is not known here, so nothing has a minimum time; name it with --device.",
    "command-buffers": "Kernels were replayed from command buffers, which do not name their instructions; record with "
    "XLA_FLAGS=--xla_gpu_enable_command_buffer= for their work.",
    "inflated": "After the profiler's cost was subtracted the profiled steps were still over 5 % slower than the plain "
    "ones; op times were scaled down by one factor.",
    "above-ceiling": "Some ops ran faster than their minimum time, which is a defect of a count or of a ceiling.",
    "in-process": "The step ran inside the caller's process, with the threads and environment found there.",
    "contended": "The machine was busy with other programs; times are too long and spread wide.",
    "contended-ceilings": "Other programs used the device while the ceilings were measured, so they may be far too "
    "low; the next profile on an idle machine measures them again.",
    "given-ceilings": "The ceilings were given and not measured beside the step; in brackets stands the device that "
    "they are those of.",
    "unjoined": "The profiled steps and the counted one differ: some of the profiler's events belong to no counted op, "
    "or counted ops were not seen, so that times and work do not belong together everywhere.",
    "optimised-only": "The program as it was before the compiler was not found, so model FLOPs are those of the "
    "compiled one, without what it computes again; what the compiler merged, took out or padded is not known.",
    "phases-unresolved": "Nothing that ran says that it is of the backward pass, so that forward, backward and "
    "optimizer are not told apart; a step that is traced as one program does.",
    "trains": "The step computes gradients or updates weights, so it is recorded as training, though --mode train "
    "was not given.",
    "several-devices": "Several devices share the step: FLOPs and bytes are those of all of them together.",
    "shapes-vary": "Each step asks for another amount of work, so the step that was counted is not one that was timed; "
    "model FLOPs are those of the counted step as it ran.",
    "opaque-regions": "The inside of some compiled regions is not known; each counts as one op of unknown work.",
    "compiled-code": "The step runs compiled code, whose kernels this backend does not see: use --backend "
    "torch-compile.",
    "nothing-compiled": "Nothing of the step was compiled, whatever was asked for: what ran is what runs without the "
    "compiler.",
    "nothing-returned": "The step returned nothing and kept no array, so nothing tells when JAX was done: unless it "
    "waits itself, its times are those of starting it. Return its outputs.",
    "replays-unattributed": "Some kernels that were replayed from a CUDA graph could not be traced back to their ops; "
    "their work is unknown. An import gets them with --capture.",
    "replays-by-order": "Which op a replayed kernel is of follows from the kernels' order, names, grids and blocks, as "
    "the profiler of this PyTorch writes no ids of graph nodes.",
    "beyond-step": "Some ops, or all of them together, took longer than the whole step they ran in, which is a "
    "defect of the recorded times.",
    "throttled": "The driver named a reason to hold the device's clock back during the measurement; the ceilings "
    "assume that there is none.",
}


def clause(slug: str) -> str:
    """Return the first clause of what a flag says, without what follows from it."""
    return re.split(r"[;:]|, so |\. |\.$", FLAGS[slug])[0]
