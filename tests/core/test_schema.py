"""The saved profile: what goes in comes out, and whatever else a file holds gets one sentence."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade
import msgspec
import pytest
import randomly
from hypothesis import given, settings
from msgspec.structs import replace

from roofline.core import schema as module
from roofline.core.schema import (
    SCHEMA,
    Api,
    Compilation,
    Counters,
    Memory,
    Profile,
    Wall,
    decode,
    encode,
    load,
    save,
    slug,
)
from roofline.errors import InputError


@settings(max_examples=100)
@given(randomly.profiles())
def test_round_trip(profile: Profile) -> None:
    data = encode(profile)
    assert decode(data) == profile
    assert encode(decode(data)) == data


def test_a_file_round_trips_and_is_readable_by_others(tmp_path: Path) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    assert load(tmp_path / "p.json") == handmade.profile()
    assert json.loads((tmp_path / "p.json").read_bytes())["schema"] == SCHEMA
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "p.json").stat().st_mode & 0o777 == 0o666 & ~umask
    assert [file.name for file in tmp_path.iterdir()] == ["p.json"]


def test_parameters_that_take_no_memory_are_not_known() -> None:
    some = replace(handmade.profile(parameters=10), memory=Memory(parameters=0.0, optimizer=0.0))
    assert decode(encode(some)).memory == Memory(optimizer=0.0)
    # Where there are none, they take none.
    none = replace(some, parameters=0)
    assert decode(encode(none)) == none


def test_what_a_compiler_did_round_trips() -> None:
    ops = list(handmade.OPS)
    ops[4] = replace(ops[4], constituents=(0, 5), places=((0, 0, 0), (4, 0, 3)))
    facts = Compilation(
        compiler="torch.compile",
        mode="max-autotune",
        seconds=21.5,
        graphs=2,
        breaks={"a print": 2},
        recompilations=("dtype mismatch",),
        guards=978,
        eager={"optimizer": (45, 3.1e-3)},
        opaque=1,
        notes=("a note",),
    )
    profile = handmade.profile(ops=tuple(ops), compilation=facts)
    assert decode(encode(profile)) == profile
    # What was not compiled has no such field, and files from before there was one are read.
    assert "compilation" not in json.loads(encode(handmade.profile()))
    old = changed(lambda p: [op.pop() for op in p["ops"]])
    assert decode(old) == handmade.profile()


def test_the_function_that_a_benchmark_timed_round_trips() -> None:
    """Profiles from before there was one have no such field, and neither has one that measured none."""
    api = Api(name="fit", steps=(0.25, 0.5), after=(0.125,), data="tf.data", waiting=0.0625, alone=0.03125)
    profile = handmade.profile(api=api)
    assert decode(encode(profile)) == profile
    assert "api" not in json.loads(encode(handmade.profile()))
    assert decode(encode(handmade.profile())).api is None
    with pytest.raises(InputError, match="'fit' has no times of steps"):
        decode(changed(lambda plain: plain.update(api={"name": "fit", "steps": []})))


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    plain = json.loads(encode(handmade.profile()))
    change(plain)
    return json.dumps(plain).encode()


def _point(index: int, value: object) -> Callable[[dict[str, Any]], object]:
    """Changes one field of the first op; rows are arrays in the order of `Op`."""

    def change(plain: dict[str, Any]) -> None:
        plain["ops"][0][index] = value

    return change


def _fused(parts: list[int], places: list[list[int]]) -> Callable[[dict[str, Any]], object]:
    """Gives the first op constituents and their places."""

    def change(plain: dict[str, Any]) -> None:
        plain["ops"][0][11:] = [parts, places]

    return change


WRONG = {
    "empty": (b"", "cannot be read as a profile"),
    "not JSON": (b"\x89PNG\r\n", "cannot be read as a profile"),
    "not UTF-8": (b'{"schema": 1, "model": "\xff"}', "cannot be read as a profile"),
    "truncated": (encode(handmade.profile())[:-200], "cannot be read as a profile"),
    "other JSON": (b'{"traceEvents": []}', "is not a roofline profile: it has no schema number"),
    "a list": (b"[1, 2]", "cannot be read as a profile"),
    "deep": (b"[" * 100_000, "cannot be read as a profile"),
    "newer": (changed(lambda p: p.update(schema=SCHEMA + 1)), "made by a newer roofline .* upgrade"),
    "schema true": (changed(lambda p: p.update(schema=True)), "no schema number"),
    "schema 0": (changed(lambda p: p.update(schema=0)), "no schema number"),
    "NaN": (encode(handmade.profile()).replace(b"40000000000.0", b"NaN", 1), "cannot be read"),
    "infinite": (encode(handmade.profile()).replace(b"40000000000.0", b"1e999", 1), "cannot be read"),
    "wrong type": (changed(lambda p: p.update(batch="four")), r"Expected `int \| null`, got `str`"),
    "field missing": (changed(lambda p: p.pop("device")), "missing required field `device`"),
    "unknown class": (changed(lambda p: p["signatures"][0].update(op_class="magic")), "Invalid enum value"),
    "null where NaN was": (changed(lambda p: p["wall"]["steps"].append(None)), "Expected `float`, got `null`"),
    "signature index": (changed(_point(0, 99)), "damaged: op 0 points outside"),
    "negative index": (changed(_point(1, -1)), "damaged: op 0 points outside"),
    "phase index": (changed(_point(2, 2)), "damaged: op 0 points outside"),
    "block index": (changed(_point(3, 5)), "damaged: op 0 points outside"),
    "place without a part": (changed(_point(12, [[0, 0, 0]])), "damaged: op 0 points outside"),
    "place of too few parts": (changed(_fused([0, 1], [[0, 0, 0]])), "damaged: op 0 points outside"),
    "scope of a part": (changed(_fused([0], [[6, 0, 0]])), "damaged: op 0 points outside"),
    "phase of a part": (changed(_fused([0], [[0, 2, 0]])), "damaged: op 0 points outside"),
    "block of a part": (changed(_fused([0], [[0, 0, -1]])), "damaged: op 0 points outside"),
    "place of two numbers": (changed(_fused([0], [[0, 0]])), "Expected `array` of length 3"),
    "compilation without a compiler": (
        changed(lambda p: p.update(compilation={})),
        "missing required field `compiler`",
    ),
    "own times": (changed(_point(4, [1, 2])), "damaged"),
    "buffers": (changed(_point(8, [0, 1])), "damaged: the buffers of op 0"),
    "no steps": (changed(lambda p: p["wall"].update(steps=[])), "damaged: it has no times of steps"),
    "processes of no time": (
        changed(lambda p: p["wall"].update(processes=[[0.01, 0.0]])),
        "damaged: it has no times of steps",
    ),
    "profiled steps of no time": (
        changed(lambda p: p["profiled"].update(corrected=[0, 0, 0])),
        "damaged: its profiled",
    ),
    "idle times missing": (changed(lambda p: p["profiled"].update(idle=[0.1])), "damaged: its profiled"),
    "profiled steps missing": (changed(lambda p: p["profiled"].update(walls=[])), "damaged: its profiled"),
    "a ceiling of zero": (
        changed(lambda p: p["device"]["ceilings"]["dram.copy"].update(value=0)),
        "damaged: the ceiling 'dram.copy'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(case: str, tmp_path: Path) -> None:
    data, why = WRONG[case]
    file = tmp_path / "p.json"
    file.write_bytes(data)
    with pytest.raises(InputError, match=why) as caught:
        load(file)
    message = str(caught.value)
    assert message.startswith(str(file))
    assert message.endswith(".")
    assert "\n" not in message


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"Cannot read .*: No such file"):
        load(tmp_path / "absent.json")
    with pytest.raises(InputError, match=r"Cannot read .*: Is a directory"):
        load(tmp_path)
    monkeypatch.setattr(module, "MAX_BYTES", 1 << 20)
    (tmp_path / "large.json").write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        load(tmp_path / "large.json")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_refused_before_anything_is_written(value: float, tmp_path: Path) -> None:
    profile = handmade.profile(wall=Wall(steps=(0.1, value)))
    with pytest.raises(InputError, match=r"at \$\.wall\.steps\[1\]"):
        save(profile, tmp_path / "p.json")
    first, *others = handmade.profile().ops
    with pytest.raises(InputError, match=rf"overlap_ns of op 0 is {value}"):
        save(handmade.profile(ops=(replace(first, overlap_ns=value), *others)), tmp_path / "p.json")
    assert not list(tmp_path.iterdir())


def test_older_files_are_migrated_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    # A schema 2 to come, in which `model` was called `network` before: today's files must still be read.
    old = changed(lambda p: p.update(network=p.pop("model")))
    monkeypatch.setattr(module, "SCHEMA", 2)
    monkeypatch.setitem(module.MIGRATIONS, 1, lambda p: p | {"model": p.pop("network"), "schema": 2})
    assert decode(old) == replace(handmade.profile(), schema=2)


def test_every_older_schema_has_its_step() -> None:
    assert sorted(module.MIGRATIONS) == list(range(1, SCHEMA))


@pytest.mark.parametrize("flag", ["in-process", "in_process", "in-process: Jupyter", " in_process : threads: 2"])
def test_the_name_of_a_flag(flag: str) -> None:
    assert slug(flag) == "in-process"


def test_whether_ops_have_times() -> None:
    assert handmade.profile().has_times
    assert not handmade.profile(profiled=None).has_times
    assert not handmade.without_steps().has_times


def test_a_counted_profile_has_a_first_step_and_no_plain_one() -> None:
    wall = Wall(steps=(0.125,), first=0.125, single=(0.25,), processes=((0.5,),))
    older = handmade.profile(profiled=None, wall=wall)  # as it was written once
    assert decode(encode(older)).wall == Wall(steps=(), first=0.125)
    saved = handmade.profile(profiled=None, wall=Wall(steps=(), first=0.125))
    assert decode(encode(saved)) == saved
    assert decode(encode(handmade.profile(wall=wall))).wall == wall


COUNTERS = Counters(
    tool="Nsight Compute", file="ncu.csv", kernels=9, unjoined=1, joined=0.99, busy=0.98,
    read=(None, 1e6, *[0.0] * 6), written=(None, 2e6, *[0.0] * 6), through_cache=(None, 3.5e6, *[0.0] * 6),
)  # fmt: skip


def test_counters_round_trip() -> None:
    profile = handmade.profile(counters=COUNTERS)
    assert decode(encode(profile)).counters == COUNTERS
    assert b"counters" not in encode(handmade.profile())


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("read", (1.0,)),
        ("written", (1.0, *COUNTERS.written[1:])),
        ("through_cache", (1.0,)),
        ("read", (None, -1.0, *COUNTERS.read[2:])),
        ("read", (None, 1e40, *COUNTERS.read[2:])),
        ("joined", 1.5),
        ("unjoined", 10),
        ("kernels", -1),
    ],
)
def test_damaged_counters_are_refused(field: str, changed: object) -> None:
    profile = handmade.profile(counters=replace(COUNTERS, **{field: changed}))
    with pytest.raises(InputError, match="counters"):
        decode(msgspec.json.encode(profile))
