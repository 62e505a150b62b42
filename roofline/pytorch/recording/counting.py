"""The C run of the torch backend: one step under torch's execution trace, with its layers and phases marked."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.utils.checkpoint
from torch.autograd.profiler import profile
from torch.nn.modules import module as hooks
from torch.profiler import ExecutionTraceObserver

from roofline.core.step import Step, scopes_through
from roofline.pytorch import execution_trace
from roofline.pytorch.count import AGAIN, HANDED_OUT, PHASE, RETURNED, SCOPE, ZERO
from roofline.pytorch.recording import allocations, compile_time, event_tree, nested, packed, shapes, sparse
from roofline.pytorch.recording.addresses import addresses, arguments, touched, twins
from roofline.pytorch.recording.lines import marked_lines
from roofline.pytorch.recording.living import Living, living
from roofline.recording.backend import NeedsData
from roofline.standard_error import quiet


def record(
    step: Step,
    name_of: Callable[[Any], str | None] = lambda module: None,
    marks: Callable[[], AbstractContextManager[object]] = nullcontext,
    compiled: bool = False,
) -> execution_trace.Nodes | event_tree.Nodes:
    """Run one step and return its calls. The execution trace does not change the op stream; a dispatch mode would.

    name_of: names a module that has a name of its own, as Keras's layers do. marks: further marks around the step.
    compiled: the step runs compiled code: neither modules nor scopes are marked, which would have it compiled anew.
    Raises NeedsData where tensors have none and the step makes a sparse one.
    """
    with_data = shapes.has_data()
    before = living() if with_data else None
    layers_with_objects = packed.weights(before.layers) if before is not None else {}
    with tempfile.TemporaryDirectory() as folder:
        recorder = _Recorder(Path(folder) / "step.json", step.model, compiled, before)
        del before
        with (
            nullcontext() if compiled else marked_layers(name_of),
            nullcontext() if compiled else marked_recomputation(),
            nullcontext() if compiled else marked_zeros(),
            marked_backward(),
            compile_time.marked(),
            packed.marked({} if compiled else layers_with_objects),
            marks(),
            sparse.watched(recorder.made_sparse),
            nullcontext() if compiled else nested.packing_watched(recorder.stop),
            recorder.recording(),
            marked_lines(),
        ):
            note_returned(step.run())
            if torch.cuda.is_available() and torch.cuda.is_initialized():
                torch.cuda.synchronize()
        nodes = recorder.nodes()
    nodes = replace(nodes, is_op=nodes.is_op & ~compile_time.is_compiling(nodes.names, nodes.parent))
    if isinstance(nodes, event_tree.Nodes):
        return nodes
    layers_of_model = map(id, step.model.modules()) if compiled and isinstance(step.model, torch.nn.Module) else ()
    nodes = replace(nodes, packed=packed.of_calls(nodes, layers_with_objects, set(layers_of_model)))
    if not with_data:
        shapes.number_buffers(nodes)
        return nodes
    return recorder.with_arguments(nodes)


class _Recorder:
    """Records the calls of a step by torch's observer of execution traces.

    The profiler is on besides: compiled code announces itself to it only, and it knows where storages lie. Where there
    are compressed sparse tensors, or nested ones, it tells the calls, for the observer ends the process at them.
    """

    def __init__(self, path: Path, model: Any, compiled: bool, living: Living | None) -> None:
        """path: of a file that the observer writes. model: of the step; None: not known. living: None without data."""
        self._path, self._with_data = path, (with_data := living is not None)
        self._stored = {} if living is None else sparse.among(living.tensors)
        self._sparse_tensors: list[torch.Tensor] = []  # so that no other one comes to lie at its address
        compressed = any(held.layout in sparse.COMPRESSED for held in self._stored.values())
        self._observes = not compressed and not (living is not None and nested.are_among(living.tensors))
        self._observer = ExecutionTraceObserver()
        self._profiler = profile(
            enabled=compiled or with_data, use_kineto=True, record_shapes=with_data, profile_memory=with_data
        )
        self._held = None if living is None else allocations.HeldTensors(model, living)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the calls that are made while this is active."""
        self._observer.register_callback(str(self._path))
        unseen = torch.empty(1, device="cpu")
        try:
            with quiet():
                self._profiler.__enter__()
                # Of a thousand releases of memory from before the profiler torch warns at the first (CPUAllocator.cpp).
                del unseen
                if self._observes:
                    self._observer.start()
            try:
                with nullcontext() if self._held is None else self._held.watched():
                    yield
            finally:
                with quiet():
                    if self._observes:
                        self._observer.stop()
                    self._profiler.__exit__(None, None, None)
        finally:
            self._observer.unregister_callback()

    def made_sparse(self, tensor: torch.Tensor) -> None:
        """Note what a sparse tensor holds that the step makes."""
        if not self._with_data:
            raise NeedsData("how many numbers a sparse tensor holds")
        self._sparse_tensors.append(tensor)
        self._stored[tensor._cdata] = sparse.held(tensor)
        if tensor.layout in sparse.COMPRESSED:
            self.stop()  # the observer ends the process when it meets one in a backward pass

    def stop(self) -> None:
        """Leave the rest of the step, and what was recorded of it, to the profiler."""
        if self._with_data and self._observes:
            self._observes = False
            self._observer.stop()

    def nodes(self) -> execution_trace.Nodes | event_tree.Nodes:
        """Read the calls that were recorded."""
        return execution_trace.read(self._path) if self._observes else event_tree.read(self._event_tree(), self._stored)

    def with_arguments(self, nodes: execution_trace.Nodes) -> execution_trace.Nodes:
        """Add what the profiler's events know of the arguments of the calls, and the trace does not."""
        tree = self._event_tree()
        pairs = list(twins(nodes, tree))
        given = list(arguments(nodes, pairs))
        # Who asked a tensor for its numbers knows better what it held then.
        stored = {**sparse.given_to_calls(given, self._stored), **nodes.stored}
        held = self._held
        allocated = None if held is None else allocations.read(tree, pairs, len(nodes), held, touched(nodes, pairs))
        return replace(nodes, addresses=addresses(given), stored=stored, allocations=allocated)

    def _event_tree(self) -> Sequence[Any]:
        """Return the events of the profiler that lie in no other, each with those inside it."""
        results = self._profiler.kineto_results
        return () if results is None else results.experimental_event_tree()


def note_returned(value: object, mark: str = RETURNED) -> None:
    """Have the recorders see the dense tensors that a step returns, those in containers as well: each in a view of it.

    They cannot take others (see `record`). mark: of the annotation around these views.
    """
    with shapes.mark(mark), torch.no_grad():
        waiting, met = [value], set[int]()
        while waiting:
            inner = waiting.pop()
            if id(inner) in met:
                continue
            met.add(id(inner))
            if isinstance(inner, torch.Tensor):
                if inner.layout == torch.strided and not inner.is_nested:
                    inner.detach()
            elif isinstance(inner, Mapping):
                waiting += inner.values()
            elif isinstance(inner, list | tuple | set | frozenset):
                waiting += inner
            elif is_dataclass(inner):
                waiting += (getattr(inner, field.name, None) for field in fields(inner))


@contextmanager
def marked_layers(name_of: Callable[[Any], str | None] = lambda module: None) -> Iterator[None]:
    """While active, every module call and every `roofline.scope` is an annotation with its whole path.

    The path follows the calls: a module is named as its caller's `named_modules` names it, so a layer of a ModuleList
    is `encoder/layer.3`. The outermost module adds no segment, also where it is called in a phase of generating.
    """
    stack: list[tuple[str, dict[int, str], Any]] = []  # (path, names of modules below, open annotation)

    def push(path: str, below: dict[int, str]) -> None:
        mark = shapes.mark(SCOPE + path)
        mark.__enter__()
        stack.append((path, below, mark))

    def pop() -> None:
        stack.pop()[2].__exit__(None, None, None)

    def before(module: torch.nn.Module, _: Any) -> None:
        below = {id(child): name for name, child in module.named_modules()}
        if not stack:
            push("", below)
            return
        path, names, _mark = stack[-1]
        wrapped = names.get(id(module)) == "_orig_mod"  # inside the module that `torch.compile(module)` puts around it
        is_root_call = len(stack) == 1 and path in ("prefill", "decode") and name_of(module) is None
        if wrapped or is_root_call:
            push(path, below)
            return
        # A module made on the fly is nobody's child: it goes by its class.
        name = name_of(module) or names.get(id(module)) or type(module).__name__
        push(f"{path}/{name}" if path else name, below)

    def after(_module: torch.nn.Module, _inputs: Any, _output: Any) -> None:
        if stack:
            pop()

    @contextmanager
    def named(name: str) -> Iterator[None]:
        path, names, _ = stack[-1] if stack else ("", {}, None)
        push(f"{path}/{name}" if path else name, names)
        try:
            yield
        finally:
            pop()

    handles = [
        hooks.register_module_forward_pre_hook(before),
        hooks.register_module_forward_hook(after, always_call=True),
    ]
    try:
        with scopes_through(named), warnings.catch_warnings():
            # Of modules that `torch.compile(module)` wraps: `before` knows them.
            warnings.filterwarnings("ignore", message=".*global hooks on modules.*")
            yield
    finally:
        while stack:
            pop()
        for handle in handles:
            handle.remove()


@contextmanager
def marked_recomputation() -> Iterator[None]:
    """While active, what a checkpoint that is not reentrant repeats is marked, whatever function it wraps.

    torch hands the function to a generator, which calls it for the repetition alone (torch 2.11 to 2.13).
    """
    name = "_checkpoint_without_reentrant_generator"
    original = getattr(torch.utils.checkpoint, name, None)
    if original is None:
        yield
        return

    def generator(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def repeated(*arguments: Any, **options: Any) -> Any:
            with shapes.mark(AGAIN):
                return function(*arguments, **options)

        return original(repeated, *args, **kwargs)

    setattr(torch.utils.checkpoint, name, generator)
    try:
        yield
    finally:
        setattr(torch.utils.checkpoint, name, original)


@contextmanager
def marked_zeros() -> Iterator[None]:
    """While active, what makes a tensor of the number 0 in Python is marked: no recorder sees what a tensor holds."""
    originals = {name: getattr(torch, name) for name in ("tensor", "as_tensor")}

    def marked(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def call(*args: Any, **kwargs: Any) -> torch.Tensor:
            data = args[0] if args else kwargs.get("data")
            is_zero = isinstance(data, int | float) and data == 0
            with shapes.mark(ZERO) if is_zero and not torch.compiler.is_compiling() else nullcontext():
                return function(*args, **kwargs)

        return call

    for name, function in originals.items():
        setattr(torch, name, marked(function))
    try:
        yield
    finally:
        for name, function in originals.items():
            setattr(torch, name, function)


@contextmanager
def marked_backward() -> Iterator[None]:
    """While active, what the engine does on the calling thread is in the backward phase (its root gradient, say).

    Gradients that it hands out are seen, as those are that it adds to a tensor's.
    """
    original = {name: getattr(torch.autograd, name) for name in ("backward", "grad")}

    def marked(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with shapes.mark(PHASE + "backward"):
                gradients = function(*args, **kwargs)
                if not torch.compiler.is_compiling():
                    note_returned(gradients, HANDED_OUT)
                return gradients

        return call

    for name, function in original.items():
        setattr(torch.autograd, name, marked(function))
    try:
        yield
    finally:
        for name, function in original.items():
            setattr(torch.autograd, name, function)
