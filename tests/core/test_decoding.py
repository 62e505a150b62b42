"""Whatever is wrong with a file that is read is one error, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofline import devices, plugins
from roofline.cli.options import defaults
from roofline.core.decoding import UndecodableError, from_json, from_toml
from roofline.core.schema import load
from roofline.devices import calibration
from roofline.errors import InputError
from roofline.published import publication
from roofline.published.presets import preset
from roofline.ranks import folder as ranks
from roofline.regression import limits_file
from roofline.sweeping import folder as sweep

#: Deeper than the interpreter's stack, by choice.
DEEP = 100_000
NOT_UTF8, DIGITS = b"\xff\xfe", b"9" * 5000
JSON = {
    "damaged": b"{",
    "not UTF-8": b'{"' + NOT_UTF8 + b'": 1}',
    "not UTF-8 in a value": b'{"name": "' + NOT_UTF8 + b'"}',
    "nested lists": b"[" * DEEP,
    "nested tables": b'{"device":' * DEEP,
    "many digits": b'{"schema": ' + DIGITS + b', "value": 1e999}',
    "nested lists in a field that nobody reads": b'{"x": ' + b"[" * DEEP,
    "another type": b"[]",
}
TOML = {
    "damaged": b"[",
    "not UTF-8": NOT_UTF8,
    "nested lists": b"a = " + b"[" * DEEP,
    "nested tables": b"a = " + b"{a=" * DEEP,
    "many digits": b"a = " + DIGITS,
}


@pytest.mark.parametrize("data", JSON.values(), ids=list(JSON))
def test_json_that_is_none(data: bytes) -> None:
    with pytest.raises(UndecodableError):
        from_json(data, dict[str, dict[str, Any]])


@pytest.mark.parametrize("data", TOML.values(), ids=list(TOML))
def test_toml_that_is_none(data: bytes) -> None:
    with pytest.raises(UndecodableError):
        from_toml(data, dict[str, dict[str, Any]])


READERS: dict[str, Callable[[Path], object]] = {
    "p.json": load,
    "device.json": lambda file: devices.load(str(file)),
    "device.toml": lambda file: devices.load(str(file)),
    "limits.toml": limits_file.read,
    "pyproject.toml": defaults.read,
    "ranks.json": lambda file: ranks.read(file.parent),
    "plan.jsonl": lambda file: sweep.read_plan(file.parent),
}


@pytest.mark.parametrize("name", READERS)
def test_every_file_that_is_read_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    for data in (TOML if name.endswith(".toml") else JSON).values():
        file.write_bytes(data)
        with pytest.raises(InputError):
            READERS[name](file)


DAMAGED = (b"\xff", b"a = [", b'title = "x"', b"row = 1", b"a = " + DIGITS)


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_publication_or_preset_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "ivanov.toml").write_bytes(text)
    (tmp_path / "ivanov.csv").write_bytes((plugins.folder("roofline.published") / "ivanov.csv").read_bytes())
    with pytest.raises(InputError, match=r"^ivanov in .* is no publication"):
        publication.read(tmp_path, "ivanov", ("ivanov",))
    with pytest.raises(InputError, match=r"^ivanov in .* is no preset"):
        preset.read(tmp_path, "ivanov", ("ivanov",))


@pytest.mark.parametrize("line", [b'"unclosed', b"a,b,c,d,e,f,g,h,i,j,k,beyond the last column", b"too,few", b"\xff"])
def test_a_publication_with_a_damaged_line_is_refused(line: bytes, tmp_path: Path) -> None:
    for suffix, more in ((".toml", b""), (".csv", line)):
        good = (plugins.folder("roofline.published") / f"ivanov{suffix}").read_bytes()
        (tmp_path / f"ivanov{suffix}").write_bytes(good + more)
    with pytest.raises(InputError, match=r"^ivanov in .* is no publication"):
        publication.read(tmp_path, "ivanov", ("ivanov",))


def test_a_device_file_of_tables_nested_by_dotted_names(tmp_path: Path) -> None:
    # tomllib reads them without a call for each; what converts them does not.
    file = tmp_path / "device.toml"
    file.write_bytes(b"a." * 5000 + b"a = 1")
    with pytest.raises(InputError):
        devices.load(str(file))


def test_calibrations_that_cannot_be_read_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path))
    form = (
        b'{"schema": %d, "key": {}, "full": true, "device": {"name": "%s", "kind": "cpu", "ceilings": '
        b'{"matrix.fp32": {"value": %s, "source": "x"}}}}'
    )
    calibrations = {
        **JSON,
        "not UTF-8 in its name": form % (calibration.SCHEMA, NOT_UTF8, b"1e9"),
        "nested lists in it": form % (calibration.SCHEMA, b"x", b"[" * DEEP),
        "a number that nothing measures": form % (calibration.SCHEMA, b"x", b"0"),
        "good": form % (calibration.SCHEMA, b"x", b"1e9"),
    }
    for name, data in calibrations.items():
        (tmp_path / f"{name}.json").write_bytes(data)
    assert [path.name for path, _ in calibration.stored()] == ["good.json"]
