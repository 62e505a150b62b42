"""Several backends: which are profiled, what is left out, and what stands in the profiles.

What a child measures is tested elsewhere; here it returns a step made by hand.
"""

from __future__ import annotations

import handmade
import pytest

from roofline.core.schema import Profile
from roofline.core.step import Workload
from roofline.errors import InputError, MeasurementError, MissingError, RooflineError
from roofline.measuring import rounds, session
from roofline.measuring.rounds import Candidate
from roofline.recording.request import Request


def candidate(name: str, **changes: object) -> Candidate:
    backend, _, _ = name.partition(":")
    fields = {"backend": backend, "workload": Workload(model="mlp", device="cpu"), "steps": 3}
    return Candidate(name, Request(**(fields | changes)))


class Machine:
    """What children would do: notes every start, and fails where it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.started: list[str] = []
        self.failing: dict[str, RooflineError] = {}
        self.missing: dict[str, RooflineError] = {}
        patch.setattr(session, "measure", self.measure)
        patch.setattr(session, "ready", self.ready)

    def ready(self, request: Request) -> tuple[object, Request]:
        if request.backend in self.missing:
            raise self.missing[request.backend]
        return object(), request

    def measure(self, request: Request, **given: object) -> Profile:
        self.started.append(request.backend)
        if request.backend in self.failing:
            raise self.failing[request.backend]
        return handmade.profile(backend=request.backend, command=given["command"])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture
def said() -> list[str]:
    return []


def test_each_backend_is_profiled_once(machine: Machine, said: list[str]) -> None:
    given = [candidate("a"), candidate("b"), candidate("a")]
    found = rounds.measure(given, say=said.append)
    assert machine.started == ["a", "b", "a"]
    assert list(found) == [0, 1, 2]
    assert said == ["Profiling a.", "Profiling b.", "Profiling a."]


def test_who_fails_is_left_out_while_two_remain(machine: Machine, said: list[str]) -> None:
    machine.failing["b"] = MeasurementError("It died.")
    found = rounds.measure([candidate("a"), candidate("b"), candidate("c")], say=said.append)
    assert [profile.backend for profile in found.values()] == ["a", "c"]
    assert list(found) == [0, 2]
    assert "b is left out: It died." in said


def test_what_is_left_of_two_is_nothing_to_compare(machine: Machine, said: list[str]) -> None:
    machine.failing["b"] = MeasurementError("It died.")
    with pytest.raises(MeasurementError, match="It died"):
        rounds.measure([candidate("a"), candidate("b")], say=said.append)
    assert machine.started == ["a", "b"]


def test_frameworks_that_are_not_there_are_known_before(machine: Machine, said: list[str]) -> None:
    machine.missing["b"] = MissingError("b is not installed.")
    three = [candidate("a"), candidate("b"), candidate("c")]
    assert rounds.keep_installed(three, said.append) == [three[0], three[2]]
    assert said == ["b is left out: b is not installed."]
    with pytest.raises(MissingError, match="b is not installed"):
        rounds.keep_installed(three[:2], said.append)
    assert machine.started == []


def test_the_plan() -> None:
    both = [candidate("a"), candidate("b:x=y")]
    told = rounds.plan(both, 12)
    assert told == [
        "2 backends: a, b:x=y. Each is profiled in a process of its own, which runs 3 plain steps.",
        "Then they take turns in fresh processes until it is settled which is faster, 12 at most.",
    ]
    assert rounds.plan(both, 1) == told[:1]
    free = candidate("a", steps=None)
    assert "at most 60 s" in rounds.plan([free, free], 1)[0]


def test_the_command_measures_the_same() -> None:
    request = Request(
        backend="keras-jax", threads=1, steps=5, workload=Workload(
            model="bert", device="cpu", mode="train", batch=2, size="tiny", optimizer=False, options={"jit": "off"},
        ),
    )  # fmt: skip
    assert rounds.profile_command(request) == (
        "roofline profile bert --backend keras-jax:jit=off --mode train --batch 2 --size tiny --device cpu "
        "--threads 1 --steps 5 --no-optimizer"
    )
    plain = Request(backend="torch", workload=Workload(model="mlp", device="cpu"))
    assert rounds.profile_command(plain) == "roofline profile mlp --backend torch --device cpu"


def test_an_error_of_what_was_given_stays_one() -> None:
    with pytest.raises(InputError, match="no"):
        rounds.leave_out("a", InputError("no"), 1, lambda text: None)
