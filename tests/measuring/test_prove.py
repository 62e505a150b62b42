"""Which processes a proof starts, in which turns, and what it makes of them.

What a child measures is tested elsewhere; here it returns a step made by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, instead, step

from roofline.comparison.causes.findings import explain
from roofline.comparison.proof.experiment import Proof
from roofline.comparison.terms import compare
from roofline.core.schema import Profile, Wall
from roofline.core.step import Workload
from roofline.errors import MeasurementError
from roofline.measuring import experiments, own_steps, requests
from roofline.recording.recording import Recording
from roofline.recording.request import Request
from roofline.recording.user_step import digest

#: [s] of a step of each, as it is measured again.
TAKES = {"written": 6e-3, "fused": 5e-3}
NAMES = ("torch (mine:written)", "torch (mine:fused)")


class Machine:
    """What children would do: notes every start, and fails where it is told to."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.failing = ""
        self.changed: dict[str, dict[str, str]] = {}
        self.recorded: dict[str, Profile] = {}
        self.variables: list[dict[str, str]] = []

    def record(self, request: Request, variables: dict[str, str]) -> Recording:
        """The step that was recorded, in the time that it takes now."""
        function = str(request.function)
        turned = "".join(f" {name}={value}" for name, value in request.turned.items())
        what = f"{'count ' if request.count_only else ''}{function}{turned}"
        self.started.append(what)
        self.variables.append(variables)
        if what == self.failing:
            raise MeasurementError("It died.")
        profile = self.recorded[function]
        took = TAKES[function] - (1e-3 if turned else 0.0)
        fields = {name: getattr(profile, name) for name in Recording.__struct_fields__ if hasattr(profile, name)}
        switches = {**profile.switches, **({"torch.compile": "on"} if turned else {})}
        changes = {
            "wall": Wall(steps=(took,) * 4), "sources": self.changed.get(function, profile.sources),
            "switches": switches, "mode": profile.mode if request.count_only else "infer",
        }  # fmt: skip
        return Recording(**{**fields, **changes})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Two functions of one file that were measured here, one of which writes its attention out."""
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(requests, "_check_machine", lambda profile: None)
    made = Machine()
    monkeypatch.setattr(experiments, "_record", made.record)
    file = tmp_path / "mine.py"
    file.write_text("")
    sources = {file.name: digest(file)}
    for function, layers in (("written", instead(LAYER * 4, "aten::sdpa", EAGER_ATTENTION)), ("fused", LAYER * 4)):
        name, command = f"mine:{function}", f"roofline profile mine.py:{function}"
        request = Request(backend="torch", workload=Workload(model=name), file=str(file), function=function, threads=1)
        own_steps.remember(request, command, sources)
        changes = {
            "model": name,
            "command": command,
            "sources": sources,
            "mode": "train",
            "size": "base",
            "precision": "default",
        }
        made.recorded[function] = step(layers, **changes)
    return made


def proofs(machine: Machine, rules: Sequence[str] = (), **options: object) -> tuple[Proof, ...]:
    """Of the pair; its finding under other names."""
    comparison = compare(machine.recorded["written"], machine.recorded["fused"])
    (finding,) = explain(comparison)
    findings = [replace(finding, rule=rule) for rule in rules]
    said: list[str] = []
    return experiments.prove(comparison, findings, said.append, names=NAMES, whole=True, **options)


def test_two_functions_are_turned_against_each_other(machine: Machine) -> None:
    (whole,) = proofs(machine)
    counts, rounds = machine.started[:2], machine.started[2:]
    assert counts == ["count written", "count fused"]
    assert rounds == ["written", "fused", "fused", "written", "written", "fused"]
    # 4 layers x 220 us were recorded, and 1 ms is measured now, in rounds that are all alike
    assert (whole.predicted, whole.observed) == (pytest.approx(880e-6), pytest.approx(1e-3))
    assert whole.verdict == "larger than predicted", whole.text
    assert (whole.rounds, whole.changed) == (3, {})


def test_switches_take_turns_with_both(machine: Machine) -> None:
    whole, compiled, written = proofs(machine, ("fusion", "attention"), rounds=2)
    assert machine.started[2:] == [
        "count written compile=on",
        "written", "fused", "written compile=on", "written compile=on", "fused", "written",
    ]  # fmt: skip
    assert whole.verdict == "larger than predicted"
    assert (compiled.switch, compiled.observed) == ("torch.compile off -> on", pytest.approx(1e-3))
    assert (written.verdict, written.reason) == ("no switch", "its attention is written in your file")


def test_a_file_that_changed_is_not_proven(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("# changed")
    whole, compiled = proofs(machine, ("fusion",))
    assert machine.started == []
    for proof in (whole, compiled):
        assert proof.verdict == "not proven"
        assert "mine.py has changed since this was measured" in proof.text


def test_a_module_that_changed_is_not_proven(machine: Machine) -> None:
    machine.changed["fused"] = {"mine.py": "the same", "modules of its folder": "other"}
    whole, compiled = proofs(machine, ("fusion",), rounds=1)
    assert "torch (mine:fused): What its file imports from its folder has changed" in whole.text
    # The other one is as it was, and its switch is turned all the same.
    assert compiled.observed == pytest.approx(1e-3)
    assert machine.started[2:] == ["count written compile=on", "written", "written compile=on"]


@pytest.mark.parametrize("failing", ["count written compile=on", "written compile=on"])
def test_a_switch_that_fails_takes_nothing_else_with_it(machine: Machine, failing: str) -> None:
    machine.failing = failing
    whole, compiled = proofs(machine, ("fusion",), rounds=1)
    assert whole.observed == pytest.approx(1e-3)
    assert (compiled.verdict, compiled.reason) == ("not proven", "It died.")


def test_all_forms_wait_alike(machine: Machine) -> None:
    fused = machine.recorded["fused"]
    environment = {**fused.environment, "OMP_WAIT_POLICY": "PASSIVE"}
    machine.recorded["fused"] = replace(fused, environment=environment)
    proofs(machine, rounds=1)
    assert machine.variables == [{"OMP_WAIT_POLICY": "PASSIVE"}] * 4


def test_what_was_measured_in_turns_just_now_is_not_measured_again(machine: Machine) -> None:
    comparison = compare(machine.recorded["written"], machine.recorded["fused"])
    assert experiments.prove(comparison, (), print, names=NAMES) == ()
    assert machine.started == []


MINE = """
import torch

x = torch.ones(64, 64)

def products(number):
    def step():
        for _ in range(number):
            x @ x
    return step

def many():
    return products(40)

def few():
    return products(20)
"""


@pytest.mark.thorough
def test_two_functions_of_a_real_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roofline.core.device import Device
    from roofline.devices import cpu
    from roofline.measuring import session

    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    runs = []
    for function in ("many", "few"):
        workload = Workload(model=f"mine:{function}")
        request = Request(backend="torch", workload=workload, file=str(file), function=function, threads=1, steps=3)
        recording = experiments._record(request, {})
        command = f"roofline profile mine.py:{function}"
        own_steps.remember(request, command, recording.sources)
        device = Device(name=cpu.detect().name, kind="cpu", ceilings={})
        runs.append(session.to_profile(recording, request, device, command))
    (whole,) = experiments.prove(compare(*runs), (), print, rounds=1, whole=True)
    # Twice the products are asked for twice, which both runs and both times agree in; the times are the machine's.
    assert whole.verdict != "not proven", whole.text
    assert whole.original is not None
    assert whole.flipped is not None
    assert whole.observed == pytest.approx(whole.original - whole.flipped)
