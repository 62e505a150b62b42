"""The models in Keras 3. KERAS_BACKEND is read once per process, so each backend answers from a process of its own.

`python test_keras_models.py torch|jax` is what these processes run; it prints its answers as JSON.
`... compare NAME` compares any model with PyTorch's by hand, on the backend of the environment.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from roofline import plugins

#: Made of KerasCV's layers, which need TensorFlow too.
DIFFUSES = all(find_spec(name) for name in ("keras_cv", "diffusers", "tensorflow"))
NAMES = (
    *("bert", "distilbert", "gemma", "gpt2", "lenet5", "mistral", "mlp", "roberta", "segment-anything"),
    *(["stable-diffusion"] if DIFFUSES else []),
)
LORA = {"gemma", "mistral"}  # training learns low-rank updates of two projections alone; nothing is dropped
TOKENS = {"bert", "distilbert", "gpt2", "roberta", *LORA}
IMAGES = {"segment-anything", "stable-diffusion"}  # of which a part alone is trained
#: Rows of embeddings of width 64 that the class in PyTorch has besides: two positions of no token, and a token type.
MORE_IN_TORCH = {"roberta": 3 * 64}
DROPOUT = {"native_dropout", "bernoulli_"}
#: What Keras, KerasHub and transformers import where it is installed, and use for none of what is asked on PyTorch.
UNUSED = ("jax", "matplotlib", "pandas", "sklearn", *(() if DIFFUSES else ("tensorflow",)))
PACKAGE = "roofline.models.keras"


def _answers(backend: str, *arguments: str) -> Any:
    needed = ["keras", "keras_hub", "torch", "transformers", backend]
    if missing := [name for name in needed if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    environment = {**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


# ------------------------------------------------------------------------------------- what the tests assert


@pytest.fixture(scope="module")
def on_torch() -> Any:
    return _answers("torch", "torch")


@pytest.fixture(scope="module")
def on_jax() -> Any:
    return _answers("jax", "jax")


@pytest.fixture(scope="module")
def on_tensorflow() -> Any:
    return _answers("tensorflow", "tensorflow")


@pytest.fixture(scope="module")
def sizes() -> Any:
    return _answers("torch", "sizes")


@pytest.fixture
def builds(on_torch: Any) -> Any:
    return on_torch["builds"]


@pytest.fixture(params=["torch", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("jax", "tensorflow"))])
def bert(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"on_{request.param}")["bert"]


def test_the_sizes_are_the_published_ones(sizes: Any) -> None:
    assert sizes["all"] == {
        "bert": 108_311_810,
        "distilbert": 66_362_880 + (768 * 768 + 768) + (768 * 2 + 2),
        "gpt2": 124_439_808,
        "distilgpt2": 81_912_576,
        "gemma": 8_537_680_896,
        "mistral": 7_241_732_096,
        "lenet5": 44_426,
        "mlp": (4 * 32 + 32) + (32 * 16 + 16) + (16 * 4 + 4),
        "segment-anything": 641_090_864,
        "roberta": 124_052_736 + (768 * 768 + 768) + (768 * 2 + 2),
    }
    assert sizes["encoder"] == 637_026_048
    assert sizes["learned"] == {
        "gemma": 28 * 4 * 2 * (16 * 3072 + 256),  # 11,067,392
        "mistral": 32 * 4 * ((4096 * 32 + 128) + (4096 * 8 + 128)),  # 21,004,288
    }


@pytest.mark.parametrize("name", NAMES)
def test_inference_gives_an_output_of_the_models_shape(builds: Any, name: str) -> None:
    answer = builds["infer"][name]
    shapes = {"bert": [2, 2], "distilbert": [2, 2], "roberta": [2, 2], "lenet5": [4, 10], "mlp": [32, 4]}
    shapes["segment-anything"] = [2, 4, 24, 24]  # three masks and a single one, four times as fine as the patches
    shapes["stable-diffusion"] = [2, 16, 16, 4]  # latents have an eighth of the image's side
    assert answer["output"] == shapes.get(name, [2, 16, 1000])
    assert answer["finite"]
    assert answer["forward"] == answer["output"]
    assert "optimizer" not in answer["switches"]


@pytest.mark.parametrize("name", NAMES)
def test_training_moves_all_parameters_and_the_loss(builds: Any, name: str) -> None:
    answer = builds["train"][name]
    assert answer["moved"] == answer["variables"]
    assert answer["losses"][0] != answer["losses"][1]
    learned = answer["trainable"] if name in LORA else 0
    assert answer["parameters"] - learned == answer["torch parameters"] - MORE_IN_TORCH.get(name, 0)
    assert answer["trainable"] == (learned or answer["parameters"])


def test_lora_is_that_of_keras(builds: Any) -> None:
    """A factor (..., rank) and one (rank, last axis) for query and value.

    Kernels are (heads, hidden, head) in Gemma and (hidden, heads, head) in Mistral; here one layer of each.
    """
    assert {name: builds["train"][name]["trainable"] for name in sorted(LORA)} == {
        "gemma": 4 * 2 * (4 * 64 + 32),
        "mistral": 4 * ((64 * 4 + 16) + (64 * 2 + 16)),
    }
    switches = builds["train"]["gemma"]["switches"]
    assert switches["lora"] == "rank 4, alpha 4, query and value, by head, added to the kernels"
    assert (switches["attention"], builds["train"]["mistral"]["switches"]["attention"]) == ("written out", "sdpa")
    assert builds["train"]["mistral"]["frozen variables that moved"] == []


@pytest.mark.parametrize("name", sorted(LORA))
@pytest.mark.parametrize(
    "backend", ["torch", *(pytest.param(b, marks=pytest.mark.thorough) for b in ("jax", "tensorflow"))]
)
def test_gemma_and_mistral_are_their_equals_in_torch(request: pytest.FixtureRequest, name: str, backend: str) -> None:
    answer = request.getfixturevalue(f"on_{backend}")["outputs"][name]
    assert answer["size"] > 1
    assert answer["difference"] < 1e-5 * answer["size"]
    # B begins at 0, so that the first step has the loss of the model without LoRA.
    assert answer["loss"] == pytest.approx(answer["torch loss"], rel=1e-4)


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("name", NAMES)
def test_every_scope_on_the_torch_backend_has_a_block(builds: Any, name: str, mode: str) -> None:
    answer = builds[mode][name]
    assert answer["unmapped"] == []
    blocks = set(answer["blocks of rows"])
    not_run = {"input"} | ({"loss", "optimizer"} if mode == "infer" else {"prompt encoder", "mask decoder"})
    if (name, mode) == ("stable-diffusion", "train"):
        not_run |= {"cross attention", "FFN", "time embedding"}
    assert blocks - set(answer["blocks"]) <= not_run


@pytest.mark.parametrize("name", sorted(LORA))
def test_ops_of_a_frozen_model_are_in_the_block_of_their_meaning(builds: Any, name: str) -> None:
    of = builds["train"][name]["blocks of ops"]
    assert of["gelu" if name == "gemma" else "silu"] == ["FFN"]
    core = "_softmax" if name == "gemma" else "_scaled_dot_product_flash_attention_for_cpu"
    assert of[core] == of["cos"] == of["sin"] == ["attention core"]
    assert "norm + residual + dropout" in of["mean"]
    products = {block for op in ("mm", "bmm") for block in of[op]}
    assert {"attention projections", "FFN", "head"} <= products
    assert of["embedding"] == ["embedding"]
    assert of["_foreach_sqrt"] == ["optimizer"]


@pytest.mark.parametrize("name", sorted(TOKENS - LORA))
def test_ops_are_in_the_block_of_their_meaning(builds: Any, name: str) -> None:
    of = builds["train"][name]["blocks of ops"]
    norm = "norm + residual + dropout"
    assert of["gelu"] == ["FFN"]
    assert of["_softmax"] == ["attention core"]
    assert set(of["native_layer_norm"]) == ({norm} if name == "gpt2" else {norm, "embedding"})
    assert "embedding" in of["embedding"]
    products = {block for op in ("mm", "bmm") for block in of[op]}
    assert {"attention projections", "attention core", "FFN", "head"} <= products
    assert of["_log_softmax"] == ["loss"]
    assert of["_foreach_sqrt"] == ["optimizer"]
    assert {"attention core", norm, "embedding"} <= {block for op in DROPOUT for block in of.get(op, [])}


def test_the_step_says_how_much_it_works_on(builds: Any) -> None:
    assert builds["train"]["bert"]["amounts"] == [2, 16, 2, 32]  # batch, seq, samples, tokens
    assert builds["train"]["mlp"]["amounts"] == [32, None, 32, None]


def test_switches_are_in_the_words_of_the_models_in_torch(builds: Any) -> None:
    switches = builds["train"]["bert"]["switches"]
    assert switches["attention"] == "written out"
    assert (switches["gelu"], switches["dropout"], switches["loss"]) == ("erf", "0.1", "cross entropy")
    assert (switches["jit"], switches["keras backend"], switches["input"]) == ("off", "torch", "device")
    asked = ("AdamW", "0.001", "(0.9, 0.999)", "1e-08", "0.01", "False")
    names = ("", " lr", " betas", " eps", " weight_decay", " amsgrad")
    assert tuple(switches[f"optimizer{name}"] for name in names) == asked
    lenet = builds["train"]["lenet5"]["switches"]
    assert (lenet["optimizer"], lenet["optimizer lr"], lenet["optimizer weight_decay"]) == ("Adam", "0.0003", "0")
    assert builds["train"]["distilbert"]["switches"]["dropout"] == "0.1, 0.2 in the head"


def test_the_same_seed_gives_the_same_step(builds: Any) -> None:
    assert builds["twice"]


def test_distilbert_drops_out_where_the_original_does(builds: Any) -> None:
    # in the layer the attention weights and the FFN's output; the embeddings; the head
    assert builds["dropouts"] == 2 + 1 + 1


def test_what_cannot_be_is_said(builds: Any) -> None:
    errors = builds["errors"]
    assert "drop --no-optimizer" in errors["no optimizer"]
    assert "use jit=on or jit=off" in errors["jit"]
    assert "no TF32 on a CPU" in errors["tf32"]
    assert "fp32, tf32, bf16, fp16, mixed-bf16, mixed-fp16" in errors["int8"]
    assert "--device cpu" in errors["cuda"]
    assert all(text.endswith(".") for text in errors.values())


def test_precision_is_what_was_asked_for(builds: Any) -> None:
    assert builds["bf16"] == ["bfloat16", "bfloat16"]
    assert builds["mixed-bf16"] == ["float32", "bfloat16"]
    assert builds["mixed-fp16"] == ["float32", "float16", "on"]
    assert builds["fp32"] == ["ieee"]
    assert builds["kept"]


def test_host_inputs_stay_on_the_host(builds: Any) -> None:
    assert builds["host"] == ["ndarray", "ndarray"]


def test_the_matrix_exponential_is_right(builds: Any) -> None:
    assert builds["exponential"] < 1e-5


def test_bert_is_berts_equal_in_torch(bert: Any) -> None:
    """Asked for is 1e-4; the two forms of GELU differ by about that here, so the bound is closer."""
    check_outputs(bert)


def test_bert_trains_as_in_torch(bert: Any) -> None:
    check_training(bert)


def test_the_image_encoder_is_torchs(on_torch: Any) -> None:
    """Of the same colours: Keras's classes normalise them first."""
    assert on_torch["image"]["output"] < 2e-5
    check_training(on_torch["image"], compared=0.7)  # the loss is a mean of so many numbers that gradients are small


@pytest.mark.skipif(not DIFFUSES, reason="KerasCV, diffusers or TensorFlow is not installed")
def test_stable_diffusion_is_torchs(on_torch: Any) -> None:
    """The encoder of its autoencoder, and a denoising step, whose guidance makes 7.5 times as much of a difference."""
    assert on_torch["autoencoder"]["output"] < 1e-4  # of up to about 10
    check_training(on_torch["autoencoder"], compared=0.5)
    assert on_torch["denoising"]["difference"] < 1e-4 * on_torch["denoising"]["size"]


@pytest.mark.thorough
@pytest.mark.skipif(not DIFFUSES, reason="KerasCV, diffusers or TensorFlow is not installed")
def test_weights_are_those_of_kerascvs_own_classes() -> None:
    """In their order. KerasCV's encoder ends with quant_conv, (1, 1, 8, 8) and (8,), which is not part of ours."""
    found = _answers("jax", "published")
    ours, theirs = found["unet"]["shapes"]
    assert ours == theirs
    ours, theirs = found["encoder"]["shapes"]
    assert [*ours, [1, 1, 8, 8], [8]] == theirs
    assert (found["unet"]["parameters"], found["encoder"]["parameters"]) == (859_520_964, 34_163_592)


def test_roberta_is_robertas_equal_in_torch(on_torch: Any) -> None:
    """Without the one token type that PyTorch's class adds to every token: its row is 0 and stays it."""
    check_outputs(on_torch["roberta"])
    # Its loss begins at 0.16: it happens to be sure of the labels, and more gradients are small than in BERT.
    check_training(on_torch["roberta"], compared=0.7)


@pytest.mark.thorough
def test_rows_of_one_token_are_added_up_before_they_are_squared(on_tensorflow: Any) -> None:
    # Decay takes 1e-3 x 1e-2 off a weight of 1, and Adam's first update of any gradient is lr x its sign. Of rows
    # 1 and 3 squared one by one it would be lr x 4 / sqrt(10).
    assert on_tensorflow["rows"] == pytest.approx([1 - 1e-5, 1 - 1e-5 - 1e-3, 1 - 1e-5], abs=2e-7)


@pytest.mark.thorough
def test_xla_op_names_have_blocks(on_jax: Any) -> None:
    answer = on_jax["names"]
    assert answer["instructions"] > 1000
    assert answer["unmapped"] == []
    assert {"FFN", "attention core", "embedding", "head", "loss", "optimizer"} < set(answer["blocks"])


@pytest.mark.parametrize("name", ["gpt2", *sorted(LORA)])
@pytest.mark.parametrize(
    "backend", ["torch", *(pytest.param(b, marks=pytest.mark.thorough) for b in ("jax", "tensorflow"))]
)
def test_the_same_tokens_are_generated_as_in_torch(request: pytest.FixtureRequest, name: str, backend: str) -> None:
    answer = request.getfixturevalue(f"on_{backend}")["tokens"][name]
    assert answer["tokens"] == answer["torch tokens"]
    assert answer["again"]
    assert answer["new"] > 2
    assert answer["switches"]["decode passes"] == "5"
    assert answer["switches"]["kv cache"] == "static"


def check_outputs(answer: Mapping[str, Any]) -> None:
    """In both forms of GELU, which differ by more than the bound."""
    assert answer["erf"] < 1e-5
    assert answer["tanh"] < 1e-5
    assert answer["erf against tanh"] > 5e-5


def check_training(answer: Mapping[str, Any], compared: float = 0.9) -> None:
    """Two steps without dropout. Adam's first update is about lr x sign(gradient), its second tells the sizes apart."""
    for mine, torchs in zip(answer["losses"], answer["torch losses"], strict=True):
        assert mine == pytest.approx(torchs, rel=1e-4)
    assert abs(answer["losses"][0] - answer["losses"][1]) > 1e-2
    # lr is 1e-3, so updates are that large; a tenth of one update may be lost where gradients are near 0.
    assert answer["update"] < 2e-5
    assert answer["update where there is no gradient"] < 5e-7  # decay alone is 2e-6 and more
    assert answer["compared"] > compared


# ------------------------------------------------------------------------------------- what the processes run


def workload(name: str, **asked: Any) -> Any:
    from roofline.core.step import Workload

    batch = {"lenet5": 4, "segment-anything": 2, "stable-diffusion": 2}.get(name, 32)
    small = {"batch": 2, "seq": 16} if name in TOKENS else {"batch": batch}
    return Workload(model=name, **{"size": "tiny", **small, **asked})


def build(package: str, name: str, **asked: Any) -> Any:
    return plugins.load(package, name, "model", sorted_by_kind=True).build(workload(name, **asked))


@contextmanager
def dimensions_with(**changed: Any) -> Iterator[None]:
    """While active, models are built with these dimensions changed (where they have them)."""
    shared = import_module("roofline.models._keras.prepare")
    original = shared.dimensions

    def changing(asked: Any) -> dict[str, Any]:
        dims = original(asked)
        return {**dims, **{key: value for key, value in changed.items() if key in dims}}

    shared.dimensions = changing
    try:
        yield
    finally:
        shared.dimensions = original


def compare(package: str, weights: Any, name: str) -> dict[str, Any]:
    """The model of `package` against the one in PyTorch, from the same weights, on the batch of its own step."""
    import torch

    answer: dict[str, Any] = {}
    outputs = {}
    forms: tuple[str, ...] = ("",)
    if name in ("bert", "distilbert", "roberta"):
        forms = ("erf", "tanh")
    elif name in IMAGES:
        forms = ()
    for form in forms:
        changed = {"gelu": form} if form else {}
        with dimensions_with(**changed):
            step = build(package, name, input="host")
        reference = _reference(name, **changed)
        weights.set_weights(step.model, _state(reference))
        for key, value in weights.get_weights(step.model).items():
            assert np.array_equal(value, _state(reference)[key]), key
        batch = _batch(step, "predict_on_batch")
        with torch.no_grad():
            outputs[form] = _call(reference.eval(), name, batch[0]).numpy()
        answer[form or "output"] = float(np.abs(np.asarray(step.run()) - outputs[form]).max())
    if len(outputs) > 1:
        answer["erf against tanh"] = float(np.abs(outputs["erf"] - outputs["tanh"]).max())

    none = {"dropout": 0.0, "head_dropout": 0.0}
    with dimensions_with(**none):
        step = build(package, name, mode="train", input="host")
    reference = _reference(name, **none)
    before = _state(reference)
    weights.set_weights(step.model, before)
    mine = None if forms else np.asarray(step.forward())
    batch = _batch(step, "train_on_batch")  # runs the first step
    if mine is not None:
        theirs = _call(reference.eval(), name, batch[0]).detach().numpy()
        answer["output"] = float(np.abs(mine - theirs).max())
    rate = 3e-4 if name == "lenet5" else 1e-3
    kind = torch.optim.AdamW if name in TOKENS else torch.optim.Adam
    optimizer = kind(reference.parameters(), lr=rate)
    losses, gradients = [], []
    for _ in range(2):
        optimizer.zero_grad()
        loss = _loss(_call(reference.train(), name, batch[0]), name, *batch[1:])
        loss.backward()
        gradients.append(
            {
                key: parameter.grad.numpy().copy()
                for key, parameter in reference.named_parameters()
                if parameter.requires_grad
            }
        )
        optimizer.step()
        losses.append(loss.item())
    answer["losses"] = [_batch.result, float(step.run())]
    answer["torch losses"] = losses
    mine, theirs = weights.get_weights(step.model), _state(reference)
    clear, still, compared, some = 0.0, 0.0, 0, 0
    for key, gradient in gradients[0].items():
        difference = np.abs(mine[key] - theirs[key])
        sizes = np.minimum(np.abs(gradient), np.abs(gradients[1][key]))
        # The noise of a gradient that is 0 in theory (the key's bias) decides the sign of an update.
        seen, empty = sizes > 1e-4, np.maximum(np.abs(gradient), np.abs(gradients[1][key])) == 0
        clear = max(clear, difference[seen].max(initial=0.0))
        still = max(still, difference[empty].max(initial=0.0))
        compared, some = compared + int(seen.sum()), some + int((~empty).sum())
    answer |= {"update": float(clear), "update where there is no gradient": float(still), "compared": compared / some}
    return answer


def outputs(package: str, weights: Any, name: str) -> dict[str, float]:
    """A model that LoRA trains against the one in PyTorch: its output, and the loss of its first training step."""
    import keras
    import torch

    reference, step = _reference(name), build(package, name, input="host")
    weights.set_weights(step.model, _state(reference))
    batch = _batch(step, "predict_on_batch")
    with torch.no_grad():
        expected = _call(reference.eval(), name, batch[0]).numpy()
    train = build(package, name, mode="train", input="host")
    own = {re.sub(r"^.*?backbone[^/]*/", "", variable.path): variable for variable in step.model.variables}
    for variable in train.model.variables:
        if (same := own.get(re.sub(r"^.*?backbone[^/]*/", "", variable.path))) is not None:
            variable.assign(np.array(keras.ops.convert_to_numpy(same)))  # a copy: on JAX a step gives memory away
    batch = _batch(train, "train_on_batch")
    with torch.no_grad():
        loss = _loss(_call(reference, name, batch[0]), name, *batch[1:])
    return {
        "difference": float(np.abs(np.asarray(step.run()) - expected).max()),
        "size": float(np.abs(expected).max()),
        "loss": _batch.result,
        "torch loss": loss.item(),
    }


def denoising(package: str, weights: Any) -> dict[str, Any]:
    """One denoising step beside what PyTorch's UNet with the same weights and the library's DDIM make of its inputs."""
    import diffusers
    import torch

    reference = _reference("stable-diffusion", "network").unet.eval()
    step = build(package, "stable-diffusion", input="host")
    weights.set_weights(step.model, {f"unet.{key}": value for key, value in _state(reference).items()})
    _batch(step, "predict_on_batch")
    (without,), (with_text,) = _batch.seen
    latent = torch.from_numpy(without["latent"]).movedim(-1, 1)
    published = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "steps_offset": 1}
    scheduler = diffusers.DDIMScheduler(**published, set_alpha_to_one=False, clip_sample=False)
    scheduler.set_timesteps(50)
    with torch.no_grad():
        one, other = (
            reference(latent, 501, torch.from_numpy(given["context"])).sample for given in (without, with_text)
        )
        expected = scheduler.step(one + 7.5 * (other - one), 501, latent).prev_sample.movedim(1, -1).numpy()
    ours = np.asarray(step.run())
    return {"size": float(np.abs(expected).max()), "difference": float(np.abs(ours - expected).max())}


def weights_at_published_size(package: str) -> dict[str, Any]:
    """Shapes of our weights and of KerasCV's own classes, without data (on JAX, where shapes alone are enough)."""
    from importlib import import_module

    from keras.src.backend.common.stateless_scope import StatelessScope

    from roofline.models import dimensions

    library = import_module("keras_cv.src.models.stable_diffusion")
    module = plugins.load(package, "stable-diffusion", "model", sorted_by_kind=True)
    dims = dimensions(workload("stable-diffusion", size="published"))
    with StatelessScope(initialize_variables=False):
        made = {
            "encoder": (module.encoder(dims), library.ImageEncoder(download_weights=False)),
            "unet": (module.network(dims), library.DiffusionModel(512, 512, 77, download_weights=False)),
        }
    return {
        name: {"shapes": [[list(variable.shape) for variable in model.weights] for model in pair]}
        | {"parameters": pair[0].count_params()}
        for name, pair in made.items()
    }


def tokens(package: str, weights: Any, name: str) -> dict[str, Any]:
    """What a model generates, twice, beside what the one in PyTorch with the same weights does."""
    import torch

    reference, step = _reference(name), build(package, name, mode="generate", new_tokens=5)
    weights.set_weights(step.model, _state(reference))
    first, second = (np.asarray(step.run()["token_ids"]) for _ in range(2))
    prompt = first[:, : step.seq]
    kept = {"use_cache": True, "do_sample": False, "eos_token_id": None, "pad_token_id": 0, "max_new_tokens": 5}
    given = torch.tensor(prompt, dtype=torch.long)
    with torch.no_grad():
        expected = reference.eval().generate(input_ids=given, attention_mask=torch.ones_like(given), **kept)
    return {
        "tokens": first.tolist(),
        "again": (first == second).all().item(),
        "torch tokens": expected.tolist(),
        "new": len(np.unique(first[:, step.seq :])),
        "switches": dict(step.switches),
    }


def _batch(step: Any, method: str) -> tuple[Any, ...]:
    """Runs the step and returns what it first gives to Keras; all stays in `_batch.seen`, the result in `.result`."""
    seen: list[tuple[Any, ...]] = []
    kind = type(step.model)
    original = getattr(kind, method)

    def spying(self: Any, *arguments: Any) -> Any:
        seen.append(arguments)
        return original(self, *arguments)

    setattr(kind, method, spying)
    try:
        result = step.run()
    finally:
        setattr(kind, method, original)
    _batch.seen = seen
    _batch.result = float(result) if method == "train_on_batch" else None
    return seen[0]


def _reference(name: str, part: str = "encoder", **changed: Any) -> Any:
    """The model in PyTorch with weights large enough that every part of it shows in the output.

    part: of a model that is trained in part, that one, or "network" for the whole.
    """
    import torch

    from roofline.models import dimensions

    dims = dimensions(workload(name))
    dims |= {key: value for key, value in changed.items() if key in dims}
    module = plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True)
    model = getattr(module, part, module.network)(dims)
    torch.manual_seed(1)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            is_scale = parameter.ndim == 1 and key.endswith("weight")
            parameter.normal_(1.0 if is_scale else 0.0, 0.2)
        if name == "roberta":  # what Keras's class does not have
            model.roberta.embeddings.token_type_embeddings.weight.zero_().requires_grad_(False)
            model.roberta.embeddings.position_embeddings.weight[:2] = 0.0
    if name == "stable-diffusion":
        _as_kerascv_has_it(model)
    return model


def _as_kerascv_has_it(model: Any) -> None:
    """GELU by tanh, and 1e-5 under the root of every norm, of which some have 1e-6 in PyTorch's class."""
    from functools import partial

    import torch

    for part in model.modules():
        if isinstance(part, torch.nn.GroupNorm):
            part.eps = 1e-5
        if type(part).__name__ == "GEGLU":
            part.gelu = partial(torch.nn.functional.gelu, approximate="tanh")


def _state(model: Any) -> dict[str, np.ndarray]:
    return {key: value.numpy().copy() for key, value in model.state_dict().items()}


def _call(model: Any, name: str, inputs: Any) -> Any:
    """The outputs of a model in PyTorch for the inputs of its twin in Keras."""
    import torch

    if name in TOKENS:
        ids, mask = (torch.from_numpy(inputs[key]).long() for key in ("token_ids", "padding_mask"))
        return model(input_ids=ids, attention_mask=mask)["logits"]
    if name == "stable-diffusion":
        return model(torch.from_numpy(inputs).movedim(-1, 1)).movedim(1, -1)
    if name == "segment-anything":
        colours = (inputs - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
        return model(torch.from_numpy(colours).movedim(-1, 1))[0].movedim(1, -1)
    value = torch.from_numpy(inputs)
    return model(value.permute(0, 3, 1, 2) if name == "lenet5" else value)


def _loss(output: Any, name: str, targets: np.ndarray, weights: np.ndarray | None = None) -> Any:
    """PyTorch's loss for the targets of the twin in Keras; a weight of 0 leaves a token out."""
    import torch
    from torch.nn import functional

    expected = torch.from_numpy(targets)
    if name in ("mlp", *IMAGES):
        return functional.mse_loss(output, expected)
    expected = expected.long()
    if weights is not None:
        expected = torch.where(torch.from_numpy(weights) > 0, expected, -100)
    return functional.cross_entropy(output.flatten(0, -2), expected.flatten())


def block_of(scope: str, blocks: Any) -> str | None:
    return next((block for pattern, block in blocks if fnmatchcase(scope, pattern)), None)


def builds_on_torch() -> dict[str, Any]:
    """All that is asked of the builders, on the torch backend, where nothing is compiled."""
    import keras
    import torch

    from roofline.errors import RooflineError
    from roofline.models._keras.basic import mlp
    from roofline.models.keras import _step

    def failure(**asked: Any) -> str:
        try:
            build(PACKAGE, "mlp", **asked)
        except RooflineError as error:
            return str(error)
        return "no error"

    answer: dict[str, Any] = {"infer": {}, "train": {}}
    for name in NAMES:
        for mode in ("infer", "train"):
            answer[mode][name] = _built(name, mode)
    first, second = (build(PACKAGE, "bert", mode="train").run() for _ in range(2))
    answer["twice"] = first == second
    answer["errors"] = {
        "no optimizer": failure(mode="train", optimizer=False),
        "jit": failure(options={"jit": "perhaps"}),
        "tf32": failure(precision="tf32"),
        "int8": failure(precision="int8"),
        "cuda": "--device cpu." if torch.cuda.is_available() else failure(device="cuda"),
    }
    answer["dropouts"] = answer["train"]["distilbert"]["dropouts"]

    def user_state() -> tuple[Any, ...]:
        switch = torch.backends.cudnn.conv.fp32_precision
        return keras.config.dtype_policy().name, switch, random.getstate(), torch.get_rng_state().tolist()

    before = user_state()
    with _step.user_state_kept():
        for precision in ("bf16", "mixed-bf16", "mixed-fp16"):
            step = build(PACKAGE, "mlp", mode="train", precision=precision)
            step.run()
            variable, layer = step.model.trainable_variables[0], step.model.layers[0]
            answer[precision] = [variable.dtype, layer.compute_dtype]
            if precision == "mixed-fp16":
                answer[precision].append(step.switches["gradient scaler"])
    with _step.user_state_kept():
        step = build(PACKAGE, "mlp", precision="fp32")
        answer["fp32"] = sorted({value for key, value in step.switches.items() if key.startswith("float32")})
    answer["kept"] = before == user_state()

    host = _batch(build(PACKAGE, "mlp", mode="train", input="host"), "train_on_batch")
    answer["host"] = [type(value).__name__ for value in host]
    matrices = np.random.default_rng(1).standard_normal((50, 2, 2), np.float32)
    matrices[0] = np.eye(2)  # both eigenvalues the same
    exact = torch.linalg.matrix_exp(torch.from_numpy(matrices)).numpy()
    answer["exponential"] = float((np.abs(mlp.exponential(matrices) - exact) / (1 + np.abs(exact))).max())
    return answer


def published_sizes() -> dict[str, Any]:
    """The numbers of parameters at published sizes, of layers that have shapes and no data."""
    import keras

    from roofline.models import dimensions

    answer: dict[str, Any] = {"all": {}, "learned": {}}
    # The shapes of that UNet take PyTorch minutes: they are asked for on JAX.
    for name in (*(name for name in NAMES if name != "stable-diffusion"), "distilgpt2"):
        with keras.device("meta"):
            network = plugins.load(PACKAGE, name, "model", sorted_by_kind=True).network(
                dimensions(workload(name, size="base"))
            )
        answer["all"][name] = network.count_params()
        if name in LORA:
            with keras.device("meta"):
                network.backbone.enable_lora(rank=4)
            answer["learned"][name] = sum(int(np.prod(variable.shape)) for variable in network.trainable_variables)
    with keras.device("meta"):
        image = plugins.load(PACKAGE, "segment-anything", "model", sorted_by_kind=True)
        answer["encoder"] = image.encoder(dimensions(workload("segment-anything", size="base"))).count_params()
    return answer


def _built(name: str, mode: str) -> dict[str, Any]:
    """What a step does; transformers have one layer. Their outputs are compared with PyTorch's behind two."""
    layers = {"layers": 1} if name in TOKENS else {}
    step = build(PACKAGE, name, mode=mode, **layers)
    result = step.run()
    seen = _dispatched(step)
    of: dict[str, list[str]] = {}
    for op, scope in sorted(seen):
        block = block_of(scope, step.blocks)
        if block is not None and block not in of.setdefault(op, []):
            of[op].append(block)
    answer = {
        "switches": step.switches,
        "parameters": step.parameters,
        "trainable": step.trainable,
        "amounts": [step.batch, step.seq, step.samples, step.tokens],
        "unmapped": sorted({scope for _, scope in seen if block_of(scope, step.blocks) is None}),
        "blocks": sorted({block for blocks in of.values() for block in blocks}),
        "blocks of rows": sorted({block for _, block in step.blocks}),
        "blocks of ops": of,
        "dropouts": len({scope for op, scope in seen if op in DROPOUT}),
    }
    if mode == "infer":
        result, forward = (out["masks"] if isinstance(out, dict) else out for out in (result, step.forward()))
        answer |= {"output": list(result.shape), "finite": bool(np.isfinite(result).all())}
        answer["forward"] = list(forward.shape)
        return answer
    before = [np.array(variable.numpy()) for variable in step.model.trainable_variables]
    fixed = [np.array(variable.numpy()) for variable in step.model.non_trainable_variables]
    loss = step.run()
    after = [variable.numpy() for variable in step.model.trainable_variables]
    twin = plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True)
    twin = twin.build(workload(name, mode=mode, **layers))
    answer |= {
        "losses": [float(result), float(loss)],
        "variables": len(after),
        "moved": sum(not np.array_equal(old, new) for old, new in zip(before, after, strict=True)),
        "torch parameters": twin.parameters - (twin.trainable if name in LORA and mode == "train" else 0),
        "frozen variables that moved": [
            variable.path
            for old, variable in zip(fixed, step.model.non_trainable_variables, strict=True)
            if "seed" not in variable.path and not np.array_equal(old, variable.numpy())
        ],
    }
    return answer


def _dispatched(step: Any) -> set[tuple[str, str]]:
    """(op, scope) of a step on the torch backend, the scopes made as the torch tracer makes them."""
    from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
    from torch.utils._python_dispatch import TorchDispatchMode

    from roofline.core.step import scopes_through
    from roofline.keras import torch_names as names

    path: list[str | None] = []
    seen: set[tuple[str, str]] = set()

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add((func._schema.name.removeprefix("aten::"), "/".join(part for part in path if part)))
            return func(*args, **(kwargs or {}))

    def enter(module: Any, args: Any) -> None:
        name = names.name(module)
        assert name is not None, module
        path.append(name if path else None)  # the outermost has no segment

    @contextmanager
    def named(part: str) -> Iterator[None]:
        path.append(part)
        yield
        path.pop()

    hooks = [
        register_module_forward_pre_hook(enter),
        register_module_forward_hook(lambda *_: path.pop() and None),
    ]
    try:
        with names.marked_training(), scopes_through(named), Dispatched():
            step.run()
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def rows_of_a_token() -> list[float]:
    """Three weights of 1 after a step on TensorFlow, with gradients 1 and 3 for the second of them."""
    import keras
    import tensorflow

    from roofline.models._adam import ADAMW
    from roofline.models.keras import _step

    table = keras.Variable(np.ones((3, 1), np.float32))
    rows = tensorflow.IndexedSlices(tensorflow.constant([[1.0], [3.0]]), [1, 1], (3, 1))
    _step.optimizer(ADAMW).apply([rows], [table])
    return table.numpy()[:, 0].tolist()


def names_in_hlo(name: str) -> dict[str, Any]:
    """The scopes in the optimized HLO of a training step on JAX, and their blocks."""
    import jax

    from roofline.xla.scopes import place

    step = build(PACKAGE, name, mode="train")
    step.run()
    programs = (executable.hlo_modules()[0].to_string() for executable in jax.devices()[0].client.live_executables())
    program = next(text for text in programs if text.startswith("HloModule jit_train_step"))
    scopes = [place(match).scope for match in re.findall(r'op_name="(jit\([^"]*)"', program)]
    blocks = {scope: block_of(scope or "", step.blocks) for scope in scopes}
    return {
        "instructions": len(scopes),
        "unmapped": sorted(str(scope) for scope, block in blocks.items() if block is None),
        "blocks": sorted(str(block) for block in set(blocks.values())),
    }


def main(arguments: list[str]) -> None:
    """Answers one question of the tests. The process ends at once: to tidy up would take it seconds."""
    gc.disable()  # what the process leaves goes with it, and most of what it makes stays to its end
    if os.environ["KERAS_BACKEND"] == "torch":
        sys.modules.update(dict.fromkeys(UNUSED))  # as if none of them were installed, which saves seconds
    import weights_keras

    def compared(name: str) -> dict[str, Any]:
        return compare(PACKAGE, weights_keras, name)

    def tuned() -> dict[str, Any]:
        return {
            "outputs": {name: outputs(PACKAGE, weights_keras, name) for name in sorted(LORA)},
            "tokens": {name: tokens(PACKAGE, weights_keras, name) for name in ("gpt2", *sorted(LORA))},
        }

    questions: dict[str, Callable[..., Any]] = {
        "torch": lambda: {
            "builds": builds_on_torch(),
            "bert": compared("bert"),
            "image": compared("segment-anything"),
            **({"autoencoder": compared("stable-diffusion")} if DIFFUSES else {}),
            **({"denoising": denoising(PACKAGE, weights_keras)} if DIFFUSES else {}),
            "roberta": compared("roberta"),
            **tuned(),
        },
        "jax": lambda: {"bert": compared("bert"), "names": names_in_hlo("bert"), **tuned()},
        "sizes": published_sizes,
        "published": lambda: weights_at_published_size(PACKAGE),
        "tensorflow": lambda: {"bert": compared("bert"), "rows": rows_of_a_token(), **tuned()},
        "compare": compared,
    }
    print(json.dumps(questions[arguments[0]](*arguments[1:])), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
