"""Callbacks of trainers: real trainings, with and without, end with the same weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roofline import callbacks
from roofline.errors import MissingError

TRANSFORMERS = """
import torch, transformers, roofline
torch.set_num_threads(1)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4 * 90
    def __getitem__(self, number):
        drawn = torch.Generator().manual_seed(number)
        return {"input_ids": torch.randint(100, (16,), generator=drawn), "labels": torch.tensor(number % 2)}

def train(callbacks):
    transformers.set_seed(0)
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64))
    arguments = transformers.TrainingArguments(
        "trained", per_device_train_batch_size=4, num_train_epochs=1, report_to=[], disable_tqdm=True,
        save_strategy="no", logging_strategy="no", use_cpu=True)
    transformers.Trainer(model, arguments, train_dataset=Data(), callbacks=callbacks).train()
    return [parameter.detach() for parameter in model.parameters()]

callback = roofline.callbacks.TransformersCallback(steps=8)
with_it, without = train([callback]), train([])
assert all(torch.equal(a, b) for a, b in zip(with_it, without, strict=True))
roofline.save(callback.profile, "profile.json")
"""
KERAS = """
import keras, numpy, roofline

x = numpy.random.default_rng(0).random((16 * 120, 20), dtype=numpy.float32)

def fit(callbacks):
    keras.utils.set_random_seed(0)
    layers = keras.layers.Dense(64, activation="gelu"), keras.layers.Dropout(0.1), keras.layers.Dense(1)
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    model.fit(x, x.sum(axis=1, keepdims=True), batch_size=16, verbose=0, callbacks=callbacks)
    return model.get_weights()

callback = roofline.callbacks.KerasCallback(steps=8, name="mine")
with_it, without = fit([callback]), fit([])
assert all((a == b).all() for a, b in zip(with_it, without, strict=True))
roofline.save(callback.profile, "profile.json")
"""


def run(script: str, folder: Path, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def products(folder: Path) -> dict[str, float]:
    """Model FLOPs by phase."""
    import roofline

    found = roofline.analyze(roofline.load(folder / "profile.json"))
    return {phase: products.model for phase, products in found.products.items()}


def test_a_trainer_of_hugging_face(tmp_path: Path) -> None:
    """One layer, 4 x 16 tokens: four projections of 32 x 32, two of 32 x 64, and twice 16 x 16 x 16 of two heads.

    With the pooler of 32 x 32 and the head of 32 x 2, which see one token of each sample.
    """
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
    run(TRANSFORMERS, tmp_path)
    tokens, pairs = 4 * 16, 4 * 2 * 16 * 16
    forward = 2 * tokens * (4 * 32 * 32 + 2 * 32 * 64) + 2 * 2 * pairs * 16 + 2 * 4 * (32 * 32 + 32 * 2)
    assert products(tmp_path) == {"forward": forward, "backward": 2 * forward}


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["torch", "jax", "tensorflow"])
def test_a_fit_of_keras(backend: str, tmp_path: Path) -> None:
    """Batches of 16: products of 20 x 64 and 64 x 1; backward has no gradient of the data."""
    run(KERAS, tmp_path, KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="3")
    first, second = 2 * 16 * 20 * 64, 2 * 16 * 64
    found = products(tmp_path)
    assert found["forward"] == first + second
    if backend == "torch":  # compilers may do the product with a vector as a sum
        assert found["backward"] == first + 2 * second


@pytest.mark.parametrize(
    ("name", "library"), [("KerasCallback", "keras"), ("TransformersCallback", "transformers")], ids=["keras", "hf"]
)
def test_a_callback_without_its_library(monkeypatch: pytest.MonkeyPatch, name: str, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, f"roofline.callbacks.{library}", raising=False)
    with pytest.raises(MissingError, match=library):
        getattr(callbacks, name)
