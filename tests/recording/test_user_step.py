"""What is kept of a file of the user's: digests, by which it is known whether it is the same."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from roofline.core.step import Step, Workload
from roofline.errors import InputError
from roofline.recording.inputs import Input, arrays
from roofline.recording.request import Request
from roofline.recording.user_step import MODULES, LoadedStep, load_step, sources


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that imports a module beside it and one that is installed there."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages"), *sys.path])
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "installed_thing.py").write_text("")
    (tmp_path / "beside_thing.py").write_text("number = 1\n")
    (tmp_path / "mine.py").write_text("import beside_thing, installed_thing\n\ndef make():\n    return print\n")
    return tmp_path


def called_never(*_: object) -> Step:
    raise AssertionError("no inputs were asked for")


def read(folder: Path) -> dict[str, str]:
    before = frozenset(sys.modules)
    request = Request(backend="torch", workload=Workload(model="mine"), file=str(folder / "mine.py"), function="make")
    load_step(request, called_never)
    try:
        return sources(folder / "mine.py", before)
    finally:
        for name in ("beside_thing", "installed_thing", "_roofline_user_mine"):
            sys.modules.pop(name)


def test_the_file_and_what_it_imports_from_its_folder(folder: Path) -> None:
    found = read(folder)
    assert list(found) == ["mine.py", MODULES]  # no name of a module, and no folder
    assert found["mine.py"] == hashlib.sha256((folder / "mine.py").read_bytes()).hexdigest()
    assert read(folder) == found
    (folder / "site-packages" / "installed_thing.py").write_text("number = 2\n")  # versions tell of that
    assert read(folder) == found
    (folder / "beside_thing.py").write_text("number = 22\n")
    again = read(folder)
    assert again["mine.py"] == found["mine.py"]
    assert again[MODULES] != found[MODULES]


def test_a_file_alone_has_no_modules(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import installed_thing, beside_thing\ndel beside_thing\ndef make(): return print\n"
    )
    assert set(read(folder)) == {"mine.py", MODULES}
    (folder / "mine.py").write_text("def make(): return print\n")
    assert set(sources(folder / "mine.py", frozenset(sys.modules))) == {"mine.py"}


KINDS = """
runs = []

def makes():
    return lambda: runs.append("made")

def step(batch=2):
    runs.append(batch)

class Takes:
    def __call__(self):
        runs.append("called")

takes = Takes()

def needs(x):
    return x

def gives():
    return needs

def generates():
    yield 1
"""


@pytest.fixture
def kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LoadedStep]:
    (tmp_path / "kinds.py").write_text(KINDS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "_roofline_user_kinds", raising=False)

    def load(function: str, batch: int | None = None, **fields: object) -> LoadedStep:
        workload = Workload(model="kinds", batch=batch)
        request = Request(
            backend="torch", workload=workload, file=str(tmp_path / "kinds.py"), function=function, **fields
        )
        return load_step(request, lambda called, inputs, device: Step(run=lambda: called(inputs)))

    return load


def runs() -> list[object]:
    return sys.modules["_roofline_user_kinds"].runs


def test_what_the_first_call_returns_tells_a_step_from_what_makes_one(kinds: Callable[..., LoadedStep]) -> None:
    made = kinds("makes")
    assert (made.has_run, runs()) == (False, [])
    made.step.run()
    assert runs() == ["made"]
    itself = kinds("step", batch=3)
    assert (itself.has_run, runs()) == (True, [3])  # only that call could tell
    itself.step.run()
    assert (itself.step.batch, runs()) == (3, [3, 3])
    known = kinds("step", is_step=True)
    assert (known.has_run, runs()) == (False, [])
    known.step.run()
    assert runs() == [2]
    assert kinds("takes").has_run
    assert runs() == ["called"]


def test_arguments_come_from_options_or_shapes(kinds: Callable[..., LoadedStep]) -> None:
    asked = (Input((2, 3), "int32"),)
    assert kinds("needs", shapes=asked).step.run() == asked
    for function, said in (("needs", "needs the argument 'x'"), ("gives", "which needs the argument 'x'")):
        with pytest.raises(InputError, match=f"{said}.*--shapes"):
            kinds(function)
    with pytest.raises(InputError, match="leave --batch out"):
        kinds("needs", shapes=asked, batch=3)
    with pytest.raises(InputError, match="generator"):
        kinds("generates")


def test_values_of_inputs() -> None:
    asked = [Input((40, 50), name) for name in ("float32", "bfloat16", "float16", "int64", "uint8", "bool")]
    normal, rounded, half, *whole, mask = arrays(asked, 300)
    # of 2,000 standard normal numbers the mean is within 5 / sqrt(2000) = 0.11 of 0, the deviation near 1
    assert abs(normal.mean()) < 0.11
    assert normal.std() == pytest.approx(1, abs=0.1)
    assert [array.dtype.name for array in (normal, rounded, half)] == ["float32", "float32", "float16"]
    # of 300 rows one is missed by 2,000 draws with the chance (299 / 300)^2000 = 0.1 %; a byte holds no more than 255
    assert (whole[0].min(), whole[0].dtype.name) == (0, "int64")
    assert 290 <= whole[0].max() < 300
    assert whole[1].max() < 255
    assert mask.all()
    assert not arrays([Input((9,), "int64")], None)[0].any()  # any table has a row 0
    assert all((a == b).all() for a, b in zip(arrays(asked, 300), arrays(asked, 300), strict=True))
