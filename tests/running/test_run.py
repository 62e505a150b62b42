"""`roofline run` from end to end, in a process of its own: the profile of a training, and the training as without."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import roofline
from roofline.errors import MeasurementError
from roofline.running.imports import AfterImport
from roofline.running.measurement import Measurement, Wanted
from roofline.running.run import boundaries
from roofline.running.steps import Steps

pytest.importorskip("torch")

PROGRAMS = Path(__file__).parent / "programs"
STEPS, BATCH, WIDTH, HIDDEN = 200, 16, 64, 128


def python(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    path = tmp_path_factory.mktemp("run") / "net.json"
    return python("-m", "roofline", "run", "-o", path, PROGRAMS / "loop.py", STEPS, "--token", "t0"), path


def test_weights_and_all_else_are_those_of_the_program_bit_for_bit(
    done: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    plain, run = python(PROGRAMS / "loop.py", STEPS), done[0]
    assert (plain.returncode, run.returncode) == (0, 0)
    assert plain.stdout
    assert run.stdout.startswith(plain.stdout)


def test_our_words_are_no_part_of_the_programs_output(
    done: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    errors = done[0].stderr.splitlines()
    assert f"roofline: a step: from one optimizer.step() to the next, {STEPS} seen" in errors
    assert all(line.startswith("roofline: ") for line in errors)
    assert done[0].stdout.splitlines()[5].startswith("Net · training · ")
    assert done[0].stdout.splitlines()[-1] == f"Wrote {done[1]}"


def test_the_profile_is_that_of_a_step(done: tuple[subprocess.CompletedProcess[str], Path]) -> None:
    """Forward two products of 2 M N K; backward one for each weight, and one for the input of the second layer."""
    profile, product = roofline.load(done[1]), 2 * BATCH * WIDTH * HIDDEN
    products = roofline.analyze(profile).products
    assert {phase: amounts.model for phase, amounts in products.items()} == {
        "forward": 2 * product,
        "backward": 3 * product,
    }
    assert (profile.model, profile.backend, profile.mode) == ("Net", "torch", "train")
    assert "in_process" in profile.flags
    assert profile.wall.first is None  # others had run before
    assert profile.command == f"roofline run -o {done[1].name} loop.py", "arguments may be secrets"


def test_a_program_whose_steps_are_not_found_ends_with_4(tmp_path: Path) -> None:
    run = python("-m", "roofline", "run", "-o", tmp_path / "none.json", PROGRAMS / "inferred.py", 1)
    assert (run.returncode, run.stdout) == (4, "")
    assert "seen were Sequential (eval, no gradients) 1x" in run.stderr
    assert not list(tmp_path.iterdir())


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


def test_each_loop_is_measured_and_has_a_profile(tmp_path: Path) -> None:
    """A training, an inference of the same model, and a training of another one, of 150 steps each.

    One linear layer takes 2 M N K, and as much for its weight in the backward pass; of two layers, the second one also
    for its input: 2 * 16 * (32 * 64 + 64 * 8) for each of both passes, and 2 * 16 * 64 * 8 more.
    """
    path = tmp_path / "net.json"
    (tmp_path / "net-2.json").write_text("mine")
    plain = python(PROGRAMS / "loops.py", 150, 150, 150)
    run = python("-m", "roofline", "run", "-o", path, PROGRAMS / "loops.py", 150, 150, 150)
    assert (plain.returncode, run.returncode) == (0, 0)
    assert run.stdout.startswith(plain.stdout)
    assert run.stdout.count("Wrote ") == 3
    errors = run.stderr.splitlines()
    assert "roofline: a step: from one optimizer.step() to the next, 150 seen" in errors
    for words in (
        "loop 2, from one call of Net (eval, no gradients) to the next: measured in steps ",
        "loop 3, from one optimizer.step() to the next: measured in steps ",
    ):
        assert sum(line.startswith(f"roofline: {words}") for line in errors) == 1
    assert (tmp_path / "net-2.json").read_text() == "mine"
    profiles = [roofline.load(tmp_path / f"net{word}.json") for word in ("", "-2-2", "-3")]
    assert [(profile.model, profile.mode) for profile in profiles] == [
        ("Net", "train"),
        ("Net", "infer"),
        ("Other", "train"),
    ]
    layers = 2 * 16 * (32 * 64 + 64 * 8)
    assert [sum(phase.model for phase in roofline.analyze(profile).products.values()) for profile in profiles] == [
        2 * (2 * 16 * 32 * 8),
        2 * 4 * 32 * 8,
        2 * layers + 2 * 16 * 64 * 8,
    ]


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
