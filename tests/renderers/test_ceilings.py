"""When ceilings were measured and whether the machine was busy then: in words, in JSON, and in the list of devices."""

from __future__ import annotations

import json

import handmade
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.cli.devices import as_text
from roofline.content.facts.ceilings import provenance, waited
from roofline.core.device import Ceiling, Device
from roofline.renderers import json as as_json
from roofline.renderers import text

IDLE = Ceiling(value=1e11, source="measured: a", spread=0.01, date="2026-01-02", waited=0.01)
BUSY = replace(IDLE, value=1e10, date="2026-03-04", waited=0.4)
SHEET = Ceiling(value=1e12, source="a datasheet", date="2026-02-02")


def device(**ceilings: Ceiling) -> Device:
    return Device(name="x", kind="cpu", ceilings={name.replace("_", ".", 1): c for name, c in ceilings.items()})


def test_the_day_and_the_load_in_words() -> None:
    assert provenance(device(matrix_fp32=IDLE, dram_copy=IDLE)) == (
        "measured 2026-01-02, threads waited for a processor up to 1.0 % of the time"
    )
    assert provenance(device(matrix_fp32=IDLE, dram_copy=BUSY)) == (
        "measured 2026-01-02 to 2026-03-04, 1 of them only while others used the processor "
        "(threads waited up to 40.0 % of the time)"
    )
    still, unseen = replace(IDLE, waited=0.0), replace(IDLE, waited=None)
    assert provenance(device(dram_copy=still)) == "measured 2026-01-02, no thread waited for a processor"
    # Nobody looked how busy the host of a GPU was.
    assert provenance(device(dram_copy=unseen)) == "measured 2026-01-02"
    assert provenance(device(dram_copy=still, matrix_fp32=unseen, vector_fp32=unseen)) == (
        "measured 2026-01-02, no thread waited for a processor (seen for 1 of them)"
    )
    assert provenance(device(dram_copy=replace(IDLE, waited=None), link_h2d=SHEET)) == (
        "1 measured 2026-01-02; 1 from a datasheet"
    )
    assert provenance(device(link_h2d=SHEET)) == "from a datasheet"
    assert provenance(device()) == ""
    # what a trace shows of its launches is no ceiling of the device's
    assert provenance(device(launch_x=Ceiling(value=1e-6, source="the trace", shortest=1e-6))) == ""


def test_the_day_comes_from_a_file_and_is_made_printable() -> None:
    assert provenance(device(dram_copy=replace(IDLE, date="\x1b[31m2026", waited=None))) == "measured 2026"


def test_it_is_said_whose_given_ceilings_are() -> None:
    given = replace(device(dram_copy=IDLE), ceilings_of="Else\x1b[31m where")
    assert (
        provenance(given)
        == "given, those of Else where: measured 2026-01-02, threads waited for a processor up to 1.0 % of the time"
    )
    assert "Ceilings given by --ceilings: those of Else where." in as_text(given).splitlines()
    run = analyze(handmade.profile(device=given, flags=("given-ceilings: Else\x1b[31m where",)))
    shown = " ".join(text.render(run, None, details=True).split())
    assert (
        "given, those of Else where: measured 2026-01-02, threads waited for a processor up to 1.0 % of the time"
        in shown
    )
    assert "their device is in brackets. (Else where)" in shown
    assert json.loads(as_json.render(run, None))["device"]["ceilings_of"] == given.ceilings_of
    assert json.loads(as_json.render(analyze(handmade.profile()), None))["device"]["ceilings_of"] is None


def test_devices_mark_what_was_measured_on_a_busy_machine() -> None:
    lines = as_text(device(matrix_fp32=IDLE, dram_copy=BUSY)).splitlines()
    (product,) = (line for line in lines if line.startswith("matrix.fp32"))
    (copy,) = (line for line in lines if line.startswith("dram.copy"))
    assert product.split()[-2:] == ["2026-01-02", "[1]"]
    assert copy.split()[-3:] == ["2026-03-04", "[1]", "!"]
    assert f"! dram.copy: {waited(BUSY, 'cpu')}." in lines
    assert waited(IDLE, "cpu") == ""


def test_of_a_gpu_it_is_said_that_another_process_was_there() -> None:
    alone, beside = replace(IDLE, waited=0.0), replace(IDLE, waited=0.5)
    gpu = replace(device(matrix_fp32=alone, dram_copy=beside), kind="cuda")
    assert provenance(gpu) == "measured 2026-01-02, 1 of them only while another process was on the GPU"
    free = replace(device(matrix_fp32=alone), kind="cuda")
    assert provenance(free) == "measured 2026-01-02, no other process was seen on the GPU"
    part = replace(device(matrix_fp32=alone, dram_copy=replace(IDLE, waited=None)), kind="cuda")
    assert provenance(part) == "measured 2026-01-02, no other process was seen on the GPU (asked for 1 of them)"
    assert "! dram.copy: measured while another process was on the GPU: may be too low." in as_text(gpu).splitlines()


def test_json_has_the_day_the_load_and_the_flag() -> None:
    run = analyze(replace(handmade.profile(), device=device(dram_copy=replace(BUSY, flag="far"), link_h2d=SHEET)))
    told = json.loads(as_json.render(run, None))["device"]["ceilings"]
    assert {name: told["dram.copy"][name] for name in ("date", "waited", "flag")} == {
        "date": "2026-03-04",
        "waited": 0.4,
        "flag": "far",
    }
    assert (told["link.h2d"]["waited"], told["link.h2d"]["flag"]) == (None, None)
