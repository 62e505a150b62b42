"""Backends in turns: the order of the rounds, what is left out, and what stands in the profiles.

What a child measures is tested elsewhere; here it returns a step made by hand.
"""

from __future__ import annotations

from collections.abc import Callable

import handmade
import pytest
from msgspec.structs import replace

from roofline.core.schema import Profile, Wall
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
        self.variables: list[dict[str, str]] = []
        self.policy: dict[str, str] = {}
        patch.setattr(session, "measure", self.measure)
        patch.setattr(session, "record", self.record)
        patch.setattr(session, "ready", self.ready)

    def ready(self, request: Request) -> tuple[object, Request]:
        if request.backend in self.missing:
            raise self.missing[request.backend]
        return object(), request

    def start(self, request: Request) -> None:
        self.started.append(f"{request.backend}{' again' if request.plain_only else ''}")
        if self.started[-1] in self.failing:
            raise self.failing[self.started[-1]]

    def measure(self, request: Request, **given: object) -> Profile:
        self.start(request)
        assert given["rounds"] == 1
        return handmade.profile(backend=request.backend, environment=self.policy, command=given["command"])

    def record(self, request: Request, backend: object, variables: dict[str, str]) -> object:
        self.start(request)
        self.variables.append(variables)
        return replace(handmade.profile(), wall=Wall(steps=(len(self.started) * 1.0,)))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture
def said() -> list[str]:
    return []


def test_backends_take_turns(machine: Machine, said: list[str]) -> None:
    given = [candidate("a"), candidate("b"), candidate("c")]
    found = rounds.measure(given, rounds=3, say=said.append)
    first, more = ["a", "b", "c"], ["a again", "b again", "c again"]
    assert machine.started == first + more + more
    assert list(found) == [0, 1, 2]
    # The fourth and the seventh process are a's.
    assert [profile.wall.processes for profile in found.values()] == [
        ((4.0,), (7.0,)),
        ((5.0,), (8.0,)),
        ((6.0,), (9.0,)),
    ]
    assert [line for line in said if line.startswith("Round 2 of 3")] == [
        "Round 2 of 3: a.", "Round 2 of 3: b.", "Round 2 of 3: c.",
    ]  # fmt: skip
    assert any(line.startswith("Round 1 took") and "each of the 2 others takes less" in line for line in said)


def test_the_same_backend_twice_is_two_runs(machine: Machine, said: list[str]) -> None:
    found = rounds.measure([candidate("a"), candidate("a")], rounds=2, say=said.append)
    assert [profile.wall.processes for profile in found.values()] == [((3.0,),), ((4.0,),)]


def test_who_fails_is_left_out_while_two_remain(machine: Machine, said: list[str]) -> None:
    machine.failing["b"] = MeasurementError("It died.")
    found = rounds.measure([candidate("a"), candidate("b"), candidate("c")], rounds=2, say=said.append)
    assert [profile.backend for profile in found.values()] == ["a", "c"]
    assert "b is left out: It died." in said
    assert machine.started == ["a", "b", "c", "a again", "c again"]


def test_what_is_left_of_two_is_nothing_to_compare(machine: Machine, said: list[str]) -> None:
    machine.failing["b"] = MeasurementError("It died.")
    with pytest.raises(MeasurementError, match="It died"):
        rounds.measure([candidate("a"), candidate("b")], rounds=2, say=said.append)
    assert machine.started == ["a", "b"]


def test_a_later_round_that_fails_costs_that_round(machine: Machine, said: list[str]) -> None:
    machine.failing["b again"] = MeasurementError("It died.")
    found = rounds.measure([candidate("a"), candidate("b")], rounds=2, say=said.append)
    assert [len(profile.wall.processes) for profile in found.values()] == [1, 0]
    assert "b has no round 2: It died." in said


def test_later_rounds_run_as_the_first_one_did(machine: Machine, said: list[str], monkeypatch: Callable) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    machine.policy = {"OMP_WAIT_POLICY": "PASSIVE", "threads": "1"}
    rounds.measure([candidate("a"), candidate("b")], rounds=2, say=said.append)
    assert machine.variables == [{"OMP_WAIT_POLICY": "PASSIVE"}] * 2
    # What the user set holds for all children by itself.
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    rounds.measure([candidate("a"), candidate("b")], rounds=2, say=said.append)
    assert machine.variables[2:] == [{}, {}]


def test_frameworks_that_are_not_there_are_known_before(machine: Machine, said: list[str]) -> None:
    machine.missing["b"] = MissingError("b is not installed.")
    three = [candidate("a"), candidate("b"), candidate("c")]
    assert rounds.installed(three, said.append) == [three[0], three[2]]
    assert said == ["b is left out: b is not installed."]
    with pytest.raises(MissingError, match="b is not installed"):
        rounds.installed(three[:2], said.append)
    assert machine.started == []


def test_the_plan() -> None:
    told = rounds.plan([candidate("a"), candidate("b:x=y")], 3)
    assert told[0] == "2 backends in 3 rounds, in turns: a, b:x=y."
    assert told[-1] == "Expected: 6 processes, each of which loads its framework and runs 3 plain steps."
    (free, *_) = [candidate("a", steps=None)]
    assert "at most 60 s" in rounds.plan([free, free], 1)[-1]


def test_the_command_measures_the_same() -> None:
    request = Request(
        backend="keras-jax", threads=1, steps=5, workload=Workload(
            model="bert", device="cpu", mode="train", batch=2, size="tiny", optimizer=False, options={"jit": "off"},
        ),
    )  # fmt: skip
    assert rounds.profile_command(request, 3) == (
        "roofline profile bert --backend keras-jax:jit=off --mode train --batch 2 --size tiny --device cpu "
        "--threads 1 --steps 5 --no-optimizer --rounds 3"
    )
    plain = Request(backend="torch", workload=Workload(model="mlp", device="cpu"))
    assert rounds.profile_command(plain, 1) == "roofline profile mlp --backend torch --device cpu"


def test_an_error_of_what_was_given_stays_one() -> None:
    with pytest.raises(InputError, match="no"):
        rounds.leave_out("a", InputError("no"), 1, lambda text: None)
