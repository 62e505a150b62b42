"""A function that is the step, a module or a function called by shapes, and the backend by what the file imports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import roofline as package
from roofline.cli.options.request import backend_of_file, parse_shapes
from roofline.errors import InputError
from tests.cli.conftest import Ended

Run = Callable[..., Ended]

TORCH = """
import torch

table = torch.nn.Sequential(torch.nn.Embedding(5, 8), torch.nn.Linear(8, 4))
weights = torch.ones(8, 4, requires_grad=True)
calls = []

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.out = torch.nn.Dropout(0.5), torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.out(self.drop(x))

def train(batch=6):
    (torch.ones(batch, 8) @ weights).sum().backward()
    weights.grad = None
"""
JAX = """
import jax, jax.numpy as jnp

@jax.jit
def product(x):
    return x @ jnp.ones((8, 4))

def step():
    return product(jnp.ones((6, 8)))
"""
TENSORFLOW = """
import tensorflow as tf

weights = tf.Variable(tf.ones((8, 4)))

@tf.function
def product(x):
    return x @ weights

def step():
    return product(tf.ones((6, 8)))
"""
KERAS = """
import keras

model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
"""


def counted(tmp_path: Path) -> package.Profile:
    return package.load(tmp_path / "p.json")


def flops(profile: package.Profile) -> float:
    return package.analyze(profile).total.flops


def test_a_function_that_is_the_step(measuring: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TORCH)
    ended = measuring("profile", "mine.py:train", "--batch", "3", "--count-only", "--force", "-o", "p.json")
    assert ended.code == 0, ended.err
    profile = counted(tmp_path)
    assert (profile.backend, profile.mode, profile.batch) == ("torch", "train", 3)
    assert flops(profile) == 2 * (2 * 3 * 8 * 4)  # the product, and the gradient of its weights
    assert profile.lines == ("mine.py:17",)  # without the folder
    assert package.analyze(profile).by("source")["mine.py:17"].flops == flops(profile)


def test_a_function_that_returns_nothing_and_runs_nothing(measuring: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def forgotten():\n    step = lambda: None\n")
    ended = measuring("profile", "mine.py:forgotten", "--backend", "torch", "-o", "p.json")
    assert ended.code == 4
    assert "forgotten returned no callable, so it is the step itself" in ended.err
    assert "no op that does work" in ended.err


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("table", "2x7:int64", 2 * 2 * 7 * 8 * 4),  # numbers below 5, or the table would refuse them
        ("Net", "10x3", 2 * 10 * 3 * 2),
    ],
)
def test_a_module_by_shapes(measuring: Run, tmp_path: Path, name: str, shapes: str, expected: int) -> None:
    (tmp_path / "mine.py").write_text(TORCH)
    ended = measuring("profile", f"mine.py:{name}", "--shapes", shapes, "--count-only", "-o", "p.json")
    assert ended.code == 0, ended.err
    profile = counted(tmp_path)
    assert flops(profile) == expected
    assert profile.mode == "infer"
    assert profile.parameters == {"table": 5 * 8 + 8 * 4 + 4, "Net": 3 * 2 + 2}[name]
    assert "dropout" not in " ".join(signature.name for signature in profile.signatures)  # in eval mode there is none


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("needed", "text", "words", "backend", "line"),
    [
        ("jax", JAX, ("mine.py:step",), "jax", "mine.py:6"),
        ("jax", JAX, ("mine.py:product", "--shapes", "6x8"), "jax", "mine.py:6"),
        ("tensorflow", TENSORFLOW, ("mine.py:step",), "tensorflow", "mine.py:8"),
        ("tensorflow", TENSORFLOW, ("mine.py:product", "--shapes", "6x8"), "tensorflow", "mine.py:8"),
        ("keras", KERAS, ("mine.py:model", "--shapes", "6x8", "--backend", "keras-jax"), "keras-jax", None),
    ],
)
def test_in_other_frameworks(
    process: Run,
    tmp_path: Path,
    needed: str,
    text: str,
    words: tuple[str, ...],
    backend: str,
    line: str | None,
    brief: dict[str, str],
) -> None:
    pytest.importorskip(needed)
    (tmp_path / "mine.py").write_text(text)
    ended = process("profile", *words, "--count-only", "--threads", "1", "-o", "p.json", more=brief)
    assert ended.code == 0, ended.err
    assert counted(tmp_path).backend == backend
    assert flops(counted(tmp_path)) == 2 * 6 * 8 * 4
    products = [op for op in counted(tmp_path).ops if counted(tmp_path).signatures[op.signature].cost.flops]
    assert [counted(tmp_path).source_line(op) for op in products] == [line]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch.nn as nn", "torch"),
        ("def f():\n    from jax import numpy", "jax"),
        ("import numpy, helper", None),  # what a helper imports, the file does not
        ("import torch, jax", None),
        ("import keras, torch", "keras-torch"),
        ("import keras", None),
        ("from . import torch", None),
        ("import torch as )", None),
        ("\0", None),
        ("(" * 5000, None),
    ],
)
def test_the_backend_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str | None
) -> None:
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    (tmp_path / "mine.py").write_text(text)
    assert backend_of_file(f"{tmp_path}/mine.py:f") == expected
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert backend_of_file(f"{tmp_path}/mine.py:f") == ("keras-jax" if text == "import keras" else expected)


def test_another_framework_that_an_import_brings(
    measuring: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    (tmp_path / "helper_that_brings.py").write_text("import sys\nsys.modules.setdefault('tensorflow', sys)\n")
    (tmp_path / "mine.py").write_text(f"import helper_that_brings\n{TORCH}")
    ended = measuring("profile", "mine.py:Net", "--shapes", "1x3", "--count-only", "-o", "p.json")
    sys.modules.pop("tensorflow")
    assert ended.code == 2
    assert "brings tensorflow: give --backend" in ended.err


@pytest.mark.parametrize(
    "text",
    [
        *("", "8x", "x8", "8x128,", "8:", "0x3", "-1", "8x1e3", "8x³", "9" * 30, "8x8:complex64"),
        "0" * 19 + "8" + "9" * 5000,  # the first 20 digits are 8
    ],
)
def test_bad_shapes(text: str) -> None:
    if text == "8:":
        assert parse_shapes(text)[0].dtype == "float32"
        return
    with pytest.raises(InputError):
        parse_shapes(text)


def test_shapes_are_for_files_and_inference(measuring: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TORCH)
    for words in (("mlp", "--backend", "torch"), ("mine.py:Net", "--mode", "train")):
        assert measuring("profile", *words, "--shapes", "1x3", "--count-only").code == 2
