"""Calibrations: the key, the cache, the comparison with datasheets, and one short measuring."""

from __future__ import annotations

import os
import sys
from datetime import date
from types import SimpleNamespace

import msgspec
import pytest

from roofline import devices
from roofline.core.device import Cache, Ceiling, Device
from roofline.devices import calibration, contention, measure, nvidia
from roofline.errors import InputError, MeasurementError

ONLY = ("function.sqrt", "function.sin")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path))
    return tmp_path


def test_key_changes_with_what_the_numbers_depend_on():
    one, two = calibration.key("cpu", 1), calibration.key("cpu", 2)
    assert one != two
    assert calibration.location(one) != calibration.location(two)
    assert calibration.location(one) == calibration.location(dict(reversed(one.items())))
    assert calibration.key("cpu", 1, ("dram.*",)) != one
    assert {"cpu", "affinity", "threads", "torch", "numpy"} <= one.keys()


def test_where_calibrations_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "own"))
    assert calibration.folder() == tmp_path / "own"
    monkeypatch.delenv("ROOFLINE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert calibration.folder() == tmp_path / "xdg" / "roofline"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert calibration.folder().parts[-2:] == (".cache", "roofline")


def device(**values):
    return Device(
        name="x",
        kind="cuda",
        ceilings={name.replace("_", "."): Ceiling(value=value, source="measured") for name, value in values.items()},
    )


def test_measured_beside_the_datasheet():
    known = devices.load("h100-sxm")
    # 700 / 989.5 = 0.71 of the datasheet: fine. 2.9 of 3.35: fine. 40 of 67: 0.597, fine.
    measured = device(matrix_bf16=700e12, dram_copy=2.9e12, vector_fp32=40e12)
    result = calibration.compare_with_sheet(measured, known)
    assert result.ceilings["matrix.bf16"].value == 700e12
    assert all(ceiling.flag is None for ceiling in result.ceilings.values())
    # what was not measured is the datasheet's, with its source
    assert result.ceilings["matrix.fp8"] == known.ceilings["matrix.fp8"]
    assert result.caches == known.caches


@pytest.mark.parametrize(
    ("value", "flagged"),
    # of 989.5 TFLOP/s: 0.5 is 494.75, 1.03 is 1019.2
    [(494e12, True), (495e12, False), (1019e12, False), (1020e12, True)],
)
def test_a_measured_value_far_from_the_datasheet_is_flagged(value, flagged):
    result = calibration.compare_with_sheet(device(matrix_bf16=value), devices.load("h100-sxm"))
    assert (result.ceilings["matrix.bf16"].flag is not None) == flagged
    assert result.ceilings["matrix.bf16"].value == value


def test_an_unknown_device_stays_as_measured():
    measured = device(matrix_bf16=1e12)
    assert calibration.compare_with_sheet(measured, None) is measured


def test_a_measured_cache_is_kept():
    cache = Cache(level="llc", size=30e6, source="measured")
    measured = msgspec.structs.replace(device(matrix_bf16=900e12), caches=(cache,))
    assert calibration.compare_with_sheet(measured, devices.load("h100-sxm")).caches == (cache,)


# ------------------------------------------------------------------------------------------- kept, and merged


def measured(*, waited=0.0, caches=(), date="2026-01-01", **values):
    """A device as a calibration measures it, its threads waiting that share of the time."""
    ceilings = {
        name.replace("_", ".", 1): Ceiling(value=value, source="measured", spread=0.01, date=date, waited=waited)
        for name, value in values.items()
    }
    return Device(name="x", kind="cpu", ceilings=ceilings, caches=caches)


def kept_of(device, *boots, full=False):
    return calibration.Stored(schema=calibration.SCHEMA, key={}, full=full, device=device, boots=boots)


def test_two_calibrations_since_the_machine_was_started_are_one():
    # Memory 10 GB/s, then 18: the best of both, 1 - 10/18 apart; the product, 100 and then 90, keeps its first date.
    first = kept_of(measured(dram_copy=10e9, matrix_fp32=100e9), "a")
    again = kept_of(measured(dram_copy=18e9, matrix_fp32=90e9, date="2026-02-02"))
    result = calibration.merge(first, again, "a").device.ceilings
    assert result["dram.copy"].value == 18e9
    assert result["dram.copy"].drift == pytest.approx(1 - 10 / 18)
    assert result["dram.copy"].date == "2026-02-02"
    assert (result["matrix.fp32"].value, result["matrix.fp32"].date) == (100e9, "2026-01-01")


def test_what_a_busy_machine_gave_raises_and_lowers_nothing():
    first = kept_of(measured(dram_copy=10e9, dram_read=20e9), "a")
    busy = kept_of(measured(waited=0.3, dram_copy=4e9, dram_read=21e9))
    for here in ("a", "b"):  # in the same start of the machine as behind the next one
        result = calibration.merge(first, busy, here).device
        assert result.rate("dram.copy") == 10e9
        assert not result.ceilings["dram.copy"].drift
        assert result.rate("dram.read") == 21e9
        assert result.contended == ()
    # The first one was the busy one: what an idle machine gives is a ceiling, though it is lower, and no drift.
    result = calibration.merge(kept_of(measured(waited=0.3, dram_copy=4e9), "a"), first, "a").device
    assert result.rate("dram.copy") == 10e9
    assert not result.ceilings["dram.copy"].drift
    assert result.contended == ()


def test_a_machine_that_was_started_again_may_be_slower():
    first = kept_of(measured(dram_copy=18e9, dram_read=20e9), "a")
    again = kept_of(measured(dram_copy=10e9))
    result = calibration.merge(first, again, "b")
    assert result.device.rate("dram.copy") == 10e9
    assert result.device.rate("dram.read") == 20e9  # which was not measured again
    assert result.boots == ("a", "b")


def test_figures_of_a_datasheet_are_not_merged_with_what_was_measured():
    filled = calibration.compare_with_sheet(device(matrix_bf16=700e12), devices.load("h100-sxm"))
    again = kept_of(msgspec.structs.replace(filled, ceilings=measured(matrix_fp8=1500e12).ceilings, caches=()))
    result = calibration.merge(kept_of(filled, "a"), again, "a").device
    assert result.ceilings["matrix.fp8"].value == 1500e12  # of 1979 by the datasheet
    assert not result.ceilings["matrix.fp8"].drift


def test_the_usable_size_is_the_largest_that_an_idle_machine_gave():
    def llc(size, waited=0.0, boots=("a",)):
        cache = Cache(level="llc", size=size, source="measured with reads and writes")
        return kept_of(measured(waited=waited, caches=(cache,), cache_llc=1e11), *boots)

    def size(first, again, here="a"):
        (cache,) = calibration.merge(first, again, here).device.caches
        return cache.size

    assert size(llc(12e6), llc(16e6)) == size(llc(16e6), llc(12e6)) == 16e6
    assert size(llc(12e6), llc(16e6, waited=0.3)) == 12e6
    assert size(llc(16e6, waited=0.3), llc(12e6)) == 12e6
    assert size(llc(12e6, waited=0.3), llc(16e6, waited=0.3)) == 16e6
    assert size(llc(16e6), llc(12e6), here="b") == 12e6
    assert size(llc(16e6), kept_of(measured(dram_copy=1e10))) == 16e6


@pytest.fixture
def probes(cache, monkeypatch):
    """Calibrations that are asked for, and what they give: the ceilings of `probes.gives`, if they are wanted."""

    made = SimpleNamespace(asked=[], gives=measured(dram_copy=10e9, matrix_fp32=100e9), idle=False)

    def measure(kind, threads, short, only, tell):
        made.asked.append(only)
        if isinstance(made.gives, Exception):
            raise made.gives
        wanted = {name: c for name, c in made.gives.ceilings.items() if not only or name in only}
        return msgspec.structs.replace(made.gives, ceilings=wanted)

    monkeypatch.setattr(calibration, "_measure", measure)
    monkeypatch.setattr(calibration, "boot", lambda: "a")
    monkeypatch.setattr(contention, "is_idle", lambda threads: made.idle)
    return made


ALL = ()


def test_what_was_measured_is_kept_on_a_busy_machine_too(probes):
    probes.gives = measured(waited=0.4, dram_copy=10e9, matrix_fp32=100e9)
    first = calibration.calibrate("cpu", 1)
    assert first.contended == ("dram.copy", "matrix.fp32")
    assert calibration.calibrate("cpu", 1) == first
    assert probes.asked == [ALL]


def test_what_was_measured_on_a_busy_machine_is_measured_again_once_it_is_idle(probes):
    quiet = measured(dram_copy=10e9)
    loud = measured(waited=0.4, matrix_fp32=50e9)
    probes.gives = msgspec.structs.replace(quiet, ceilings={**quiet.ceilings, **loud.ceilings})
    calibration.calibrate("cpu", 1)
    probes.idle, probes.gives = True, measured(dram_copy=1e9, matrix_fp32=100e9, date="2026-02-02")
    result = calibration.calibrate("cpu", 1)
    assert probes.asked == [ALL, ("matrix.fp32",)]
    assert (result.rate("dram.copy"), result.rate("matrix.fp32")) == (10e9, 100e9)
    assert calibration.calibrate("cpu", 1) == result
    assert len(probes.asked) == 2


def test_all_is_measured_again_where_the_machine_was_started_since_or_it_is_asked_for(probes, monkeypatch):
    calibration.calibrate("cpu", 1)
    monkeypatch.setattr(calibration, "boot", lambda: "b")
    told = []
    calibration.calibrate("cpu", 1, progress=lambda *what: told.append(what))
    assert "was started since" in told[0][0]
    assert told[0][2] == 0
    calibration.calibrate("cpu", 1)
    assert probes.asked == [ALL, ALL]
    calibration.calibrate("cpu", 1, remeasure=True)
    calibration.calibrate("cpu", 1, short=False)
    calibration.calibrate("cpu", 1)  # a full one serves who asks for a short one
    assert probes.asked == [ALL] * 4


def test_where_no_start_of_the_machine_is_known_ceilings_hold_for_a_day(probes, monkeypatch):
    class Day:
        @staticmethod
        def today():
            return today

    today = date(2026, 1, 1)
    monkeypatch.setattr(calibration, "boot", lambda: None)
    monkeypatch.setattr(calibration, "Date", Day)
    calibration.calibrate("cpu", 1)
    assert calibration.calibrate("cpu", 1).rate("dram.copy") == 10e9
    assert probes.asked == [ALL]
    today, told, probes.gives = date(2026, 1, 2), [], measured(dram_copy=9e9, matrix_fp32=100e9)
    assert calibration.calibrate("cpu", 1, progress=lambda *what: told.append(what[0])).rate("dram.copy") == 9e9
    assert told == ["The ceilings were measured on another day: measuring again."]
    calibration.calibrate("cpu", 1)
    assert probes.asked == [ALL, ALL]
    # What was kept before there were days in it is of an unknown one.
    ((path, kept),) = calibration.stored()
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(kept, boots=())))
    calibration.calibrate("cpu", 1)
    assert probes.asked == [ALL, ALL, ALL]


def test_what_was_measured_beside_another_process_on_the_gpu_is_measured_again_once_it_is_free(probes, monkeypatch):
    free, told = False, []
    monkeypatch.setattr(calibration, "resolve", lambda device: device)
    monkeypatch.setattr(nvidia, "is_free", lambda index: free)
    probes.idle, probes.gives = True, measured(waited=0.5, dram_copy=10e9)  # the processor's load says nothing
    calibration.calibrate("cuda", 1)
    calibration.calibrate("cuda", 1)
    assert probes.asked == [ALL]
    free, probes.gives = True, measured(dram_copy=11e9)
    result = calibration.calibrate("cuda", 1, progress=lambda *what: told.append(what[0]))
    assert probes.asked == [ALL, ("dram.copy",)]
    assert told == ["The GPU is idle now: measuring again the ceilings that were measured while it was busy."]
    assert (result.rate("dram.copy"), result.contended) == (11e9, ())


def test_what_is_kept_serves_where_measuring_it_again_fails(probes, monkeypatch):
    first = calibration.calibrate("cpu", 1)
    monkeypatch.setattr(calibration, "boot", lambda: "b")
    probes.gives = MeasurementError("It took too long.")
    assert calibration.calibrate("cpu", 1) == first
    with pytest.raises(MeasurementError, match="too long"):
        calibration.calibrate("cpu", 1, remeasure=True)


def test_a_profile_raises_what_is_kept(probes):
    calibration.contribute("cpu", 1, measured(dram_copy=12e9).ceilings)
    assert calibration.stored() == []  # nothing is kept to be raised
    calibration.calibrate("cpu", 1)
    seen = measured(waited=0.4, dram_copy=12.5e9, matrix_fp32=500e9, dram_read=1e9, date="2026-02-02")
    calibration.contribute("cpu", 1, seen.ceilings)
    calibration.contribute("cpu", 1, measured(dram_copy=11e9).ceilings)
    result = calibration.calibrate("cpu", 1)
    assert probes.asked == [ALL]
    assert result.ceilings["dram.copy"] == Ceiling(
        value=12.5e9, source="measured", spread=0.01, drift=pytest.approx(0.2), date="2026-02-02", waited=0.0
    )
    assert result.ceilings["matrix.fp32"] == measured(matrix_fp32=100e9).ceilings["matrix.fp32"]
    assert "dram.read" not in result.ceilings


def test_what_no_profile_may_hold_is_not_taken_from_the_cache(probes):
    """Older versions noted shares of waiting below 0, of which the least was kept."""
    calibration.calibrate("cpu", 1)
    ((path, kept),) = calibration.stored()
    odd = msgspec.structs.replace(kept, device=measured(waited=-2.6, dram_copy=10e9, matrix_fp32=100e9))
    path.write_bytes(msgspec.json.encode(odd))
    told = []
    result = calibration.calibrate("cpu", 1, progress=lambda *what: told.append(what[0]))
    assert told == [f"The calibration in {path} holds numbers that nothing measures; measuring again."]
    assert probes.asked == [ALL, ALL]
    assert {ceiling.waited for ceiling in result.ceilings.values()} == {0.0}


def test_this_start_of_the_machine_has_a_name_on_linux():
    assert calibration.boot() == calibration.boot()
    assert (calibration.boot() is not None) == calibration._BOOT.exists()


def test_threads_that_are_not_there_are_refused(cache):
    with pytest.raises(InputError, match="--threads must be between 1 and"):
        calibration.calibrate("cpu", threads=100_000)


@pytest.mark.slow
@pytest.mark.xdist_group("timing")
def test_a_short_calibration_and_its_cache(cache, monkeypatch):
    pytest.importorskip("torch")
    # What was measured on a busy machine would rightly be measured again once it is idle, which is another test's.
    monkeypatch.setattr(contention, "is_idle", lambda threads: False)
    told = []
    measured = calibration.calibrate("cpu", 1, progress=lambda *what: told.append(what), only=ONLY)

    assert set(measured.ceilings) == set(ONLY)
    for ceiling in measured.ceilings.values():
        assert ceiling.value > 0
        assert 0 <= ceiling.spread < 1
        assert ceiling.source.startswith("measured: ")
        assert ceiling.date == measured.conditions["date"]
    assert measured.kind == "cpu"
    assert measured.conditions["threads"] == "1"
    assert "involuntary switches" in measured.conditions
    done = [count for _, count, of in told if of]
    assert done == sorted(done)
    assert told[-1][1] == told[-1][2]

    # one file, and it holds no more than the key, the device and how it was measured
    identity = calibration.key("cpu", 1, ONLY)
    path = calibration.location(identity)
    assert os.listdir(cache) == [path.name]
    assert [(p, kept.device) for p, kept in calibration.stored()] == [(path, measured)]
    assert devices.load(str(path)) == measured

    # the second time nothing is measured
    told.clear()
    assert calibration.calibrate("cpu", 1, progress=lambda *what: told.append(what), only=ONLY) == measured
    assert told == []


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.xdist_group("timing")
def test_a_damaged_calibration_is_told_and_replaced(cache, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(contention, "is_idle", lambda threads: False)
    only, told = ("launch.torch-eager",), []
    path = calibration.location(calibration.key("cpu", 1, only))
    path.write_text('{"schema": 1, "key": {', encoding="utf-8")
    assert calibration.stored() == []
    measured = calibration.calibrate("cpu", 1, progress=lambda *what: told.append(what), only=only)
    assert "damaged" in told[0][0]
    assert set(measured.ceilings) == set(only)
    assert [kept.device for _, kept in calibration.stored()] == [measured]


def test_an_unknown_ceiling_is_named_with_the_alternatives():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    with pytest.raises(InputError, match=r"Nothing to measure is called matrix\.fp7; there are: matrix\.fp64"):
        measure.measure("cpu", before, only=("matrix.fp7",))


def test_the_error_of_the_process_that_measures_is_that_of_the_command(cache, tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text("""#!/bin/sh\necho '{"error": "Nothing is called that.", "code": 2}'\n""")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(InputError, match=r"Nothing is called that\."):
        calibration.calibrate("cpu", 1, only=("matrix.fp7",))
    assert calibration.stored() == []


def test_a_file_of_another_schema_is_not_used(cache):
    identity = calibration.key("cpu", 1, ONLY)
    kept = calibration.Stored(schema=99, key=identity, full=True, device=device(matrix_fp32=1e9))
    calibration.location(identity).write_bytes(msgspec.json.encode(kept))
    assert calibration.stored() == []
