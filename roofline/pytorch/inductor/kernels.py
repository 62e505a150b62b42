"""Notes what Inductor generates, while it does: each kernel call with its buffers, its work and the ops it fused.

All private interfaces of Inductor that we use are in this file, sites.py, loops.py, mix_order.py and
traffic.py:

- `debug.set_kernel_post_grad_provenance_tracing` is called once per emitted kernel call, in the order of the calls,
  while the scheduler's nodes are still there (torch 2.11 to 2.13), but for mix-order reductions;
- `CompiledFxGraph` is what runs a compiled graph; it is made from the graph that was lowered, and called with its
  inputs.

Where one of them is missing, changed or fails, the graph is marked broken and its runs become opaque ops; nothing
crashes. `missing` says what a PyTorch lacks.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.profiler import record_function

from roofline.errors import reason
from roofline.pytorch.inductor import flex, mix_order, sites
from roofline.pytorch.inductor.sites import Site
from roofline.units import cut

#: Annotation around each run of a compiled graph in the counting run, followed by the number of the run.
REGION = "roofline:region:"
_HOOK = "set_kernel_post_grad_provenance_tracing"


@dataclass(slots=True)
class Graph:
    """A compiled graph: its kernel calls in order, and the names and sizes of what goes in and out.

    inner: the calls in graphs inside it, branches and bodies of loops: which of them run, and how often, only a run
    tells. broken: why its inside is not known, or "".
    """

    sites: list[Site] = field(default_factory=list)
    inner: list[Site] = field(default_factory=list)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_sizes: tuple[tuple[Any, ...], ...] = ()
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Region:
    """Holds one run of a compiled graph: the sizes it ran with, and the storages of its inputs and outputs.

    sizes: symbol -> number. inputs, outputs: buffer name -> (address of the storage, bytes). masks: inputs that say
    which pairs attention looks at (`flex`).
    """

    graph: Graph
    sizes: Mapping[Any, int]
    inputs: Mapping[str, tuple[int, float]]
    outputs: Mapping[str, tuple[int, float]]
    masks: Mapping[str, torch.Tensor] = field(default_factory=dict)


def missing() -> str:
    """Name what this PyTorch lacks of the interfaces used here, in a few words; "" where all is there."""
    try:
        from torch._inductor import debug, output_code
        from torch._inductor.loop_body import LoopBody
        from torch._inductor.virtualized import V
    except ImportError as error:
        return f"no {error.name or 'torch._inductor'}"
    body = getattr(LoopBody, "__annotations__", {})
    wanted = {
        f"torch._inductor.debug.{_HOOK}": hasattr(debug, _HOOK),
        "CompiledFxGraph": hasattr(output_code, "CompiledFxGraph"),
        **{f"LoopBody.{name}": name in body for name in ("root_block", "subblocks", "indexing_exprs", "indirect_vars")},
        "virtualized.V.graph": hasattr(type(V), "graph"),
    }
    return ", ".join(name for name, is_there in wanted.items() if not is_there)


class Recorder:
    """Notes graphs while they are compiled (`compiling`) and their runs in the counting run (`running`)."""

    def __init__(self) -> None:
        """Nothing noted yet."""
        self.regions: list[Region] = []
        self.missing = missing()
        self._lowered: dict[int, tuple[Any, Graph]] = {}  # by id; the lowered graph is kept, so that ids stay unique
        self._compiled: dict[int, tuple[Any, Graph]] = {}
        self._noting = False
        self._mixed = ""  # the last mix-order reduction, until its call has been emitted

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """While active, compiled graphs are noted. Compile inside, and run inside `running` what was compiled here."""
        from torch._inductor import config

        if self.missing:
            yield
            return
        # Generated kernels show in a profile; a graph from a cache would be one that nobody saw being generated. The
        # compiled C++ of a kernel may come from the cache on disk.
        settings = {
            "cpp.enable_kernel_profile": True,
            "fx_graph_cache": False,
            "fx_graph_remote_cache": False,
        }
        supported = {name: value for name, value in settings.items() if _has(config, name)}
        with (
            config.patch(supported),
            _no_autograd_cache(),
            self._hooked(),
            mix_order.noted(self._reduced),
            self._made(),
            self._called(),
        ):
            yield

    @contextmanager
    def running(self) -> Iterator[None]:
        """While active, each run of a compiled graph is noted and annotated."""
        self._noting, self.regions = True, []
        try:
            yield
        finally:
            self._noting = False

    @contextmanager
    def _hooked(self) -> Iterator[None]:
        from torch._inductor import debug

        original = getattr(debug, _HOOK)

        @functools.wraps(original)
        def hook(schedule: Any, kernel_name: str, *args: Any, **kwargs: Any) -> Any:
            if kernel_name != self._mixed:  # else another PyTorch names it here too
                self._emitted(schedule, kernel_name, bool(kwargs.get("is_extern", args[0] if args else False)))
            return original(schedule, kernel_name, *args, **kwargs)

        # Imported by name in several modules; those imported later get it from `debug`.
        holders = [
            module
            for name, module in list(sys.modules.items())
            if name.startswith("torch._inductor") and getattr(module, _HOOK, None) is original
        ]
        for module in holders:
            setattr(module, _HOOK, hook)
        try:
            yield
        finally:
            for name, module in list(sys.modules.items()):
                if name.startswith("torch._inductor") and getattr(module, _HOOK, None) is hook:
                    setattr(module, _HOOK, original)

    def _graph(self, lowered: Any) -> Graph:
        lowered_graph = self._lowered.get(id(lowered))
        if lowered_graph is None:
            lowered_graph = self._lowered[id(lowered)] = (lowered, Graph())
        return lowered_graph[1]

    def _emitted(self, schedule: Any, name: str, extern: bool) -> None:
        self._note(
            name, lambda lowered: [sites.extern(schedule, name) if extern else sites.generated(lowered, schedule, name)]
        )

    def _reduced(self, schedule: Any, name: str, partial: Callable[[], mix_order.Partial]) -> None:
        self._mixed = name
        self._note(name, lambda lowered: sites.mixed(lowered, schedule, name, partial()))

    def _note(self, name: str, make: Callable[[Any], list[Site]]) -> None:
        from torch._inductor.virtualized import V

        lowered = outer = V.graph
        while hasattr(outer, "parent"):
            outer = outer.parent
        graph = self._graph(outer)
        try:
            (graph.sites if outer is lowered else graph.inner).extend(make(lowered))
        except Exception as error:  # private interfaces: whatever they raise, the compilation must go on
            graph.broken = f"{name}: {cut(reason(error), 120)}"

    @contextmanager
    def _made(self) -> Iterator[None]:
        """Ties each compiled graph to the lowered one that it was made from."""
        from torch._inductor.output_code import CompiledFxGraph

        original = CompiledFxGraph.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def make(compiled: Any, *args: Any, **kwargs: Any) -> None:
            original(compiled, *args, **kwargs)
            lowered = signature.bind(compiled, *args, **kwargs).arguments.get("graph")
            if lowered is None:
                return
            graph = self._graph(lowered)
            try:
                graph.inputs, graph.outputs = tuple(lowered.graph_input_names), tuple(lowered.get_output_names())
                graph.input_sizes = tuple(_sizes(lowered.graph_inputs[name]) for name in graph.inputs)
            except Exception as error:  # as above
                graph.broken = cut(reason(error), 120)
            self._compiled[id(compiled)] = (compiled, graph)

        with _replaced(CompiledFxGraph, "__init__", make):
            yield

    @contextmanager
    def _called(self) -> Iterator[None]:
        from torch._inductor.output_code import CompiledFxGraph

        original = CompiledFxGraph.__call__

        @functools.wraps(original)
        def call(compiled: Any, inputs: Any) -> Any:
            if not self._noting:
                return original(compiled, inputs)
            _, graph = self._compiled.get(id(compiled), (None, Graph(broken="it was compiled before")))
            values = list(inputs)  # the callee empties the list
            number = len(self.regions)
            before = {name: _identity(value) for name, value in _pairs(graph.inputs, values)}
            masks = dict(_pairs(graph.inputs, values))
            masks = {name: masks[name] for name in _masks(graph) if name in masks}
            self.regions.append(Region(graph, _bindings(graph, values), before, {}, masks))
            del values
            with record_function(f"{REGION}{number}"):
                results = original(compiled, inputs)
            after = {name: _identity(value) for name, value in _pairs(graph.outputs, list(results))}
            self.regions[number] = replace(self.regions[number], outputs=after)
            return results

        with _replaced(CompiledFxGraph, "__call__", call):
            yield


@contextmanager
def _replaced(owner: Any, name: str, value: Callable[..., Any]) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _has(config: Any, name: str) -> bool:
    try:
        functools.reduce(getattr, name.split("."), config)
    except AttributeError:
        return False
    return True


@contextmanager
def _no_autograd_cache() -> Iterator[None]:
    import torch._functorch.config as functorch

    settings = {
        name: False for name in ("enable_autograd_cache", "enable_remote_autograd_cache") if _has(functorch, name)
    }
    with functorch.patch(settings):
        yield


def _sizes(value: Any) -> tuple[Any, ...]:
    """The sizes of an input, as expressions; of a number, itself."""
    return tuple(value.get_size()) if hasattr(value, "get_size") else (value,)


def _pairs(names: tuple[str, ...], values: list[Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in zip(names, values, strict=False):
        if isinstance(value, torch.Tensor):
            yield name, value


def _masks(graph: Graph) -> set[str]:
    """The inputs that block masks are made of."""
    calls = {node for site in (*graph.sites, *graph.inner) for node in site.templates if flex.is_flex(node)}
    return {name for node in calls for name in flex.inputs(node)}


def _identity(value: torch.Tensor) -> tuple[int, float]:
    """Return where the storage of a tensor begins, 0 where it has none, and the tensor's bytes."""
    address = value.untyped_storage().data_ptr() if value.layout == torch.strided else 0
    return address, float(value.numel() * value.element_size())


def _bindings(graph: Graph, values: list[Any]) -> dict[Any, int]:
    """The numbers that the symbols of a graph's sizes have in this run."""
    numbers: dict[Any, int] = {}
    for sizes, value in zip(graph.input_sizes, values, strict=False):
        actual = tuple(value.shape) if isinstance(value, torch.Tensor) else (value,)
        for symbol, number in zip(sizes, actual, strict=False):
            if getattr(symbol, "is_Symbol", False) and isinstance(number, int):
                numbers[symbol] = number
    return numbers


def value(expression: Any, sizes: Mapping[Any, int]) -> float | None:
    """Evaluate an expression with these sizes; None where a size is only known while the kernel runs."""
    if isinstance(expression, int | float):
        return float(expression)
    bound = expression.subs(dict(sizes)) if getattr(expression, "free_symbols", None) else expression
    return float(bound) if getattr(bound, "is_number", False) else None
