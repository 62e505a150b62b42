"""`roofline run` of programs in JAX and Keras from end to end: the step it finds, and weights bit for bit."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import roofline

PROGRAMS = Path(__file__).parent / "programs"
STEPS = 200


@pytest.mark.parametrize(
    ("program", "backend", "step"),
    [
        ("jitted", "jax", f"a step: from one call of train() to the next, {STEPS} seen"),
        pytest.param(
            "fitted",
            "keras-jax",
            f"a step: from one batch of fit to the next, {STEPS} seen",
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_a_program_is_measured_and_ends_with_the_same_weights(
    python: Callable[..., subprocess.CompletedProcess[str]], program: str, backend: str, step: str, tmp_path: Path
) -> None:
    pytest.importorskip("keras" if backend.startswith("keras") else "jax")
    path = tmp_path / "profile.json"
    plain = python(PROGRAMS / f"{program}.py", STEPS)
    run = python("-m", "roofline", "run", "-o", path, PROGRAMS / f"{program}.py", STEPS)
    assert (plain.returncode, run.returncode) == (0, 0), run.stderr
    assert run.stdout.startswith(plain.stdout)
    assert f"roofline: {step}" in run.stderr.splitlines()
    assert "roofline: left out: " in run.stderr, "steps with an evaluation"
    profile = roofline.load(path)
    # Forward two products of 2 M N K, backward one for each weight and one for the input of the second layer.
    first, second = 2 * 16 * 64 * 128, 2 * 16 * 128 * 8
    products = sum(amounts.model for amounts in roofline.analyze(profile).products.values())
    assert (profile.backend, profile.mode, products) == (backend, "train", 2 * first + 3 * second)
