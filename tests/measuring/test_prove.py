"""Which processes a proof starts, in which turns, and what it makes of them.

What a child measures is tested elsewhere; here it returns a step made by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as change
from pathlib import Path

import pytest
from msgspec.structs import replace
from synthetic import EAGER_ATTENTION, LAYER, instead, step

from roofline.comparison.proof.proof import Proof
from roofline.comparison.ranking import RankedPair, rank
from roofline.comparison.turns import MOST
from roofline.core.schema import Profile, Wall
from roofline.core.step import Workload
from roofline.errors import InputError, MeasurementError
from roofline.measuring import experiments, own_steps, requests, session
from roofline.recording.recording import Recording
from roofline.recording.request import Request
from roofline.recording.user_step import digest

#: [s] of a step of each, as it is measured again; 1 ms less where a switch is turned.
TAKES = {"written": 6e-3, "fused": 5e-3}
NAMES = ("torch (mine:written)", "torch (mine:fused)")


class Machine:
    """What children would do: notes every start, and fails where it is told to."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.started: list[str] = []
        self.failing = ""
        self.changed: dict[str, dict[str, str]] = {}
        self.recorded: dict[str, Profile] = {}
        self.variables: list[dict[str, str]] = []
        patch.setattr(session, "record", self.record)
        patch.setattr(session, "record_whole", self.record)

    def record(self, request: Request, backend: object, variables: dict[str, str]) -> Recording:
        """The step that was recorded, in the time that it takes now."""
        function = str(request.function)
        turned = "".join(f" {name}={value}" for name, value in request.turned.items())
        what = f"{'' if request.plain_only else 'whole '}{function}{turned}"
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
            "switches": switches, "mode": "infer" if request.plain_only else profile.mode,
        }  # fmt: skip
        return Recording(**{**fields, **changes})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Two functions of one file that were measured here, one of which writes its attention out."""
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(requests, "_check_machine", lambda profile: None)
    made = Machine(monkeypatch)
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
            "options": {},
        }
        made.recorded[function] = step(layers, **changes)
    return made


def pair(machine: Machine, names: Sequence[str] = ()) -> RankedPair:
    """Both runs; the row of the attention bears these names."""
    found = rank([machine.recorded["written"], machine.recorded["fused"]], as_given=True).pairs[0]
    rows = [row for row in found.account.rows if row.kind != "setting"]
    rows[0] = replace(rows[0], annotations=tuple(names))
    return change(found, names=NAMES, account=replace(found.account, rows=tuple(rows)))


def proofs(machine: Machine, *names: str, **options: int) -> tuple[Proof, ...]:
    asked = tuple(requests.request_of(machine.recorded[name]) for name in ("written", "fused"))
    return experiments.prove(pair(machine, names), (asked[0], asked[1]), lambda text: None, **options)


def test_a_switch_takes_turns_with_its_original(machine: Machine) -> None:
    compiled, written = proofs(machine, "op-by-op", "attention-written-out")
    assert machine.started == [
        "whole written compile=on",
        *["written", "written compile=on", "written compile=on", "written"] * 2,
    ]
    assert (compiled.switch, compiled.observed) == ("torch.compile off -> on", pytest.approx(1e-3))
    # The row says 880 us: 4 layers of 220 us.
    assert (compiled.predicted, compiled.verdict) == (pytest.approx(880e-6), "confirmed")
    assert (compiled.rounds, compiled.rows) == (4, (1,))
    assert compiled.changed == {"backend": ("torch", "torch-compile"), "switch torch.compile": (None, "on")}
    assert sum(each.seconds for each in compiled.moved) == pytest.approx(
        machine.recorded["written"].wall.steps[0] - 5e-3, abs=1e-4
    )
    assert (written.verdict, written.reason) == ("no switch", "its attention is written in your file")


def test_a_run_that_cannot_be_run_again(machine: Machine) -> None:
    why = "It is an import.", "It was measured elsewhere."
    (proof,) = experiments.prove(pair(machine, ["op-by-op"]), why, lambda text: None)
    assert machine.started == []
    assert (proof.verdict, proof.reason) == ("not proven", "This run cannot be run again. It is an import.")


def test_a_file_that_changed_is_not_run(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("# changed")
    with pytest.raises(InputError, match=r"mine\.py has changed since this was measured"):
        requests.request_of(machine.recorded["written"])


def test_a_module_that_changed_is_not_proven(machine: Machine) -> None:
    machine.changed["written"] = {**machine.recorded["written"].sources, "modules of its folder": "other"}
    (proof,) = proofs(machine, "op-by-op")
    assert proof.verdict == "not proven"
    assert "the original is no longer what was recorded, as file modules of its folder changed" in proof.text


@pytest.mark.parametrize(
    ("failing", "started"), [("whole written compile=on", 1), ("written compile=on", 3), ("written", 2)]
)
def test_a_form_that_fails_is_said(machine: Machine, failing: str, started: int) -> None:
    machine.failing = failing
    (proof,) = proofs(machine, "op-by-op")
    assert (proof.verdict, proof.reason) == ("not proven", "It died.")
    assert len(machine.started) == started


def test_few_turns_prove_nothing(machine: Machine) -> None:
    (proof,) = proofs(machine, "op-by-op", most_turns=2)
    assert (proof.verdict, proof.reason) == ("not proven", "There were too few turns.")
    assert len(machine.started) == 1 + 2 * 2 < 1 + 2 * MOST


def test_all_forms_wait_alike(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    fused = machine.recorded["fused"]
    environment = {**fused.environment, "OMP_WAIT_POLICY": "PASSIVE"}
    machine.recorded["fused"] = replace(fused, environment=environment)
    (proof,) = proofs(machine, "op-by-op", most_turns=4)
    assert machine.variables == [{"OMP_WAIT_POLICY": "PASSIVE"}] * 9
    assert proof.verdict == "confirmed"


def test_nothing_to_turn_starts_nothing(machine: Machine) -> None:
    assert proofs(machine) == ()
    assert machine.started == []
