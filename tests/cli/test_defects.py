"""An exception that nobody foresaw: its own exit code, and never that of a failed gate."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import handmade
import pytest

from roofline.core.schema import save
from roofline.errors import GateError
from roofline.regression import check

Run = Callable[..., Any]


@pytest.fixture
def _unforeseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the gate raise for the profile of a model that is called so."""
    judge = check.check

    def unforeseen(before: Any, after: Any, *more: Any) -> Any:
        if after.model == "unforeseen":
            raise KeyError("no such row")
        return judge(before, after, *more)

    monkeypatch.setattr(check, "check", unforeseen)


def test_a_verb_that_fails(roofline: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError("twice\nsaid")

    monkeypatch.setattr("roofline.cli.devices._list_text", fail)
    ended = roofline("devices")
    assert (ended.code, ended.out, ended.err.count("\n")) == (70, "", 1)
    assert f"ZeroDivisionError: twice at {Path(__file__).name}:{fail.__code__.co_firstlineno + 1}" in ended.err
    assert "Traceback" in roofline("--debug", "devices").err


@pytest.mark.usefixtures("_unforeseen")
def test_a_profile_that_the_gate_fails_on(roofline: Run, tmp_path: Path) -> None:
    """By itself 70, in every format; beside others it hides none, and a gate that failed decides."""
    profile = handmade.profile()
    slow = tuple(2 * step for step in profile.wall.steps)
    save(profile, tmp_path / "p.json")
    save(handmade.profile(model="unforeseen"), tmp_path / "u.json")
    save(handmade.profile(wall=type(profile.wall)(steps=slow)), tmp_path / "slow.json")
    words = ("check", "p.json", "u.json", "--allow-name", "--format")
    assert {roofline(*words, form).code for form in ("text", "json", "junit", "github")} == {70}
    assert json.loads(roofline(*words, "json").out)["code"] == 70
    (error,) = ElementTree.fromstring(roofline(*words, "junit").out).iter("error")
    assert "KeyError: 'no such row'" in str(error.get("message"))
    assert roofline(*words, "github").out.startswith("::error title=roofline::This is a defect of roofline (KeyError")
    assert "Traceback" in roofline("--debug", *words, "text").err
    assert roofline("check", "p.json", "p.json", "u.json", "--allow-name").code == 70
    assert roofline("check", "p.json", "slow.json", "u.json", "--allow-name").code == GateError.exit_code


def test_a_run_of_a_program_prints_the_traceback_unasked(tmp_path: Path) -> None:
    """It may have taken hours, and is not run again for the sake of a report."""
    (tmp_path / "program.py").write_text("print('ran')\n")
    code = """
from roofline.cli.run import _start
from roofline.running.measurement import Wanted
from roofline.running.program import Program

_start(Program(script="program.py", module=None, arguments=()), Wanted(), (), lambda ended: {}["no such row"])
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (70, "ran\n")
    *_, raised, sentence = ended.stderr.splitlines()
    assert "Traceback (most recent call last):" in ended.stderr
    assert raised == "KeyError: 'no such row'"
    assert "--debug" not in sentence
