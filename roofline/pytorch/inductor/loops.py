"""The work of one loop that Inductor generated, read from its own loop body: what runs, after all inlining.

A body is a small graph of primitives per element. Each is counted by our table, as integer work where its operands are
integers; what follows a reduction runs once per result. Index arithmetic is no work of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._sympy.functions import Max

from roofline.costs import formulas

#: Primitives of the loop language by our kinds, with their number where one is several.
KIND: dict[str, tuple[str, float]] = {
    **{name: (name, 1.0) for name in ("add", "sub", "mul", "neg", "abs", "maximum", "minimum", "remainder", "pow")},
    **{name: (name, 1.0) for name in sorted(formulas.FUNCTIONS)},
    **dict.fromkeys(("truediv", "div_rn", "int_truediv", "floordiv", "truncdiv", "reciprocal"), ("div", 1.0)),
    **dict.fromkeys(("mul_rn", "square"), ("mul", 1.0)),
    **dict.fromkeys(("mod", "fmod"), ("remainder", 1.0)),
    "relu": ("maximum", 1.0),
    "fma": ("add", 2.0),
}
#: Bit and logical operations: integer work.
BITS = frozenset(
    "bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift and_ or_ xor lshift rshift "
    "logical_and logical_or logical_xor logical_not".split()
)
#: No floating work: data moves, is chosen, compared or cast; indices and the frame of the loop.
WORKLESS = frozenset(
    "load store store_reduction constant index_expr indirect_indexing check_bounds to_dtype to_dtype_bitcast where "
    "eq ne lt le gt ge isnan isinf signbit sign copysign floor ceil round trunc floor_to_int ceil_to_int round_to_int "
    "trunc_to_int identity output placeholder load_seed bucketize device_assert_async nextafter value_expr "
    "get_index halide_clamp sort getitem".split()
)
_COMPARES = frozenset("eq ne lt le gt ge isnan isinf signbit logical_and logical_or logical_xor logical_not".split())
#: Numbers drawn by Inductor's counter-based generator on a CPU: scalar code, unlike the library's generator.
PHILOX = "random (Philox)"
DRAWS = frozenset(["rand", "randn", "randint64", "rand_eager"])
#: FLOP per element of a reduction's input: Welford's update is sub, mul, add, sub, mul, add.
PER_INPUT: dict[str, float] = {"welford_reduce": 6.0, "welford_combine": 8.0, "dot": 2.0, "online_softmax_reduce": 3.0}
_COMPARING = ("argmax", "argmin", "any")


@dataclass(slots=True)
class LoopWork:
    """Work of a loop nest, in numbers or in sympy expressions of the sizes.

    vector: FLOP; ints: integer and bit operations; functions: evaluations by name; strange: primitives that are not in
    the table. by_table: buffer -> elements touched where other buffers say; searched: buffers that are sorted tables.
    """

    vector: Any = 0
    ints: Any = 0
    functions: dict[str, Any] = field(default_factory=dict)
    strange: set[str] = field(default_factory=set)
    by_table: dict[str, Any] = field(default_factory=dict)
    searched: set[str] = field(default_factory=set)

    def add(self, name: str, number: Any, floating: bool) -> None:
        """`number` executions of a primitive."""
        if name in DRAWS:
            self.functions[PHILOX] = self.functions.get(PHILOX, 0) + number
        elif name in BITS:
            self.ints = self.ints + number
        elif name in KIND:
            kind, times = KIND[name]
            cost = formulas.elementwise(kind, times)
            if floating:
                self.vector = self.vector + number * int(cost.vector_flops or 0)
                for function, evaluations in (cost.functions or {}).items():
                    self.functions[function] = self.functions.get(function, 0) + number * int(evaluations)
            else:
                self.ints = self.ints + number * int(times)
        elif name not in WORKLESS:
            self.strange.add(name)


def count(body: Any, dtype_of: Callable[[str], torch.dtype], partial: Any = 0) -> LoopWork:
    """The work of a `LoopBody`. dtype_of: buffer name -> dtype; partial: results of a reduction left in parts.

    What does not depend on a loop's variable is done once outside that loop, as the C++ and Triton compilers do it.
    """
    loops = _Loops(body, partial)
    work = LoopWork()
    _block(loops, body.root_block.graph, frozenset(loops.sizes), dtype_of, work)
    return work


class _Loops:
    """The variables of a nest of loops with their sizes; `inner`: those that are reduced over; `partial`: as above."""

    def __init__(self, body: Any, partial: Any) -> None:
        self.body, self.partial = body, partial
        self.sizes = dict(zip((*body.iter_vars, *body.reduce_vars), (*body.sizes[0], *body.sizes[1]), strict=True))
        self.inner = frozenset(body.reduce_vars)
        self.found: dict[str, frozenset[Any]] = {}  # an index found through a table: the variables that it depends on

    def times(self, variables: frozenset[Any]) -> Any:
        """Executions of what depends on these variables."""
        result: Any = 1
        for variable, size in self.sizes.items():
            if variable in variables:
                result = result * size
        return result

    def of_index(self, name: str) -> tuple[frozenset[Any], bool]:
        """The variables that an index expression depends on, and whether it is found through a table."""
        free = self.body.indexing_exprs[name].free_symbols
        tables = [symbol for symbol in free if symbol in self.body.indirect_vars]
        through = [self.found.get(str(symbol), frozenset(self.sizes)) for symbol in tables]
        return frozenset(free & self.sizes.keys()).union(*through), bool(tables)

    def combines(self, scan: str) -> str:
        """Name what a scan computes: the function of PyTorch whose steps it does; "" where it does not say."""
        clone = getattr(self.body.submodules.get(scan), "clone", None)
        combine = getattr(clone, "keywords", {}).get("combine_fn")
        return str(getattr(combine, "__qualname__", "")).partition(".")[0].replace("cummin", "cummax")


def _block(
    loops: _Loops, graph: Any, around: frozenset[Any], dtype_of: Callable[[str], torch.dtype], work: LoopWork
) -> tuple[torch.dtype | None, frozenset[Any]]:
    """Counts a block and the blocks under its masks; returns type and variables of what the block gives.

    around: the variables of all loops here.
    """
    types: dict[Any, torch.dtype] = {}
    depends: dict[Any, frozenset[Any]] = {}
    last: tuple[torch.dtype | None, frozenset[Any]] = (None, frozenset())
    for node in graph.nodes:
        name, inputs = _name(node), list(node.all_input_nodes)
        variables = frozenset().union(*(depends.get(operand, frozenset()) for operand in inputs))
        kind = _type(node, name, inputs, types, dtype_of)
        if name == "get_index":
            variables, _ = loops.of_index(node.args[0])
        elif name.startswith("set_"):  # set_indirect0: what was computed becomes the index variable indirect0
            loops.found[name.removeprefix("set_")] = variables
        elif name.startswith("masked_subblock"):
            sub = loops.body.subblocks.get(name)
            if sub is not None:
                kind, below = _block(loops, sub.graph, around, dtype_of, work)
                variables |= below
        elif name.startswith("scan"):
            combined = loops.combines(name)
            if combined != "cummax":
                work.add({"cumsum": "add", "cumprod": "mul"}.get(combined, name), loops.times(around), _floating(kind))
            variables = around
        elif name in DRAWS:
            work.add(name, loops.times(around), True)
            variables = around
        elif name == "reduction":
            results = loops.times(around - loops.inner)
            _reduction(node, results, loops.times(around), work)
            variables = around - loops.inner
        elif name == "partial_accumulate":  # a sum or a product: n - 1 applications per result, of which it has several
            work.add("add", loops.times(around) - loops.partial, _floating(kind))
        else:
            operands: list[torch.dtype | None] = [types[operand] for operand in inputs if operand in types] or [kind]
            work.add(name, loops.times(variables), any(map(_floating, operands)))
            _touch(loops, node, name, around, dtype_of, work)
        depends[node] = variables
        if kind is not None:
            types[node] = kind
            last = (kind, variables)
    return last


def _floating(dtype: torch.dtype | None) -> bool:
    return dtype is not None and (dtype.is_floating_point or dtype.is_complex)


def _touch(
    loops: _Loops, node: Any, name: str, around: frozenset[Any], dtype_of: Callable[[str], torch.dtype], work: LoopWork
) -> None:
    """Notes what of a buffer is touched where that is not in the index expression, and what a store adds up."""
    if name == "bucketize":
        work.searched.add(node.args[2][0])
    if name not in ("load", "store"):
        return
    buffer, index = node.args[1], node.args[2].args[0]
    variables, through_table = loops.of_index(index)
    if through_table:
        touched = loops.times(variables)
        work.by_table[buffer] = Max(work.by_table.get(buffer, 0), touched)
    if name == "store" and (node.args[4:5] or (node.kwargs.get("mode"),))[0] == "atomic_add":
        work.add("add", loops.times(around), _floating(dtype_of(buffer)))


def _name(node: Any) -> str:
    if node.op in ("placeholder", "output"):
        return str(node.op)
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))


def _reduction(node: Any, results: Any, inputs: Any, work: LoopWork) -> None:
    _ops, _dtype, source, kind, *_ = node.args
    if kind.startswith(_COMPARING):
        return
    if kind == "xor_sum" or not _floating(source):
        work.ints = work.ints + inputs - results
    elif kind in PER_INPUT:
        work.vector = work.vector + inputs * int(PER_INPUT[kind])
        if kind == "online_softmax_reduce":
            work.functions["exp"] = work.functions.get("exp", 0) + inputs
    else:  # sum, prod, max, min: n - 1 applications per result
        work.vector = work.vector + inputs - results


def _type(
    node: Any, name: str, inputs: list[Any], types: Mapping[Any, torch.dtype], dtype_of: Callable[[str], torch.dtype]
) -> torch.dtype | None:
    """The type that a primitive gives; None for what is no value."""
    if name in ("load", "load_seed"):
        return dtype_of(node.args[1])
    named_types = [argument for argument in (*node.args, *node.kwargs.values()) if isinstance(argument, torch.dtype)]
    if named_types:  # constant, to_dtype, index_expr, reduction say theirs
        return named_types[0]
    if name in DRAWS:
        return torch.int64 if name == "randint64" else torch.float32
    if name in _COMPARES:
        return torch.bool
    promoted: torch.dtype | None = None
    for operand in inputs:
        if operand in types:
            promoted = types[operand] if promoted is None else torch.promote_types(promoted, types[operand])
    return promoted
