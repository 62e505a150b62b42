"""The work of an HLO instruction when it runs once: FLOPs, functions and integer operations (docs/counting.md).

Contractions are those of the compiled program, valid positions only. Vector work is by our own table: XLA's own figure
less its compares, selects, converts, clamps, roundings and integer work, which a test holds against XLA instruction by
instruction. A sort is counted as no FLOP (it compares); `clamp`, which ATen's table counts as its two primitives, is a
compare and a choice here. What has no rule is unknown and named, never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from msgspec.structs import replace

from roofline.core.cost import Cost, unknown
from roofline.costs import formulas, rare
from roofline.xla.hlo import custom_calls, linear_algebra
from roofline.xla.hlo.loops import trips
from roofline.xla.hlo.module import Computation, Instruction, Module
from roofline.xla.hlo.opcodes import (
    ARITHMETIC,
    BITS,
    CHOICES,
    COLLECTIVES,
    EXCHANGES,
    FREE,
    FUNCTIONS,
    MOVES,
    REDUCING,
    base,
    ends_pair,
)

_NOTHING = Cost()
#: Of real numbers, by number (FftType in xla_data.proto).
_RFFT, _IRFFT = 2, 3
#: What rules raise for attributes that do not fit the operands: a newer form of an instruction, or damage.
UNFIT = (IndexError, KeyError, ValueError, TypeError, ArithmeticError)
_WORKLESS = MOVES | FREE | CHOICES


def work(module: Module, instruction: Instruction) -> Cost:
    """Count the work of one execution, without bytes. model_flops equals flops: what was asked for is not here.

    A fusion is the sum of what is in it. A loop is its static number of trips, unknown without one; a conditional is
    known where its branches cost the same; whoever knows what ran adds up the units of `schedule` instead.
    """
    key = ("work", instruction)
    if key not in module.memo:
        try:
            cost = _work(module, instruction)
        except UNFIT:
            cost = unknown(f"no rule for this form of {describe(instruction)}")
        module.memo[key] = cost
    remembered: Cost = module.memo[key]
    return remembered


def describe(instruction: Instruction) -> str:
    """Name an instruction where its work is unknown."""
    target = instruction.custom_call_target
    return f"custom call {target}" if target else instruction.opcode


def computation_work(module: Module, computation: Computation) -> Cost:
    """Count the work of one application of a computation."""
    key = ("work", computation)
    if key not in module.memo:
        cost = _NOTHING
        for instruction in computation.instructions:
            part = work(module, instruction)
            if part is not _NOTHING:
                cost = cost + part
        module.memo[key] = cost
    remembered: Cost = module.memo[key]
    return remembered


def _work(module: Module, instruction: Instruction) -> Cost:
    opcode = instruction.opcode
    if linear_algebra.routine(instruction):
        return _noted(linear_algebra.work(instruction), instruction)
    rule = _RULES.get(base(opcode))
    if rule is not None:
        return rule(module, instruction)
    if opcode in _WORKLESS or ends_pair(opcode):
        return _NOTHING
    return unknown(f"no rule for {opcode}")


def _arithmetic(_: Module, instruction: Instruction) -> Cost:
    number, kind = float(instruction.shape.elements), ARITHMETIC[instruction.opcode]
    cost = formulas.elementwise(kind, number)
    return cost if instruction.shape.floating else Cost(int_ops=cost.vector_flops)


def _function(_: Module, instruction: Instruction) -> Cost:
    return Cost(functions={FUNCTIONS[instruction.opcode]: float(instruction.shape.elements)})


def dot_dimensions(instruction: Instruction) -> tuple[int, int, int, int]:
    """(m, n, k, batch) of a dot: the free dimensions of either side, the contracted and the batch ones."""
    dimensions = instruction.message.dot_dimension_numbers
    return custom_calls.product_dimensions(
        instruction.operands[0].shape,
        instruction.operands[1].shape,
        dimensions.lhs_contracting_dimensions,
        dimensions.rhs_contracting_dimensions,
        dimensions.lhs_batch_dimensions,
    )


def _dot(_: Module, instruction: Instruction) -> Cost:
    m, n, k, batch = dot_dimensions(instruction)
    return _noted(formulas.matmul(m, n, k, batch), instruction)


def _ragged_dot(_: Module, instruction: Instruction) -> Cost:
    """Rows are dealt to groups, each with a matrix of its own: every row meets one matrix.

    Only the mode in which rows of the left side are ragged is known; batch and contracted ragged dimensions are not.
    """
    ragged = instruction.message.ragged_dot_dimension_numbers
    left, right = instruction.operands[0].shape, instruction.operands[1].shape
    dimensions = ragged.dot_dimension_numbers
    if len(ragged.rhs_group_dimensions) != 1 or set(ragged.lhs_ragged_dimensions) & {
        *dimensions.lhs_contracting_dimensions,
        *dimensions.lhs_batch_dimensions,
    }:
        return unknown("no rule for this mode of ragged-dot")
    m, n, k, batch = custom_calls.product_dimensions(
        left,
        right,
        dimensions.lhs_contracting_dimensions,
        [*dimensions.rhs_contracting_dimensions, *ragged.rhs_group_dimensions],
        dimensions.lhs_batch_dimensions,
    )
    return _noted(formulas.matmul(m, n, k, batch), instruction)


def _convolution(_: Module, instruction: Instruction) -> Cost:
    left, right = instruction.operands[0].shape, instruction.operands[1].shape
    rule = custom_calls.convolution_by_kind if instruction.message.conv_kind else custom_calls.convolution
    return _noted(rule(instruction.message, left, right, instruction.first), instruction)


def _noted(cost: Cost, instruction: Instruction) -> Cost:
    """A complex product is 4 real ones; it counts as one, as in every framework's own figure."""
    if instruction.first.dtype.startswith("complex"):
        return replace(cost, quality="assumed", note="a complex multiply-add counts as 2 FLOP")
    return cost


def _called(module: Module, instruction: Instruction) -> Cost:
    cost = _NOTHING
    for computation in instruction.called:
        cost = cost + computation_work(module, computation)
    return cost


def _applied(module: Module, instruction: Instruction, times: float, position: int = 0) -> Cost:
    """`times` applications of a body of scalars."""
    return max(0.0, float(times)) * computation_work(module, instruction.called[position])


def _reduce(module: Module, instruction: Instruction) -> Cost:
    """Inputs - outputs applications; a reduction of several arrays at once has one body for all of them."""
    return _applied(module, instruction, instruction.operands[0].shape.elements - instruction.first.elements)


def _window_size(message: Any) -> int:
    return prod(dimension.size for dimension in message.window.dimensions)


def _reduce_window(module: Module, instruction: Instruction) -> Cost:
    """window - 1 applications per output; windows are taken whole, also where they hang over the edge."""
    return _applied(module, instruction, (_window_size(instruction.message) - 1) * instruction.first.elements)


def _select_and_scatter(module: Module, instruction: Instruction) -> Cost:
    """Per source element: window - 1 selections, and one application of the scatter's body."""
    sources = instruction.operands[1].shape.elements
    selected = _applied(module, instruction, sources * (_window_size(instruction.message) - 1), 0)
    return selected + _applied(module, instruction, sources, 1)


def _scatter(module: Module, instruction: Instruction) -> Cost:
    """Apply the body once per element of an update."""
    return _applied(module, instruction, updates(instruction)[0].shape.elements)


def updates(scatter: Instruction) -> tuple[Instruction, ...]:
    """The updates of a scatter: its operands are n targets, the indices and n updates."""
    return scatter.operands[len(scatter.operands) // 2 + 1 :]


def _fft(_: Module, instruction: Instruction) -> Cost:
    """The longer side of a real transform has the points: of the other half are left out, as they follow."""
    kind, points = instruction.message.fft_type, prod(instruction.message.fft_length)
    real_side = instruction.first if kind == _IRFFT else instruction.operands[0].shape
    return rare.fft(points, real_side.elements / max(1, points), real=kind in (_RFFT, _IRFFT))


def _rng_bits(_: Module, instruction: Instruction) -> Cost:
    """The result is the new state and the bits; the bits are what was asked for."""
    return formulas.random(instruction.shape.leaves()[-1][1].elements)


def _collective(module: Module, instruction: Instruction) -> Cost:
    """Reducing collectives add once per element that a device keeps, as XLA counts; the others only move data."""
    if base(instruction.opcode) not in REDUCING:
        return _NOTHING
    return _applied(module, instruction, sum(shape.elements for _, shape in instruction.shape.leaves()))


def _while(module: Module, instruction: Instruction) -> Cost:
    number = trips(module, instruction)
    body, condition = (computation_work(module, computation) for computation in instruction.called)
    if number is None:
        return unknown("a loop whose number of trips is not known before it runs")
    return float(number) * body + float(number + 1) * condition


def _conditional(module: Module, instruction: Instruction) -> Cost:
    costs = [computation_work(module, computation) for computation in instruction.called]
    if any(cost != costs[0] for cost in costs):
        return unknown("a conditional: which branch runs is not known before")
    return costs[0]


_RULES: dict[str, Callable[[Module, Instruction], Cost]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(BITS, lambda _, instruction: Cost(int_ops=float(instruction.shape.elements))),
    **dict.fromkeys(COLLECTIVES, _collective),
    **dict.fromkeys(EXCHANGES, lambda _, instruction: _NOTHING),
    **dict.fromkeys(
        ("batch-norm-training", "batch-norm-inference", "batch-norm-grad"),
        lambda _, instruction: unknown(f"no rule for {instruction.opcode}, which compilers expand"),
    ),
    "dot": _dot,
    "ragged-dot": _ragged_dot,
    "convolution": _convolution,
    "fusion": lambda module, instruction: computation_work(module, instruction.called[0]),
    "call": _called,
    "async": _called,
    "map": lambda module, instruction: _applied(module, instruction, instruction.first.elements),
    "fft": _fft,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
    "scatter": _scatter,
    "rng": lambda _, instruction: formulas.random(instruction.first.elements),
    "rng-bit-generator": _rng_bits,
    "rng-get-and-update-state": lambda _, instruction: Cost(int_ops=1.0),
    "while": _while,
    "conditional": _conditional,
    "custom-call": lambda _, instruction: custom_calls.work(instruction),
}
