"""Hugging Face's `Trainer`, timed as the Keras 3 benchmark timed it (`benchmark/torch_utils.py`, `bert/torch/*.py`)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

from roofline.core.schema import Api
from roofline.core.step import Step
from roofline.errors import InputError, MissingError
from roofline.recording.backend import TimedApi
from roofline.timing.loop import Clock, Waits

_DATA = "a DataLoader"


def train(step: Step, steps: int, cached: bool) -> Api:
    """`Trainer.train` of `steps` + 1 steps with the library's defaults; the seconds of each but the first.

    cached: the Trainer has no other data: it collates a batch of samples in each step.
    """
    library, clock, waits = _library(), Clock(), Waits()

    class Watched(library.TrainerCallback):  # type: ignore[misc,name-defined]
        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            clock.begin(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            clock.end(state.global_step - 1)  # it counts the steps that are done

    class Trainer(library.Trainer):  # type: ignore[misc,name-defined]
        def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
            return waits.timed(partial(super().get_batch_samples, *args, **kwargs))

    data = _Samples(step, steps + 1)
    with tempfile.TemporaryDirectory() as folder:
        asked = _arguments(library, step, folder, per_device_train_batch_size=step.batch, max_steps=steps + 1)
        Trainer(model=step.model, args=asked, train_dataset=data, callbacks=[Watched()]).train()
    return Api(name="Trainer.train", steps=clock.steps, data=_DATA, waiting=waits.per_step(clock))


def predict(step: Step, steps: int, cached: bool) -> Api:
    """`Trainer.predict` of `steps` + 1 batches; the seconds of each but the first.

    The benchmark took the time of one batch off that of all and divided the rest by their number: what `predict` does
    behind its loop with all results is in it. Here it is spread over the steps.
    """
    library = _library()
    ends: list[float] = []

    class Watched(library.TrainerCallback):  # type: ignore[misc,name-defined]
        def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            ends.append(time.perf_counter())

    with tempfile.TemporaryDirectory() as folder:
        asked = _arguments(library, step, folder, per_device_eval_batch_size=step.batch)
        trainer = library.Trainer(model=step.model, args=asked, callbacks=[Watched()])
        one_sample, samples = _Samples(step, 1), _Samples(step, steps + 1)
        trainer.predict(one_sample)  # builds the model, in the benchmark's words
        ends.clear()
        total = _seconds(partial(trainer.predict, samples))
        times = [after - before for before, after in pairwise(ends)]
        overhead = (total - _seconds(partial(trainer.predict, one_sample)) - sum(times)) / steps
        loading = _alone(trainer.get_test_dataloader(samples), steps)
    return Api(name="Trainer.predict", steps=tuple(time + overhead for time in times), data=_DATA, alone=loading)


#: What `Backend.apis` is of models in PyTorch.
APIS: Mapping[str, TimedApi] = {"Trainer.train": train, "Trainer.predict": predict}


class _Samples:
    """The samples of one batch again and again, as a dataset of PyTorch: each a dict of tensors."""

    def __init__(self, step: Step, batches: int) -> None:
        if step.batches is None or step.batch is None:
            raise InputError("the model does not say what it is fed")
        self._batch, self._size, self._batches = step.batches, step.batch, batches

    def __len__(self) -> int:
        return self._size * self._batches

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {name: values[number % self._size] for name, values in self._batch.items()}


def _library() -> ModuleType:
    """The transformers library. Raises MissingError where its Trainer cannot run."""
    for name in ("transformers", "accelerate"):
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise MissingError(f"the Trainer needs {name}: run `pip install {name}`") from None
    import transformers

    return transformers


def _arguments(library: ModuleType, step: Step, folder: str, **arguments: Any) -> Any:
    """The library's own defaults (gradients clipped at 1, a linear schedule, AdamW of 5e-5), and nothing written."""
    device = next(step.model.parameters()).device.type

    class OneDevice(library.TrainingArguments):  # type: ignore[misc,name-defined]
        """Beside several GPUs the Trainer takes all of them (`DataParallel`); what is profiled runs on one."""

        @property
        def n_gpu(self) -> int:
            return min(int(super().n_gpu), 1)

    return OneDevice(output_dir=folder, use_cpu=device == "cpu", save_strategy="no", report_to="none", **arguments)


def _seconds(run: partial[Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _alone(loader: Any, steps: int) -> float:
    """Time a batch that is taken from the data and given to no model [s]; the first one is left out."""
    batches = iter(loader)
    next(batches)
    return _seconds(partial(_take, batches, steps)) / steps


def _take(batches: Any, steps: int) -> None:
    for _ in range(steps):
        next(batches)
