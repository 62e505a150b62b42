"""Several runs: the fastest, who is held against whom, names that tell runs apart, one set of ceilings for all."""

from __future__ import annotations

import handmade
import pytest
import randomly
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from roofline.analysis.run_names import called
from roofline.comparison.common_ceilings import analyze_together
from roofline.comparison.ranking import check_timed, on_common_ceilings, rank
from roofline.core.schema import Profile, Wall
from roofline.errors import InputError


def run(milliseconds: float, backend: str = "torch", **changes: object) -> Profile:
    """The hand-made step with another wall."""
    wall = Wall(steps=tuple(milliseconds * 1e-3 * (1 + n / 1000) for n in (-2, -1, 0, 1, 2)))
    return handmade.profile(backend=backend, wall=wall, **changes)


def test_each_run_is_held_against_the_fastest() -> None:
    ranking = rank([run(15, "a"), run(12, "b"), run(13, "c")])
    assert ranking.fastest == 1
    assert ranking.order == (1, 2, 0)
    # The nearest first, and the fastest is B: positive is what the other spends more.
    assert [pair.names for pair in ranking.pairs] == [("c", "b"), ("a", "b")]
    assert [pair.comparison.difference for pair in ranking.pairs] == pytest.approx([1e-3, 3e-3])
    assert ranking.speedups[0] == pytest.approx((1, 15 / 12, 15 / 13))
    assert ranking.speedups[1][0] == pytest.approx(12 / 15)
    assert ranking.verdicts[0][2] == ranking.verdicts[2][0]


def test_of_two_the_order_given_or_the_faster_one_last() -> None:
    assert rank([run(12, "a"), run(15, "b")], as_given=True).pairs[0].names == ("a", "b")
    assert rank([run(12, "a"), run(15, "b")]).pairs[0].names == ("b", "a")
    # Of more, as given means nothing.
    assert rank([run(12, "a"), run(15, "b"), run(16, "c")], as_given=True).pairs[0].names == ("b", "a")


def test_of_two_that_nothing_tells_apart_the_first_of_the_pair_is_a() -> None:
    given = rank([run(12), run(15)], as_given=True)
    assert given.names == given.pairs[0].names == ("torch (A)", "torch (B)")
    # The slower one is A and the fastest B, in whatever order they come.
    turned = rank([run(12), run(15)])
    assert (turned.names, turned.pairs[0].names) == (("torch (B)", "torch (A)"), ("torch (A)", "torch (B)"))
    assert turned.pairs[0].comparison.a.wall == turned.runs[1].wall
    assert rank([run(15), run(12)]).names == ("torch (A)", "torch (B)")


def test_the_rows_of_the_account_are_the_difference() -> None:
    pair = rank([run(30, "a"), run(13, "b")]).pairs[0]
    assert pair.comparison.resolved
    assert sum(row.seconds or 0.0 for row in pair.account.rows) == pytest.approx(17e-3, rel=1e-12)


def test_the_same_twice_is_no_difference() -> None:
    pair = rank([run(13), run(13)]).pairs[0]
    assert pair.comparison.difference == 0.0
    assert not pair.comparison.resolved
    assert {row.seconds for row in pair.account.rows} == {0.0}
    assert pair.findings == ()


@settings(max_examples=20)
@given(st.lists(randomly.profiles(), min_size=2, max_size=4))
def test_any_runs(profiles: list[Profile]) -> None:
    ranking = rank(profiles)
    assert len(set(ranking.names)) == len(profiles)
    assert len(ranking.pairs) == len(profiles) - 1
    assert all(pair.comparison.b.wall == ranking.runs[ranking.fastest].wall for pair in ranking.pairs)
    for row, line in enumerate(ranking.speedups):
        for column, value in enumerate(line):
            assert value * ranking.speedups[column][row] == pytest.approx(1)
            assert ranking.verdicts[row][column] == ranking.verdicts[column][row]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ([{"backend": "torch"}, {"backend": "jax"}], ("torch", "jax")),
        ([{}, {}], ("torch (A)", "torch (B)")),
        ([{}, {}, {"backend": "jax"}], ("torch #1", "torch #2", "jax")),
        (
            [{"environment": {"threads": "1"}}, {"environment": {"threads": "2"}}],
            ("torch (1 thread)", "torch (2 threads)"),
        ),
        ([{}, {"options": {"mode": "max", "a": "b"}}], ("torch", "torch:a=b,mode=max")),
        ([{"batch": 1}, {"batch": 2}, {"backend": "jax"}], ("torch (b1)", "torch (b2)", "jax")),
        # What tells two of them apart does not tell the third from the first.
        ([{"batch": 1}, {"batch": 2}, {"batch": 1, "seq": 9}], ("torch (b1) (s25)", "torch (b2)", "torch (b1) (s9)")),
        # A name that another run already has by itself.
        ([{"backend": "x #1"}, {"backend": "x"}, {"backend": "x"}], ("x #1", "x #2", "x #3")),
    ],
)
def test_names(changes: list[dict[str, object]], names: tuple[str, ...]) -> None:
    assert called(handmade.profile(**each) for each in changes) == names


def test_one_device_has_one_set_of_ceilings() -> None:
    slow, fast = handmade.device(dram_copy=8e9), handmade.device(matrix_fp32=90e9)
    other = replace(handmade.device(dram_copy=1e9), name="Another Device")
    profiles = [handmade.profile(device=device) for device in (slow, fast, other)]
    for order in ((0, 1, 2), (1, 0, 2)):
        found = on_common_ceilings([profiles[number] for number in order])
        for profile in found[:2]:
            assert profile.device.rate("dram.copy") == 10e9
            assert profile.device.rate("matrix.fp32") == 100e9
        assert found[2].device.rate("dram.copy") == 1e9


def test_ceilings_of_a_cpu_are_those_of_its_threads() -> None:
    """With one thread 60 GFLOP/s, with two 100: each run keeps its own. Of a GPU threads are no matter.

    A device of which the threads are not known takes the best of both.
    """
    one = replace(handmade.device(matrix_fp32=60e9), conditions={"threads": "1"})
    bare = replace(handmade.device(), ceilings={}, caches=(), conditions={})
    for kind, rates in (("cpu", [60e9, 100e9, 100e9]), ("cuda", [100e9] * 3)):
        devices = [replace(device, kind=kind) for device in (one, handmade.device(), bare)]
        found = on_common_ceilings([handmade.profile(device=device) for device in devices])
        assert [profile.device.rate("matrix.fp32") for profile in found] == rates
        pair = analyze_together(*(handmade.profile(device=device) for device in devices[:2]))
        assert [run.device.rate("matrix.fp32") for run in pair] == rates[:2]


def test_what_cannot_be_ranked() -> None:
    with pytest.raises(InputError, match="give at least two"):
        rank([run(1)])
    with pytest.raises(InputError, match=r"jax was counted and not timed: measure it again without --count-only"):
        rank([run(1), run(1, "jax", profiled=None)])
    with pytest.raises(InputError, match=r"jax holds no profiled step, so its ops have no times: measure it again"):
        rank([run(1), replace(handmade.without_steps(), backend="jax")])
    check_timed(run(1), "this")
