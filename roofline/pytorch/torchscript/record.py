"""Records a step with its model in TorchScript, counted beside its eager twin."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.autograd.profiler import profile, record_function

from roofline.core.schema import Compilation
from roofline.core.step import Step
from roofline.costs.calls import Call
from roofline.costs.counted import NOTHING, PHASES, Counted
from roofline.errors import InputError
from roofline.pytorch import eager_twin, time_cpu
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count
from roofline.pytorch.nodes import Nodes
from roofline.pytorch.recording import counting as torch_counting
from roofline.pytorch.recording import profiler
from roofline.pytorch.recording import record as torch_record
from roofline.pytorch.recording import verify as torch_verify
from roofline.pytorch.recording.allocations import with_storages
from roofline.pytorch.recording.packed import EAGER, TRACED
from roofline.pytorch.recording.profiler import synchronize
from roofline.pytorch.torchscript import fusion
from roofline.pytorch.torchscript.trace import GRAPH, Traced, traced
from roofline.recording.recording import Check, Plan, Recording, Say
from roofline.standard_error import quiet
from roofline.traces import nesting
from roofline.traces.annotations import STEP

#: Calls before anything is counted: the executor watches the first and optimises at the second.
WARM_UP = 3


def record(step: Step, plan: Plan, say: Say) -> Recording:
    """Time plain steps (T), profile a few (P) and count one (C) of the step with its model in TorchScript.

    Raises InputError for a step without a model, for a model that cannot be traced, and for `freeze=on` where it
    cannot be.
    """
    if not isinstance(step.model, nn.Module):
        raise InputError(
            "The step names no model, so there is nothing to trace: return a roofline.Step with model=your nn.Module."
        )
    if isinstance(step.model, torch.jit.ScriptModule):
        return _record_scripted(step, plan, say)
    with traced(step, plan.options.get("freeze")) as run:

        def counting(step: Step) -> Counted:
            return _count_beside_eager(step, run)

        variant = torch_record.Variant(count=counting, switches=switches(plan.device, run.frozen))
        recording = torch_record.record(step, plan, say, variant)
    for note in run.notes():
        say(note)
    return msgspec.structs.replace(
        recording,
        compilation=Compilation(
            compiler="TorchScript",
            mode="traced, frozen" if run.frozen else "traced",
            seconds=run.seconds,
            graphs=len(run.graphs),
            notes=run.notes(),
        ),
    )


def _record_scripted(step: Step, plan: Plan, say: Say) -> Recording:
    if "freeze" in plan.options:
        raise InputError("The step's model is a TorchScript module already and runs as it is: leave freeze out.")
    variant = torch_record.Variant(count=_count_scripted, switches=switches(plan.device, None))
    recording = torch_record.record(step, plan, say, variant)
    compilation = Compilation(compiler="TorchScript", mode="the step's own", graphs=1)
    return msgspec.structs.replace(recording, compilation=compilation)


def verify(step: Step) -> list[Check]:
    """Compare the FLOPs of the traced step with FlopCounterMode's, and fvcore's of the model before tracing."""
    if not isinstance(step.model, nn.Module) or isinstance(step.model, torch.jit.ScriptModule):
        return torch_verify.verify(step)
    with traced(step, None):
        for _ in range(WARM_UP):
            step.run()
        return torch_verify.verify(step)


def switches(device: str, frozen: bool | None) -> dict[str, str]:
    """Return what TorchScript decided. frozen None: the module is the user's own."""
    native = torch._C
    names = ("_jit_texpr_fuser_enabled", "_jit_can_fuse_on_gpu" if device == "cuda" else "_jit_can_fuse_on_cpu")
    getters = [getattr(native, name, None) for name in names]
    fuses = None if None in getters else all(getter() for getter in getters if getter is not None)
    return {
        "TorchScript": "the step's own module" if frozen is None else "traced",
        **({} if frozen is None else {"TorchScript frozen": str(frozen)}),
        **({} if fuses is None else {"TorchScript fuser": "NNC" if fuses else "off"}),
    }


# Counting


def _count_beside_eager(step: Step, run: Traced) -> Counted:
    """Count one eager step and one as traced in one recording, so that a buffer has one number in both."""
    for _ in range(WARM_UP):
        step.run()

    def run_both() -> None:
        run.eager = True
        try:
            with record_function(EAGER):
                torch_counting.note_returned(step.run())
                _wait()
        finally:
            run.eager = False
        run.marked = True
        try:
            with record_function(TRACED):
                torch_counting.note_returned(step.run())
                _wait()
        finally:
            run.marked = False

    nodes = torch_counting.record(replace(step, run=run_both))
    at = nodes.names.index(TRACED)
    engine = Engine()
    eager = count(_Part(nodes, nodes.names.index(EAGER) + 1, at), engine)
    mine = _Part(nodes, at + 1, len(nodes))
    fused = [group for graph in run.graphs.values() for group in fusion.groups(graph.module, engine)]
    # The graph names modules by their attributes, under the module that was traced, of which the model is one part.
    paths = {f"__module.model.{scope.replace('/', '.')}": scope for scope in eager.scopes}
    counted = count(mine, engine, fusion.kernels(mine, fused, paths), addresses=nodes.addresses)
    within = nesting.nearest(mine.parent, np.asarray([name == GRAPH for name in mine.names], bool)) >= 0
    inside = within[[op.node for op in counted.ops]]
    counted = eager_twin.with_scopes(counted, eager, _placed_by_marks(mine, counted, inside), shared=True)
    counted = with_storages(counted, nodes, at + 1)
    if eager_twin.varies(counted, eager, lambda: _eager_step(step, run)):
        return replace(counted, flags=(*counted.flags, eager_twin.VARIES))
    return eager_twin.with_model_flops(counted, eager)


def _eager_step(step: Step, run: Traced) -> Counted:
    run.eager = True
    try:
        return torch_record.eager(step)
    finally:
        run.eager = False


def _count_scripted(step: Step) -> Counted:
    """Count one step of a module that came as TorchScript: it has no eager twin, so its own layers are asked for."""
    for _ in range(WARM_UP):
        step.run()
    nodes = torch_counting.record(step)
    engine = Engine()
    fused = fusion.kernels(nodes, fusion.groups(step.model, engine), {})
    counted = with_storages(count(nodes, engine, fused, addresses=nodes.addresses), nodes)
    names, own_scope = _layers(step, counted)
    scope = np.where(own_scope >= 0, own_scope, counted.scope)
    is_placed = (own_scope >= 0) | _placed_by_marks(nodes, counted, own_scope >= 0)
    return eager_twin.with_scopes(replace(counted, scopes=names, scope=scope), NOTHING, is_placed)


def _placed_by_marks(nodes: Nodes, counted: Counted, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the ops whose own scope is right: those outside the model, as of the loss, forward and backward.

    inside: ops of the forward pass that the graph runs; they and their gradients have the scope around the model. Nor
    do autograd's numbers tell from which layer a node of a differentiable graph is, or whose gradients add up.
    """
    sure = np.asarray([_node_of_an_op(name) for name in nodes.names], np.int64)
    ancestor = nesting.nearest(nodes.parent, sure >= 0)
    at = np.asarray([op.node for op in counted.ops], np.int64)
    by_number = (ancestor[at] >= 0) & (sure[ancestor[at]] == 1)
    around = [*np.unique(counted.scope[inside]), *np.flatnonzero([not name for name in counted.scopes])]
    forward, backward = (counted.phase == PHASES.index(phase) for phase in ("forward", "backward"))
    is_placed: NDArray[np.bool_] = ~np.isin(counted.scope, around) & (forward | (backward & by_number))
    return is_placed


def _node_of_an_op(name: str) -> int:
    """Return of an engine's annotation 1 where it runs the gradient of one op, 0 where not; -1 for other calls."""
    kind = name.partition("autograd::engine::evaluate_function: ")[2]
    if not kind:
        return -1
    return int("DifferentiableGraph" not in kind and "AccumulateGrad" not in kind)


def _wait() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        synchronize("cuda")


@dataclass(frozen=True, slots=True)
class _Part:
    """Holds the nodes from `begin` to before `end`, as `nodes.Nodes`; calls around them are left out."""

    recording: Nodes
    begin: int
    end: int

    def _cut(self, column: NDArray[Any]) -> NDArray[Any]:
        return column[self.begin : self.end]

    @property
    def names(self) -> tuple[str, ...]:
        return self.recording.names[self.begin : self.end]

    @property
    def is_op(self) -> NDArray[np.bool_]:
        return self._cut(self.recording.is_op)

    @property
    def parent(self) -> NDArray[np.int64]:
        parent: NDArray[np.int64] = np.maximum(self._cut(self.recording.parent) - self.begin, -1)
        return parent

    @property
    def sequence(self) -> NDArray[np.int64]:
        return self._cut(self.recording.sequence)

    @property
    def thread(self) -> NDArray[np.int64]:
        return self._cut(self.recording.thread)

    def __len__(self) -> int:
        return self.end - self.begin

    def call(self, index: int, /) -> Call:
        return self.recording.call(self.begin + index)


def _layers(step: Step, counted: Counted) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the layer of each op as the profiler tells it for TorchScript: (scopes, index of each op's or -1)."""
    watched = profile(use_kineto=True, with_modules=True)
    with quiet():
        watched.__enter__()
    try:
        with record_function(f"{STEP}#0"):
            step.run()
            _wait()
    finally:
        with quiet():
            watched.__exit__(None, None, None)
    trace = profiler.read(watched)
    ((low, high),) = time_cpu.windows(trace, STEP)
    events = time_cpu.step_events(trace, counted, low, high, STEP)
    table = {name: number for number, name in enumerate(counted.scopes)}
    scope_of_op = np.full(len(counted.ops), -1, np.int64)
    paths: dict[str, int] = {}
    op = np.where(events.twin >= 0, np.append(counted.op_of, -1)[events.twin], -1)
    forward = counted.phase == PHASES.index("forward")
    for row in np.flatnonzero(np.append(forward, False)[op]).tolist():
        hierarchy = events.events.arguments(row).get("Module Hierarchy")
        if scope_of_op[op[row]] >= 0 or not hierarchy:
            continue  # the outermost event of an op comes first
        if hierarchy not in paths:
            path = _path(step.model, hierarchy)
            paths[hierarchy] = -1 if path is None else table.setdefault(path, len(table))
        scope_of_op[op[row]] = paths[hierarchy]
    return tuple(table), scope_of_op


def _path(model: nn.Module, hierarchy: str) -> str | None:
    """Read the path of a module from the profiler: "TOP(Net)::forward.encoder(Encoder)::forward.3(Layer)::...".

    A member of a list goes by its number alone there, so it is looked for below its caller: "encoder/layer.3". None:
    an op that the compiler made, of which no layer is known ("TOP()::<forward op>.").
    """
    calls = re.findall(r"([^.()]+)\(([^()]*)\)::", hierarchy)
    if [kind for _, kind in calls] in ([], [""]):
        return None
    segments: list[str] = []
    caller = model
    for name, _ in calls[1:]:
        if "::" in name:
            continue  # a function that the compiler put around them
        below = {path: module for path, module in caller.named_modules() if path}
        ends = [path for path in below if path == name or path.endswith(f".{name}")]
        segments.append(min(ends, key=len, default=name))
        caller = below.get(segments[-1], caller)
    return "/".join(segments)
