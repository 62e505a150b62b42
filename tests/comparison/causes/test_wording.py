"""What rules say: words for their labels, parts that are not larger than the whole, and no false digits."""

from __future__ import annotations

from typing import Any

import pytest

from roofline.comparison.causes.claim import Work
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.wording import SENTENCES, label, sentence


def work(ops: int = 0) -> Work:
    return Work(
        seconds=0.0, ops=ops, launches=float(ops), bytes=1e6, flops=1e6, whole=True, floor=0.0,
        names=("mul",), classes=frozenset({"pointwise"}), fused=0.0,
    )  # fmt: skip


def facts(**changes: Any) -> Facts:
    """100 us more, in 200 launches against 100."""
    fields: dict[str, Any] = {
        **{"more": "torch", "less": "jax", "seconds": 100e-6, "does_more": work(20), "does_less": work(5)},
        **{"idle_more": 200e-6, "idle_less": 110e-6, "launches_more": 200.0, "launches_less": 100.0},
        **{
            "about_more": "",
            "about_less": "",
            "of": "",
            "host": "",
            "where": "",
            "certain": True,
            "dispatch": 0.0,
            "after": 0.0,
        },
        **{"graphs_more": 0, "graphs_less": 0, "breaks": (), "programs_more": 0.0, "programs_less": 0.0},
        "backend_more": "torch",
    }
    return Facts(**(fields | changes))


@pytest.mark.parametrize("rule", sorted(SENTENCES))
def test_a_label_is_no_name_of_a_rule(rule: str) -> None:
    assert "-" not in label(rule, facts(about_more="2", about_less="1"))


@pytest.mark.parametrize(("backend", "advised"), [("jax", "jax.jit"), ("keras-jax", "flag"), ("torch-compile", "flag")])
def test_jax_has_no_flag_to_check(backend: str, advised: str) -> None:
    assert advised in sentence("jit-not-in-effect", facts(backend_more=backend))[1]


@pytest.mark.parametrize(
    ("dispatch", "told"),
    [
        (30e-6, ", 30.0 µs of it in dispatching them."),
        (100.01e-6, ", 100 µs of it in dispatching them."),
        (150e-6, "; that is 150 µs more in dispatching them and 50.0 µs less besides."),
        (5e-6, "(mul)."),
        (-50e-6, "(mul)."),
    ],
)
def test_a_part_is_not_larger_than_the_whole(dispatch: float, told: str) -> None:
    assert sentence("tiny-ops", facts(dispatch=dispatch))[0].endswith(told)


@pytest.mark.parametrize(
    ("dispatch", "told"),
    [
        (90e-6, "costs 100 µs, 90.0 µs of it while no op runs."),
        (120e-6, "costs 100 µs; that is 120 µs more while no op runs and 20.0 µs less besides."),
        (-20e-6, "costs 100 µs."),
    ],
)
def test_programs(dispatch: float, told: str) -> None:
    found = facts(dispatch=dispatch, programs_more=32.0, programs_less=1.0)
    assert sentence("host-bound", found)[0].endswith(told)
    assert label("host-bound", found) == "dispatching on the host (32 programs against 1)"


def test_launches_are_named_where_they_are_more() -> None:
    assert label("host-bound", facts()) == "dispatching on the host (200 launches against 100)"
    fewer = label("host-bound", facts(launches_more=90.0))
    assert fewer == "dispatching on the host (200 µs in which no op runs against 110 µs)"


@pytest.mark.parametrize(("less", "told"), [("18.7 ns", "less than 1 µs"), ("0 s", "less than 1 µs"), ("10 s", "10 s")])
def test_a_counter_has_no_nanoseconds(less: str, told: str) -> None:
    text, _ = sentence("host-idle", facts(dispatch=100e-6, host="asleep", about_more="3.24 ms", about_less=less))
    assert f"for 3.24 ms of a step, against {told}:" in text


def test_a_counter_among_other_words() -> None:
    about = {"about_more": "3.00 ms of the system's time in 20 page faults", "about_less": "30 ns of the system's time"}
    text, _ = sentence("allocation", facts(**about))
    assert "3.00 ms of the system's time in 20 page faults per step against less than 1 µs of the system's" in text
