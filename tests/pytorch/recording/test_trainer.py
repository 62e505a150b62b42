"""The Trainer as the benchmark ran it; training is run by tests/cli/test_presets.py."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from roofline.core.step import Step, Workload
from roofline.errors import InputError, MissingError
from roofline.keras import apis
from roofline.pytorch.recording import trainer


def test_what_is_missing_is_said_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", ModuleType("transformers"))
    monkeypatch.setitem(sys.modules, "accelerate", None)
    for api in trainer.APIS.values():
        with pytest.raises(MissingError, match=r"^the Trainer needs accelerate: run `pip install accelerate`$"):
            api(Step(run=lambda: None), 3, True)
    monkeypatch.setitem(sys.modules, "keras", ModuleType("keras"))
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(MissingError, match=r"TensorFlow is not installed: run `pip install 'roofline\[tensorflow\]'`$"):
        apis.apis("keras")["fit"](Step(run=lambda: None), 3, True)


def test_a_step_that_says_nothing_of_its_batches_is_refused() -> None:
    with pytest.raises(InputError, match="the model does not say what it is fed"):
        trainer._Samples(Step(run=lambda: None, batch=2), 3)


@pytest.mark.thorough
def test_predict_takes_the_time_of_one_batch_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 + 3 batches in one call and one in another, on a clock that goes on by 1 at each look.

    The loop looks at it for each of 4 batches, 3 times from one to the next; the calls begin and end: 5 for all, 2 for
    one. So the three steps are ((5 - 2) - 3) / 3 = 0 longer than the 1 from look to look.
    """
    for name in ("torch", "transformers", "accelerate"):
        pytest.importorskip(name)
    from roofline.models.torch.encoders import bert

    step = bert.build(Workload(model="bert", size="tiny", batch=2, seq=8))
    looks = iter(range(1000))
    clock = ModuleType("time")
    clock.perf_counter = lambda: float(next(looks))  # type: ignore[attr-defined]
    monkeypatch.setattr(trainer, "time", clock)
    found = trainer.predict(step, 3, True)
    assert found.steps == pytest.approx((1.0, 1.0, 1.0))
    assert (found.name, found.waiting) == ("Trainer.predict", None)
    assert found.alone == pytest.approx(1 / 3)


@pytest.mark.slow
def test_beside_four_gpus_it_takes_the_one_that_is_profiled(tmp_path: Path) -> None:
    """The library counts the visible ones in `_n_gpu`, wraps the model in DataParallel for more than one, and feeds it
    that many batches in one: 2 samples, and not 8."""
    for name in ("torch", "transformers", "accelerate"):
        pytest.importorskip(name)
    import torch
    import transformers

    step = Step(run=lambda: None, model=torch.nn.Linear(2, 2), batch=2)
    of_library = transformers.TrainingArguments(str(tmp_path), use_cpu=True, per_device_train_batch_size=2)
    ours = trainer._arguments(transformers, step, str(tmp_path), per_device_train_batch_size=2)
    for arguments, batch in ((of_library, 8), (ours, 2)):
        arguments._n_gpu = 4
        assert arguments.train_batch_size == batch
    assert ours.n_gpu == 1
    wrapped = transformers.Trainer(model=step.model, args=ours)._wrap_model(step.model)
    assert not isinstance(wrapped, torch.nn.DataParallel)
