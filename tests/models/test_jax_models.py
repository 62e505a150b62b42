from __future__ import annotations

import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("optax")

import jax.numpy as jnp
import numpy as np
from flax import nnx
from hypothesis import example, given
from hypothesis import strategies as st

from roofline import plugins
from roofline.core.step import Step, Workload
from roofline.errors import InputError, MissingError
from roofline.models import dimensions, geometry
from roofline.models._adam import ADAMW, Adam
from roofline.models.jax import _layers, _step, _training
from roofline.models.jax._program import Scaling
from roofline.xla.jax import _held

sys.path.append(str(Path(__file__).parent))
import weights_jax

# One layer compiles in half the time of two; where the outputs are compared with PyTorch's there are two.
SMALL = {
    "bert": {"batch": 2, "seq": 16, "layers": 1},
    "distilbert": {"batch": 2, "seq": 16, "layers": 1},
    "gemma": {"batch": 2, "seq": 16, "layers": 2},
    "dlrm": {"batch": 4},
    "gpt2": {"batch": 2, "seq": 16, "layers": 1},
    "lenet5": {"batch": 4},
    "mistral": {"batch": 2, "seq": 16, "layers": 2},
    "mlp": {"batch": 32},
    "segment-anything": {"batch": 2},
}
NAMES = tuple(SMALL)
IMAGES = ("lenet5", "segment-anything")
INFERRED = tuple(name for name in NAMES if name != "segment-anything")  # which is trained only, here


#: Models of which others share the code, or that are longer or larger.
OTHERS = ("distilbert", "distilgpt2", "gpt2", "mistral", "segment-anything")


def short(names: tuple[str, ...]) -> list[Any]:
    """The names, of which `make test` takes those whose code the others share."""
    return [pytest.param(name, marks=pytest.mark.thorough) if name in OTHERS else name for name in names]


TRANSFORMERS = ("bert", "distilbert", "gpt2")
LORA = ("gemma", "mistral")  # training learns low-rank updates of two projections alone; nothing is dropped
UNDROPPED = {
    "bert": {"dropout": 0.0},
    "distilbert": {"dropout": 0.0, "head_dropout": 0.0},
    "gpt2": {"dropout": 0.0},
}


@pytest.fixture(autouse=True)
def _user_state_kept() -> Iterator[None]:
    with _step.user_state_kept():
        yield


@pytest.fixture(autouse=True)
def _weights_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Initial weights as large as flax's, and none that XLA compiles a program for each shape to draw."""
    make = _step.make
    monkeypatch.setattr(_step, "make", lambda workload, kernel=None: make(workload, drawn_like(kernel)))


def drawn_like(kernel: Any) -> Any:
    """Normal numbers: of 0.02 in a transformer, else of the root of 1 by what goes into one of the outputs."""

    def draw(key: Any, shape: tuple[int, ...], dtype: Any, **_: Any) -> Any:
        if isinstance(key, jax.core.Tracer):  # shapes alone are asked for
            return jnp.zeros(shape, dtype)
        deviation = 0.02 if kernel is _layers.TRANSFORMER else np.prod(shape[:-1]) ** -0.5
        numbers = np.random.default_rng(np.asarray(jax.random.key_data(key))).normal(0, deviation, shape)
        return jnp.asarray(numbers.astype(dtype))

    return draw


def module(name: str) -> Any:
    return plugins.load("roofline.models.jax", name, "model", sorted_by_kind=True)


def build(name: str, changes: dict[str, Any] | None = None, **asked: Any) -> Step:
    return module(name).build(Workload(model=name, size="tiny", **{**SMALL[name], **asked}), changes)


def leaves(step: Step) -> list[np.ndarray]:
    return [np.array(array) for array in jax.tree.leaves(step.model.parameters)]


def block_of(scope: str, step: Step) -> str | None:
    return next((block for pattern, block in step.blocks if fnmatchcase(scope, pattern)), None)


def scope_of(op_name: str) -> str:
    """`jit(train)/transpose(jvp(bert))/encoder/dot_general` is `bert/encoder`."""
    called = re.sub(r"\w+\(", "(", re.sub(r"p?jit\([^()]*\)", "", op_name.partition(";")[0]))
    return re.sub(r"/+", "/", re.sub(r"[()]", "", called).rpartition("/")[0]).strip("/")


def test_a_scope_is_found_in_an_op_name() -> None:
    assert scope_of("jit(train)/transpose(jvp(bert))/encoder/layer.0/dot_general") == "bert/encoder/layer.0"
    assert scope_of("jit(infer)/self/vmap(jit(_where))/select_n") == "self"
    assert scope_of("jit(infer)/self/vmap(BTNH,BSNH->BNTS)/dot_general") == "self/BTNH,BSNH->BNTS"
    assert scope_of("jit(infer)/slice") == ""


#: What a CPU's program is compiled with: as right, in half the time. XLA joins other instructions, of the same names.
QUICKLY = {"xla_cpu_use_fusion_emitters": False}


def compile_step(step: Step) -> Step:
    """The step, its function compiled; compiling is what takes time here."""
    step.model.function = step.model.function.lower(*step.model.arguments()).compile(QUICKLY)
    return step


@cache
def compiled(name: str, mode: str, optimizer: bool) -> tuple[Step, Any, Any, dict[str, Any]]:
    """A step whose function is compiled already, and what it begins with: state, frozen weights, inputs."""
    two = {"layers": 2} if name in TRANSFORMERS and mode == "infer" else {}
    step = compile_step(build(name, mode=mode, optimizer=optimizer, **two))
    return step, jax.tree.map(jnp.copy, step.model.state), step.model.frozen, dict(step.model.inputs)


def ready(name: str, mode: str = "infer", optimizer: bool = True) -> Step:
    """A step as built; all tests share its program."""
    step, state, step.model.frozen, inputs = compiled(name, mode, optimizer)
    step.model.state, step.model.inputs = jax.tree.map(jnp.copy, state), dict(inputs)
    return step


def op_names(step: Step) -> list[str]:
    """Of the instructions of an optimized program.

    Left out is what only holds or passes on values, and what the compiler made and did not name.
    """
    found = []
    for line in step.model.function.as_text().splitlines():
        match = re.match(r"\s*(?:ROOT )?%?[\w.-]+ = \S+ ([\w-]+)\(", line)
        if match and match[1] not in ("parameter", "constant", "tuple", "get-tuple-element"):
            found += re.findall(r'op_name="([^"]*)"', line)
    return found


# --------------------------------------------------------------------------------------------- what a step is


def test_every_model_has_blocks() -> None:
    assert set(plugins.names("roofline.models.jax", sorted_by_kind=True)) == {*NAMES, "distilgpt2"}
    for name in NAMES:
        blocks = geometry(name).blocks
        assert blocks["jax"][-1][0] == "", "what the root itself runs needs a block"
        elsewhere = {"prompt encoder", "mask decoder"} if name == "segment-anything" else set()
        assert {block for _, block in blocks["jax"]} == {block for _, block in blocks["torch"]} - elsewhere


@pytest.mark.parametrize("name", short(INFERRED))
def test_inference(name: str) -> None:
    step = ready(name)
    output = step.run()

    assert jnp.isfinite(output).all()
    assert jnp.array_equal(output, step.run())
    assert jnp.array_equal(output, step.forward())
    assert "optimizer" not in step.switches
    assert step.switches["donation"] == "off"


def test_the_module_of_a_step_computes_what_the_step_does() -> None:
    step = ready("mlp")
    # Outputs are about 1, and the last bits of those near 0 are the order of float32 sums.
    np.testing.assert_allclose(step.model.network()(**step.model.inputs), step.run(), rtol=1e-5, atol=5e-7)


@pytest.mark.parametrize("name", short(NAMES))
def test_training_moves_the_parameters_and_takes_over_their_memory(name: str) -> None:
    step = ready(name, "train")
    before, held = leaves(step), jax.tree.leaves(step.model.parameters)
    first, second = step.run(), step.run()

    assert all(not np.array_equal(old, new) for old, new in zip(before, leaves(step), strict=True))
    assert all(array.is_deleted() for array in held)
    assert float(first) != float(second)
    assert step.switches["donation"] == "on"


def test_the_forward_pass_alone_may_follow_a_step_that_took_over_its_parameters() -> None:
    step = ready("mlp", "train")
    before = step.forward()
    step.run()
    assert not jnp.array_equal(before, step.forward())


@pytest.mark.parametrize("name", [pytest.param("distilbert", marks=pytest.mark.thorough), "lenet5", "mlp"])
def test_without_optimizer_the_parameters_stay_and_gradients_come_out(name: str) -> None:
    step = ready(name, "train", optimizer=False)
    before, held = leaves(step), jax.tree.leaves(step.model.parameters)
    loss, gradients = step.run()
    step.run()

    assert all(np.array_equal(old, new) for old, new in zip(before, leaves(step), strict=True))
    assert jnp.isfinite(loss)
    assert jax.tree.structure(gradients) == jax.tree.structure(step.model.parameters)
    assert all(jnp.abs(gradient).max() > 0 for gradient in jax.tree.leaves(gradients))
    # Not even a copy of the parameters is made: they are what they were.
    assert all(a is b for a, b in zip(held, jax.tree.leaves(step.model.parameters), strict=True))
    results = step.model.function.memory_analysis().output_size_in_bytes
    size = sum(array.nbytes for array in before)
    assert size <= results < 1.5 * size, "loss and gradients, and no parameters, leave the program"
    assert (step.switches["optimizer"], step.switches["donation"]) == ("none", "off")


def test_the_same_state_gives_the_same_steps_and_dropout_differs_between_them() -> None:
    assert jax.tree.all(
        jax.tree.map(jnp.array_equal, build("distilbert").model.parameters, build("distilbert").model.parameters)
    ), "built from one seed"
    step = ready("distilbert", "train", optimizer=False)
    state = step.model.state
    losses = [float(step.run()[0]) for _ in range(2)]
    step.model.state = state
    assert [float(step.run()[0]) for _ in range(2)] == losses
    assert losses[0] != losses[1], "only what is dropped differs"

    undropped = build("distilbert", UNDROPPED["distilbert"], mode="train", optimizer=False)
    assert float(undropped.run()[0]) == float(undropped.run()[0])


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # token, position and type tables and their norm; per layer 4 projections, 2 FFN products, 2 norms;
        # pooler; two-class head
        (
            "bert",
            (28_996 + 512 + 2 + 2) * 768
            + 12 * (4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768)
            + (768 * 768 + 768)
            + (768 * 2 + 2),
        ),
        ("bert", 108_311_810),
        ("distilbert", 66_362_880 + (768 * 768 + 768) + (768 * 2 + 2)),
        ("gpt2", 124_439_808),
        ("distilgpt2", 81_912_576),
        ("gemma", 8_537_680_896),
        pytest.param("mistral", 7_241_732_096, marks=pytest.mark.thorough),
        ("lenet5", 44_426),
        ("mlp", (4 * 32 + 32) + (32 * 16 + 16) + (16 * 4 + 4)),
        pytest.param("segment-anything", 637_026_048, marks=pytest.mark.thorough),
    ],
)
def test_published_sizes(name: str, parameters: int) -> None:
    assert count_at_published_size(name, nnx.Param) == parameters


@pytest.mark.parametrize(
    ("name", "learned"), [("gemma", 1_605_632), pytest.param("mistral", 1_703_936, marks=pytest.mark.thorough)]
)
def test_lora_learns_as_much_as_published(name: str, learned: int) -> None:
    assert count_at_published_size(name, nnx.LoRAParam, lora=True) == learned


def count_at_published_size(name: str, kind: type[nnx.Variable], **given: Any) -> int:
    """The numbers in the variables of a kind. One and two of them tell those of all.

    Layers are alike, or the first one of so many has attention to the whole image, and larger tables for it.
    """
    dims = dimensions(Workload(model=name))

    def count(**changed: Any) -> int:
        made = nnx.eval_shape(lambda: module(name).network(dims | changed, _layers.Make(rngs=nnx.Rngs(0)), **given))
        return sum(array.size for array in jax.tree.leaves(nnx.state(made, kind)))

    if "layers" not in dims:
        return count()
    alike = dims.get("global_every", 1)
    one, two = count(layers=alike), count(layers=2 * alike)
    return one + (dims["layers"] // alike - 1) * (two - one)


@pytest.mark.parametrize("name", LORA)
def test_frozen_weights_stay_where_they_are(name: str) -> None:
    infer, step = ready(name), ready(name, "train")
    assert infer.model.frozen == {}
    assert (step.parameters - infer.parameters, infer.trainable) == (step.trainable, infer.parameters)
    held = jax.tree.leaves(step.model.frozen)
    step.run()
    assert all(a is b and not a.is_deleted() for a, b in zip(held, jax.tree.leaves(step.model.frozen), strict=True))
    assert step.trainable == sum(array.size for array in leaves(step))
    # AdamW's two moments of each, and a number of steps (int32).
    assert _held(step) == {"parameters": 4.0 * step.parameters, "optimizer": 4.0 * (2 * step.trainable + 1)}


def test_distilgpt2_is_gpt2_with_other_dimensions() -> None:
    ours, theirs = module("distilgpt2"), module("gpt2")
    assert (ours.build, ours.network) == (theirs.build, theirs.network)


def test_the_step_says_how_much_it_works_on() -> None:
    step = build("bert", batch=3, seq=5, layers=1)

    assert (step.batch, step.seq, step.samples, step.tokens) == (3, 5, 3, 15)
    assert step.parameters == step.trainable == sum(array.size for array in leaves(step))
    assert len(step.model.network().bert.encoder.layer) == 1
    images = build("lenet5")
    assert (images.batch, images.seq, images.samples, images.tokens) == (4, None, 4, None)


def test_switches_say_what_was_resolved() -> None:
    bert = build("bert", mode="train").switches
    assert bert["attention"] == "nnx.dot_product_attention_weights"
    assert (bert["attention mask"], bert["gelu"], bert["dropout"]) == ("all ones", "erf", "0.1")
    assert (bert["loss"], bert["optimizer"], bert["optimizer lr"]) == ("cross entropy", "AdamW", "0.001")
    assert (bert["optimizer betas"], bert["optimizer eps"]) == ("(0.9, 0.999)", "1e-08")
    assert bert["optimizer weight_decay"] == "0.01"
    assert bert["random bits"] == "threefry2x32"
    assert build("bert", UNDROPPED["bert"], mode="train").switches["attention"] == "jax.nn.dot_product_attention"
    gpt2 = build("gpt2").switches
    assert (gpt2["attention"], gpt2["gelu"], gpt2["dropout"]) == ("jax.nn.dot_product_attention", "tanh", "off")
    lenet = build("lenet5", mode="train").switches
    assert (lenet["optimizer"], lenet["optimizer lr"], lenet["optimizer weight_decay"]) == ("Adam", "0.0003", "0")
    assert "random bits" not in lenet


CASES = [(name, mode) for name in NAMES for mode in ("infer", "train") if mode == "train" or name in INFERRED]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(*case, marks=pytest.mark.thorough) if case[0] in ("distilbert", "mistral") else case
        for case in CASES
    ],
)
def test_switches_have_the_names_that_the_models_in_pytorch_give_them(name: str, mode: str) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    workload = Workload(model=name, size="tiny", mode=mode, **SMALL[name])
    theirs = plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True).build(workload).switches
    ours = build(name, mode=mode).switches

    own = ("float32", "optimizer foreach", "optimizer fused")  # of PyTorch's libraries and loops
    shared = {key for key in theirs if not key.startswith(own)}
    assert shared <= set(ours)
    assert all(isinstance(value, str) for value in ours.values())
    assert {key: ours[key] for key in shared - {"attention"}} == {key: theirs[key] for key in shared - {"attention"}}


# --------------------------------------------------------------------------------------------- scopes and blocks


@pytest.mark.parametrize(
    ("name", "mode"),
    [pytest.param(*case, marks=pytest.mark.thorough) if case[0] in OTHERS else case for case in CASES],
)
def test_every_scope_has_a_block(name: str, mode: str) -> None:
    step = ready(name, mode)
    found = op_names(step)
    blocks = Counter(block_of(scope_of(op_name), step) for op_name in found)

    # What lies at the root is a head's slice, or was named by the compiler ("add", "targets").
    # A matrix of one column, which DLRM ends with, only changes its layout under the name of the argument.
    unscoped = [name for name in found if not scope_of(name) and not name.startswith("state.parameters[")]
    assert len(unscoped) <= 0.02 * len(found), unscoped
    assert None not in blocks
    unused = {block for _, block in step.blocks} - set(blocks)
    not_run = {"input"} | ({"loss", "optimizer"} if mode == "infer" else set())
    assert unused <= not_run


@pytest.mark.parametrize("name", short(TRANSFORMERS))
def test_ops_are_in_the_block_of_their_meaning(name: str) -> None:
    norm = "norm + residual + dropout"
    step = ready(name, "train")
    found = [(op_name.rpartition("/")[2], op_name, block_of(scope_of(op_name), step)) for op_name in op_names(step)]

    def blocks(*primitives: str, without: str = "optimizer") -> set[str | None]:
        return {block for primitive, _, block in found if primitive in primitives and block != without}

    products = {"attention core", "attention projections", "FFN", "head"}
    assert blocks("dot_general") == products
    assert blocks("erfc", "tanh") == ({"FFN"} if name != "bert" else {"FFN", "head"})  # BERT's pooler
    assert blocks("rsqrt") == {norm, "embedding"} if name != "gpt2" else {norm}
    assert blocks("gather", "scatter-add") <= {"embedding", "loss"}
    assert "embedding" in blocks("scatter-add")
    assert "loss" in blocks("exp")
    # Random bits: wherever something is dropped, and the key of the step.
    bits = {block for _, op_name, block in found if "threefry" in op_name or "shift_right_logical" in op_name}
    assert bits == {"embedding", "attention core", norm, "input"} | ({"head"} if name != "gpt2" else set())
    assert {block for _, op_name, block in found if op_name.rpartition("/")[2] == "sqrt"} == {"optimizer"}


@pytest.mark.parametrize("name", short(LORA))
def test_ops_of_a_frozen_model_are_in_the_block_of_their_meaning(name: str) -> None:
    step = ready(name, "train")
    found = [(op_name.rpartition("/")[2], block_of(scope_of(op_name), step)) for op_name in op_names(step)]

    def blocks(*primitives: str) -> set[str | None]:
        return {block for primitive, block in found if primitive in primitives and block != "optimizer"}

    assert blocks("dot_general") == {"attention core", "attention projections", "FFN", "head"}
    assert "FFN" in blocks("tanh" if name == "gemma" else "exp")  # of GELU; of SiLU, as of softmax
    assert blocks("rsqrt") == {"norm + residual + dropout"}
    assert blocks("cos", "sin") == {"attention core"}
    assert "embedding" not in blocks("scatter-add"), "the token table has no gradient"
    assert {block for primitive, block in found if primitive == "sqrt"} == {"optimizer"}


@pytest.mark.parametrize(("name", "hidden", "head"), [("bert", 3, 1), ("distilbert", 2, 1), ("gpt2", 3, 0)])
def test_every_element_is_dropped_on_its_own(name: str, hidden: int, head: int) -> None:
    """Random bits of a step: those of the hidden states and of the head, and all attention weights."""
    step = build(name, mode="train", optimizer=False)
    drawn: Counter[tuple[int, ...]] = Counter()

    def look(jaxpr: Any) -> None:
        for equation in jaxpr.eqns:
            if equation.primitive.name == "random_bits":
                drawn[equation.params["shape"]] += 1
            for below in equation.params.values():
                if hasattr(below, "jaxpr"):
                    look(below.jaxpr)

    look(jax.make_jaxpr(step.model.function)(*step.model.arguments()).jaxpr)

    # Batch 2, sequence 16, width 64 and 4 heads; behind the embeddings and twice, in DistilBERT once, in the one layer.
    assert drawn == +Counter({(2, 16, 64): hidden, (2, 4, 16, 16): 1, (2, 64): head})


@pytest.mark.parametrize("name", short(NAMES))
def test_backward_ops_carry_their_forward_scope(name: str) -> None:
    step = ready(name, "train")
    backward = [op_name for op_name in op_names(step) if "transpose(jvp" in op_name]

    forward_only = {"embedding"} if name in ("lenet5", *LORA) else set()
    wanted = {block for _, block in step.blocks} - {"optimizer", "input"} - forward_only
    assert {block_of(scope_of(op_name), step) for op_name in backward} == wanted


# --------------------------------------------------------------------------------------------- the same as PyTorch


def torch_model(name: str, dims: dict[str, Any], mode: str = "infer") -> Any:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    torch.manual_seed(3)
    theirs = plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True)
    model = getattr(theirs, "encoder", theirs.network)(dims)  # what is trained
    if name in LORA:
        shared = importlib.import_module("roofline.models.torch._transformers")
        model = shared.tuned(Workload(model=name, mode=mode), dims, model)  # type: ignore[arg-type]
    with torch.no_grad():  # no bias may be 0, no norm 1, and no activation so small that all forms of GELU agree
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def torch_weights(model: Any) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def pair(name: str, mode: str) -> tuple[Step, Any, dict[str, Any]]:
    """The JAX step and a PyTorch model with the same weights, no dropout, and the step's inputs for it."""
    torch = pytest.importorskip("torch")
    two = {"layers": 2} if name in TRANSFORMERS and mode == "infer" else {}
    # Where nothing is dropped, the program is that of all tests.
    if mode == "infer" or name not in UNDROPPED:
        step = ready(name, mode)
    else:
        step = compile_step(build(name, UNDROPPED[name], mode=mode))
    workload = Workload(model=name, size="tiny", **{**SMALL[name], **two})
    model = torch_model(name, {**dimensions(workload), **UNDROPPED.get(name, {})}, mode)
    weights_jax.set_weights(step, torch_weights(model))
    inputs = {key: np.asarray(value) for key, value in step.model.inputs.items()}
    if name in IMAGES:
        inputs = {key: weights_jax.to_torch_images(value) for key, value in inputs.items()}
    as_tensors = {key: torch.tensor(value.astype(np.int64) if value.dtype == np.int32 else value) for key, value in
                  inputs.items()}  # fmt: skip
    return step, model, as_tensors


@pytest.mark.parametrize("name", short(NAMES))
def test_the_forward_pass_equals_pytorchs(name: str) -> None:
    step, model, inputs = pair(name, "infer" if name in INFERRED else "train")
    output = model.eval()(**inputs)
    expected = (output[0] if hasattr(output, "keys") else output).detach().numpy()
    if name == "segment-anything":
        expected = weights_jax.to_jax_images(expected)

    assert np.abs(expected).max() > 0.5
    # 1e-4 would do between frameworks, and would forgive another epsilon.
    np.testing.assert_allclose(np.asarray(step.forward()), expected, atol=2e-5, rtol=1e-5)


def test_segment_anything_is_only_trained_here() -> None:
    with pytest.raises(InputError, match="use --mode train, --backend torch or --backend keras-jax"):
        build("segment-anything")


def test_a_window_hides_what_lies_before_it() -> None:
    torch = pytest.importorskip("torch")
    step, model, inputs = pair("mistral", "infer")
    weights, config = torch_weights(model), model.config
    config.sliding_window = 5
    narrow = compile_step(build("mistral", {"window": 5}))
    weights_jax.set_weights(narrow, weights)
    with torch.no_grad():
        expected = model.eval()(**inputs)["logits"].numpy()
    got, wide = np.asarray(narrow.run()), np.asarray(step.run())
    np.testing.assert_allclose(got, expected, atol=2e-5, rtol=1e-5)
    assert np.allclose(got[:, :5], wide[:, :5], atol=1e-5), "the first five see all that comes before"
    assert not np.allclose(got[:, 5:], wide[:, 5:], atol=1e-3)


@pytest.mark.parametrize("name", ["bert", "gpt2", pytest.param("mistral", marks=pytest.mark.thorough)])
def test_masked_tokens_are_left_out_as_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    step, model, inputs = pair(name, "infer")
    unmasked = np.asarray(step.run())
    inputs["attention_mask"][0, 11:] = 0
    step.model.inputs["attention_mask"] = jnp.asarray(inputs["attention_mask"].numpy(), jnp.int32)
    with torch.no_grad():
        expected = model.eval()(**inputs)["logits"].numpy()

    valid = (0,) if name == "bert" else (0, slice(0, 11))  # what a masked token itself gives means nothing
    got = np.asarray(step.run())
    np.testing.assert_allclose(got[valid], expected[valid], atol=1e-4, rtol=1e-4)
    # The causal mask already hides what comes later, so GPT-2's valid tokens see no difference.
    assert np.allclose(got[valid], unmasked[valid], atol=1e-5) == (name != "bert")


@pytest.mark.parametrize("name", short(NAMES))
def test_one_training_step_equals_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    step, model, inputs = pair(name, "train")
    theirs = importlib.import_module("roofline.models.torch._transformers")
    loss_of = {
        "dlrm": torch.nn.functional.binary_cross_entropy_with_logits,
        "lenet5": torch.nn.functional.cross_entropy,
        "mlp": torch.nn.functional.mse_loss,
        **dict.fromkeys(("gpt2", *LORA), theirs.next_token_loss),
        "segment-anything": lambda output, wanted: torch.nn.functional.mse_loss(output[0].movedim(1, -1), wanted),
    }.get(name, theirs.class_loss)
    optimizer = {
        "dlrm": lambda p: torch.optim.SGD(p, lr=0.1),
        "lenet5": lambda p: torch.optim.Adam(p, lr=3e-4),
        "mlp": torch.optim.Adam,
        "segment-anything": torch.optim.Adam,
    }.get(name, torch.optim.AdamW)(model.parameters())
    targets = np.asarray(step.model.targets)
    targets = torch.tensor(targets.astype(np.int64) if targets.dtype == np.int32 else targets)
    before = torch_weights(model)
    noise = {key: np.zeros(value.shape, bool) for key, value in before.items()}
    for _ in range(2):  # the second step shows the bias correction and the moments
        optimizer.zero_grad()
        expected = loss_of(model.train()(**inputs), targets)
        expected.backward()
        # Where a gradient is rounding only, Adam makes lr or -lr of it: in keys' biases, which softmax takes out.
        for key, parameter in model.named_parameters():
            if parameter.grad is None:  # frozen
                continue
            noise[key] |= (parameter.grad.abs() < 1e-6).numpy() & (parameter.grad != 0).numpy()
        optimizer.step()
        assert float(step.run()) == pytest.approx(expected.item(), abs=1e-4)

    after, got = torch_weights(model), weights_jax.get_weights(step)
    assert got.keys() == after.keys()
    assert sum(mask.sum() for mask in noise.values()) < 0.01 * step.parameters
    for key, mask in noise.items():
        mine, theirs, old = got[key][~mask], after[key][~mask], before[key][~mask]
        np.testing.assert_allclose(mine, theirs, atol=1e-4, err_msg=key)
        # A step moves a weight by about lr, so that this alone would nearly forgive a step not made.
        moved, apart = np.abs(theirs - old).sum(), np.abs(mine - theirs).sum()
        assert apart <= 0.01 * moved or key.endswith(("key.bias", "k_lin.bias")), (key, apart, moved)


@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_the_optimizers_are_pytorchs(decay: float) -> None:
    torch = pytest.importorskip("torch")
    kind = torch.optim.AdamW if decay else torch.optim.Adam
    theirs = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
    optimizer = kind([theirs], lr=0.1, weight_decay=decay)
    change = _training.transformation(Adam(lr=0.1, weight_decay=decay))
    ours = jnp.array([1.0, -2.0, 3.0])
    state = change.init(ours)
    for gradient in ([1.0, 1e-3, -4.0], [-2.0, 1e-3, 1e-9], [0.5, 2.0, 1e-8]):
        theirs.grad = torch.tensor(gradient)
        optimizer.step()
        updates, state = change.update(jnp.array(gradient), state, ours)
        ours = ours + updates
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-5)
    defaults = torch.optim.AdamW([theirs]).defaults
    assert Adam(lr=defaults["lr"], weight_decay=defaults["weight_decay"]) == ADAMW


@pytest.mark.parametrize("name", short(NAMES))
def test_weights_come_back_as_they_were_set(name: str) -> None:
    step = build(name, mode="infer" if name in INFERRED else "train")
    model = torch_model(name, dimensions(Workload(model=name, size="tiny", **SMALL[name])))
    weights = torch_weights(model)
    weights_jax.set_weights(step, weights)
    through_module = step.model.network()
    weights_jax.set_weights(through_module, weights)

    for got in (weights_jax.get_weights(step), weights_jax.get_weights(through_module)):
        assert got.keys() == weights.keys()
        assert all(np.array_equal(got[key], weights[key]) for key in weights)
    with pytest.raises(KeyError, match="no place for odd"):
        weights_jax.set_weights(step, {**weights, "odd": np.zeros(1)})
    del weights[next(iter(weights))]
    with pytest.raises(KeyError):
        weights_jax.set_weights(step, weights)


def test_other_inputs_can_be_given() -> None:
    step = build("mlp", mode="train", optimizer=False)
    zeros = np.zeros((32, 4), np.float32)
    loss, _ = step.run()
    weights_jax.set_inputs(step, {"input": zeros}, np.asarray(step.forward()) * 0)
    other, _ = step.run()
    # Biases begin at 0: an input of 0 gives 0, which is the target.
    assert float(loss) > 0
    assert float(other) == 0.0


# --------------------------------------------------------------------------------------------- precision, placement


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_pure_casts_reach_weights_and_inputs(precision: str) -> None:
    dtype = {"bf16": jnp.bfloat16, "fp16": jnp.float16}[precision]
    step = compile_step(build("mlp", mode="train", precision=precision))

    assert {array.dtype for array in jax.tree.leaves(step.model.parameters)} == {jnp.dtype(dtype)}
    assert step.run().dtype == dtype
    assert jax.eval_shape(step.forward).dtype == dtype


@pytest.mark.parametrize("name", ["bert", "lenet5"])
def test_mixed_precision_computes_low_and_keeps_the_weights(name: str) -> None:
    step = build(name, mode="train", precision="mixed-bf16")
    assert {array.dtype for array in jax.tree.leaves(step.model.parameters)} == {jnp.dtype(jnp.float32)}
    loss, _ = jax.eval_shape(step.model.function, *step.model.arguments())
    assert loss.dtype == jnp.float32
    assert jax.eval_shape(step.forward).dtype == jnp.bfloat16
    jaxpr = str(jax.make_jaxpr(step.model.function)(*step.model.arguments()))
    assert not re.search(r":f32\[[\d,]*\] = (?:dot_general|conv_general_dilated)\[", jaxpr)
    assert step.switches["gradient scaler"] == "off"


def test_float16_gradients_are_scaled() -> None:
    step = compile_step(build("mlp", mode="train", precision="mixed-fp16"))
    assert step.switches["gradient scaler"] == "on"
    before, scaling = leaves(step), np.array(step.model.state.scaling.factor)
    assert scaling == 65536
    # A target of 3000 makes gradients of the output of about 2 * 3000 * 65536 / 128, above float16's 65504.
    step.model.targets = jnp.full_like(step.model.targets, 3000.0)
    step.run()
    assert step.model.state.scaling.factor == 32768
    assert all(np.array_equal(old, new) for old, new in zip(before, leaves(step), strict=True)), "a step left out"

    whole = ready("mlp", "train")
    step.model.targets = whole.model.targets
    step.model.state = step.model.state._replace(scaling=Scaling(jnp.float32(1024), jnp.int32(0)))
    start, same = leaves(step), leaves(whole)
    step.run(), whole.run()
    assert step.model.state.scaling == (1024, 1)
    for before, ours, other, theirs in zip(start, leaves(step), same, leaves(whole), strict=True):
        assert np.array_equal(before, other)
        assert np.abs(ours - theirs).mean() < 0.1 * np.abs(theirs - other).mean()


unscaled = jax.jit(_training._unscaled)


@example(steps=1998, finite=True, power=3)
@example(steps=1999, finite=True, power=3)
@given(steps=st.integers(0, 3000), finite=st.booleans(), power=st.integers(-5, 20))
def test_the_scale_grows_after_2000_finite_steps_and_halves_at_an_infinite_one(
    steps: int, finite: bool, power: int
) -> None:
    scaling = Scaling(jnp.float32(2.0**power), jnp.int32(steps % 2000))
    gradient = jnp.array([1.0, 2.0 if finite else jnp.inf])
    gradients, told, after = unscaled({"w": gradient}, scaling)

    assert bool(told) is finite
    assert gradients["w"][0] == 2.0**-power
    grown = finite and steps % 2000 == 1999
    assert float(after.factor) == 2.0**power * (2 if grown else 1 if finite else 0.5)
    assert int(after.finite_steps) == (0 if grown or not finite else steps % 2000 + 1)


def test_attention_in_float16_is_refused_on_a_cpu() -> None:
    with pytest.raises(InputError, match="no float16 on a CPU: use --precision bf16"):
        build("gpt2", precision="fp16")


def test_there_is_no_tf32_on_a_cpu() -> None:
    with pytest.raises(InputError, match="no TF32 on a CPU: use --precision fp32 or bf16"):
        build("mlp", precision="tf32")


def test_an_unknown_precision_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="fp32, tf32, bf16, fp16, mixed-bf16, mixed-fp16"):
        build("mlp", precision="int8")


def test_a_missing_gpu_is_said() -> None:
    if any(device.platform != "cpu" for device in jax.devices()):
        pytest.skip("there is a GPU here")
    with pytest.raises(MissingError, match="--device cpu"):
        build("mlp", device="cuda")


@pytest.mark.parametrize("chosen", [None, "high"])
def test_the_users_precision_comes_back(chosen: str | None) -> None:
    asked = Workload(model="mlp", size="tiny", precision="fp32")
    jax.config.update("jax_default_matmul_precision", chosen)
    with _step.user_state_kept():
        step = build("mlp", precision="fp32")
        assert jax.config.jax_default_matmul_precision == "highest"
        assert step.switches["float32 matmul (XLA)"] == "ieee"
        jaxpr = str(jax.make_jaxpr(step.model.function)(*step.model.arguments()))
        assert jaxpr.count("precision=(Precision.HIGHEST, Precision.HIGHEST)") == 3, "one per layer"
    assert jax.config.jax_default_matmul_precision == chosen

    def fail() -> None:
        with _step.user_state_kept():
            _step.prepare(asked)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert jax.config.jax_default_matmul_precision == chosen


def test_default_precision_touches_nothing() -> None:
    step = build("mlp")
    jax.config.update("jax_default_matmul_precision", "high")
    _step.prepare(Workload(model="mlp", size="tiny"))
    assert jax.config.jax_default_matmul_precision == "high"
    assert _step.precision_switches(jax.devices("cpu")[0])["jax_default_matmul_precision"] == "high"
    jaxpr = str(jax.make_jaxpr(step.model.function)(*step.model.arguments()))
    assert jaxpr.count("precision=(Precision.HIGH, Precision.HIGH)") == 3, "as the user chose it"


def test_inputs_wait_in_the_hosts_memory_when_they_have_to_travel() -> None:
    # Made as for a GPU: on a CPU the host is the device and nothing travels.
    device = jax.devices("cpu")[0]
    travels = _step.Placement(device, waits=True)
    values = {"input": jnp.ones(3)}
    assert isinstance(travels.stored(values)["input"], np.ndarray)
    assert isinstance(travels.arrived(travels.stored(values))["input"], jax.Array)
    assert isinstance(build("mlp", input="host").model.inputs["input"], jax.Array)


@pytest.mark.gpu
@pytest.mark.parametrize("name", short(NAMES))
def test_inputs_travel_from_the_host_in_every_step(name: str) -> None:
    # Not asked when the file is read: JAX would take most of the GPU's memory from the tests of others.
    if all(device.platform == "cpu" for device in jax.devices()):
        pytest.skip("needs a GPU that JAX finds")
    step = build(name, mode="train", device="cuda", input="host")
    assert all(isinstance(value, np.ndarray) for value in step.model.inputs.values())
    assert jnp.isfinite(step.run())
    assert {array.device.platform for array in jax.tree.leaves(step.model.parameters)} == {"gpu"}


@pytest.mark.parametrize("name", ["bert", "mlp"])
def test_what_the_first_step_begins_with_is_where_and_what_its_result_is(name: str) -> None:
    """Otherwise jit takes the second step for another call, and compiles it again."""
    step = ready(name, "train")

    def kinds() -> list[Any]:
        return [(array.aval, array.sharding, array.committed) for array in jax.tree.leaves(step.model.state)]

    before = kinds()
    step.run()
    assert kinds() == before


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["bert", "lenet5"])
def test_the_second_step_compiles_nothing(name: str) -> None:
    step = build(name, mode="train")
    for _ in range(3):
        jax.block_until_ready(step.run())
    assert step.model.function._cache_size() == 1
