"""docs/guides/troubleshooting.md has everything that `roofline doctor` may find, in its words."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from roofline import plugins
from roofline.cli import doctor
from roofline.core.device import Ceiling, Device
from roofline.devices import calibration, nvidia

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "troubleshooting.md").read_text(encoding="utf-8")
Run = Callable[..., object]


def shape(template: str) -> str:
    """A sentence with … for what differs."""
    return re.sub(r"\{\w+\}", "…", template)


@pytest.mark.parametrize("name", sorted(doctor.FINDINGS))
def test_every_finding_is_in_the_page_in_its_words(name: str) -> None:
    assert f"\n    {shape(doctor.FINDINGS[name])}\n" in PAGE


def test_the_page_has_no_finding_that_there_is_not() -> None:
    told = re.findall(r"^    (.*)$", PAGE, re.MULTILINE)
    assert set(told) == {"roofline doctor", *map(shape, doctor.FINDINGS.values())}


def test_every_variable_and_every_reason_of_a_clock_has_a_row() -> None:
    rows = set(re.findall(r"`([\w ()]+)`", "".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    assert set(doctor.STEERING) <= rows
    assert set(nvidia._REASONS.values()) <= rows


def test_every_reason_why_there_is_no_gpu_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    class Error(Exception):
        pass

    def fails() -> None:
        raise Error("no such library")

    library = SimpleNamespace(NVMLError=Error, nvmlInit=fails, nvmlShutdown=lambda: None, nvmlDeviceGetCount=lambda: 0)
    told = []
    for module in (None, library, SimpleNamespace(**{**vars(library), "nvmlInit": lambda: None})):
        monkeypatch.setitem(sys.modules, "pynvml", module)
        told.append(str(nvidia.unavailable()))
    assert len(set(told)) == 3
    for sentence in told:
        assert f"| {sentence.replace('no such library', '…')} |" in PAGE


def test_doctor_says_each_of_them(measuring: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with everything in the way."""
    gpu = nvidia.Snapshot(index=0, name="A GPU", driver="1", throttle=("power cap",))
    version_of = plugins.version_of

    monkeypatch.setattr("os.getloadavg", lambda: (99.0, 99.0, 99.0))
    monkeypatch.setattr(plugins, "version_of", lambda name: None if name in ("torch", "jax") else version_of(name))
    monkeypatch.setattr(plugins, "importable", lambda name: False)
    busy = Ceiling(value=1.0, source="measured", waited=0.5)
    device = Device(name="x", kind="cpu", ceilings={"dram.copy": busy})
    kept = calibration.Stored(schema=calibration.SCHEMA, key={}, full=True, device=device)
    monkeypatch.setattr(calibration, "stored", lambda: [(Path("x.json"), kept)])
    monkeypatch.setenv("XLA_FLAGS", "--some")
    with monkeypatch.context() as patch:
        patch.setattr(nvidia, "snapshots", lambda: (gpu,))
        first = measuring("doctor").out
    monkeypatch.setattr(calibration, "stored", list)
    second = measuring("doctor").out + ("" if not nvidia.snapshots() else "none: ")
    for name, template in doctor.FINDINGS.items():
        pattern = ".+".join(map(re.escape, re.split(r"\{\w+\}", template)))
        assert re.search(pattern, first + second), name
