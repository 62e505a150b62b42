"""Where the buffers of a program lie: as its buffer assignment says, and never where no memory is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from roofline.traces.xplane import reader
from roofline.xla.hlo import buffers
from roofline.xla.hlo import module as hlo
from roofline.xla.jax import Jax


@pytest.fixture(scope="module")
def program() -> hlo.Module:
    """Four products in a row, each followed by a tanh, and the product of their sum: XLA has to keep several."""

    @jax.jit
    def chain(x, w):
        kept = []
        for _ in range(4):
            x = jnp.tanh(x @ w)
            kept.append(x)
        return sum(kept) @ w

    arrays = jnp.ones((64, 64)), jnp.ones((64, 64))
    trace = reader.read(Jax((), ()).profiled(lambda: jax.block_until_ready(chain(*arrays))))
    (data,) = (data for name, data in trace.modules.values() if name == "jit_chain")
    return hlo.read(data)


def numbered(module: hlo.Module) -> dict[int, tuple[int, int]]:
    """Number -> slot of each value of the entry, in the order that the numbers are given."""
    return {
        buffers.buffer(module, value): slot
        for value in module.entry.instructions
        if value.shape.dtype != "tuple" and (slot := buffers.slot(module, value)) is not None
    }


def test_buffers_lie_where_the_assignment_says(program: hlo.Module) -> None:
    slots = numbered(program)
    addresses, end = buffers.addresses(program, 1 << 20)
    assert set(addresses) == set(slots)
    assert len(slots) > 4
    assert any(offset for _, offset in slots.values())
    begins = {slots[number][0]: address - slots[number][1] for number, address in addresses.items()}
    for number, address in addresses.items():
        allocation, offset = slots[number]
        assert address == begins[allocation] + offset  # all of an allocation lie in one piece
        assert offset + buffers.size(program, number) <= program.allocations[allocation]
    pieces = sorted((begin, program.allocations[allocation]) for allocation, begin in begins.items())
    assert all(begin + size <= behind for (begin, size), (behind, _) in pairwise(pieces))
    assert pieces[0][0] >= 1 << 20
    assert sum(pieces[-1]) <= end
    # The next program begins behind this one.
    assert min(buffers.addresses(program, end)[0].values()) >= end


@pytest.mark.parametrize("size", [-1, 1 << 51])
def test_an_allocation_that_no_memory_holds_is_left_out(program: hlo.Module, size: int) -> None:
    slots = numbered(program)
    damaged = next(iter(slots.values()))[0]
    module = replace(program, allocations={**program.allocations, damaged: size})
    addresses, end = buffers.addresses(module)
    assert set(addresses) == {number for number, (allocation, _) in slots.items() if allocation != damaged}
    assert end <= 1 << 50


@pytest.mark.parametrize("offset", [-1, 1 << 60])
def test_a_buffer_outside_of_its_allocation_is_left_out(program: hlo.Module, offset: int) -> None:
    place, (allocation, _) = next(iter(program.slots.items()))
    module = replace(program, slots={**program.slots, place: (allocation, offset)}, memo={})
    slots = numbered(module)
    strange = [number for number, slot in slots.items() if slot == (allocation, offset)]
    addresses, _ = buffers.addresses(module)
    assert strange
    assert set(addresses) == set(slots) - set(strange)
