"""Numbers that nothing measures: each is refused by its name, wherever it stands."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline import devices
from roofline.core import validate
from roofline.core.schema import Wall, decode, encode
from roofline.core.validate import measured
from roofline.devices.recognise import recognise
from roofline.errors import InputError
from roofline.importing.ranks import rank_of
from roofline.xla.hlo import loops

Put = Callable[[Any, Any], None]


def at(*path: Any) -> Put:
    """What writes a value to a place in a profile."""

    def put(plain: Any, value: Any) -> None:
        for key in path[:-1]:
            plain = plain[key]
        plain[path[-1]] = value

    return put


#: Where a number may stand, and what an error calls it there.
def turns(**changes: object) -> dict[str, object]:
    """One turn with other processes."""
    return {"token": "1", "medians": [0.1], "waited": [None], "disturbed": [False]} | changes


PLACES: dict[str, Put] = {
    "wall steps": at("wall", "steps", 1),
    "wall first": at("wall", "first"),
    "wall processes": lambda plain, value: at("wall", "processes")(plain, [[value]]),
    "wall turns": lambda plain, value: at("wall", "turns")(plain, [turns(medians=[value])]),
    "waited in turns": lambda plain, value: at("wall", "turns")(plain, [turns(waited=[value])]),
    "profiled walls": at("profiled", "walls", 0),
    "profiled corrected": at("profiled", "corrected", 1),
    "profiled idle": at("profiled", "idle", 0),
    "profiled event_cost": at("profiled", "event_cost"),
    "idle time by 'data input'": at("profiled", "idle_causes", "data input"),
    "profiled joined": at("profiled", "joined"),
    "api steps": lambda plain, value: at("api")(plain, {"name": "fit", "steps": [value]}),
    "api after": lambda plain, value: at("api")(plain, {"name": "fit", "steps": [0.1], "after": [value]}),
    "api waiting": lambda plain, value: at("api")(plain, {"name": "fit", "steps": [0.1], "waiting": value}),
    "api alone": lambda plain, value: at("api")(plain, {"name": "fit", "steps": [0.1], "alone": value}),
    "memory peak": at("memory", "peak"),
    "conditions 'clock'": lambda plain, value: at("conditions")(plain, {"clock": value}),
    "signature 1: flops": at("signatures", 1, "cost", "flops"),
    "signature 1: bytes_read": at("signatures", 1, "cost", "bytes_read"),
    "signature 3: function 'exp'": at("signatures", 3, "cost", "functions", "exp"),
    "signature 1: reads": at("signatures", 1, "reads", 0),
    "the ceiling 'matrix.fp32'": at("device", "ceilings", "matrix.fp32", "value"),
    "the most of the ceiling 'launch.torch-eager'": at("device", "ceilings", "launch.torch-eager", "high"),
    "the ceiling 'matrix.fp32': sustained": at("device", "ceilings", "matrix.fp32", "sustained"),
    "the size of the cache 'llc'": at("device", "caches", 0, "size"),
    "the memory of the device": at("device", "memory"),
}


@pytest.mark.parametrize(("name", "put"), [("devices", at("devices")), ("the number of", at("device", "number"))])
def test_more_devices_than_a_float_holds(name: str, put: Put) -> None:
    plain = json.loads(encode(handmade.profile()))
    put(plain, 10**400)
    with pytest.raises(InputError, match=f"damaged: {name}.* is an integer of some 401 digits, which nothing measures"):
        decode(json.dumps(plain).encode())


@pytest.mark.parametrize(("steps", "seconds"), [(0, 0.1), (2, 0.0), (2, -0.1), (2, 1e308)])
def test_steps_of_an_engine_have_times(steps: int, seconds: float) -> None:
    plain = json.loads(encode(handmade.profile()))
    engine = {"phase": "decode", "steps": steps, "seconds": seconds, "sequences": 4, "tokens": 4}
    imported = {"files": ["t.json"], "span": 0.1, "busy": 0.1, "idle": 0.0, "steps": 2, "marks": "x", "rule": "y"}
    plain["imported"] = {**imported, "engine": [engine]}
    with pytest.raises(InputError, match=r"damaged: steps of (its|the) engine"):
        decode(json.dumps(plain).encode())


@pytest.mark.parametrize("value", [1e308, 5e-324, -1.0])
@pytest.mark.parametrize("name", PLACES)
def test_what_nothing_measures_is_refused_by_name(name: str, value: float) -> None:
    plain = json.loads(encode(handmade.profile()))
    PLACES[name](plain, value)
    with pytest.raises(InputError) as raised:
        decode(json.dumps(plain).encode(), "p.json")
    told = str(raised.value)
    assert told.startswith("p.json is damaged: ")
    if not (
        value < 0 and name in ("wall steps", "wall processes", "profiled corrected")
    ):  # what is divided by has a sentence of its own
        assert name in told


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        (4, [-1, 1, 1], "own_ns of op 1 is -1"),
        (4, [1, 2**62, 1], f"own_ns of op 1 is {2**62}"),
        (4, [1, 2**70, 1], f"own_ns of op 1 is {2**70}"),
        (5, -(2**40), f"overlap_ns of op 1 is {-(2**40)}"),
        (6, -(2**63), f"start_ns of op 1 is {2**63}"),
        (7, -1, "launches of op 1 is -1"),
        (7, 2**62, f"launches of op 1 is {2**62}"),
        (10, [[0, -5]], "time of a kernel of op 1 is -5"),
        (18, 1, "op 1 points outside the profile's tables"),
        (18, -2, "op 1 points outside the profile's tables"),
    ],
)
def test_rows_of_ops_too(field: int, value: object, name: str) -> None:
    plain = json.loads(encode(handmade.profile(kernels=("k",), lines=("model.py:1",))))
    row = plain["ops"][1]
    row.extend([[]] * (field + 1 - len(row)))
    row[field] = value
    with pytest.raises(InputError) as raised:
        decode(json.dumps(plain).encode(), "p.json")
    assert name in str(raised.value) or "cannot be read as a profile" in str(raised.value)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        (13, [-5, 0], "host_ns of op 1 is -5"),
        (13, [0, 10**16 + 1], f"host_ns of op 1 is {10**16 + 1}"),
        (14, 2**40 + 1, f"host_reads of op 1 is {2**40 + 1}"),
        (15, -1, "host_calls of op 1 is -1"),
        (16, 2**70, f"python_ns of op 1 is {2**70}"),
        (18, -1, "line of op 1 is -1"),
    ],
)
def test_what_the_host_did_before_an_op_is_bounded_by_its_type(field: int, value: Any, name: str) -> None:
    """What is read is looked at while it is decoded, and what is made in Python before it is written."""
    profile = handmade.profile()
    plain = json.loads(encode(profile))
    filled = [*plain["ops"][1], [], [], []][:13]
    row = [*filled, [1, 1], 0, 0, 0, 1, None]
    plain["ops"][1] = row
    decode(json.dumps(plain).encode())
    row[field] = value
    with pytest.raises(InputError, match=rf"Expected `int` [<>]= .* at `\$\.ops\[1\]\[{field}\]"):
        decode(json.dumps(plain).encode(), "p.json")
    made = replace(profile.ops[1], **{name.partition(" ")[0]: tuple(value) if isinstance(value, list) else value})
    with pytest.raises(InputError, match=f"The profile is damaged: {name};"):
        encode(replace(profile, ops=(profile.ops[0], made, *profile.ops[2:])))


def test_an_op_may_start_before_its_step() -> None:
    """As one does whose kernel ran before the step's mark in a trace."""
    plain = json.loads(encode(handmade.profile()))
    plain["ops"][0][6] = -56_566_000
    assert decode(json.dumps(plain).encode()).ops[0].start_ns == -56_566_000


@pytest.mark.parametrize("spread", [1.0, -0.1, 1e308])
def test_a_ceiling_that_may_be_nothing(spread: float) -> None:
    plain = json.loads(encode(handmade.profile()))
    at("device", "ceilings", "dram.copy", "spread")(plain, spread)
    with pytest.raises(InputError, match=r"the spread of the ceiling 'dram\.copy' is "):
        decode(json.dumps(plain).encode())


@pytest.mark.parametrize("value", ["inf", "nan", "-1.0", "0.0", "1e308", "5e-324"])
def test_devices_of_a_file(tmp_path: Path, value: str) -> None:
    file = tmp_path / "d.toml"
    file.write_text(
        'name = "D"\nkind = "cuda"\ndate = "2026-01-01"\nmatch = ["D"]\nmemory_range = [0, 1e12]\n[sources]\n'
        f'[matrix]\nfp32 = {{ value = {value}, source = "s" }}\n'
    )
    with pytest.raises(InputError, match=r"d\.toml is damaged: the ceiling 'matrix\.fp32'"):
        devices.load(str(file))


@pytest.mark.parametrize("number", [2**62 + 1, -(2**70)])
def test_buffers_have_numbers_of_64_bits(number: int) -> None:
    plain = json.loads(encode(handmade.profile()))
    plain["ops"][1][8] = [number] * len(plain["ops"][1][8])
    with pytest.raises(InputError, match=f"buffers of op 1 is {abs(number)}"):
        decode(json.dumps(plain).encode(), "p.json")
    # Where nobody asks for buffers, they may be anything.
    plain["imported"] = {}
    assert decode(json.dumps(plain).encode()).ops[1].reads[0] == number


@pytest.mark.parametrize(("address", "cause"), [(-1, ">= 0"), (2**53 + 1, "<= "), (2**70, "<= "), (0.5, "int")])
def test_addresses_are_those_of_a_memory(address: float, cause: str) -> None:
    profile = handmade.profile()
    plain = json.loads(encode(profile))
    plain["addresses"] = [None, 2**53]
    assert decode(json.dumps(plain).encode()).addresses == (None, 2**53)
    plain["addresses"][1] = address
    with pytest.raises(InputError, match=cause):
        decode(json.dumps(plain).encode(), "p.json")
    if isinstance(address, int):
        with pytest.raises(InputError, match=f"the address of buffer 1 is {address};"):
            encode(replace(profile, addresses=(None, address)))


def test_addresses_may_be_of_buffers_that_no_op_touches() -> None:
    """As those of a profile that lost ops since it was recorded."""
    profile = replace(handmade.profile(), addresses=(0, None, 64), ops=handmade.profile().ops[:1])
    assert decode(encode(profile)).addresses == (0, None, 64)


def test_ops_have_a_time_in_each_step() -> None:
    """Also of a profile that says nothing of its profiled steps."""
    plain = json.loads(encode(handmade.profile()))
    plain["ops"][2][4] = plain["ops"][2][4][:2]
    with pytest.raises(InputError, match="op 2 has times in 2 steps and not in 3"):
        decode(json.dumps(plain).encode(), "p.json")
    del plain["profiled"]
    with pytest.raises(InputError, match="not all of its ops have a time in each of its steps"):
        decode(json.dumps(plain).encode(), "p.json")


def test_no_op_runs_beside_others_for_longer_than_it_runs() -> None:
    """Its share of the step would be less than nothing, and the gap more than the step."""
    plain = json.loads(encode(handmade.profile()))
    row = plain["ops"][4]
    # Own times of 1980, 2000 and 2020 µs: their mean, and the nanosecond that rounding may add.
    row[5] = 2_000_001
    assert decode(json.dumps(plain).encode()).ops[4].overlap_ns == 2_000_001
    row[5] = 2_000_002
    with pytest.raises(InputError, match="op 4 ran beside others for longer than it ran"):
        decode(json.dumps(plain).encode(), "p.json")


@pytest.mark.parametrize("number", [10**400, -(10**400), 10**31])
@pytest.mark.parametrize("field", ["batch", "samples", "parameters"])
def test_an_integer_that_no_float_holds(field: str, number: int) -> None:
    plain = json.loads(encode(handmade.profile()))
    plain[field] = number
    digits = len(str(abs(number)))
    with pytest.raises(InputError, match=f"damaged: {field} is an integer of some {digits} digits, which nothing"):
        decode(json.dumps(plain).encode(), "p.json")


def test_all_is_known_of_each_turn() -> None:
    plain = json.loads(encode(handmade.profile()))
    plain["wall"]["turns"] = [turns(disturbed=[])]
    with pytest.raises(InputError, match="not all is known of each of its turns"):
        decode(json.dumps(plain).encode(), "p.json")
    plain["wall"]["turns"] = [turns()]
    assert decode(json.dumps(plain).encode(), "p.json").wall.turns[0].medians == (0.1,)


def test_a_schema_of_so_many_digits() -> None:
    with pytest.raises(InputError, match=r"newer roofline \(schema an integer of some 401 digits"):
        decode(b'{"schema": 1%s}' % (b"0" * 400), "p.json")


@pytest.mark.parametrize("seconds", [1e-30, 9e-10, 2e7])
@pytest.mark.parametrize(
    "name", ["wall steps", "wall first", "wall processes", "wall turns", "profiled walls", "api steps"]
)
def test_steps_that_no_clock_measures(name: str, seconds: float) -> None:
    plain = json.loads(encode(handmade.profile()))
    PLACES[name](plain, seconds)
    with pytest.raises(InputError, match=re.escape(f"damaged: {name} is {seconds:g}, which nothing measures")):
        decode(json.dumps(plain).encode(), "p.json")


@pytest.mark.parametrize(
    ("given", "number"),
    [(5, 5.0), (0, 0.0), (1e30, 1e30), *((bad, None) for bad in (10**400, -1, 1e31, math.nan, math.inf, True, "5"))],
)
def test_numbers_of_files(given: object, number: float | None) -> None:
    assert measured(given) == number


@pytest.mark.parametrize("memory", [10**400, 10**31, math.inf, -1])
def test_a_trace_says_how_much_memory_its_device_has(memory: float) -> None:
    device, known = recognise({"name": "Imaginary GPU", "totalGlobalMem": memory}, "cuda")
    assert (device.name, device.memory, known) == ("Imaginary GPU", None, False)


def test_ranks_are_numbered_as_jobs_are() -> None:
    found = rank_of({"distributedInfo": {"rank": 10**400, "world_size": 10**31}})
    assert (found.number, found.of) == (None, None)


@pytest.mark.parametrize("number", ["9" * 400, '"1' + "0" * 400 + '"', "1e400", "-1"])
def test_a_loop_ends(number: str) -> None:
    loop: Any = SimpleNamespace(backend_config=f'{{"known_trip_count": {{"n": {number}}}}}')
    assert loops.noted(loop) is None


@pytest.mark.parametrize("value", ["9" * 400, "9" * 5000, "0x" + "f" * 5000])
def test_integers_of_a_device_file(tmp_path: Path, value: str) -> None:
    file = tmp_path / "d.toml"
    file.write_text(f'name = "D"\nkind = "cuda"\ndate = "2026-01-01"\nmatch = ["D"]\nmemory = {value}\n')
    with pytest.raises(InputError, match="is not a device file") as raised:
        devices.load(str(file))
    assert len(str(raised.value).replace(str(file), "")) < 400


@pytest.mark.parametrize(("steps", "devices", "is_refused"), [(7e-9, 1, True), (8e-9, 1, False), (4e-9, 2, False)])
def test_a_step_has_a_nanosecond_for_each_of_its_ops(steps: float, devices: int, is_refused: bool) -> None:
    """The step made by hand has 8 ops; what "attained 15978221 %" was one of 1 ns."""
    profile = handmade.profile(wall=Wall(steps=(steps,) * 10), devices=devices)
    assert len(profile.ops) == 8
    if is_refused:
        with pytest.raises(InputError, match="a step of 8 ops takes 7e-09 s"):
            validate.check(profile, "p.json")
    else:
        validate.check(profile, "p.json")
