"""The models in Keras 2, in one process of their own: TensorFlow reads TF_USE_LEGACY_KERAS only once.

`python test_keras2_models.py all` is what it runs; it prints its answers as JSON. `... compare NAME` compares any
model with PyTorch's by hand, `... tokens NAME` what it generates, `... build NAME MODE [JIT]` builds and runs one.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

PACKAGE = "roofline.models.keras2"
#: One of its steps is recorded by tests/cli/test_backends.py.
pytestmark = pytest.mark.thorough
NEEDED = ("tensorflow", "tf_keras", "keras_nlp", "keras_core", "tree", "torch", "transformers")


@pytest.fixture(scope="module")
def answers() -> Any:
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    environment = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"}
    environment |= {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "all"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_sizes_are_the_published_ones(answers: Any) -> None:
    assert answers["sizes"] == {"lenet5": 44_426, "mlp": (4 * 32 + 32) + (32 * 16 + 16) + (16 * 4 + 4)}
    # tables and their norm; per layer 4 projections, 2 FFN products, 2 norms; pooler; head
    layer = 4 * (64 * 64 + 64) + 2 * 64 * 256 + 256 + 64 + 4 * 64
    tiny = (1000 + 512 + 2 + 2) * 64 + 2 * layer + (64 * 64 + 64) + (64 * 2 + 2)
    assert answers["bert"]["parameters"] == answers["bert"]["trainable"] == tiny


def test_bert_is_berts_equal_in_torch(answers: Any) -> None:
    """Asked for is 1e-4; the two forms of GELU differ by about that here, so the bound is closer."""
    answer = answers["compared"]
    assert answer["erf"] < 1e-5
    assert answer["tanh"] < 1e-5
    assert answer["erf against tanh"] > 5e-5


def test_bert_trains_as_in_torch(answers: Any) -> None:
    """Two steps without dropout; the bounds are explained in test_keras_models.py."""
    answer = answers["compared"]
    for mine, torchs in zip(answer["losses"], answer["torch losses"], strict=True):
        assert mine == pytest.approx(torchs, rel=1e-4)
    assert abs(answer["losses"][0] - answer["losses"][1]) > 1e-2
    assert answer["update"] < 2e-5
    assert answer["update where there is no gradient"] < 5e-7
    assert answer["compared"] > 0.9


def test_nodes_of_the_training_graph_have_blocks(answers: Any) -> None:
    answer = answers["bert"]
    assert answer["nodes"] > 1000
    assert answer["unmapped"] == []
    everything = {"FFN", "attention core", "attention projections", "embedding", "head", "loss", "optimizer"}
    assert everything < set(answer["blocks"])


def test_segment_anything_is_torchs(answers: Any) -> None:
    """Its image encoder, two training steps; and four masks four times as fine as the 6 x 6 patches."""
    if "image" not in answers:
        pytest.skip("keras_cv is not installed")
    assert answers["image"]["output"] < 2e-5
    assert answers["image"]["update"] < 2e-5
    assert answers["image"]["compared"] > 0.7
    assert answers["masks"] == [2, 4, 24, 24]


def test_stable_diffusion_is_torchs(answers: Any) -> None:
    """The encoder of its autoencoder, two training steps; and a denoising step."""
    if "denoising" not in answers:
        pytest.skip("keras_cv or diffusers is not installed")
    assert answers["autoencoder"]["output"] < 1e-4
    assert answers["autoencoder"]["update"] < 2e-5
    assert answers["autoencoder"]["compared"] > 0.5
    assert answers["denoising"]["difference"] < 1e-4 * answers["denoising"]["size"]


def test_the_same_tokens_are_generated_as_in_torch(answers: Any) -> None:
    answer = answers["tokens"]
    assert answer["tokens"] == answer["torch tokens"]
    assert answer["again"]
    assert answer["new"] > 2
    names = ("decode passes", "kv cache", "sampling", "jit")
    assert tuple(answer["switches"][name] for name in names) == ("5", "static", "greedy", "on")


@pytest.mark.parametrize("name", ["lenet5", "mlp"])
def test_the_small_models_infer_and_train(answers: Any, name: str) -> None:
    infer, train = answers["infer"][name], answers["train"][name]
    assert infer["output"] == {"lenet5": [4, 10], "mlp": [32, 4]}[name]
    assert infer["switches"]["jit"] == "off"
    assert "optimizer" not in infer["switches"]
    assert train["moved"] == train["variables"]
    assert train["losses"][1] < train["losses"][0]
    assert train["switches"]["optimizer"] == "Adam"


def test_jit_reaches_the_model_that_runs(answers: Any) -> None:
    assert answers["jit"] == {"on": ["on", True], "off": ["off", False], "": ["off", None]}


def test_switches_are_in_the_words_of_the_models_in_torch(answers: Any) -> None:
    switches = answers["bert"]["switches"]
    assert (switches["attention"], switches["gelu"], switches["dropout"]) == ("written out", "erf", "0.1")
    asked = ("AdamW", "0.001", "(0.9, 0.999)", "1e-08", "0.01", "False")
    names = ("", " lr", " betas", " eps", " weight_decay", " amsgrad")
    assert tuple(switches[f"optimizer{name}"] for name in names) == asked


def test_the_same_seed_gives_the_same_weights(answers: Any) -> None:
    assert answers["twice"]


def test_what_cannot_be_is_said(answers: Any) -> None:
    errors = answers["errors"]
    assert "drop --no-optimizer" in errors["no optimizer"]
    assert "use jit=on or jit=off" in errors["jit"]
    assert "no TF32 on a CPU" in errors["tf32"]
    assert all(text.endswith(".") for text in errors.values())


def test_precision_is_what_was_asked_for_and_goes_away(answers: Any) -> None:
    assert answers["bf16"] == ["bfloat16", "bfloat16"]
    assert answers["mixed-fp16"] == ["float32", "float16", "on"]
    assert answers["kept"]


def test_without_the_legacy_switch_the_cure_is_said() -> None:
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    environment = {key: value for key, value in os.environ.items() if key != "TF_USE_LEGACY_KERAS"}
    environment |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    code = "from roofline.models.keras2._step import library; library()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("roofline.errors.InputError: KerasNLP runs on another Keras here")


# ------------------------------------------------------------------------------------- what the process runs


def everything() -> dict[str, Any]:
    """All that the tests ask."""
    import tf_keras
    from test_keras_models import build, compare, denoising, tokens, workload

    from roofline.errors import RooflineError
    from roofline.models import dimensions
    from roofline.models.keras2 import _step
    from roofline.models.keras2.basic import mlp
    from roofline.models.keras2.images import lenet5

    def failure(**asked: Any) -> str:
        try:
            build(PACKAGE, "mlp", **asked)
        except RooflineError as error:
            return str(error)
        return "no error"

    import weights_keras2

    answer: dict[str, Any] = {"compared": compare(PACKAGE, weights_keras2, "bert"), "bert": _graph("bert")}
    if find_spec("keras_cv"):
        answer["image"] = compare(PACKAGE, weights_keras2, "segment-anything")
        answer["masks"] = list(build(PACKAGE, "segment-anything").run()["masks"].shape)
        if find_spec("diffusers"):
            answer["autoencoder"] = compare(PACKAGE, weights_keras2, "stable-diffusion")
            answer["denoising"] = denoising(PACKAGE, weights_keras2)
    answer["tokens"] = tokens(PACKAGE, weights_keras2, "gpt2")
    answer["sizes"] = {
        name: module.network(dimensions(workload(name, size="base"))).count_params()
        for name, module in (("lenet5", lenet5), ("mlp", mlp))
    }
    for mode in ("infer", "train"):
        answer[mode] = {name: built(name, mode) for name in ("lenet5", "mlp")}
    answer["jit"] = {}
    for jit in ("on", "off", ""):
        step = build(PACKAGE, "mlp", mode="train", options={"jit": jit} if jit else {})
        step.run()
        answer["jit"][jit] = [step.switches["jit"], step.model.jit_compile]
    first, second = (build(PACKAGE, "lenet5").model.get_weights()[0] for _ in range(2))
    answer["twice"] = bool(np.array_equal(first, second))
    answer["errors"] = {
        "no optimizer": failure(mode="train", optimizer=False),
        "jit": failure(options={"jit": "perhaps"}),
        "tf32": failure(precision="tf32"),
    }
    before = tf_keras.mixed_precision.global_policy().name
    with _step.user_state_kept():
        for precision in ("bf16", "mixed-fp16"):
            step = build(PACKAGE, "mlp", mode="train", precision=precision)
            step.run()
            variable, layer = step.model.trainable_variables[0], step.model.layers[0]
            answer[precision] = [variable.dtype.name if hasattr(variable.dtype, "name") else variable.dtype]
            answer[precision].append(layer.compute_dtype)
            if precision == "mixed-fp16":
                answer[precision].append(step.switches["gradient scaler"])
    answer["kept"] = before == tf_keras.mixed_precision.global_policy().name
    return answer


def built(name: str, mode: str, jit: str = "") -> dict[str, Any]:
    """What one model's step says and does."""
    from test_keras_models import build

    step = build(PACKAGE, name, mode=mode, options={"jit": jit} if jit else {})
    before = [np.array(variable) for variable in step.model.trainable_variables]
    results = [step.run(), step.run()]
    after = [np.array(variable) for variable in step.model.trainable_variables]
    return {
        "switches": step.switches,
        "parameters": step.parameters,
        "variables": len(after),
        "moved": sum(not np.array_equal(old, new) for old, new in zip(before, after, strict=True)),
        **({"output": list(results[0].shape)} if mode == "infer" else {"losses": [float(loss) for loss in results]}),
    }


def _graph(name: str) -> dict[str, Any]:
    """The scopes of the training graph after TensorFlow's optimizer, and their blocks."""
    from tensorflow.python.eager import context
    from test_keras_models import block_of, build

    step = build(PACKAGE, name, mode="train")
    running = context.context()
    running.enable_graph_collection()
    step.run()
    graphs = running.export_run_metadata().function_graphs
    running.disable_graph_collection()
    nodes = max((graph.post_optimization_graph.node for graph in graphs), key=len)
    idle = {"Const", "Placeholder", "NoOp", "Identity", "ReadVariableOp", "_Arg", "_Retval"}
    scopes = [node.name.rpartition("/")[0].replace("gradient_tape/", "") for node in nodes if node.op not in idle]
    blocks = {scope: block_of(scope, step.blocks) for scope in scopes}
    return {
        "switches": step.switches,
        "parameters": step.parameters,
        "trainable": step.trainable,
        "nodes": len(scopes),
        "unmapped": sorted(scope for scope, block in blocks.items() if block is None),
        "blocks": sorted({str(block) for block in blocks.values()}),
    }


def main(arguments: list[str]) -> None:
    """Answers one question of the tests."""
    gc.disable()  # what the process leaves goes with it, and most of what it makes stays to its end
    import weights_keras2
    from test_keras_models import compare, tokens

    questions: dict[str, Callable[..., Any]] = {
        "all": everything,
        "compare": lambda name: compare(PACKAGE, weights_keras2, name),
        "tokens": lambda name: tokens(PACKAGE, weights_keras2, name),
        "build": built,
    }
    print(json.dumps(questions[arguments[0]](*arguments[1:])))


if __name__ == "__main__":
    main(sys.argv[1:])
