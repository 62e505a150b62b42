"""A small program that came out wrong in TensorFlow: the FLOPs that stand in its head.

It lies beside the checkout, in shared/cases, and is left out where that is alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import warnings
from pathlib import Path

import pytest

pytest.importorskip("google.protobuf")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("tensorflow")
    framework = importlib.import_module("roofline.tensorflow.framework")

from roofline.traces.xplane import reader

STEP = "step"


def test_loops_einsums_and_sparse_products() -> None:
    """5 products of 16^3, 6 of 8^3, an einsum of 10080, and 128 numbers that meet 32 columns."""
    found = (folder / "shared" / "cases" / "30_tf_loops.py" for folder in Path(__file__).parents)
    path = next((path for path in found if path.exists()), None)
    if path is None:
        pytest.skip("the program 30_tf_loops.py is not at hand: there is no folder shared/cases above the checkout")
    spec = importlib.util.spec_from_file_location("case_30_tf_loops", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step = module.make_step()
    recorder = framework.TensorFlow(False, (), ())
    recorder.first(lambda: float(step() is None))
    recorder.watch_memory(lambda: step())

    def marked() -> None:
        with recorder.mark(f"{STEP}#0"):
            step()

    counted = recorder.read([reader.read(recorder.profiled(marked))], STEP).counted
    assert counted.unknown == {}
    flops = 5 * 2 * 16**3 + 6 * 2 * 8**3 + 10080 + 2 * 128 * 32
    assert sum(op.costed.cost.model_flops for op in counted.ops) == flops == 65376
