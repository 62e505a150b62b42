"""Find the memory that a value of an HLO module lives in.

Every value is followed through views, tuples, loops, calls and asynchronous pairs to the instruction that made it, and
from there to the slot (allocation, offset) it was assigned. Values that share a slot, such as the state of a loop, an
argument given away and the result in its place, are one buffer. Without buffer assignment, as before optimisation,
each value made is a buffer of its own.
"""

from __future__ import annotations

from typing import Any

from roofline.xla.hlo.module import Instruction, Module, Shape
from roofline.xla.hlo.opcodes import REORDERED, TRANSPARENT, base

#: A chain of views and tuples longer than this is damage.
_MAX_CHAIN = 10_000
#: Where the value of an asynchronous pair's end is in the result of its start, whose other parts are operands.
_PART_OF_START = {"copy": 0, "all-gather": 1, "collective-permute": 1, "async": 1, "recv": 0}

#: [byte] More than any memory: a larger allocation is damage.
_LARGEST = 1 << 50
#: [byte] Allocations begin at least with a line of a cache; of XLA's allocators the coarsest, a GPU's, rounds to this.
_ALIGNED = 256

Place = tuple[Instruction, tuple[int, ...]]


def owner(module: Module, value: Instruction, index: tuple[int, ...] = ()) -> Place:
    """The instruction that made a value, and which part of its result it is."""
    for _ in range(_MAX_CHAIN):
        step = _before(module, value, index)
        if step is None:
            return value, index
        value, index = step
    return value, index


def _before(module: Module, value: Instruction, index: tuple[int, ...]) -> Place | None:
    """Return where a value was just before; None where it was made."""
    opcode = value.opcode
    if opcode == "get-tuple-element":
        return value.operands[0], (value.number, *index)
    if opcode == "tuple" and index and index[0] < len(value.operands):
        return value.operands[index[0]], index[1:]
    if opcode == "bitcast" or opcode in TRANSPARENT or opcode == "while":
        # The state of a loop stays where it began.
        return (value.operands[0], index) if value.operands else None
    if opcode in ("call", "conditional") and value.called:
        return value.called[0].root, index
    if opcode.endswith("-update"):
        return (value.operands[0], index) if opcode == "async-update" and value.operands else None
    if opcode.endswith("-done") and value.operands:
        return value.operands[0], (*_part(value.operands[0]), *index)
    if opcode == "parameter":
        return _argument(module, value, index)
    return None


def _part(start: Instruction) -> tuple[int, ...]:
    """Return where the result is in what an asynchronous start returns."""
    while start.opcode == "async-update" and start.operands:
        start = start.operands[0]
    part = _PART_OF_START.get(base(start.opcode))
    # The start of several gathers at once returns tuples; that of one reduction only the result.
    return () if part is None or start.shape.dtype != "tuple" else (part,)


def results(start: Instruction) -> list[tuple[tuple[int, ...], Shape]]:
    """The arrays that an asynchronous start will have made, with their index paths."""
    part = _part(start)
    if part and part[0] < len(start.shape.parts):
        return start.shape.parts[part[0]].leaves(part)
    return start.shape.leaves()


def _argument(module: Module, parameter: Instruction, index: tuple[int, ...]) -> Place | None:
    """Return the caller's argument for a parameter of a computation that runs as units of its own."""
    if "arguments" not in module.memo:
        module.memo["arguments"] = {
            inner: sites[0]
            for computation, sites in module.callers.items()
            for inner in computation.parameters.values()
        }
    caller: Instruction | None = module.memo["arguments"].get(parameter)
    if caller is None:
        return None
    if caller.opcode == "while" and caller.operands:
        return caller.operands[0], index
    if caller.opcode == "conditional":
        branch = next((n for n, c in enumerate(caller.called) if parameter in c.parameters.values()), 0)
        return (caller.operands[1 + branch], index) if 1 + branch < len(caller.operands) else None
    if caller.opcode in ("call", "fusion", "async-start") and parameter.number < len(caller.operands):
        return caller.operands[parameter.number], index
    return None


def slot(module: Module, value: Instruction, index: tuple[int, ...] = ()) -> tuple[int, int] | None:
    """(allocation, offset) of a value; None where it is not recorded."""
    maker, part = owner(module, value, index)
    return module.slots.get((maker.id, part))


def buffer(module: Module, value: Instruction, index: tuple[int, ...] = ()) -> int:
    """The number of the buffer that a value lives in, unique in the module."""
    numbers = module.memo.setdefault("buffers", {})
    places = module.memo.setdefault("places", {})
    if (value, index) not in places:
        maker, part = owner(module, value, index)
        at = module.slots.get((maker.id, part), (maker, part))
        number = places[value, index] = numbers.setdefault(at, len(numbers))
        sizes = module.memo.setdefault("sizes", {})
        sizes[number] = max(sizes.get(number, 0), _size(maker, part))
    return int(places[value, index])


def _size(maker: Instruction, part: tuple[int, ...]) -> int:
    try:
        return maker.shape.at(part).bytes
    except IndexError:  # damage: a part that the value does not have
        return 0


def size(module: Module, number: int) -> int:
    """Bytes of the largest value that is known to live in a buffer."""
    return int(module.memo.get("sizes", {}).get(number, 0))


def addresses(module: Module, begin: int = 0) -> tuple[dict[int, int], int]:
    """Number of a buffer -> address of its first byte, and the end of the last allocation [byte].

    The program says where a buffer lies in its allocation, and not where that lies: here they lie one behind the other,
    from `begin` on. Buffers without a slot, and those of allocations that no memory holds, are left out.
    """
    begins: dict[int, int] = {}
    for allocation, size in sorted(module.allocations.items()):
        if 0 <= size <= _LARGEST and begin <= _LARGEST:
            begins[allocation] = begin
            begin += -(-size // _ALIGNED) * _ALIGNED
    numbers: dict[Any, int] = module.memo.get("buffers", {})  # by slot, or by maker where there is none
    inside = {
        number: begins[allocation] + offset
        for (allocation, offset), number in numbers.items()
        if allocation in begins and 0 <= offset <= module.allocations[allocation]
    }
    return inside, begin


def entry_buffers(module: Module) -> tuple[list[tuple[int, int, Shape]], list[tuple[int, int, Shape]]]:
    """(parameters, outputs) of the program: (buffer, bytes, shape) of each array, in flat order."""
    entry = module.entry
    parameters = [
        (buffer(module, parameter, index), shape.bytes, shape)
        for _, parameter in sorted(entry.parameters.items())
        for index, shape in parameter.shape.leaves()
    ]
    outputs = [(buffer(module, entry.root, index), shape.bytes, shape) for index, shape in entry.root.shape.leaves()]
    return parameters, outputs


def view_source(value: Instruction) -> Instruction:
    """The value that a chain of reorderings without any choice shows: same elements, same count."""
    for _ in range(_MAX_CHAIN):
        if value.opcode not in REORDERED or not value.operands or value.opcode in ("transpose", "reverse"):
            break
        value = value.operands[0]
    return value
