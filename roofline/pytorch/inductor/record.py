"""Recording a step that torch.compile made: compile it under watch, count it beside its eager form, time it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from roofline.core.device import Ceiling
from roofline.core.schema import Compilation
from roofline.core.step import Step
from roofline.costs.counted import PHASES, Counted
from roofline.pytorch import compiled, eager_twin
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.inductor import dynamo, kernels, parts, rates
from roofline.pytorch.recording import compile_time, profiler
from roofline.pytorch.recording import counting as torch_counting
from roofline.pytorch.recording import record as torch_record
from roofline.pytorch.recording.allocations import with_storages
from roofline.recording.recording import Plan, Recording, Say
from roofline.recording.rows import OpTables
from roofline.traces.kineto.reader import KinetoTrace


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Compile the model's forward, unless the user did; then T, P and C as for eager PyTorch."""
    mode = plan.options.get("mode", "default")
    torch.compiler.reset()  # what was compiled before was not seen being compiled
    recorder = kernels.Recorder()
    theirs = step.model is None or is_compiled(step.model)
    counting = _Counting(recorder, mode, plan.device, say)
    with recorder.compiling():
        with dynamo.watch() as watched:
            if not theirs and isinstance(step.model, torch.nn.Module):
                counting.forward = compile_model(step.model, mode)
            switches = {"torch.compile": "the step's own" if theirs else f"mode={mode}"}
            variant = torch_record.Variant(
                count=counting, switches=switches, compilation=counting.keep, reference=lambda: counting.reference
            )
            recording = torch_record.record(step, plan, say, variant)
        if counting.counted_regions is None:  # plain steps only
            return recording
        return msgspec.structs.replace(
            recording,
            compilation=counting.facts(dynamo.compilation(dynamo.without(watched, counting.ours), mode=mode)),
            ceilings={**recording.ceilings, **(counting.ceilings() if recording.profiled else {})},
        )


def is_compiled(model: Any) -> bool:
    """Tell whether the user compiled the model himself."""
    return hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None


Forward = Callable[..., Any]


def compile_model(model: torch.nn.Module, mode: str) -> Forward:
    """Replace the model's forward by its compiled form, in place; returns the function that is compiled.

    A forward of PyTorch's own is compiled through a function of ours: torch.compile takes up only code that is not
    PyTorch's, and of an `nn.Sequential` nothing would be compiled (`model.compile()` leaves it eager in torch 2.13,
    without a word).
    """
    original = model.forward
    if Path(torch.__file__).parent not in Path(inspect.getsourcefile(original) or "").parents:
        model.forward = compiled_forward(original, mode)
        return original

    def forward(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    model.forward = compiled_forward(forward, mode)
    return forward


def compiled_forward(forward: Forward, mode: str, graphs: bool = True) -> Forward:
    """The compiled form of a function; without `graphs` a mode that has CUDA graphs is compiled without them."""
    if graphs:
        return torch.compile(forward, mode=None if mode == "default" else mode)
    from torch._inductor import list_mode_options

    return torch.compile(forward, options={**list_mode_options(mode), "triton.cudagraphs": False})


def has_graphs(mode: str, device: str) -> bool:
    """Tell whether a mode replays kernels by CUDA graphs."""
    return device == "cuda" and mode != "default"


@dataclass
class _Counting:
    """The C run: one step with compilation off, for what the program asks for, and one of compiled code.

    ours: what was compiled for this run alone, and by no step that is timed.
    """

    recorder: kernels.Recorder
    mode: str
    device: str
    say: Say
    forward: Forward | None = None
    counted_regions: compiled.Found | None = None
    rows: OpTables | None = None
    reference: KinetoTrace | None = None
    ours: dynamo.Watched = field(default_factory=lambda: dynamo.Watched(breaks={}))
    templates: bool = False
    runs: int = 0

    def __call__(self, step: Step) -> Counted:
        asked = _eager_twin(step)
        with self._without_graphs(step), self.recorder.running():
            nodes = torch_counting.record(step, compiled=True)
        if compile_time.has_compiled(nodes.names):  # shapes that change: what was compiled now takes them all
            with self._without_graphs(step), self.recorder.running():
                nodes = torch_counting.record(step, compiled=True)
        regions = self.recorder.regions
        nothing = not regions and not compiled.regions_without_a_record(nodes)
        names = [] if not isinstance(step.model, torch.nn.Module) else [n for n, _ in step.model.named_modules()]
        runs = parts.runs(regions, [name.removeprefix("_orig_mod.") for name in names])
        if self.recorder.missing:
            why = f"this PyTorch has changed what it tells ({self.recorder.missing})"
            runs = tuple(compiled.Run((), (), (), why) for _ in range(compiled.regions_without_a_record(nodes)))
        executor = rates.EXECUTOR if self.device == "cpu" else ""
        counted_regions = compiled.count(nodes, runs, Engine(), kernels.REGION, executor, nodes.addresses)
        self.runs = len(runs)
        self.templates = any(site.templates for region in regions for site in region.graph.sites)
        counted = eager_twin.with_scopes(counted_regions.counted, asked, counted_regions.placed)
        counted = with_storages(_optimizer_phase(counted, asked), nodes)
        if eager_twin.varies(counted, asked, lambda: _eager_twin(step)):
            counted = replace(counted, flags=(*counted.flags, eager_twin.VARIES))
        else:
            counted = eager_twin.with_model_flops(counted, asked)
        if nothing:
            self.say(_nothing_compiled(step))
            counted = replace(counted, flags=(*counted.flags, "nothing-compiled"))
        self.counted_regions = replace(counted_regions, counted=counted)
        return counted

    @contextmanager
    def _without_graphs(self, step: Step) -> Iterator[None]:
        """Run the same code without CUDA graphs: where these replay kernels, no op launches them.

        It is counted, and profiled for the order of its kernels; its times are not used.
        """
        if self.forward is None or not has_graphs(self.mode, self.device):
            yield
            return
        graphed = step.model.forward
        step.model.forward = compiled_forward(self.forward, self.mode, graphs=False)
        try:
            with dynamo.watch() as self.ours:
                step.run()
                step.run()
                yield
                self.reference = profiler.read(profiler.profiled(step.run, self.device, 3))
        finally:
            step.model.forward = graphed

    def ceilings(self) -> dict[str, Ceiling]:
        """Measure what generated code can reach here, of what this step does."""
        assert self.counted_regions is not None
        if self.device != "cpu":
            return {}
        generated = [op.costed.cost for op in self.counted_regions.counted.ops if op.costed.executor]
        return rates.measured(name for cost in generated for name in cost.functions or ())

    def keep(self, rows: OpTables) -> None:
        """Remembers the rows of the profile; what Dynamo did is known only when all has run."""
        self.rows = rows

    def facts(self, compilation: Compilation) -> Compilation:
        """Return what Dynamo says, with what was seen to run."""
        assert self.counted_regions is not None
        assert self.rows is not None
        notes = [*compilation.notes, *_without_effect(self.mode, self.device, self.templates)]
        notes += [
            f"a compiled region is one op of unknown work: {reason}"
            for reason in dict.fromkeys(self.counted_regions.opaque)
        ]
        return msgspec.structs.replace(
            compilation,
            graphs=self.runs,
            eager=_eager(self.rows, self.counted_regions),
            opaque=len(self.counted_regions.opaque),
            notes=tuple(notes),
        )


def _eager_twin(step: Step) -> Counted:
    """Count one step with compilation off."""
    with torch.compiler.set_stance("force_eager"):
        return torch_record.eager(step)


def _optimizer_phase(counted: Counted, asked: Counted) -> Counted:
    """A compiled optimizer no longer announces itself: it is what follows the backward pass."""
    optimizer, backward = PHASES.index("optimizer"), PHASES.index("backward")
    passed = np.flatnonzero(counted.phase == backward)
    if not len(passed) or (counted.phase == optimizer).any() or not (asked.phase == optimizer).any():
        return counted
    phase = counted.phase.copy()
    phase[passed[-1] + 1 :] = optimizer
    ops = tuple(
        replace(op, places=tuple((scope, int(when)) for scope, _ in op.places))
        for op, when in zip(counted.ops, phase.tolist(), strict=True)
    )
    return replace(counted, phase=phase, ops=ops)


def _nothing_compiled(step: Step) -> str:
    """A warning: that it does not run what was compiled may be what is wrong with a step, so it is recorded."""
    cure = "see TORCH_LOGS=graph_breaks for why"
    if step.model is None:
        cure = "call what torch.compile returns, or give the Step its model"
    return f"nothing of this step was compiled, and all of it is eager PyTorch: {cure}"


def _without_effect(mode: str, device: str, templates: bool) -> list[str]:
    """List what of a mode does nothing here."""
    if device != "cpu" or mode == "default":
        return []
    notes = [f"mode={mode}: CUDA graphs need a GPU, on a CPU there are none"]
    if mode == "max-autotune" and not templates:
        notes.append("mode=max-autotune: no generated product was chosen, all products are the library's")
    return notes


def _eager(rows: OpTables, counted_regions: compiled.Found) -> Mapping[str, tuple[int, float]]:
    """By phase the ops that ran outside compiled graphs, and their time [s]."""
    sums: dict[str, tuple[int, float]] = {}
    for row, source in zip(rows.ops, rows.source, strict=True):
        if source >= 0 and counted_regions.inside[source]:
            continue
        number, seconds = sums.get(PHASES[row.phase], (0, 0.0))
        own_seconds = float(np.mean(row.own_ns)) * 1e-9 if row.own_ns else 0.0
        sums[PHASES[row.phase]] = number + 1, seconds + own_seconds
    return sums
