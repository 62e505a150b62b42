"""What a measurement does in which order: the step first, then its ceilings; and how waiting threads wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import handmade
import msgspec
import pytest
from msgspec.structs import replace

pytest.importorskip("torch")

from devices.calibrated import roomy
from of_cli import conftest

from roofline import devices
from roofline.core.device import Ceiling
from roofline.core.schema import Wall
from roofline.core.step import Workload
from roofline.devices import calibration, contention
from roofline.errors import InputError, MeasurementError, RooflineError
from roofline.measuring import ceilings, session
from roofline.recording.request import Request

#: A factory of each kind that cannot be measured, and one that can: its step leaves a file behind.
STEPS = """
from pathlib import Path
import torch

def number(): return 7
def wrong(): return lambda: torch.ones(2) @ torch.ones(3)
def ends(): return lambda: exit(0)

def good():
    x = torch.ones(4, 4)
    def step():
        Path(__file__).with_name("ran").touch()
        return x @ x
    return step
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Request]:
    """A request for one of STEPS on a machine of which no ceilings are kept."""
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    (tmp_path / "mine.py").write_text(STEPS)

    def request(function: str, **fields: object) -> Request:
        workload = Workload(model=f"mine:{function}", device="cpu")
        file = str(tmp_path / "mine.py")
        return Request(
            **{"backend": "torch", "workload": workload, "file": file, "function": function, "threads": 1, "steps": 3}
            | fields
        )

    return request


@pytest.fixture
def here() -> Iterator[None]:
    """Measuring processes run in this one, which has imported torch."""
    with conftest.children_here():
        yield


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("number", "ran no op that does work"),
        ("wrong", "The step raised RuntimeError"),
        ("ends", "which ends the measurement"),
        ("missing", "no function"),
    ],
)
def test_a_step_that_cannot_be_run_costs_no_calibration(
    ask: Callable[..., Request], here: None, function: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    monkeypatch.setattr(calibration, "_measure", lambda *what: started.append(what))
    with pytest.raises(RooflineError, match=sentence):
        session.measure(ask(function), command="x", say=lambda text: None)
    assert started == []


@pytest.mark.slow
def test_the_step_has_run_when_its_ceilings_are_measured(
    ask: Callable[..., Request], here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had_run, recordings, record = [], [], session.record_whole

    def measure(*_: object) -> object:
        had_run.append((tmp_path / "ran").exists())
        return roomy()

    def record_once(request: Request, backend: object, *_: object) -> object:
        if not recordings:
            recordings.append(record(request, backend, {}))
        return recordings[0]

    monkeypatch.setattr(calibration, "_measure", measure)
    monkeypatch.setattr(session, "record_whole", record_once)
    profile = session.measure(ask("good"), command="x", say=lambda text: None)
    assert had_run == [True]
    assert profile.device.rate("matrix.fp32") == roomy().rate("matrix.fp32")
    # The second profile finds them kept. One with ceilings of its own has these and nothing that was seen beside.
    device = replace(roomy(), ceilings={"dram.copy": Ceiling(value=1e3, source="given")}, ceilings_of="Else")
    under = session.measure(ask("good"), command="x", say=lambda text: None, given_device=device)
    assert under.device == device
    assert "given-ceilings: Else" in under.flags
    assert session.measure(ask("good"), command="x", say=lambda text: None).device.name == roomy().name
    assert had_run == [True]


def test_threads_that_are_not_there_are_refused_before_anything_runs(ask: Callable[..., Request]) -> None:
    with pytest.raises(InputError, match="--threads must be between 1 and"):
        session.measure(ask("good", threads=100_000), command="x", say=lambda text: None)


def test_a_step_stands_without_ceilings_where_these_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MeasurementError("It took too long.")

    monkeypatch.setattr(calibration, "calibrate", fail)
    said: list[str] = []
    device = ceilings.measured("cpu", 1, said.append)
    assert (device.kind, dict(device.ceilings)) == ("cpu", {})
    assert said == ["No ceilings: It took too long."]


# ------------------------------------------------------------------------------------------------ given ceilings


def test_ceilings_come_from_a_calibration_a_profile_or_a_device(tmp_path: Path) -> None:
    here = calibration.key("cpu", 1)["cpu"]
    device = replace(roomy(), name=here, conditions={"threads": "1"})
    stored = calibration.Stored(schema=calibration.SCHEMA, key={}, full=True, device=device)
    profile = replace(handmade.profile(), device=device)
    said: list[str] = []
    for name, content in (("calibration", stored), ("profile", profile), ("device", device)):
        file = tmp_path / f"{name}.json"
        file.write_bytes(msgspec.json.encode(content))
        assert ceilings.given(str(file), "cpu", 1, said.append) == replace(device, ceilings_of=here)
    assert said == []
    # Another machine's stay usable: it is said, and the profile keeps the name of the machine that the step ran on.
    file.write_bytes(msgspec.json.encode(replace(device, name="Else\x1b[31m", conditions={"threads": "7"})))
    found = ceilings.given(str(file), "cpu", 1, said.append)
    assert (found.name, found.ceilings_of, dict(found.conditions)) == (here, "Else\x1b[31m", {})
    assert len(said) == 2
    assert all(line.isprintable() for line in said)
    # A profile that was put under them hands on whose they are.
    file.write_bytes(msgspec.json.encode(replace(profile, device=replace(device, ceilings_of="Else"))))
    assert ceilings.given(str(file), "cpu", 1, said.append).ceilings_of == "Else"
    assert said[2:] == [f"The ceilings are those of Else; the step runs on {here}."]


def test_the_ceilings_of_several_devices_are_given_as_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = devices.load("h100-sxm")
    file, said = tmp_path / "four.json", list[str]()
    file.write_bytes(msgspec.json.encode(one.together(4)))
    monkeypatch.setattr(calibration, "key", lambda kind, threads: {"gpu": one.name})
    assert ceilings.given(str(file), "cuda", None, said.append) == replace(one, ceilings_of=one.name)
    assert said == []


def test_ceilings_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="belong to a cuda device, and the step runs on cpu"):
        ceilings.given("h100-sxm", "cpu", 1, print)
    (tmp_path / "none.json").write_bytes(msgspec.json.encode(replace(roomy(), ceilings={})))
    with pytest.raises(InputError, match="holds no ceilings"):
        ceilings.given(str(tmp_path / "none.json"), "cpu", 1, print)
    (tmp_path / "text.json").write_text("[1, 2]")
    with pytest.raises(InputError, match="holds no device"):
        ceilings.given(str(tmp_path / "text.json"), "cpu", 1, print)
    (tmp_path / "null.json").write_text('{"device": null}')
    with pytest.raises(InputError, match="holds no device"):
        ceilings.given(str(tmp_path / "null.json"), "cpu", 1, print)


# ----------------------------------------------------------------------------------------- how threads wait


class Machine:
    """Free processors at each look, and children that find their cores contended or not, and take so long."""

    def __init__(self, patch: pytest.MonkeyPatch, free: list[float], steps: list[tuple[bool, float]]) -> None:
        self.policies: list[str] = []
        looks, made = iter(free), iter(steps)

        def record(
            request: Request, backend: object, variables: dict[str, str], shared: Path, prepared: object
        ) -> object:
            self.policies.append(variables.get("OMP_WAIT_POLICY", ""))
            contended, seconds = next(made)
            flags = ("contended",) if contended else ()
            return replace(handmade.profile(), wall=Wall(steps=(seconds,)), flags=flags)

        patch.delenv("OMP_WAIT_POLICY", raising=False)
        patch.setattr(contention, "free_processors", lambda: next(looks))
        patch.setattr(session, "record_whole", record)

    def run(self, device: str = "cpu", threads: int = 2) -> float:
        request = Request(backend="torch", workload=Workload(model="mlp", device=device), threads=threads)
        return session._record_rounds(request, None, 1, lambda text: None, Path(), None).wall.steps[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("free", "steps", "policies", "counts"),
    [
        # An idle machine, and cores that are ours: as the framework waits. So where others take 5 % of what two threads
        # want, or a little less than half a core.
        (2.0, [(False, 1.0)], [""], 1.0),
        (1.9, [(False, 1.0)], [""], 1.0),
        (1.51, [(False, 1.0)], [""], 1.0),
        # They turn out to be contended: the faster of both ways.
        (2.0, [(True, 9.0), (True, 2.0)], ["", "PASSIVE"], 2.0),
        (2.0, [(True, 1.0), (True, 2.0)], ["", "PASSIVE"], 1.0),
        # Half a core is missing, or more: asleep from the start, and once.
        (1.49, [(True, 2.0)], ["PASSIVE"], 2.0),
        (0.0, [(True, 2.0)], ["PASSIVE"], 2.0),
        # Nobody contended for the cores meanwhile: the faster of both ways, whatever the machine carries.
        (1.0, [(False, 2.0), (False, 1.0)], ["PASSIVE", ""], 1.0),
        (1.0, [(False, 1.0), (True, 2.0)], ["PASSIVE", ""], 1.0),
    ],
)
def test_threads_sleep_where_the_machine_is_busy(
    free: float,
    steps: list[tuple[bool, float]],
    policies: list[str],
    counts: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch, [free], steps)
    assert machine.run() == counts
    assert machine.policies == policies


def test_one_thread_waits_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks how busy the machine is, and contended cores are no reason to measure twice."""
    machine = Machine(monkeypatch, [], [(True, 1.0)])
    assert machine.run(threads=1) == 1.0
    assert machine.policies == [""]


def test_a_gpu_does_not_wait_for_the_threads_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, [], [(False, 1.0)])  # nobody looks
    assert machine.run("cuda") == 1.0
    assert machine.policies == [""]
