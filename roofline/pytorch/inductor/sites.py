"""Reads what Inductor tells of a kernel while it generates the call: its buffers, its work and the ops it fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from roofline.pytorch.inductor import flex, mix_order, traffic
from roofline.pytorch.inductor.loops import LoopWork
from roofline.pytorch.inductor.loops import count as count_loops
from roofline.pytorch.inductor.traffic import Access

#: Functions of Inductor's own among the library's kernels, by the op that they call.
_WRAPPED = {
    "bias_addmm": "aten::addmm",
    "conv1x1_via_mm": "aten::mm",
    "call_aten_dw": "aten::convolution_backward",
    "call_aten_dx": "aten::convolution_backward",
    "_mm_plus_mm": "inductor::_mm_plus_mm",
}


@dataclass(frozen=True, slots=True)
class Site:
    """Holds one kernel call in the code of a compiled graph.

    event: its name in a profile, of a C++ template without its shape; name: Inductor's own. extern: a library's kernel,
    which the profiler shows as the op that it is. origins: the nodes of the graph that it does; templates: those of
    them that a template kernel does as a whole. loops: its work, empty where Inductor has no loops of it. sizes: of the
    first of its loops. finishes: it puts together what another kernel left in parts, whose work its origins are.
    """

    event: str
    name: str
    extern: bool
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    inplace: bool
    origins: tuple[torch.fx.Node, ...]
    templates: tuple[torch.fx.Node, ...] = ()
    loops: tuple[LoopWork, ...] = ()
    sizes: tuple[Any, ...] = ()
    finishes: bool = False


def _nodes(schedule: Any) -> list[Any]:
    """The scheduler's nodes of a kernel, taken out of fused ones."""
    return [inner for node in schedule if hasattr(node, "get_nodes") for inner in node.get_nodes()]


def generated(lowered: Any, schedule: Any, name: str, partial: mix_order.Partial | None = None) -> Site:
    """A kernel that Inductor wrote. schedule: the scheduler's nodes; partial: what a mix-order reduction leaves."""
    nodes = _nodes(schedule)
    origins: dict[Any, None] = {}
    templates: dict[Any, None] = {}
    loops: dict[int, LoopWork] = {}
    for node in nodes:
        if node.node is None:
            continue
        body = getattr(node, "_body", None)
        if body is not None:
            loops[id(node)] = count_loops(body, lowered.get_dtype, partial.elements if partial else 0)
            origins |= dict.fromkeys(node.node.origins)
        else:
            origin = node.node.get_origin_node()
            calls = [flex.called(target) for target in ([origin] if origin is not None else node.node.origins)]
            calls = [call for call in calls if flex.is_flex(call)] or calls
            origins |= dict.fromkeys(calls)
            templates |= dict.fromkeys(calls)
    reads, writes = traffic.traffic(lowered, nodes, loops)
    if partial is not None:
        writes = (*writes, Access(partial.workspace, (partial.bytes,)))
    over = {access.buffer for access in reads} & {access.buffer for access in writes}
    first = next((node for node in nodes if id(node) in loops), None)
    on_cpu = any(device.type == "cpu" for device in (node.get_device() for node in nodes) if device is not None)
    prefixed = on_cpu and lowered.graph_id is not None  # a graph inside another has no number
    event = "kernel" if on_cpu and templates else name
    return Site(
        event=f"graph_{lowered.graph_id}_{event}" if prefixed else event,
        name=name,
        extern=False,
        reads=reads,
        writes=writes,
        inplace=bool(over) or traffic.reuses(lowered, nodes),
        origins=tuple(origins),
        templates=tuple(templates),
        loops=tuple(loops.values()),
        sizes=() if first is None else tuple(size for sizes in first._body.sizes for size in sizes),
    )


def mixed(lowered: Any, schedule: Any, name: str, partial: mix_order.Partial) -> list[Site]:
    """A mix-order reduction and the ops that put its results together."""
    sites = [generated(lowered, schedule, name, partial)]
    for result in partial.results:
        summed = f"{result.buffer} before its cast" if result.cast else result.buffer
        steps = [(result.op, partial.workspace, summed)]
        steps += [("aten::_to_copy", summed, result.buffer)] if result.cast else []
        sites += [
            Site(
                event=op,
                name=op,
                extern=True,
                reads=(Access(source, None),),
                writes=(Access(target, None),),
                inplace=False,
                origins=result.origins,
                finishes=True,
            )
            for op, source, target in steps
        ]
    return sites


def extern(node: Any, name: str) -> Site:
    """A library's kernel. Its work comes from the op that the profiler shows; here only buffers and origin."""
    overload = getattr(node, "op_overload", None)
    origin = node.get_origin_node()
    candidates = [origin] if origin is not None else list(node.origins)
    # Origins are also what was computed for its input alone. An op may run as another form of itself (a stable sort).
    exact = [candidate for candidate in candidates if candidate.target is overload]
    of_packet = [
        candidate
        for candidate in candidates
        if _packet(candidate.target) is not None and _packet(candidate.target) is _packet(overload)
    ]
    names = [buffer.get_name() for buffer in node.inputs if hasattr(buffer, "get_name")]
    return Site(
        event=event(name, overload),
        name=name,
        extern=True,
        reads=tuple(Access(buffer, None) for buffer in dict.fromkeys(names)),
        writes=(Access(node.get_name(), None),),
        inplace=False,
        origins=tuple(exact or of_packet or candidates),
    )


def _packet(target: Any) -> Any:
    """The op that an overload is a form of; None for anything else."""
    return getattr(target, "overloadpacket", None)


def event(name: str, overload: Any) -> str:
    """`extern_kernels.addmm`, `torch.ops.aten.sort.default`, `aten.randint.low_out`: as the profiler names the op."""
    plain = name.removeprefix("torch.ops.").removeprefix("extern_kernels.")
    parts = plain.split(".")
    if name.startswith("extern_kernels.") or len(parts) == 1:
        schema = getattr(overload, "_schema", None)
        return str(schema.name) if schema is not None else _WRAPPED.get(parts[0], f"aten::{parts[0]}")
    return f"{parts[0]}::{parts[1]}"
