"""`roofline run` from end to end, in a process of its own: the profile of a training, and the training as without."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import roofline
from roofline.errors import MeasurementError
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measurement, Wanted
from roofline.running.run import boundaries
from roofline.running.steps import Steps

pytest.importorskip("torch")

PROGRAMS = Path(__file__).parent / "programs"
STEPS = 150
Done = subprocess.CompletedProcess[str]
Python = Callable[..., Done]


class Both(NamedTuple):
    """How the program of three loops ended by `python` and by `roofline run`, which wrote into a folder."""

    plain: Done
    run: Done
    folder: Path


@pytest.fixture(scope="module")
def both(python: Python, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("run")
    (folder / "net-2.json").write_text("mine")
    program = (PROGRAMS / "loops.py", STEPS, STEPS, STEPS, "--token", "t0")
    return Both(python(*program), python("-m", "roofline", "run", "-o", folder / "net.json", *program), folder)


def test_weights_and_all_else_are_those_of_the_program_bit_for_bit(both: Both) -> None:
    assert both.plain.stdout
    assert both.run.stdout.startswith(both.plain.stdout)


def test_it_ends_as_the_program_and_the_frames_of_our_wrappers_are_in_no_traceback(both: Both) -> None:
    ours = [line for line in both.run.stderr.splitlines(keepends=True) if line.startswith("roofline: ")]
    assert both.run.stderr == "".join(ours) + both.plain.stderr
    assert "in _call_impl" in both.plain.stderr
    assert (both.plain.returncode, both.run.returncode) == (1, 1)


def test_our_words_are_no_part_of_the_programs_output(both: Both) -> None:
    errors = both.run.stderr.splitlines()
    assert f"roofline: a step: from one optimizer.step() to the next, {STEPS} seen" in errors
    for words in (
        "loop 2, from one call of Net (eval, no gradients) to the next: measured in steps ",
        "loop 3, from one optimizer.step() to the next: measured in steps ",
    ):
        assert sum(line.startswith(f"roofline: {words}") for line in errors) == 1
    printed = both.run.stdout.removeprefix(both.plain.stdout).splitlines()
    assert printed[0].startswith("Net · training · ")
    assert printed[-1] == f"Wrote {both.folder / 'net-3.json'}"
    assert sum(line.startswith("Wrote ") for line in printed) == 3


def test_each_loop_is_measured_and_has_a_profile(both: Both) -> None:
    """A training, an inference of the same model, and a training of another one.

    One linear layer takes 2 M N K, and as much for its weight in the backward pass; of two layers, the second one also
    for its input: 2 * 16 * (32 * 64 + 64 * 8) for each of both passes, and 2 * 16 * 64 * 8 more.
    """
    assert (both.folder / "net-2.json").read_text() == "mine"
    profiles = [roofline.load(both.folder / f"net{word}.json") for word in ("", "-2-2", "-3")]
    assert [(profile.model, profile.backend, profile.mode) for profile in profiles] == [
        ("Net", "torch", "train"),
        ("Net", "torch", "infer"),
        ("Other", "torch", "train"),
    ]
    one, layers = 2 * 16 * 32 * 8, 2 * 16 * (32 * 64 + 64 * 8)
    assert [
        {phase: amounts.model for phase, amounts in roofline.analyze(profile).products.items()} for profile in profiles
    ] == [
        {"forward": one, "backward": one},
        {"forward": 2 * 4 * 32 * 8},
        {"forward": layers, "backward": layers + 2 * 16 * 64 * 8},
    ]
    for profile in profiles:
        assert "in_process" in profile.flags
        assert profile.wall.first is None  # others had run before
        assert profile.command == "roofline run -o net.json loops.py", "arguments may be secrets"


def test_what_records_is_imported_right_behind_the_framework(python: Python, tmp_path: Path) -> None:
    # And not between steps, behind which later ones were seen to take longer.
    program = tmp_path / "imports.py"
    known = "'roofline.pytorch.recording.record' in sys.modules"
    program.write_text(f"import sys\nprint({known})\nimport torch\nprint({known})\n")
    assert python("-m", "roofline", "run", program).stdout.split() == ["False", "True"]


def test_an_error_of_ours_does_not_end_the_program() -> None:
    """A report whose source cannot be hashed."""
    measurement = Measurement(Wanted(), "program", lambda text: None)
    steps = Steps(boundaries(), measurement, AfterImport(print))
    steps.watcher(0).ended([], "call")  # type: ignore[arg-type]
    assert steps.closed
    assert isinstance(measurement.error, MeasurementError)


def test_a_further_measurement_overwrites_no_file(tmp_path: Path) -> None:
    further = import_module("roofline.cli.run")._further
    path = tmp_path / "net.json"
    assert further(path, "step100", False) == tmp_path / "net-step100.json"
    (tmp_path / "net-step100.json").symlink_to("absent")
    assert further(path, "step100", False) == tmp_path / "net-step100-2.json"
    assert further(path, "step100", True) == tmp_path / "net-step100.json"


@pytest.mark.parametrize(
    ("options", "loops"),
    [({}, 4), ({"every": 500}, 4), ({"stop": True}, 1), ({"steps": "5:"}, 1), ({"step": "a:b"}, 1)],
)
def test_options_that_name_a_loop_have_no_other_one(
    options: dict[str, object], loops: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = import_module("roofline.cli.run").command(program=[str(PROGRAMS / "loops.py")], **options)
    assert start.args[1].loops == loops
