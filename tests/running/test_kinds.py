"""Which steps are like most of a loop's."""

from __future__ import annotations

from roofline.running.kinds import OTHER_SIZES, Call, StepKinds

NET: list[Call] = [("Net", (16, 32))]
SMALLER: list[Call] = [("Net", (5, 32))]
EVALUATED: list[Call] = [("Net (no gradients)", (16, 32))] * 3 + NET


def test_a_step_with_a_further_call_is_left_out_by_its_name() -> None:
    kinds = StepKinds()
    assert [kinds.add(calls, 0.5) for calls in (NET, NET, EVALUATED, NET, EVALUATED, NET)] == [
        *(True, True, False, True, False, True)
    ]
    assert {reason: (aside.steps, aside.seconds) for reason, aside in kinds.asides.items()} == {
        "Net (no gradients)": (2, 1.0)
    }


def test_sizes_count_where_most_steps_have_the_same() -> None:
    kinds = StepKinds()
    assert [kinds.add(calls, 0.1) for calls in (NET, NET, NET, SMALLER)] == [True, True, True, False]
    assert list(kinds.asides) == [OTHER_SIZES]


def test_numbers_of_calls_count_where_most_steps_have_the_same() -> None:
    """Each step has sizes of its own, and two calls; the last one has three."""
    kinds = StepKinds()
    steps = [[("Net", (length, 1)), ("Net", (length, 2))] for length in range(8)]
    assert all(kinds.add(step, 0.1) for step in steps)
    assert not kinds.add([*steps[0], *NET], 0.1)


def test_names_count_where_all_steps_have_other_numbers_of_calls() -> None:
    kinds = StepKinds()
    assert all(kinds.add(NET * length, 0.1) for length in (3, 5, 4, 8, 7, 6))
    assert not kinds.add([*NET * 9, ("a checkpoint", None)], 0.1)


def test_a_step_with_more_or_fewer_calls_than_usual_says_of_what() -> None:
    """A GAN that also draws a picture in one step, and one that leaves its second pass of D out."""
    usual: list[Call] = [("D", (4, 3)), ("G", (4, 8)), ("D", (4, 3))]
    kinds = StepKinds()
    drawing, short = [*usual, ("G", (4, 8))], usual[:2]
    assert [kinds.add(calls, 0.1) for calls in (usual, usual, usual, drawing, short)] == [*(True,) * 3, False, False]
    assert {reason: aside.steps for reason, aside in kinds.asides.items()} == {
        "more calls of G than usual": 1,
        "fewer calls of D than usual": 1,
    }
