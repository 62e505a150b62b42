"""Whether a step fits into a device, and with which batch: sums that can be done by hand."""

from __future__ import annotations

import handmade
import pytest
from msgspec.structs import replace

from roofline.core.schema import Memory
from roofline.memory.fit import fit

OPS = len(handmade.OPS)
#: 100 of parameters throughout, 40 of activations at most, at op 3; the batch is 4.
PARTS = (("parameters", 100, 0, OPS - 1), ("activations", 30, 1, 3), ("workspace", 10, 3, 3))


def step(*rows, **changes):
    recorded = handmade.storages(*(rows or PARTS), source="allocator")
    return handmade.profile(**{"storages": recorded, "memory": Memory(optimizer=0.0), **changes})


def device(memory):
    return replace(handmade.device(), memory=float(memory))


@pytest.mark.parametrize(
    ("memory", "fits", "largest"),
    # 100 + 40 b / 4 <= memory
    [(140, True, 4), (139, False, 3), (109, False, 0), (99, False, 0), (1100, True, 100)],
)
def test_what_grows_with_the_batch_decides(memory, fits, largest):
    fitted = fit(step(), device(memory))
    assert (fitted.use.peak, fitted.fixed, fitted.fits, fitted.largest_batch) == (140, 100, fits, largest)


def test_an_optimizer_works_in_memory_that_no_batch_changes():
    # The last op is the optimizer's: what it takes in between is there whatever the batch.
    phases = ("forward", "optimizer")
    ops = tuple(replace(op, phase=int(row == OPS - 1)) for row, op in enumerate(handmade.OPS))
    made = step(*PARTS, ("workspace", 25, OPS - 1, OPS - 1), phases=phases, ops=ops)
    assert fit(made, device(140)).fixed == 125
    assert fit(made, device(140)).largest_batch == 4
    assert (fit(made, device(124)).largest_batch, fit(made, device(124)).fits) == (0, False)


def test_the_state_of_an_unknown_optimizer_leaves_the_batch_unknown():
    # It is among the inputs, which grow as the batch does; state that was seen, or seen to be none, is known.
    phases = ("forward", "optimizer")
    ops = tuple(replace(op, phase=int(row == OPS - 1)) for row, op in enumerate(handmade.OPS))
    among_inputs, told = ("inputs", 20, 0, OPS - 1), ("optimizer", 20, 0, OPS - 1)
    for held, optimizer, known in (
        (among_inputs, None, False),
        (among_inputs, 0.0, True),
        (told, None, True),
        (told, 20.0, True),
    ):
        made = step(*PARTS, held, phases=phases, ops=ops, memory=Memory(optimizer=optimizer))
        fitted = fit(made, device(300))
        # The optimizer's op holds 100 + 20.
        assert fitted.fixed == (120 if known else None)
        assert (fitted.largest_batch is not None, fitted.use.parts["optimizer"] is not None) == (known, known)
    # A step without an optimizer has none of its state.
    without = step(*PARTS, among_inputs, ops=tuple(replace(op, phase=0) for op in ops), memory=Memory())
    assert fit(without, device(300)).fixed == 100


def test_at_least_is_enough_not_to_fit_and_not_to_fit_in():
    recorded = replace(handmade.storages(*PARTS, source="last use"), at_least=True)
    made = step(storages=recorded, memory=Memory())
    assert [fit(made, device(memory)).fits for memory in (139, 140)] == [False, None]


def test_gradients_that_are_not_told_apart_leave_the_batch_unknown():
    phases = ("forward", "backward")
    ops = tuple(replace(op, phase=int(row > 3)) for row, op in enumerate(handmade.OPS))
    recorded = replace(handmade.storages(*PARTS, source="buffer assignment"), assigned=150.0)
    trains = step(storages=recorded, phases=phases, ops=ops)
    fitted = fit(trains, device(149))
    assert (fitted.fits, fitted.fixed, fitted.largest_batch) == (False, None, None)
    # For a GPU the compiler makes another program.
    held = replace(trains, memory=Memory(parameters=100.0, optimizer=20.0))
    for memory, fits in ((119, False), (120, None)):
        elsewhere = fit(held, replace(device(memory), kind="cuda"))
        assert (elsewhere.use.peak, elsewhere.fits, elsewhere.largest_batch) == (120, fits, None)


def test_an_unknown_peak_or_memory_says_nothing():
    nothing = fit(step(batch=None), device(200))
    assert (nothing.fits, nothing.largest_batch) == (True, None)
    unknown = fit(step(), handmade.device())
    assert (unknown.fits, unknown.largest_batch) == (None, None)
