"""Proofs that are run for real, and profiles whose step is not run because it cannot or must not be."""

from __future__ import annotations

from dataclasses import replace as change
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace
from synthetic import step

torch = pytest.importorskip("torch")

from roofline.comparison.account.row import Account, Row
from roofline.comparison.proof.proof import Proof
from roofline.comparison.ranking import rank
from roofline.core.device import Device
from roofline.core.schema import Imported, Profile, Wall
from roofline.core.step import Workload
from roofline.devices import calibration, cpu
from roofline.errors import InputError
from roofline.measuring import experiments, requests
from roofline.measuring.session import to_profile
from roofline.models.torch._step import user_state_kept
from roofline.recording import child
from roofline.recording.backend import load
from roofline.recording.recording import Plan
from roofline.recording.request import Request


@cache
def recorded() -> Profile:
    """A real step of LeNet5 in training, counted once: with the times of one made by hand, so that it can be compared.

    What a proof looks at is how it was asked for and what is recorded of it.
    """
    workload = Workload(model="lenet5", mode="train", size="base", batch=2, device="cpu")
    request = Request(backend="torch", workload=workload, threads=1, steps=3)
    backend, threads = load(request.backend), torch.get_num_threads()
    torch.set_num_threads(1)
    with user_state_kept():
        lenet5, _, _ = child.build(request, backend)
        counted = backend.recorder.record(lenet5, Plan(device="cpu", count_only=True), lambda text: None)
    torch.set_num_threads(threads)
    profile = to_profile(counted, request, Device(name=cpu.detect().name, kind="cpu", ceilings={}), "roofline profile")
    assert (profile.framework, profile.written_in) == ("torch", None)  # as the backend says
    wall = Wall(steps=(1e-3, 1.1e-3, 1.2e-3), first=0.1)
    made = step()
    assert made.profiled is not None
    times = replace(made.profiled, idle=(), idle_causes={})
    ops = tuple(replace(op, own_ns=(1000, 1000, 1000)) for op in profile.ops)
    return replace(profile, wall=wall, profiled=times, ops=ops)


def proofs(profile: Profile, *rows: Row, request: Request | None = None) -> tuple[Proof, ...]:
    """Three turns of two equal runs whose account has these rows."""
    pair = rank([profile, profile], as_given=True).pairs[0]
    pair = change(pair, account=Account(rows=rows))
    asked = request or requests.request_of(profile)
    return experiments.prove(pair, (asked, asked), lambda text: None, most_turns=3)


def named(*names: str) -> Row:
    return Row(kind="only", seconds=1e-3, ci95=(0.5e-3, 1.5e-3), annotations=names)


@pytest.mark.thorough
def test_one_switch_is_turned_and_measured_beside_the_original() -> None:
    rows = named("tensor-by-tensor"), named("page-faults"), named("broadcast-copy")
    fused, kept, without = proofs(recorded(), *rows)
    assert fused.switch == "optimizer not fused -> fused"
    assert fused.changed == {"option optimizer": (None, "fused"), "switch optimizer fused": ("False", "True")}
    assert kept.switch == "freed memory given back -> kept"
    assert kept.changed == {
        "environment MALLOC_MMAP_MAX_": (None, "0"),
        "environment MALLOC_TOP_PAD_": (None, "67108864"),
        "environment MALLOC_TRIM_THRESHOLD_": (None, "1099511627776"),
    }
    assert without.verdict == "no switch"
    for proved in (fused, kept):
        assert proved.verdict != "not proven", proved.text
        assert proved.original is not None
        assert proved.flipped is not None
        assert proved.observed == pytest.approx(proved.original - proved.flipped)
        assert proved.observed_ci95 is not None
        assert proved.rounds == 3
        assert proved.moved
    assert fused.original == kept.original  # they share it


def test_a_file_of_the_user_s_is_run_where_the_caller_asked_for_it(tmp_path: Path) -> None:
    asked = {"file": str(tmp_path / "mine.py"), "function": "make_step"}
    request = Request(backend="torch", workload=Workload(model="mine:make_step"), threads=1, **asked)
    assert requests.validate_request(request) == request
    (proved,) = proofs(recorded(), named("tensor-by-tensor"), request=request)
    assert proved.verdict == "not proven"
    assert "There is no file" in proved.text


def test_a_step_that_cannot_be_turned_so_says_why() -> None:
    (proved,) = proofs(recorded(), named("attention-written-out"))
    assert (proved.verdict, proved.switch) == ("no switch", None)  # LeNet5 records no attention at all
    written = replace(recorded(), switches={**recorded().switches, "attention": "eager"})
    (proved,) = proofs(written, named("attention-written-out"))
    assert proved.verdict == "not proven"
    assert proved.text.endswith("attention eager -> sdpa: not proven. lenet5 has no attention: leave attention= out.")


# ------------------------------------------------------------------------------- what a profile may not make us run


def test_what_is_recorded_is_asked_for_again() -> None:
    profile = replace(
        recorded(),
        command="roofline profile lenet5 --mode train --no-optimizer",
        switches={**recorded().switches, "input": "host"},
        options={"optimizer": "fused"},
    )
    assert requests.request_of(profile) == Request(
        backend="torch", threads=1, steps=3, workload=Workload(
            model="lenet5", mode="train", size="base", batch=2, device="cpu", input="host", optimizer=False,
            options={"optimizer": "fused"},
        ),
    )  # fmt: skip


def test_of_a_counted_step_no_number_of_steps_is_asked_for() -> None:
    counted = replace(recorded(), profiled=None, wall=Wall(steps=(), first=0.1))
    assert requests.request_of(counted).steps is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"imported": Imported()}, "It was imported from a trace"),
        ({"wall": Wall(steps=(1.0,), source="profiled")}, "It was imported from a trace"),
        ({"flags": ("in_process",)}, "inside your own process"),
        ({"flags": ("few-steps", "in-process: Jupyter")}, "inside your own process"),
        ({"model": "deploy:main"}, "a file of your own that was not measured on this machine"),
        ({"model": "/etc/evil.py"}, "a file of your own"),
        ({"model": "../../evil"}, "no model called"),
        ({"backend": "os"}, "no backend called"),
        ({"backend": "../evil"}, "no backend called"),
        ({"options": {"optimizer": "rm -rf"}}, "takes no optimizer=rm -rf"),
        ({"options": {"evil": "1"}}, "takes no evil=1"),
        ({"environment": {"threads": "4096"}}, "It takes 4096 threads"),
        ({"environment": {}}, "an unknown number of threads"),
        ({"mode": "explode"}, "settings are not valid"),
        ({"switches": {"input": "network"}}, "settings are not valid"),
        ({"size": "huge"}, "no size"),
        ({"batch": -1}, "--batch -1"),
        (
            {"command": "roofline profile lenet5 --python /opt/python3"},
            "another Python interpreter: run its step from there",
        ),
        ({"command": "roofline profile lenet5 --python=python3"}, "another Python interpreter"),
        (
            {"device": Device(name="Another CPU", kind="cpu", ceilings={})},
            "It was measured on Another CPU .*: run its step there",
        ),
        ({"device": Device(name="x", kind="rocm", ceilings={})}, "cannot be run from here"),
    ],
)
def test_a_profile_that_is_not_run_again(changes: dict[str, object], message: str) -> None:
    profile = replace(recorded(), **changes)
    with pytest.raises(InputError, match=message):
        requests.request_of(profile)


def test_the_machine_of_several_devices_is_known_by_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "resolve", lambda kind: kind)
    monkeypatch.setattr(calibration, "key", lambda kind, threads: {"gpu": "NVIDIA H100 80GB HBM3"})
    one = Device(name="NVIDIA H100 80GB HBM3", kind="cuda", ceilings={})
    requests._check_machine(replace(recorded(), device=one.together(4)))
    with pytest.raises(InputError, match="It was measured on NVIDIA A100 and this is NVIDIA H100 80GB HBM3"):
        requests._check_machine(replace(recorded(), device=replace(one, name="NVIDIA A100").together(4)))


def test_a_quote_that_does_not_close_is_only_a_text() -> None:
    assert requests.request_of(replace(recorded(), command="roofline profile 'lenet5")).workload.model == "lenet5"


def test_only_the_variable_that_we_set_is_set_again() -> None:
    environment = {"threads": "1", "OMP_WAIT_POLICY": "PASSIVE", "LD_PRELOAD": "/evil.so", "XLA_FLAGS": "--evil"}
    assert requests.variables_of(replace(recorded(), environment=environment)) == {"OMP_WAIT_POLICY": "PASSIVE"}
    odd = {"OMP_WAIT_POLICY": "PASSIVE; rm"}
    assert requests.variables_of(replace(recorded(), environment=odd)) == {}


def test_a_backend_that_is_not_here_has_no_switches() -> None:
    stranger = replace(recorded(), backend="../../evil")
    request = requests.request_of(recorded())
    (proved,) = proofs(stranger, named("op-by-op"), request=request)
    assert proved.verdict == "no switch"
