"""Waiting for the import of a module leaves the module as it would be."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from roofline.running.imports import AfterImport


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]) -> AfterImport:
    (tmp_path / "awaited_once.py").write_text("import sys\nloader = type(__loader__), type(__spec__.loader)\n")
    (tmp_path / "awaited_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    finder = AfterImport(said.append)
    finder.install()
    return finder


def test_a_function_is_called_when_the_module_has_been_executed(imports: AfterImport) -> None:
    seen: list[object] = []
    imports.call("awaited_once", lambda: seen.append(sys.modules["awaited_once"].loader))
    imports.call("awaited_once", lambda: seen.append("second"))
    imports.call("sys", lambda: seen.append("sys"))
    assert seen == ["sys"]
    module = importlib.import_module("awaited_once")
    assert seen == ["sys", (SourceFileLoader, SourceFileLoader), "second"]
    assert (type(module.__loader__), type(module.__spec__.loader)) == (SourceFileLoader, SourceFileLoader)
    del sys.modules["awaited_once"]


def test_a_library_that_has_changed_does_not_break_the_programs_import(imports: AfterImport, said: list[str]) -> None:
    """Such as a class of Keras that is no longer there; what else waits is called."""
    seen: list[object] = []
    imports.call("awaited_once", lambda: sys.modules["awaited_once"].no_longer_there)
    imports.call("awaited_once", lambda: seen.append(1))
    importlib.import_module("awaited_once")
    assert seen == [1]
    assert len(said) == 1
    assert said[0].startswith("awaited_once ? cannot be watched (AttributeError: ")
    del sys.modules["awaited_once"]


def test_a_module_that_fails_calls_nothing(imports: AfterImport) -> None:
    seen: list[object] = []
    imports.call("awaited_broken", lambda: seen.append(1))
    with pytest.raises(ZeroDivisionError):
        importlib.import_module("awaited_broken")
    with pytest.raises(ImportError):
        importlib.import_module("awaited_not_there")
    assert seen == []


def test_a_module_that_is_only_looked_for_is_still_awaited(imports: AfterImport) -> None:
    """What is asked of the spec's loader is asked of the module's own."""
    seen: list[object] = []
    imports.call("awaited_once", lambda: seen.append(1))
    spec = importlib.util.find_spec("awaited_once")
    assert spec is not None
    assert spec.loader.get_source("awaited_once").startswith("import sys")  # type: ignore[union-attr]
    assert seen == []
    importlib.import_module("awaited_once")
    assert seen == [1]
    del sys.modules["awaited_once"]
