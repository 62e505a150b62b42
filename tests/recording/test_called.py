"""Functions of libraries that are seen to be called, and are as before afterwards."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from roofline.recording.xspace.called import called


class Base:
    """Has the function."""

    def apply(self, number: int) -> int:
        """One more."""
        return number + 1


class Middle(Base):
    """Where the function is looked for."""


class Own(Middle):
    """A user's."""


def test_what_is_called_is_told_whoever_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("a_library")
    library.Middle, library.change = Middle, abs  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_library", library)
    functions = [("a_library", "Middle.apply"), ("a_library", "change"), ("a_library", "gone"), ("nowhere", "x.y")]
    with called(functions) as seen:
        assert not seen
        assert (Own().apply(1), Own().apply(2), library.change(-3)) == (2, 3, 3)
        assert seen == ["a_library.Middle.apply", "a_library.change"]  # each once
    assert "apply" not in vars(Middle)
    assert library.change is abs
    assert Own().apply(1) == 2


def test_all_is_as_before_when_a_step_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("a_library")
    library.change = abs  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_library", library)
    with pytest.raises(TypeError), called([("a_library", "change")]):
        library.change("text")
    assert library.change is abs
