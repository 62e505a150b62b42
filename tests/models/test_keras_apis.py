"""Keras's `fit` and `predict` on each engine, of a real model: each engine answers from a process of its own.

`python test_keras_apis.py LIBRARY` is what these processes run; it prints its answers as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

STEPS, KINDS = 4, ("cached", "images")


def _answers(engine: str) -> Any:
    library = "tf_keras" if engine == "keras2" else "keras"
    needed = [library, "tensorflow"] + ([] if engine == "keras2" else [engine])
    if missing := [name for name in needed if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    variables = {"TF_USE_LEGACY_KERAS": "1"} if engine == "keras2" else {"KERAS_BACKEND": engine}
    done = subprocess.run(
        [sys.executable, __file__, library],
        env={**os.environ, **variables, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "engine",
    ["tensorflow", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("torch", "jax", "keras2"))],
)
def test_fit_and_predict_are_run_as_the_benchmark_ran_them(engine: str) -> None:
    """Batches 0 to 4, of which 1 to 4 are timed, from the begin of the first to the end of the last."""
    found = _answers(engine)
    for name in ("fit", "predict"):
        for kind in KINDS:
            answer = found[name][kind]
            assert answer["called"] == [STEPS + 1] * 2, "begins and ends of batches"
            assert len(answer["steps"]) == STEPS
            assert 0 < sum(answer["steps"]) < answer["whole"]
            assert (answer["waiting"] is None) != (answer["alone"] is None)
            assert answer["waiting"] is None or 0 < answer["waiting"] * STEPS < sum(answer["steps"])
    # On TensorFlow a compiled step takes its batches itself while it trains: what is hidden is not told apart.
    assert (found["fit"]["cached"]["waiting"] is None) == (engine in ("tensorflow", "keras2"))
    assert found["learned"], "fit is training"
    assert found["batches"] == {"cached": ["float32", [8, 4]], "images": ["float64", [8, 4]]}
    assert found["restored"], "the iterator of tf.data is what it was"


def test_the_clock_of_predict_waits_for_the_results() -> None:
    """Before the end of each batch, whose results may be several."""
    from roofline.keras import apis

    told: list[object] = []
    clock = SimpleNamespace(begin=lambda batch: told.append(("begin", batch)), end=lambda batch: told.append(batch))
    keras = SimpleNamespace(
        callbacks=SimpleNamespace(Callback=object), ops=SimpleNamespace(convert_to_numpy=told.append)
    )
    flatten = SimpleNamespace(nest=SimpleNamespace(flatten=lambda logs: list(logs.values())))
    callback = apis._callback(keras, flatten, clock)  # type: ignore[arg-type]
    callback.on_predict_batch_begin(3)
    callback.on_predict_batch_end(3, {"masks": "first", "scores": "second"})
    assert told == [("begin", 3), "first", "second", 3]


# --------------------------------------------------------------------------------- what the processes run


def main(library: str) -> None:
    """Prints the answers. The process ends at once: to tidy up would take it seconds."""
    unused = {"jax", "matplotlib", "pandas", "torch"} - {os.environ.get("KERAS_BACKEND")}
    sys.modules.update(dict.fromkeys(unused))  # as if none were installed: Keras imports them, which takes seconds
    import numpy as np
    import tensorflow

    from roofline import plugins
    from roofline.core.step import Workload
    from roofline.keras import apis
    from roofline.timing.loop import Clock

    clocks = []

    class Counting(Clock):
        def __init__(self) -> None:
            super().__init__()
            self.called = [0, 0]
            clocks.append(self)

        def begin(self, batch: int) -> None:
            self.called[0] += 1
            super().begin(batch)

        def end(self, batch: int) -> None:
            self.called[1] += 1
            super().end(batch)

    apis.Clock = Counting  # type: ignore[misc]
    package = "roofline.models.keras2" if library == "tf_keras" else "roofline.models.keras"
    model = plugins.load(package, "mlp", "model", sorted_by_kind=True)
    answers: dict[str, Any] = {}
    iterator = type(iter(tensorflow.data.Dataset.range(1)))
    following = iterator.__next__
    for mode, name in (("train", "fit"), ("infer", "predict")):
        step = model.build(Workload(model="mlp", mode=mode, batch=8, input="host"))
        step.run()  # as a recorder does first
        before = step.model.get_weights()
        answers[name] = {}
        for kind in KINDS:
            began = time.perf_counter()
            api = apis.apis(library)[name](step, STEPS, kind == "cached")
            answers[name][kind] = {
                "whole": time.perf_counter() - began,
                "called": clocks[-1].called,
                "steps": api.steps,
                "waiting": api.waiting,
                "alone": api.alone,
            }
        if name == "fit":
            pairs = zip(before, step.model.get_weights(), strict=True)
            answers["learned"] = not all(np.array_equal(old, new) for old, new in pairs)
            fed = {kind: next(iter(apis._dataset(tensorflow, step, 2, kind == "cached")))[0] for kind in KINDS}
            answers["batches"] = {kind: [batch.dtype.name, list(batch.shape)] for kind, batch in fed.items()}
    answers["restored"] = iterator.__next__ is following
    print()
    print(json.dumps(answers), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
