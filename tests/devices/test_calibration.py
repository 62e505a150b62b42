"""Calibrations: the key, the cache, the comparison with datasheets, and one short measuring."""

from __future__ import annotations

import os

import msgspec
import pytest

from roofline import devices
from roofline.core.device import Cache, Ceiling, Device
from roofline.devices import calibration
from roofline.errors import InputError

ONLY = ("matrix.fp32", "dram.copy")


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
    result = calibration.judged(measured, known)
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
    result = calibration.judged(device(matrix_bf16=value), devices.load("h100-sxm"))
    assert (result.ceilings["matrix.bf16"].flag is not None) == flagged
    assert result.ceilings["matrix.bf16"].value == value


def test_an_unknown_device_stays_as_measured():
    measured = device(matrix_bf16=1e12)
    assert calibration.judged(measured, None) is measured


def test_a_measured_cache_is_kept():
    cache = Cache(level="llc", size=30e6, source="measured")
    measured = msgspec.structs.replace(device(matrix_bf16=900e12), caches=(cache,))
    assert calibration.judged(measured, devices.load("h100-sxm")).caches == (cache,)


def test_threads_that_are_not_there_are_refused(cache):
    with pytest.raises(InputError, match="--threads must be between 1 and"):
        calibration.calibrate("cpu", threads=100_000)


@pytest.mark.slow
@pytest.mark.xdist_group("timing")
def test_a_short_calibration_and_its_cache(cache, monkeypatch):
    pytest.importorskip("torch")
    # On a busy machine it would rightly be measured again, which is another test's.
    monkeypatch.setattr(calibration, "contended", lambda device: False)
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
    monkeypatch.setattr(calibration, "contended", lambda device: False)
    only, told = ("launch.torch-eager",), []
    path = calibration.location(calibration.key("cpu", 1, only))
    path.write_text('{"schema": 1, "key": {', encoding="utf-8")
    assert calibration.stored() == []
    measured = calibration.calibrate("cpu", 1, progress=lambda *what: told.append(what), only=only)
    assert "damaged" in told[0][0]
    assert set(measured.ceilings) == set(only)
    assert [kept.device for _, kept in calibration.stored()] == [measured]


def test_an_unknown_ceiling_is_named_with_the_alternatives(cache):
    pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"Nothing to measure is called matrix\.fp7; there are: matrix\.fp64"):
        calibration.calibrate("cpu", 1, only=("matrix.fp7",))


def test_a_file_of_another_schema_is_not_used(cache):
    identity = calibration.key("cpu", 1, ONLY)
    kept = calibration.Stored(schema=99, key=identity, full=True, device=device(matrix_fp32=1e9))
    calibration.location(identity).write_bytes(msgspec.json.encode(kept))
    assert calibration.stored() == []
