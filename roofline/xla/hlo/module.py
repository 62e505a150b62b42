"""XLA's HLO: from the bytes of an HloProto to a module of computations, and each of those of instructions.

The bytes come from a profiler trace (the metadata plane holds every module that was loaded) or from XLA's dump files
(`module_0050.jit_f.before_optimizations.hlo.pb`); no framework is imported. What an instruction costs is in
`flops`, `bytes` (traffic) and `cost` (both, with its class).

Instructions and computations are compared by identity: a module is a graph, and `name` is unique in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from google.protobuf.message import DecodeError, Message

from roofline.errors import InputError
from roofline.xla.hlo import forms
from roofline.xla.hlo.opcodes import ARITY
from roofline.xla.hlo.proto import PRIMITIVE_TYPES, HloModuleProto, HloProto

#: The element types of XLA: our name and bits per element.
DTYPES: dict[str, tuple[str, int]] = {
    "PRED": ("bool", 8),
    **{f"S{bits}": (f"int{bits}", bits) for bits in (1, 2, 4, 8, 16, 32, 64)},
    **{f"U{bits}": (f"uint{bits}", bits) for bits in (1, 2, 4, 8, 16, 32, 64)},
    "F16": ("fp16", 16),
    "BF16": ("bf16", 16),
    "F32": ("fp32", 32),
    "F64": ("fp64", 64),
    **dict.fromkeys(
        ("F8E5M2", "F8E4M3", "F8E4M3FN", "F8E4M3B11FNUZ", "F8E3M4", "F8E5M2FNUZ", "F8E4M3FNUZ"), ("fp8", 8)
    ),
    "F8E8M0FNU": ("e8m0", 8),
    "F4E2M1FN": ("fp4", 4),
    "C64": ("complex64", 64),
    "C128": ("complex128", 128),
    "TUPLE": ("tuple", 0),
    "TOKEN": ("token", 0),
    "OPAQUE_TYPE": ("opaque", 0),
    "BUFFER": ("buffer", 0),
}
#: Types whose arithmetic is floating work; all others' is integer or bit work.
FLOATING = frozenset(["fp64", "fp32", "fp16", "bf16", "fp8", "fp4", "e8m0", "complex64", "complex128"])

#: Computations call each other at most so deep; compilers stay below 20.
MAX_NESTING = 100
#: XLA's own limit of the elements of an array.
_MAX_ELEMENTS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a value: an array (`dtype`, `dims`), or a tuple of values (dtype "tuple", `parts`).

    bits: per element, as it lies in memory. space: the memory it lives in (5 is the host's on a GPU).
    """

    dtype: str
    dims: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()
    bits: int = 0
    space: int = 0

    @property
    def elements(self) -> int:
        """Number of elements; of a tuple, of all its arrays."""
        if self.dtype == "tuple":
            return sum(part.elements for part in self.parts)
        return prod(self.dims) if self.bits else 0

    @property
    def bytes(self) -> int:
        """Size in memory [byte], of a tuple that of its arrays; tokens and opaque values have none."""
        if self.dtype == "tuple":
            return sum(part.bytes for part in self.parts)
        return (prod(self.dims) * self.bits + 7) // 8 if self.bits else 0

    @property
    def floating(self) -> bool:
        """Tell whether arithmetic on it is floating work."""
        return self.dtype in FLOATING

    def leaves(self, index: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Shape]]:
        """The arrays in it in flat order, each with its index path; an array is its own only leaf, at ()."""
        if self.dtype != "tuple":
            return [(index, self)]
        return [leaf for number, part in enumerate(self.parts) for leaf in part.leaves((*index, number))]

    def at(self, index: Sequence[int]) -> Shape:
        """The part at an index path. IndexError where there is none."""
        shape = self
        for number in index:
            shape = shape.parts[number]
        return shape


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """Hold an instruction. `opcode` as XLA writes it ("dot", "get-tuple-element", ...).

    called: the computations it applies (a fusion's body, a reduction's body, a loop's body and condition).
    op_name: the scope path of the framework ("jit(train)/jvp(layer)/dot_general"), op_type: TensorFlow's op.
    message: the HloInstructionProto, for attributes that only a few opcodes have (dimension numbers, window, ...).
    """

    name: str
    opcode: str
    shape: Shape
    id: int
    operands: tuple[Instruction, ...] = field(repr=False)
    called: tuple[Computation, ...] = field(repr=False)
    op_name: str
    op_type: str
    custom_call_target: str
    fusion_kind: str
    message: Any = field(repr=False)

    @property
    def number(self) -> int:
        """Return the number of a parameter, or the index that a get-tuple-element takes."""
        return int(self.message.parameter_number if self.opcode == "parameter" else self.message.tuple_index)

    @property
    def backend_config(self) -> str:
        """Return what the compiler's backend noted about it: mostly JSON; "" where there is nothing."""
        return bytes(self.message.backend_config).decode("utf-8", "replace")

    @property
    def first(self) -> Shape:
        """The first array of its result. IndexError where there is none."""
        return self.shape.leaves()[0][1]


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """Instructions in an order in which they can run: the schedule's where the module has one."""

    name: str
    id: int
    instructions: tuple[Instruction, ...] = field(repr=False)
    root: Instruction
    parameters: Mapping[int, Instruction] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A compiled or lowered program.

    computations: those that are called come before their callers; instructions: by name.
    callers: for each computation that is called, the instructions that do.
    slots: (instruction id, index path of the result) -> (allocation, offset) of the memory it is assigned; empty for
        a module without buffer assignment, as before optimisation.
    allocations: bytes of each allocation, by its number. held: what each of those is for that are there for the whole
        run of the program: "inputs", "results", or "temporary" for memory that values share one after the other; those
        that only a thread has for a moment are left out.
    replicas, partitions: how many devices run it on data of their own, and how many share the work of each of these.
    frames: the StackFrameIndexProto of the program text that it was made of; None: not read.
    memo: what has been computed about it; of use to the modules beside this one only.
    """

    name: str
    id: int
    computations: tuple[Computation, ...] = field(repr=False)
    entry: Computation = field(repr=False)
    instructions: Mapping[str, Instruction] = field(repr=False)
    callers: Mapping[Computation, tuple[Instruction, ...]] = field(repr=False)
    slots: Mapping[tuple[int, tuple[int, ...]], tuple[int, int]] = field(repr=False)
    allocations: Mapping[int, int] = field(repr=False)
    held: Mapping[int, str] = field(default_factory=dict, repr=False)
    replicas: int = 1
    partitions: int = 1
    frames: Any = field(default=None, repr=False)
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def devices(self) -> int:
        """Count the devices that run it at once."""
        return self.replicas * self.partitions


def read(data: bytes, name: str = "the data") -> Module:
    """The module in an HloProto or a bare HloModuleProto. `name` names the data in errors.

    Raises InputError for anything else, and for a module whose references do not fit together.
    """
    proto, assignment = _decode(data, name)
    try:
        return _module(proto, assignment, name)
    except RecursionError:
        raise _damaged(name, "its shapes are nested too deeply") from None


def _decode(data: bytes, name: str) -> tuple[Any, Any]:
    try:
        proto: Any = HloProto.FromString(data)
        if proto.hlo_module.computations:
            return proto.hlo_module, proto.buffer_assignment
    except DecodeError:
        pass
    try:
        bare: Any = HloModuleProto.FromString(data)
        if bare.computations:
            return bare, None
    except DecodeError:
        pass
    raise InputError(
        f"{name} is no HLO module, or one that was cut short: give an HloProto, as in XLA's dump files `*.hlo.pb`."
    )


def _damaged(name: str, why: str) -> InputError:
    return InputError(f"{name} is a damaged HLO module, {why}: dump or record it again.")


def _module(proto: Any, assignment: Message | None, name: str) -> Module:
    by_id = {message.id: message for message in proto.computations}
    sequences = {entry.key: list(entry.value.instruction_ids) for entry in proto.schedule.sequences}
    calls = {
        message.id: [called for instruction in message.instructions for called in instruction.called_computation_ids]
        for message in proto.computations
    }
    built: dict[int, Computation] = {}
    depth: dict[int, int] = {}
    callers: dict[Computation, list[Instruction]] = {}
    for identity in _callees_first(calls, name):
        depth[identity] = 1 + max((depth[called] for called in calls[identity]), default=0)
        if depth[identity] > MAX_NESTING:
            raise _damaged(name, f"its computations call each other {MAX_NESTING} deep")
        built[identity] = computation = _computation(by_id[identity], built, sequences.get(identity), name)
        for instruction in computation.instructions:
            for called in instruction.called:
                callers.setdefault(called, []).append(instruction)
    named = next((c for c in built.values() if c.name == proto.entry_computation_name), None)
    entry = built.get(proto.entry_computation_id, named)
    if entry is None:
        raise _damaged(name, "it has no entry computation")
    return Module(
        name=proto.name,
        id=proto.id,
        computations=tuple(built.values()),
        entry=entry,
        instructions={i.name: i for computation in built.values() for i in computation.instructions},
        callers={computation: tuple(sites) for computation, sites in callers.items()},
        slots={} if assignment is None else _slots(assignment, built.values()),
        allocations={}
        if assignment is None
        else {allocation.index: allocation.size for allocation in assignment.buffer_allocations},
        held={} if assignment is None else dict(_held(assignment)),
        replicas=max(1, proto.device_assignment.replica_count),
        partitions=max(1, proto.device_assignment.computation_count),
        frames=proto.stack_frame_index,
    )


def _callees_first(calls: Mapping[int, Sequence[int]], name: str) -> list[int]:
    """Ids in an order in which every node comes after those it points to."""
    ordered: dict[int, None] = {}
    for start in calls:
        stack, open_nodes = [(start, iter(calls[start]))], {start}
        if start in ordered:
            continue
        while stack:
            node, targets = stack[-1]
            for target in targets:
                if target in ordered:
                    continue
                if target not in calls:
                    raise _damaged(name, f"it refers to {target}, which is not in it")
                if target in open_nodes:
                    raise _damaged(name, "something in it depends on itself")
                open_nodes.add(target)
                stack.append((target, iter(calls[target])))
                break
            else:
                ordered[node] = None
                open_nodes.discard(node)
                stack.pop()
    return list(ordered)


def _computation(message: Any, built: Mapping[int, Computation], order: list[int] | None, name: str) -> Computation:
    by_id = {proto.id: proto for proto in message.instructions}
    built_instructions: dict[int, Instruction] = {}
    for identity in _callees_first({key: proto.operand_ids for key, proto in by_id.items()}, name):
        built_instructions[identity] = _instruction(by_id[identity], built_instructions, built, name)
    root = built_instructions.get(message.root_id)
    if root is None:
        raise _damaged(name, f"{message.name or 'a computation'} has no result")
    scheduled = order is not None and len(order) == len(built_instructions) and built_instructions.keys() == set(order)
    instructions = (
        tuple(built_instructions[identity] for identity in order)
        if scheduled and order
        else tuple(built_instructions.values())
    )
    parameters = {i.number: i for i in instructions if i.opcode == "parameter"}
    return Computation(message.name, message.id, instructions, root, parameters)


def _instruction(
    message: Any, operands_by_id: Mapping[int, Instruction], built: Mapping[int, Computation], name: str
) -> Instruction:
    metadata = message.metadata
    operands, called = ARITY.get(message.opcode, (0, 0))
    if len(message.operand_ids) < operands or len(message.called_computation_ids) < called:
        raise _damaged(name, f"a {message.opcode} in it lacks operands")
    given = tuple([operands_by_id[operand] for operand in message.operand_ids])
    applied = tuple([built[called] for called in message.called_computation_ids])
    shape, opcode = _shape(message.shape, name), message.opcode
    fits = forms.fits(message, len(shape.dims), [len(operand.shape.dims) for operand in given])
    if not fits or (opcode == "call" and not applied[0].parameters.keys() <= set(range(len(given)))):
        opcode += forms.OTHER  # for which nobody has a rule
    return Instruction(
        name=message.name,
        opcode=opcode,
        shape=shape,
        id=message.id,
        operands=given,
        called=applied,
        op_name=metadata.op_name,
        op_type=metadata.op_type,
        custom_call_target=message.custom_call_target,
        fusion_kind=message.fusion_kind,
        message=message,
    )


def _shape(message: Any, name: str) -> Shape:
    kind = PRIMITIVE_TYPES.get(message.element_type, "")
    if kind == "TUPLE":
        return Shape("tuple", parts=tuple([_shape(part, name) for part in message.tuple_shapes]))
    # A type that is newer than this table has a name and no size.
    dtype, bits = DTYPES.get(kind, (kind.lower() or f"type {message.element_type}", 0))
    dims, layout = tuple(message.dimensions), message.layout
    if any(size < 0 for size in dims) or prod(dims) * max(bits, 1) > 8 * _MAX_ELEMENTS:
        raise _damaged(name, f"it has an array of {list(dims)}")
    return Shape(dtype, dims, (), layout.element_size_in_bits or bits, layout.memory_space)


def _held(assignment: Any) -> Iterator[tuple[int, str]]:
    """Yield the numbers of allocations and what they are for."""
    for allocation in assignment.buffer_allocations:
        if allocation.is_entry_computation_parameter or allocation.is_constant:
            yield allocation.index, "inputs"
        elif allocation.maybe_live_out:
            yield allocation.index, "results"
        elif not allocation.is_thread_local:
            yield allocation.index, "temporary"


def _slots(assignment: Any, computations: Iterable[Computation]) -> dict[tuple[int, tuple[int, ...]], tuple[int, int]]:
    """Map each value to its slot. Older files name the instruction that defines it, newer ones give its id."""
    by_name = {i.name: i.id for computation in computations for i in computation.instructions}
    defined = {}
    for buffer in assignment.logical_buffers:
        place = buffer.defined_at
        identity = place.instruction_id or by_name.get(place.instruction_name, 0)
        defined[buffer.id] = (identity, tuple(place.shape_index))
    slots = {}
    for allocation in assignment.buffer_allocations:
        for assigned in allocation.assigned:
            if assigned.logical_buffer_id in defined:
                slots[defined[assigned.logical_buffer_id]] = (allocation.index, assigned.offset)
    return slots
