"""Steps in turns: in which order processes start, when that ends, what is said before, and what profiles keep.

What a child measures is tested elsewhere; here it returns a step made by hand. The last tests start real processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import handmade
import pytest

from roofline.comparison.turns import MOST, settle
from roofline.core.executor import QUEUED, QUEUED_WORKER
from roofline.core.schema import Profile, Wall
from roofline.core.step import Workload
from roofline.errors import MeasurementError
from roofline.measuring import session, turns
from roofline.measuring.turns import Form, form_of, settle_runs, take_turns
from roofline.recording.recording import Recording
from roofline.recording.request import Request

#: Times of one step that processes of it take in turn: none of them is far from the others.
NOISE = (1.0, 1.03, 0.98, 1.01, 0.99, 1.02, 0.97, 1.0, 1.02, 0.98, 1.01, 0.99)


class Machine:
    """What children would do: notes every start, and fails where it is told to. takes: by backend [s]."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.takes: dict[str, float] = {}
        self.started: list[str] = []
        self.failing: set[int] = set()
        self.conditions: dict[str, float] = {}
        self.environment: dict[str, str] = {}
        self.variables: list[dict[str, str]] = []
        patch.setattr(session, "record", self.record)
        patch.setattr(turns, "load", lambda backend: None)

    def record(self, request: Request, backend: object, variables: dict[str, str]) -> Recording:
        assert request.plain_only
        assert request.quiet
        self.started.append(request.backend)
        self.variables.append(variables)
        if len(self.started) in self.failing:
            raise MeasurementError("It died.")
        number = self.started.count(request.backend) - 1
        took = self.takes[request.backend] * NOISE[(number + ord(request.backend[0])) % len(NOISE)]
        profile = handmade.profile(backend=request.backend)
        fields = {name: getattr(profile, name) for name in Recording.__struct_fields__ if hasattr(profile, name)}
        changes = {
            "wall": Wall(steps=(took,) * 3), "conditions": self.conditions,
            "environment": {**profile.environment, **self.environment}, "mode": "infer",
        }  # fmt: skip
        return Recording(**{**fields, **changes})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


@pytest.fixture
def said() -> list[str]:
    return []


def forms(machine: Machine, **takes: float) -> list[Form]:
    """A form for each backend, which takes so long [s]."""
    machine.takes |= takes
    workload = Workload(model="mlp", device="cpu")
    return [Form(name, Request(backend=name, workload=workload), {}, 10.0) for name in takes]


def let_take_turns(
    some: Sequence[Form], pairs: Sequence[tuple[int, int]], say: Callable[[str], None], **options: int
) -> None:
    """Let forms take turns, in pairs by their numbers."""
    take_turns(some, [(some[a], some[b]) for a, b in pairs], say, **options)


def test_the_order_is_a_b_b_a_a_b_b_a_until_it_is_settled(machine: Machine, said: list[str]) -> None:
    both = forms(machine, a=2e-3, b=1e-3)
    let_take_turns(both, [(0, 1)], said.append)
    assert "".join(machine.started) == "abbaabba"
    assert said[0] == "In turns until settled: a, b, a fresh process each time."
    assert said[1] == "Expected: 4 to 12 turns of 2 processes, about 80.0 s to 240 s."
    assert said[2] == "Turn 1 of at most 12: a 2.06 ms, b 980 µs."
    assert said[-1] == "a against b: settled in 4 turns."
    assert len(said) == 7


def test_equal_steps_end_where_more_turns_would_not_settle_them(machine: Machine, said: list[str]) -> None:
    both = forms(machine, a=1e-3, b=1e-3)
    let_take_turns(both, [(0, 1)], said.append)
    assert 6 <= len(machine.started) < 2 * MOST
    assert said[-1] == f"a against b: not settled in {len(machine.started) // 2} turns."


def test_turns_are_bounded(machine: Machine, said: list[str]) -> None:
    both = forms(machine, a=1.06e-3, b=1e-3)  # so little that four turns settle nothing, and more might
    let_take_turns(both, [(0, 1)], said.append, most_turns=5)
    assert "".join(machine.started) == "abbaabbaab"
    assert "4 to 5 turns" in said[1]
    machine.started.clear()
    let_take_turns(forms(machine, a=1e-3, b=1e-3), [(0, 1)], said.append, most_turns=2)
    assert "".join(machine.started) == "abba"
    assert "2 turns of 2 processes, about 40.0 s." in said[-4]
    assert said[-1] == "a against b: too few turns to settle anything."


def test_who_is_settled_takes_no_more_turns(machine: Machine, said: list[str]) -> None:
    """In one rotation, each against the fastest, b."""
    let_take_turns(forms(machine, a=9e-3, b=1e-3, c=1.06e-3), [(0, 1), (2, 1)], said.append, most_turns=5)
    assert "".join(machine.started) == "abccbaabccbabc"
    assert said[-2] == "a against b: settled in 4 turns."


def test_a_step_that_fails_takes_no_more_turns(machine: Machine, said: list[str]) -> None:
    machine.failing = {2}
    let_take_turns(forms(machine, a=2e-3, b=1e-3), [(0, 1)], said.append)
    assert machine.started == ["a", "b"]
    assert said[-1] == "a against b: not measured in turns. It died."
    machine.started.clear()
    let_take_turns(forms(machine, c=2e-3, d=1e-3, e=1e-3), [(0, 1), (2, 1)], said.append)
    assert "c against d: not measured in turns. It died." in said  # the first start of d, which both need
    machine.started.clear()
    machine.failing = {1}
    let_take_turns(forms(machine, f=2e-3, g=1e-3, h=3e-3), [(0, 1), (2, 1)], said.append)
    assert "".join(machine.started) == "fghhgghhg"
    assert said[-1] == "h against g: settled in 4 turns."


def test_a_busy_machine_ends_it(machine: Machine, said: list[str]) -> None:
    machine.conditions = {"cpu_share": 0.5, "involuntary_switches_per_second": 900.0}
    let_take_turns(forms(machine, a=2e-3, b=1e-3), [(0, 1)], said.append)
    assert len(machine.started) == 6
    assert said[-1] == "a against b: not settled, as other programs used the processor."


def recorded(name: str, milliseconds: float, **changes: object) -> Profile:
    return handmade.profile(backend=name, wall=Wall(steps=(milliseconds * 1e-3,) * 5, first=1.0), **changes)


def settled(profiles: Sequence[Profile], say: Callable[[str], None], **options: int) -> list[Profile]:
    requests = []
    for profile in profiles:
        fields = {name: getattr(profile, name) for name in ("model", "mode", "size", "precision", "layers")}
        requests.append(Request(backend=profile.backend, workload=Workload(device="cpu", **fields)))
    return settle_runs([profile.backend for profile in profiles], profiles, requests, say, **options)


def test_profiles_keep_their_turns(machine: Machine, said: list[str]) -> None:
    machine.takes = {"torch": 2e-3, "jax": 1e-3}
    machine.conditions = {QUEUED: 1e-6, QUEUED_WORKER: 3e-6}
    one, other = settled([recorded("torch", 2), recorded("jax", 1)], said.append)
    (turns_of_a,), (turns_of_b,) = one.wall.turns, other.wall.turns
    assert turns_of_a.token == turns_of_b.token
    assert len(turns_of_a.token) == 16
    assert turns_of_a.medians == tuple(steps[0] for steps in one.wall.processes)
    assert turns_of_a.waited == (3e-6,) * 4  # the longest of them
    assert turns_of_a.disturbed == (False,) * 4
    assert len(one.wall.processes) == 4
    assert one.wall.steps == (2e-3,) * 5
    paired = settle(one, other)
    assert paired is not None
    assert paired.settled
    # Measured once more they have both, of which the last ones count.
    again, _ = settled([one, other], said.append)
    assert len(again.wall.turns) == 2
    assert again.wall.turns[0].token == turns_of_a.token != again.wall.turns[1].token


def test_a_step_that_is_no_longer_what_was_recorded_keeps_none(machine: Machine, said: list[str]) -> None:
    machine.takes = {"torch": 2e-3, "jax": 1e-3}
    machine.environment = {"OMP_NUM_THREADS": "7"}
    profiles = [recorded("torch", 2), recorded("jax", 1)]
    assert settled(profiles, said.append) == profiles
    words = "torch is no longer what was recorded: environment OMP_NUM_THREADS changed; its turns are left out."
    assert words in said


def test_all_wait_alike(machine: Machine, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    machine.takes = {"torch": 2e-3, "jax": 1e-3}
    environment = {**handmade.profile().environment, "OMP_WAIT_POLICY": "PASSIVE"}
    settled([recorded("torch", 2), recorded("jax", 1, environment=environment)], said.append, most_turns=1)
    assert machine.variables == [{"OMP_WAIT_POLICY": "PASSIVE"}] * 2
    # What the user set holds for all children by itself.
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    settled([recorded("torch", 2), recorded("jax", 1, environment=environment)], said.append, most_turns=1)
    assert machine.variables[2:] == [{}, {}]


@pytest.mark.parametrize(
    ("milliseconds", "steps", "expected"), [(1, 200, 6.2), (100, 20, 8.0), (700, 3, 8.1), (9000, 3, 33.0)]
)
def test_a_process_takes_two_seconds_of_steps(milliseconds: float, steps: int, expected: float) -> None:
    """And 5 s to start, 1 s for its first step. Of long steps three, of short ones 200."""
    request = Request(backend="a", workload=Workload(model="mlp"))
    form = form_of("a", recorded("a", milliseconds), request, {})
    assert (form.request.steps, form.expected) == (steps, pytest.approx(expected))


# ------------------------------------------------------------------------------------------------ real processes

MINE = """
import torch

x = torch.ones(64, 64)

def make_step():
    def step():
        for _ in range(8):
            x @ x
    return step
"""


@pytest.mark.slow
def test_real_steps_take_turns(tmp_path: Path, said: list[str]) -> None:
    """Whatever they take: three turns, fresh processes, the plain steps alone."""
    pytest.importorskip("torch")
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    workload = Workload(model="mine:make_step", device="cpu")
    request = Request(backend="torch", workload=workload, file=str(file), function="make_step", threads=1, steps=3)
    both = [Form(name, request, {}) for name in ("one", "other")]
    let_take_turns(both, [(0, 1)], said.append, most_turns=3)
    for form in both:
        assert form.why == ""
        assert [recording and len(recording.wall.steps) for recording in form.recordings] == [3] * 3
        first = form.recordings[0]
        assert first is not None
        assert first.profiled is None
        assert not first.ops
        assert list(first.sources) == ["mine.py"]
    one, other = (form.turns("1") for form in both)
    assert len(one.medians) == len(other.medians) == 3
    assert None not in one.medians
    assert said[-1].startswith("one against other: ")
