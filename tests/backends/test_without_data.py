"""`--count-only` of models: by shapes alone the same is counted as with data, on each backend that can.

Each backend has a process of its own, which counts tiny models both ways as the child process does.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

#: What runs in seconds, and what is left to `make test-all`; tests/pytorch/test_shapes.py has more of PyTorch.
BRIEF = {
    "torch": ["mlp train"],
    "jax": ["mlp train"],
    "keras-jax": ["mlp infer", "lenet5 train"],
    "keras-torch": ["mlp train", "lenet5 train"],
}
THOROUGH = {
    "jax": [
        "dlrm train",
        "gpt2 train",
        "mistral train",
        "gemma train",
        "gemma generate",
        "mistral generate",
        "lenet5 train",
        "segment-anything train",
    ],
    "keras-jax": ["bert train", "gemma infer", "mistral train", "segment-anything infer"],
    "keras-torch": ["gemma train", "mistral train", "segment-anything infer"],
}
#: Steps that do what numbers say: they are counted with data either way.
NEEDS_DATA = {"keras-jax": "mistral generate", "keras-torch": "mistral generate"}
#: Modules that a backend needs for these models.
NEEDED = {
    "torch": ("torch", "transformers"),
    "jax": ("jax", "flax", "optax"),
    "keras-jax": ("keras", "keras_hub", "jax"),
    "keras-torch": ("keras", "keras_hub", "torch"),
}
#: A gradient that is added to another one in place with data, and to a new tensor without.
SUM = ("aten::add", "aten::add_")


def answers(backend: str, *arguments: str, folder: Path) -> Any:
    if missing := [name for name in NEEDED[backend] if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend.removeprefix("keras-"),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMP_NUM_THREADS": "1",
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        # The older way to join instructions: compiled in half the time, with data and without.
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false "
        f"--xla_dump_to={folder} --xla_dump_hlo_as_proto",
    }
    command = [sys.executable, __file__, backend, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def alike(answer: Any, backend: str, case: str) -> None:
    with_data, without = answer[case]["with data"], answer[case]["without"]
    assert "with data" not in answer[case]["said"]
    assert (without["by_shapes"], with_data["by_shapes"]) == (True, False), "whatever the size"
    for name in (
        "model_flops",
        "flops",
        "useful_flops",
        "vector_flops",
        "parameters",
        "trainable",
        "switches",
        "notes",
    ):
        assert without[name] == with_data[name], (case, name)
    assert with_data["flops"] > 0
    if backend.endswith("torch") and case.startswith("gemma"):
        return  # which sums of gradients are in place decides how a few numbers are moved, too
    for name in ("bytes", "places", "ops"):
        assert without[name] == with_data[name], (case, name)


@pytest.mark.parametrize("backend", BRIEF)
def test_the_same_ops_of_tiny_models(backend: str, tmp_path: Path) -> None:
    answer = answers(backend, *BRIEF[backend], folder=tmp_path)
    for case in BRIEF[backend]:
        alike(answer, backend, case)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", THOROUGH)
def test_the_same_ops_of_more_models(backend: str, tmp_path: Path) -> None:
    needs_data = NEEDS_DATA.get(backend)
    cases = [*THOROUGH[backend], *([needs_data] if needs_data else [])]
    answer = answers(backend, *cases, folder=tmp_path)
    for case in THOROUGH[backend]:
        alike(answer, backend, case)
    if needs_data:
        assert "counted with data, since it needs" in answer[needs_data]["said"]
        assert answer[needs_data]["without"]["model_flops"] == answer[needs_data]["with data"]["model_flops"] > 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("backend", "case"),
    [
        *(("jax", f"{model} {mode}") for model in ("gemma", "mistral") for mode in ("infer", "train")),
        ("jax", "segment-anything train"),
        *((backend, "mistral infer") for backend in ("keras-jax", "keras-torch")),
    ],
)
def test_published_sizes_ask_for_the_closed_form(backend: str, case: str, tmp_path: Path) -> None:
    """Within 2 GB, most of which are the frameworks."""
    from roofline.core.step import Workload
    from roofline.models import dimensions
    from tests.backends.test_models import CLOSED

    name, mode = case.split()
    answer = answers(backend, "published", case, folder=tmp_path)
    asked = Workload(model=name, mode=mode, size="published", batch=1)  # type: ignore[arg-type]
    work = CLOSED[name](dimensions(asked), mode).values()
    expected = sum(each.forward + (each.backward if mode == "train" else 0) for each in work)
    assert answer[case]["without"]["model_flops"] == expected + more(backend, name, mode, dimensions(asked))
    assert answer["peak"] < 2e9


def more(backend: str, name: str, mode: str, d: dict[str, Any]) -> int:
    """What XLA is asked for beyond the closed form, of a model that LoRA trains."""
    if backend == "jax" and mode == "train" and name in ("gemma", "mistral"):
        # The keys of the first layer depend on nothing that learns: their gradient, Q^T dS, is no part of the program.
        return -2 * d["batch"] * d["seq"] ** 2 * d["heads"] * d["head"]
    if backend == "keras-jax":
        # Each layer turns queries and keys by angles that it makes as a product, (seq, 1) x (1, head / 2), each time.
        return d["layers"] * 2 * 2 * d["seq"] * d["head"] // 2
    return 0


# -------------------------------------------------------------------------------------- what the processes run


def counted(backend: str, case: str, size: str, *, data: bool) -> tuple[dict[str, Any], str]:
    """The work of a step, and what was said meanwhile."""
    from roofline.core.step import Workload
    from roofline.recording import child
    from roofline.recording.request import Request

    model, mode = case.split()
    workload = Workload(
        model=model,
        mode=mode,
        size=size,
        batch=1,
        **({"seq": 8, "new_tokens": 3} if mode == "generate" else {}),  # type: ignore[arg-type]
    )
    request = Request(backend=backend, workload=workload, threads=1, count_only=True, without_data=not data)
    said: list[str] = []
    by_shapes: list[Any] = []
    counting = child._counted_without_data

    def noted(*arguments: Any) -> Any:
        by_shapes.append(counting(*arguments))
        return by_shapes[-1]

    child.tell, child._limit_memory = said.append, lambda device: None
    with patch.object(child, "_counted_without_data", noted):
        recording = child._run(request)["recording"]
    costs = [recording.signatures[op.signature].cost for op in recording.ops]
    sums = {
        name: sum(getattr(cost, name) or 0.0 for cost in costs)
        for name in ("model_flops", "flops", "useful_flops", "vector_flops")
    }
    places = Counter((recording.scopes[op.scope], recording.phases[op.phase]) for op in recording.ops)
    names = Counter(recording.signatures[op.signature].name.removesuffix("_") for op in recording.ops)
    found = {
        **sums,
        "bytes": [sum(getattr(cost, name) or 0.0 for cost in costs) for name in ("bytes_read", "bytes_written")],
        "places": sorted([*place, number] for place, number in places.items()),
        "ops": sorted(names.items()),
        "by_shapes": any(answer is not None for answer in by_shapes),
        **{name: getattr(recording, name) for name in ("parameters", "trainable", "switches", "notes")},
    }
    return found, " ".join(said)


def main(backend: str, *cases: str) -> None:
    published = cases[0] == "published"
    found: dict[str, Any] = {}
    for case in cases[published:]:
        without, said = counted(backend, case, "published" if published else "tiny", data=False)
        found[case] = {"without": without, "said": said}
        if not published:
            found[case]["with data"], _ = counted(backend, case, "tiny", data=True)
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(found), flush=True)
    os._exit(0)  # to tidy up would take it a second


if __name__ == "__main__":
    main(*sys.argv[1:])
