"""Turns what Inductor noted into the launches of one run: the ops of the program that each kernel does, and its work.

Inductor's graph holds the program taken apart: a layer norm is a variance, a subtraction, an rsqrt and more. Each node
says which op of the program it came from and which module called that op, so the pieces are put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import torch

from roofline.core.cost import Cost, matrix, unknown
from roofline.core.vocabulary import FLOATING, PRODUCTS
from roofline.costs.counted import Costed
from roofline.costs.dtypes import computed, of_most
from roofline.costs.weight import weight
from roofline.errors import reason
from roofline.pytorch.aten import bytes, contractions, flops
from roofline.pytorch.aten.engine import classify
from roofline.pytorch.aten.schema import NAMES
from roofline.pytorch.aten.tables import CONTRACTIONS, base
from roofline.pytorch.compiled import Launch, Part, Run, Storage
from roofline.pytorch.inductor import flex
from roofline.pytorch.inductor.kernels import Graph, Region, value
from roofline.pytorch.inductor.loops import PHILOX
from roofline.pytorch.inductor.scopes import line_of, scope_of
from roofline.pytorch.inductor.sites import Site
from roofline.pytorch.inductor.traffic import Access
from roofline.units import cut

#: Inductor's own primitives that compute nothing of the program.
_FRAME = frozenset(["inductor_lookup_seed", "inductor_seeds", "inductor_seed", "inductor_force_stride_order"])
#: Primitives that are no ops of aten's: their work by number of results.
_PRIMITIVES: dict[str, Callable[[float], Cost]] = {
    **dict.fromkeys(("inductor_random", "inductor_randint"), lambda number: Cost(functions={PHILOX: number})),
    **dict.fromkeys(("convert_element_type", "iota", "device_put", "broadcast_in_dim"), lambda number: Cost()),
    "fma": lambda number: Cost(vector_flops=2.0 * number),
}

Launches = tuple[Launch, ...]


def runs(regions: Iterable[Region], module_names: Iterable[str]) -> tuple[Run, ...]:
    """Turn the regions of one step into runs for the reader of the trace. module_names: of `model.named_modules()`."""
    launches_of: dict[tuple[object, ...], tuple[Launches, Launches]] = {}
    names = frozenset(module_names)
    graph_runs = []
    for number, region in enumerate(regions):
        graph = region.graph
        broken = graph.broken
        launches: tuple[Launches, Launches] = ((), ())
        if not broken:
            try:
                pairs_of = _attention_pairs(region)
                key = (id(graph), tuple(sorted(region.sizes.items(), key=str)), tuple(pairs_of.values()))
                if key not in launches_of:
                    launches_of[key] = _launches(graph, region.sizes, names, pairs_of)
                launches = launches_of[key]
            except Exception as error:  # what a graph's nodes say of themselves is private too
                broken = graph.broken = cut(reason(error), 120)
        inputs, outputs = (
            tuple((Storage(address), size) for address, size in buffers.values())
            for buffers in (region.inputs, region.outputs)
        )
        outer, inner = (tuple(_placed(launch, region, number) for launch in level) for level in launches)
        graph_runs.append(Run(outer, inputs, outputs, unknown=broken, inner=inner))
    return tuple(graph_runs)


def _attention_pairs(region: Region) -> dict[Any, flex.Pairs | None]:
    """Count the pairs that each call of flex attention looks at in a run."""
    sites = (*region.graph.sites, *region.graph.inner)
    calls = dict.fromkeys(node for site in sites for node in site.templates if flex.is_flex(node))
    lengths = {node: [_meta(argument, region.sizes).shape[-2] for argument in node.args[:2]] for node in calls}
    return {node: flex.pairs(node, region.masks, *lengths[node]) for node in calls}


def _placed(launch: Launch, region: Region, number: int) -> Launch:
    """Turn a launch of a graph into one of a run: its buffers are those of the run."""
    ends = {**region.inputs, **region.outputs}

    def place(
        accesses: tuple[tuple[object, float | None], ...],
    ) -> tuple[tuple[object, float | None], ...]:
        return tuple(
            (Storage(ends[str(name)][0]) if ends.get(str(name), (0, 0))[0] else ("buffer", number, name), size)
            for name, size in accesses
        )

    return replace(launch, reads=place(launch.reads), writes=place(launch.writes))


def _launches(
    graph: Graph, sizes: Mapping[Any, int], names: frozenset[str], pairs_of: Mapping[Any, flex.Pairs | None]
) -> tuple[Launches, Launches]:
    """List the launches of a graph, and those of the graphs in it."""
    sites = (*graph.sites, *graph.inner)
    elsewhere = {node for site in sites if site.extern and not site.finishes for node in site.origins}
    outer, inner = (
        [_launch(site, sizes, names, elsewhere, pairs_of) for site in level] for level in (graph.sites, graph.inner)
    )
    return tuple(outer), tuple(inner)


def _launch(
    site: Site,
    sizes: Mapping[Any, int],
    names: frozenset[str],
    elsewhere: set[Any],
    pairs_of: Mapping[Any, flex.Pairs | None],
) -> Launch:
    reads, writes = _bytes(site.reads, sizes), _bytes(site.writes, sizes)
    if site.extern:
        scopes = [scope for node in site.origins if (scope := scope_of(node, names)) is not None]
        # In the backward pass a node that lies in no layer may only add up what layers gave: the eager twin knows.
        scopes = [scope for scope in scopes if scope or not _in_backward(site.origins)]
        return Launch(
            site.event, site.name, True, reads, writes, scope=next(iter(scopes), None), line=line_of(site.origins)
        )
    counted_parts = _parts([node for node in site.origins if node not in elsewhere], sizes, names)
    counted_parts += [_attention(node, sizes, names, pairs_of[node]) for node in site.templates if node in pairs_of]
    parts = [counted_part.part for counted_part in counted_parts]
    numbers = [value(size, sizes) for size in site.sizes]
    main = max(parts, key=lambda part: (part.costed.dtype in FLOATING, part.weight), default=None)
    output = of_most(
        (NAMES.get(access.dtype), size or 0.0) for access, (_, size) in zip(site.writes, writes, strict=True)
    )
    return Launch(
        event=site.event,
        name=site.name,
        extern=False,
        reads=reads,
        writes=writes,
        inplace=site.inplace,
        work=_work(site, sizes, counted_parts),
        parts=tuple(parts),
        shapes=f"[{', '.join('?' if n is None else str(int(n)) for n in numbers)}]",
        dtype=output if main is None else main.costed.dtype,
        output=output,
        line=None if main is None else max(parts, key=lambda part: part.weight).line,
    )


def _in_backward(nodes: Iterable[Any]) -> bool:
    return any(node.meta.get("partitioner_tag") == "is_backward" for node in nodes)


def _bytes(accesses: Sequence[Access], sizes: Mapping[Any, int]) -> tuple[tuple[object, float | None], ...]:
    return tuple((access.buffer, _least(access.bytes, sizes)) for access in accesses)


def _least(sums: tuple[Any, ...] | None, sizes: Mapping[Any, int]) -> float | None:
    """Return the least of the sizes that are known; None where there is none, or where none is known."""
    sizes_known = [size for terms in sums or () if (size := value(terms, sizes)) is not None]
    return min(sizes_known, default=None)


def _work(site: Site, sizes: Mapping[Any, int], parts: Sequence[_CountedPart]) -> Cost:
    """Count the work of a kernel from its loops; of a template and of products that are written out, from its parts."""
    strange = sorted({name for loop in site.loops for name in loop.strange})
    if strange:
        return unknown(f"the primitive {', '.join(strange)} is not in our table")
    vector, ints, functions = 0.0, 0.0, dict[str, float]()
    for loop in site.loops:
        loop_vector, loop_ints = value(loop.vector, sizes), value(loop.ints, sizes)
        evaluations = {name: value(number, sizes) for name, number in loop.functions.items()}
        if loop_vector is None or loop_ints is None or None in evaluations.values():
            return unknown("sizes that only the run knows")
        vector, ints = vector + loop_vector, ints + loop_ints
        for name, number in evaluations.items():
            functions[name] = functions.get(name, 0.0) + (number or 0.0)
    templates_work = sum(
        (counted_part.part.costed.cost for counted_part in parts if counted_part.without_loops), Cost()
    )
    if templates_work.quality == "unknown":
        return templates_work
    products = sum(
        counted_part.part.costed.cost.flops or 0.0 for counted_part in parts if not counted_part.without_loops
    )
    if site.templates and not products and not templates_work.flops:
        return unknown("a kernel from a template, of an op whose work is not known")
    written_out = sum(counted_part.written_out for counted_part in parts)
    if vector < written_out:  # a long sum is done by two kernels: each does its share of the product
        products *= vector / written_out
    vector = max(0.0, vector - written_out)
    work = Cost(vector_flops=vector, int_ops=ints, functions=functions) + templates_work
    return work + matrix(products) if products else work


# --------------------------------------------------------------------------------------------------- parts


class _CountedPart(NamedTuple):
    """Holds a part, and the vector work that a product in it is written out as.

    without_loops: no loop tells of its work.
    """

    part: Part
    written_out: float
    without_loops: bool = False


def _attention(node: Any, sizes: Mapping[Any, int], names: frozenset[str], pairs: flex.Pairs | None) -> _CountedPart:
    """Count a call of flex attention, which a template does as a whole."""
    query, key, value = _meta(list(node.args[:3]), sizes)
    cost = flex.cost(node, pairs, query, key, value)
    dtype = NAMES.get(query.dtype)
    costed = Costed(
        cost=cost,
        kind="attention_backward" if node.target.__name__.endswith("backward") else "attention",
        op_class="attention",
        shapes=_shapes([node], sizes),
        dtype=dtype,
        output=dtype,
    )
    return _CountedPart(
        Part(costed, scope_of(node, names) or "", weight(cost), line_of([node])), 0.0, without_loops=True
    )


def _parts(nodes: Sequence[Any], sizes: Mapping[Any, int], names: frozenset[str]) -> list[_CountedPart]:
    """Put nodes together to the ops of the program that they are pieces of, in order; views are left out."""
    order = {node: number for number, node in enumerate(next(iter(nodes)).graph.nodes)} if nodes else {}
    groups: dict[object, list[Any]] = {}
    alike: dict[object, object] = {}  # what pieces without autograd's number have in common with the others
    for node in sorted(nodes, key=lambda node: order.get(node, 0)):
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        key, number = _origin(node, names), _sequence(node)
        group = (key, number) if number is not None else alike.get(key, key)
        if number is not None and key in groups:
            groups[group] = groups.pop(key)  # those that came before it belong to it
        alike.setdefault(key, group)
        groups.setdefault(group, []).append(node)
    counted_parts = []
    fallback = next((scope for node in nodes if (scope := scope_of(node, names)) is not None), "")
    for members in groups.values():
        pieces = [_node(node, sizes) for node in members]
        if all(piece.view for piece in pieces):
            continue
        scopes = [scope for node in members if (scope := scope_of(node, names)) is not None]
        weights = sum(weight(piece.cost) for piece in pieces)
        part = Part(_part(members, pieces, sizes), scopes[0] if scopes else fallback, weights, line_of(members))
        written_out = sum(pieces[number].cost.vector_flops or 0.0 for number in _product(members))
        counted_parts.append(_CountedPart(part, written_out))
    return counted_parts


def _origin(node: Any, names: frozenset[str]) -> object:
    """Return a key that the pieces of one op share; a node that is an op by itself shares it with none."""
    original = node.meta.get("original_aten")
    if original is None or _plain(original) == _plain(node.target):
        return node
    return (_plain(original), scope_of(node, names), str(node.meta.get("partitioner_tag")))


def _sequence(node: Any) -> Any:
    """Return autograd's number of the op; pieces that Inductor made itself have none, and it is -1 without autograd."""
    number = node.meta.get("seq_nr")
    return None if number == -1 else number


def _plain(target: Any) -> str:
    schema = getattr(target, "_schema", None)
    return base(schema.name) if schema is not None else str(target)


def _part(members: Sequence[Any], pieces: Sequence[_Piece], sizes: Mapping[Any, int]) -> Costed:
    """Count nodes as the one op that they are pieces of."""
    first = members[0]
    original = first.meta.get("original_aten") or first.target
    # Functional forms of ops that write over their arguments (batch norm's statistics) go by the name of the op.
    name = str(getattr(getattr(original, "_schema", None), "name", original)).removesuffix("_functional")
    product = _product(members)
    total = Cost()
    for number, (node, piece) in enumerate(zip(members, pieces, strict=True)):
        if number not in product:
            total = total + msgspec.structs.replace(piece.cost, bytes_read=0.0, bytes_written=0.0)
        elif _plain(node.target) == "mul":
            is_known = piece.cost.quality != "unknown"
            total = total + (matrix(2.0 * _numel(node, sizes)) if is_known else piece.cost)
    first_piece = pieces[0].cost
    read, written = first_piece.bytes_read, first_piece.bytes_written
    if total.quality == "unknown":
        read, written = None, None
    elif len(pieces) > 1:
        read, written = _boundary(members, sizes)
    output = of_most(_typed(members[-1], sizes))
    op_class = classify(name)
    return Costed(
        cost=msgspec.structs.replace(total, bytes_read=read, bytes_written=written),
        kind=contractions.kind(name),
        op_class=op_class,
        shapes=_shapes(members, sizes),
        dtype=computed(
            [dtype for argument in first.all_input_nodes for dtype, _ in list(_typed(argument, sizes))[:1]],
            output,
            op_class in PRODUCTS or bool(total.flops),
        ),
        output=output,
    )


def _product(members: Sequence[Any]) -> set[int]:
    """Number the pieces of a product that was taken apart: a multiplication of two tensors, and the sum over it.

    The other pieces (alpha and beta of `addmm`, the addition of its bias) are vector work.
    """
    if _plain(members[0].meta.get("original_aten") or members[0].target) not in CONTRACTIONS:
        return set()
    names = [_plain(node.target) for node in members]
    are_products = [
        name == "mul" and all(isinstance(factor, torch.fx.Node) for factor in node.args[:2])
        for name, node in zip(names, members, strict=True)
    ]
    return {
        number for number, name in enumerate(names) if are_products[number] or (any(are_products) and name == "sum")
    }


class _Piece(NamedTuple):
    """Holds the work and traffic of one node, and whether it is a view."""

    cost: Cost
    view: bool = False


def _node(node: Any, sizes: Mapping[Any, int]) -> _Piece:
    name = base(node.target._schema.name)
    if name in _FRAME:
        return _Piece(Cost(), view=True)
    try:
        if name in _PRIMITIVES:
            number = _numel(node, sizes)
            read = sum(_span(argument, sizes) for argument in node.all_input_nodes)
            return _Piece(_PRIMITIVES[name](number) + Cost(bytes_read=read, bytes_written=number * _itemsize(node)))
        args, kwargs = _meta(node.args, sizes), _meta(dict(node.kwargs), sizes)
        kwargs.pop("device", None)
        kwargs.pop("pin_memory", None)
        if _factory(node.target):
            kwargs["device"] = "meta"
        with torch.no_grad():
            cost, out = flops.count(node.target, args, kwargs)
        moved = bytes.traffic(node.target, args, kwargs, out)
    except Exception as error:  # meta kernels raise all kinds for what they do not support: the piece stays unknown
        return _Piece(unknown(f"{name}: {type(error).__name__}"))
    if moved.view and cost == Cost():
        return _Piece(Cost(), view=True)
    if cost.quality != "unknown":
        read, written = (float(sum(access.bytes for access in accesses)) for accesses in (moved.reads, moved.writes))
        cost = msgspec.structs.replace(cost, bytes_read=read, bytes_written=written)
    return _Piece(cost)


def _factory(target: Any) -> bool:
    return any(argument.name == "device" for argument in target._schema.arguments)


def _meta(argument: Any, sizes: Mapping[Any, int]) -> Any:
    """Copy the arguments of a node with meta tensors for tensors and numbers for sizes."""
    if isinstance(argument, torch.fx.Node):
        return _meta(argument.meta.get("val"), sizes)
    if isinstance(argument, torch.Tensor):
        shape, stride = [_int(n, sizes) for n in argument.shape], [_int(n, sizes) for n in argument.stride()]
        return torch.empty_strided(shape, stride, dtype=argument.dtype, device="meta")
    if isinstance(argument, torch.SymInt):
        return _int(argument, sizes)
    if isinstance(argument, list | tuple):
        return type(argument)(_meta(member, sizes) for member in argument)
    if isinstance(argument, dict):
        return {name: _meta(member, sizes) for name, member in argument.items()}
    return argument


def _int(number: Any, sizes: Mapping[Any, int]) -> int:
    if isinstance(number, int):
        return number
    size = value(number.node.expr, sizes)
    if size is None:
        raise ValueError("a size that only the run knows")
    return int(size)


def _tensors(node: Any) -> list[torch.Tensor]:
    return flops.leaves(node.meta.get("val"))


def _numel(node: Any, sizes: Mapping[Any, int]) -> float:
    """Count the elements of a result. Raises ValueError for a size that only the run knows, here as in `_span`."""
    return float(max((_elements(tensor, sizes, False) for tensor in _tensors(node)), default=0))


def _elements(tensor: torch.Tensor, sizes: Mapping[Any, int], distinct: bool) -> int:
    number = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if not (distinct and isinstance(stride, int) and stride == 0):
            number *= _int(size, sizes)
    return number


def _itemsize(node: Any) -> float:
    return float(next((tensor.element_size() for tensor in _tensors(node)), 0))


def _span(node: Any, sizes: Mapping[Any, int]) -> float:
    return float(sum(_elements(tensor, sizes, True) * tensor.element_size() for tensor in _tensors(node)))


def _boundary(members: Sequence[Any], sizes: Mapping[Any, int]) -> tuple[float | None, float | None]:
    """Count the bytes that go into the pieces of an op and come out of them, without what passes between them."""
    inside = set(members)
    results = [node for node in members if not node.users or any(user not in inside for user in node.users)]
    try:
        return sum(_span(node, sizes) for node in _arguments(members)), sum(_span(node, sizes) for node in results)
    except ValueError:
        return None, None


def _arguments(members: Sequence[Any]) -> Iterable[Any]:
    """List the nodes that the pieces of an op take from outside of it, each once."""
    inside = set(members)
    return dict.fromkeys(argument for node in members for argument in node.all_input_nodes if argument not in inside)


def _typed(node: Any, sizes: Mapping[Any, int]) -> Iterator[tuple[str, float]]:
    """Yield the type of each result, and its bytes; 0 for a size that only the run knows."""
    for tensor in _tensors(node):
        try:
            size = float(_elements(tensor, sizes, True) * tensor.element_size())
        except ValueError:
            size = 0.0
        yield NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch.")), size


def _shapes(members: Sequence[Any], sizes: Mapping[Any, int]) -> str:
    def shape(node: Any) -> str:
        try:
            return " ".join(f"[{', '.join(str(_int(n, sizes)) for n in tensor.shape)}]" for tensor in _tensors(node))
        except ValueError:
            return "[?]"

    return ", ".join(filter(None, map(shape, _arguments(members))))
