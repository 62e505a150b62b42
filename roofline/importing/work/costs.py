"""Cost the calls of an imported trace: one engine, which remembers on disk and asks torch only for new calls.

    costs = Costs(cache.location())
    nodes = costs.nodes(trace, events, links)             # the calls of one step, and which of them are counted
    generated = kernels(trace, links, nodes)              # what is no op of torch's: Triton, communication, custom ops
    counted = counting.count(nodes, costs, generated)
    costs.save()

The counted op is the topmost one that torch knows and that is no wrapper. Where its cost is not known and it launches
nothing itself, the ops inside it are counted instead. A wrapper that launches a kernel itself is counted after all, and
any other call that launches kernels is one of unknown work, with the calls inside it beside it.

On a CPU nothing is launched, and whoever runs is at work: there an op of unknown cost stays, with the work of the ops
inside it (`roofline.pytorch.opening`), and an op of a library's own is counted like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roofline import plugins
from roofline.core.cost import Cost, unknown
from roofline.core.vocabulary import OpClass
from roofline.costs import custom
from roofline.costs.calls import Call
from roofline.costs.counted import Costed
from roofline.costs.dtypes import said
from roofline.importing.work import arguments, communication, list_arguments, sparse_arguments
from roofline.importing.work import cache as cost_cache
from roofline.importing.work.arguments import KinetoNodes
from roofline.importing.work.foreign_calls import kernels, lone, nodes_of, plain_cost
from roofline.pytorch.aten.contractions import CONTRACTION
from roofline.pytorch.aten.tables import ATTENTION, ATTENTION_BACKWARD, CLASS_OF, GATHERS, PRIMITIVE, REDUCTIONS, base
from roofline.pytorch.inductor.triton_source import Sources
from roofline.traces import nesting
from roofline.traces.kineto.events import Events
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.links import link as link_all
from roofline.traces.kineto.reader import ANNOTATION, KERNEL, OP, KinetoTrace

if TYPE_CHECKING:  # it imports torch, which the costs of known calls need not
    from roofline.pytorch.aten.engine import Engine

__all__ = ["Costs", "kernels", "lone"]

#: What an op is, by its name: counted, a wrapper around others, either by its arguments, or none that torch knows.
_OP, _WRAPPER, _MIXED, _NONE = "op", "wrapper", "mixed", "none"
#: Ops that our own formulas and tables count without taking them apart: the version of torch does not matter.
_OURS = frozenset(CONTRACTION) | ATTENTION | ATTENTION_BACKWARD | GATHERS | frozenset(PRIMITIVE) | REDUCTIONS
#: Kernels of torch's compiler on a CPU, `graph_0_cpp_fused_add_1`.
_GENERATED = re.compile(r"(graph_\d+_)?cpp_fused")
#: Names with "::" that are no work of anybody: what autograd, the profiler and the interpreter write down.
_FRAMES = ("autograd::", "torch::autograd::", "profiler::", "prim::", "c10d::", "_c10d_functional::")
_NEEDS_TORCH = "unknown to the cache, and torch is not installed: run `pip install 'roofline[torch]'`"


class Costs:
    """Costs calls as `aten.engine.Engine` does, through a cache. missing: ops that needed torch where there is none."""

    def __init__(self, cache: Path | None = None, torch: bool = True, sources: Sources | None = None) -> None:
        """cache: a file (`cache.location()` is the user's), None for none. torch: whether it may be asked.

        sources: of kernels that torch's compiler generated.
        """
        self.sources = sources
        self._cache = cost_cache.Cache(cache)
        self._may = torch
        self._engine: Engine | None = None
        self._by_call: dict[int, tuple[Call, Costed]] = {}
        self._assumed: dict[int, tuple[Call, str]] = {}
        self.missing: set[str] = set()

    def forget(self) -> None:
        """Let go of the calls of a trace, and of what it missed; the cache stays."""
        self._by_call.clear()
        self._assumed.clear()
        self.missing.clear()
        if self.sources is not None:
            self.sources.missing.clear()

    def save(self) -> None:
        """Write what was learned to the cache; a folder that cannot be written is no error."""
        self._cache.save()

    def cost(self, call: Call) -> Costed:
        """The work of a call; unknown, with the reason, where it cannot be known. Never raises for data."""
        remembered = self._by_call.get(id(call))
        if remembered is not None:
            return remembered[1]
        costed = self._cost(call)
        note = self._assumed.get(id(call))
        if note is not None and costed.cost.quality != "unknown":
            costed = replace(costed, cost=costed.cost + Cost(quality="assumed", note=note[1]))
        self._by_call[id(call)] = call, costed  # with the call, so that its identity stays taken
        return costed

    def _cost(self, call: Call) -> Costed:
        registration = custom.registered(call.name)
        if registration is not None:
            return custom.cost(replace(call, inputs=said(call.inputs)), *registration)
        if communication.is_collective(call.name):
            return communication.costed(replace(call, inputs=said(call.inputs)), [], {})
        canonical = call.canonical()
        key = cost_cache.key(canonical)
        costed = self._cache.get(key)
        if costed is not None:
            return costed
        engine = self._torch()
        if engine is None:
            if call.inputs:
                self.missing.add(call.name)
            why = _NEEDS_TORCH if call.inputs else "its arguments were not recorded"
            return plain_cost(call, unknown(why), _class_of(call.name))
        costed = engine.cost(canonical)
        self._cache.put(key, costed, by_torch=base(call.name) not in _OURS)
        return costed

    def nodes(
        self, trace: KinetoTrace, events: Events, links: Links | None = None, rows: NDArray[np.int64] | None = None
    ) -> KinetoNodes:
        """The calls among `events` (ops and annotations of one step, in order of start), and which are counted.

        links: of the whole trace, linked here where None. rows: the row of each event in `trace.ops`, -1 for an
        annotation (`time_cpu.StepEvents.source`), found here where None.
        """
        links = link_all(trace) if links is None else links
        rows = _rows(trace, events) if rows is None else rows
        plain = replace(arguments.columns(trace, events), rows=rows)
        annotation = events.kind == ANNOTATION
        kinds = {name: self._kind(name) for name in set(plain.names)}
        on_cpu = not len(trace.device)
        ops = {name for name, kind in kinds.items() if kind == _OP or (on_cpu and kind == _NONE and _is_work(name))}
        is_op = np.asarray([name in ops for name in plain.names], bool) & ~annotation
        for index, name in enumerate(plain.names):
            if kinds[name] == _MIXED and not annotation[index]:
                is_op[index] = self._computes(plain.call(index))
        launching = _launching(plain, links)
        plain = replace(plain, is_op=is_op)
        launched = _launched(trace, plain, links)
        lists = list_arguments.completed(trace, plain, launched, _optimizer(plain))
        plain = replace(plain, completed={row: filled.call for row, filled in lists.items()})
        plain = replace(plain, completed={**plain.completed, **sparse_arguments.completed(plain)})
        for row, filled in lists.items():
            if filled.assumed:
                self._assumed[id(plain.completed[row])] = plain.completed[row], filled.assumed
        return plain if on_cpu else self._units(plain, launching, annotation, kinds)

    def _units(
        self, nodes: KinetoNodes, launching: NDArray[np.bool_], annotation: NDArray[np.bool_], kinds: Mapping[str, str]
    ) -> KinetoNodes:
        """Choose the calls to count, and rewrite their parents such that none stands in another."""
        parent = nodes.parent
        is_op = self._outermost_known(nodes, launching)
        unit = nesting.outermost(parent, is_op)
        outside = launching & (unit < 0) & ~annotation
        for row in np.flatnonzero(outside).tolist():
            # A wrapper that launches for itself, as `aten::rms_norm` with a fused kernel does.
            is_op[row] = kinds[nodes.names[row]] in (_WRAPPER, _MIXED)
        opaque = outside & ~is_op
        # Calls inside an opaque one stand beside it, so that it keeps only what it launches itself.
        parent = np.where(parent >= 0, nesting.nearest(parent, ~opaque)[parent], -1)
        return replace(nodes, is_op=is_op, parent=parent)

    def _outermost_known(self, nodes: KinetoNodes, launching: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the outermost ops, and where one of unknown cost that launches nothing itself has ops in it, these.

        What lies in a call that launches for itself says nothing of it. From the outside to the inside, each op is
        asked for its cost once, if it stands for itself and has others in it.
        """
        parent, is_op = nodes.parent, nodes.is_op
        around = np.append(nesting.nearest(parent, is_op), -1)[parent]  # the op around each call, -1 for none
        may_open = np.zeros(len(nodes) + 1, bool)
        may_open[around[is_op]] = True
        may_open[:-1] &= ~launching
        ops = np.flatnonzero(is_op)
        outside_first = ops[np.argsort(nesting.depths(parent)[ops], kind="stable")]
        chosen, open_ = np.zeros(len(nodes), bool), [*[False] * len(nodes), True]  # the last one is around all
        columns = (outside_first, around[outside_first], may_open[outside_first])
        for row, op_around, may in zip(*(column.tolist() for column in columns), strict=True):
            if open_[op_around]:
                open_[row] = may and self.cost(nodes.call(row)).cost.quality == "unknown"
                chosen[row] = not open_[row]
        return chosen

    def _kind(self, name: str) -> str:
        if "::" not in name:
            return _NONE
        formula = custom.entry(name)
        if formula is not None:
            # Of the backward pass: it needs the arguments of its forward op. With a context: what it launches.
            return _NONE if formula.forward or formula.context else _OP
        if communication.is_communication(name) or name.startswith(_FRAMES):
            return _NONE
        kind = self._cache.names.get(name)
        if kind is None:
            if self._torch() is None:
                # Told by the calls inside it: a wrapper has some, and an op of unknown cost gives way to them.
                return _OP if name.startswith("aten::") else _NONE
            from roofline.pytorch.aten import schema

            is_known = schema.packet(name) is not None
            mixed = is_known and schema.is_mixed(name)
            computes = is_known and schema.computes(name, None, is_known)
            kind = _MIXED if mixed else _OP if computes else _WRAPPER if is_known else _NONE
            self._cache.names[name] = kind
        return kind

    def _computes(self, call: Call) -> bool:
        """Tell whether the overload that was called computes, where an op has wrappers among its overloads."""
        key = cost_cache.key(call.canonical())
        computes = self._cache.wrappers.get(key)
        if computes is None:
            if self._torch() is None:
                return True
            from roofline.pytorch.aten import schema

            try:
                overload = schema.overloads(call)[0]._overloadname
                computes = schema.computes(call.name, overload, has_schema=True)
            except schema.Unresolved:
                computes = schema.computes(call.name, None, has_schema=True)
            self._cache.wrappers[key] = computes
        return computes

    def _torch(self) -> Engine | None:
        """The engine that asks torch, loaded when it is first needed; None where there is none."""
        if self._engine is None and self._may:
            if not plugins.importable("torch"):
                self._may = False
                return None
            from roofline.pytorch.aten.engine import Engine

            self._engine = Engine()
        return self._engine


def _is_work(name: str) -> bool:
    """Tell whether a call that torch does not know is an op of a library's own, or a kernel of torch's compiler."""
    if _GENERATED.match(name):
        return True
    return "::" in name and not name.startswith(_FRAMES) and not communication.is_communication(name)


# What is launched where


def _rows(trace: KinetoTrace, events: Events) -> NDArray[np.int64]:
    """The row of each event in the trace's ops, -1 for what is none; found by name, thread and times.

    Of ops that are the same in all of these (nested ones, where times are whole microseconds) the first stands for all.
    """
    ops = trace.ops
    columns = ("start", "end", "name", "thread")
    table = np.stack(
        [np.concatenate([getattr(ops, column), getattr(events, column)]).astype(np.int64) for column in columns]
    )
    _, first, code = np.unique(table, axis=1, return_index=True, return_inverse=True)
    rows = first[code.ravel()[len(ops) :]]
    return np.where((rows < len(ops)) & (events.kind == OP), rows, -1)


def _launching(nodes: KinetoNodes, links: Links) -> NDArray[np.bool_]:
    launching = np.zeros(len(nodes), bool)
    at = nodes_of(nodes, links)
    launching[at[at >= 0]] = True
    return launching


def _launched(trace: KinetoTrace, nodes: KinetoNodes, links: Links) -> dict[int, Iterable[str]]:
    """Names of the kernels that each op launched, itself or by calls inside it."""
    at = nodes_of(nodes, links)
    unit = nesting.outermost(nodes.parent, nodes.is_op)
    rows = np.flatnonzero((at >= 0) & (trace.device.kind == KERNEL))
    pairs = np.unique(np.stack([unit[at[rows]], trace.device.name[rows].astype(np.int64)], axis=1), axis=0)
    launched: dict[int, list[str]] = {}
    for node, name in pairs.tolist():  # distinct ones
        if node >= 0:
            launched.setdefault(node, []).append(trace.names[name])
    return dict(launched)


def _optimizer(nodes: KinetoNodes) -> NDArray[np.bool_]:
    marked = np.asarray([name.startswith("Optimizer.") or "optimizer" in name for name in nodes.names], bool)
    return nesting.nearest(nodes.parent, marked) >= 0


def _class_of(name: str) -> OpClass:
    """The class of an op by our own tables, for where torch cannot be asked what is pointwise."""
    plain = base(name).removeprefix("_foreach_")
    return CLASS_OF.get(plain, "pointwise" if plain in PRIMITIVE else "other")
