from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
context = pytest.importorskip("tensorflow.python.eager.context")  # others install a folder of that name
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from roofline import plugins
from roofline.core.step import Step, Workload
from roofline.errors import InputError, MissingError
from roofline.models import dimensions, geometry
from roofline.models._adam import ADAMW, Adam
from roofline.models.tensorflow import _optimizers, _step
from roofline.models.torch import _transformers

sys.path.append(str(Path(__file__).parent))
import weights_tensorflow as weights

#: distilgpt2 is gpt2 with other dimensions.
NAMES = tuple(name for name in plugins.names("roofline.models.tensorflow", sorted_by_kind=True) if name != "distilgpt2")
#: Of the transformers, which are written alike, `make test` takes BERT.
OTHERS = ("distilbert", "gpt2")
EACH = [pytest.param(name, marks=pytest.mark.thorough) if name in OTHERS else name for name in NAMES]
TRANSFORMERS = ("bert", "distilbert", "gpt2")
#: One layer is traced in half the time of two, which there are where outputs are compared with PyTorch's.
SMALL = {
    "bert": {"batch": 2, "seq": 16, "layers": 1},
    "distilbert": {"batch": 2, "seq": 16, "layers": 1},
    "gpt2": {"batch": 2, "seq": 16, "layers": 1},
    "lenet5": {"batch": 4},
    "mlp": {"batch": 32},
}
NO_DROPOUT = {"dropout": 0.0, "head_dropout": 0.0}


class Ran(NamedTuple):
    """nodes: operation by node name, of the nodes that compute, as the executor gets them at the step's first run."""

    step: Step
    result: np.ndarray
    nodes: dict[str, str]


@pytest.fixture(autouse=True)
def _user_state_kept() -> Iterator[None]:
    with _step.user_state_kept():
        yield


@pytest.fixture
def no_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are built with dropout 0: those that prepare themselves, and those that `_step` prepares."""
    prepare = _step.prepare
    for module in (_step, *map(model, NAMES)):
        if hasattr(module, "prepare"):
            monkeypatch.setattr(module, "prepare", lambda workload: prepare(workload) | NO_DROPOUT)


def model(name: str, framework: str = "tensorflow") -> ModuleType:
    return plugins.load(f"roofline.models.{framework}", name, "model", sorted_by_kind=True)


def workload(name: str, **asked: Any) -> Workload:
    return Workload(model=name, size="tiny", **{**SMALL[name], **asked})


def build(name: str, jit: str = "off", **asked: Any) -> Step:
    return model(name).build(workload(name, options={"jit": jit}, **asked))


@cache
def ran(name: str, mode: str) -> Ran:
    """The step of a model after its first run, for tests that only look at it."""
    step = build(name, mode=mode)
    watching = context.context()
    watching.enable_graph_collection()
    try:
        result = step.run()
        graphs = [graph.post_optimization_graph for graph in watching.export_run_metadata().function_graphs]
    finally:
        watching.disable_graph_collection()
    quiet = {"Const", "NoOp", "_Arg", "_Retval", "Identity"}
    largest = max(graphs, key=lambda graph: len(graph.node))  # the others are of single eager operations
    return Ran(step, result.numpy(), {node.name: node.op for node in largest.node if node.op not in quiet})


def block_of(scope: str, step: Step) -> str | None:
    return next((block for pattern, block in step.blocks if fnmatchcase(scope, pattern)), None)


# The same work as torch's


def twin(name: str, step: Step, **asked: Any) -> torch.nn.Module:
    """torch's model in training mode with dropout 0; `step`'s takes over its weights, drawn so that all matter."""
    torch.manual_seed(1)
    other = model(name, "torch").network(dimensions(workload(name, **asked)) | NO_DROPOUT)
    with torch.no_grad():
        for parameter in other.parameters():  # norms begin as 1 and 0, biases as 0, which would hide an exchange
            parameter.add_(torch.randn_like(parameter) * 0.1)
    weights.set_weights(step.model, {key: value.numpy() for key, value in other.state_dict().items()})
    return other.train()


def torch_arguments(name: str, step: Step) -> tuple[dict[str, torch.Tensor], torch.Tensor | None]:
    """What `step` works on, as torch's model takes it: (inputs, targets)."""
    inputs, *targets = step.run.arguments
    values = {key: torch.from_numpy(value.numpy()) for key, value in inputs.items()}
    if name == "lenet5":
        values = {"input": values["images"].permute(0, 3, 1, 2)}
    elif name == "mlp":
        values = {"input": values["vectors"]}
    return values, torch.from_numpy(targets[0].numpy()) if targets else None


def torch_loss(name: str) -> Callable[[Any, torch.Tensor], torch.Tensor]:
    if name == "mlp":
        return torch.nn.functional.mse_loss
    if name == "lenet5":
        return torch.nn.functional.cross_entropy
    return _transformers.next_token_loss if name == "gpt2" else _transformers.class_loss


def torch_optimizer(name: str, parameters: Any) -> torch.optim.Optimizer:
    if name in ("lenet5", "mlp"):
        return torch.optim.Adam(parameters, lr=3e-4 if name == "lenet5" else 1e-3)
    return torch.optim.AdamW(parameters)


JITS = [(name, "off") for name in NAMES] + [("bert", "compile")]


@pytest.mark.parametrize(("name", "jit"), JITS)
def test_the_same_output_as_torch(name: str, jit: str) -> None:
    two = {"layers": 2} if name in TRANSFORMERS else {}
    step = build(name, jit, **two)
    other = twin(name, step, **two).eval()
    inputs, _ = torch_arguments(name, step)
    with torch.no_grad():
        expected = other(**inputs)
    expected = expected["logits"] if name in TRANSFORMERS else expected

    output = step.run().numpy()
    assert output.shape == tuple(expected.shape)
    assert np.abs(expected.numpy()).max() > 0.1
    np.testing.assert_allclose(output, expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_padding_is_masked_as_in_torch(name: str) -> None:
    step = build(name)
    other = twin(name, step).eval()
    inputs, _ = torch_arguments(name, step)
    inputs["attention_mask"][0, 9:] = 0
    with torch.no_grad():
        expected = other(**inputs)["logits"].numpy()
        unmasked = other(inputs["input_ids"])["logits"].numpy()
    output = step.model(**{key: tf.constant(value.numpy()) for key, value in inputs.items()}, training=False)

    # a decoder's tokens before the padding do not see it anyway
    assert np.abs(expected - unmasked)[0].max() > 1e-2
    np.testing.assert_allclose(output.numpy()[:, :9], expected[:, :9], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("no_dropout")
@pytest.mark.parametrize(
    ("name", "jit"),
    [pytest.param(*case, marks=pytest.mark.thorough) if case[1] == "compile" else case for case in JITS],
)
def test_one_training_step_as_in_torch(name: str, jit: str) -> None:
    step = build(name, jit, mode="train")
    other = twin(name, step)
    inputs, targets = torch_arguments(name, step)
    before = {key: value.detach().numpy().copy() for key, value in other.named_parameters()}
    optimizer = torch_optimizer(name, other.parameters())
    expected = torch_loss(name)(other(**inputs), targets)
    expected.backward()
    optimizer.step()

    value = step.run()
    assert value.numpy() == pytest.approx(expected.item(), rel=1e-4)
    after = weights.get_weights(step.model)
    assert set(after) == set(before)
    for key, parameter in other.named_parameters():
        moved, expected_move = after[key] - before[key], parameter.detach().numpy() - before[key]
        # Adam's first step is lr * sign(gradient): where the gradient is only rounding, so is the sign
        sure = np.abs(parameter.grad.numpy()) > 1e-5
        np.testing.assert_allclose(moved[sure], expected_move[sure], rtol=0, atol=2e-5, err_msg=key)
        np.testing.assert_allclose(moved, expected_move, rtol=0, atol=1e-3, err_msg=key)
        assert sure.any() or key.endswith((".key.bias", ".k_lin.bias")), key


@pytest.mark.usefixtures("no_dropout")
@pytest.mark.parametrize("name", EACH)
def test_the_same_gradients_as_torch(name: str) -> None:
    step = build(name, mode="train", optimizer=False)
    other = twin(name, step)
    inputs, targets = torch_arguments(name, step)
    torch_loss(name)(other(**inputs), targets).backward()
    expected = {key: parameter.grad.numpy() for key, parameter in other.named_parameters()}

    _, first = step.run()
    _, again = step.run()
    assert step.switches["optimizer"] == "none"
    for key, gradient, repeated in zip(weights.named(step.model), first, again, strict=True):
        turned = weights.to_torch(step.model, key, gradient.numpy())
        scale = max(np.abs(expected[key]).max(), 1e-4)
        np.testing.assert_allclose(turned, expected[key], rtol=0, atol=1e-3 * scale, err_msg=key)
        # gradients do not pile up, parameters stay (sums over threads may differ in the last bits)
        np.testing.assert_allclose(repeated, gradient, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("adam", "make"),
    [
        (ADAMW, torch.optim.AdamW),
        (Adam(lr=3e-4), lambda parameters: torch.optim.Adam(parameters, lr=3e-4)),
    ],
)
def test_the_optimizer_is_torchs(adam: Adam, make: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    start = rng.normal(size=(7, 5)).astype("f")
    gradients = rng.normal(size=(4, 7, 5)).astype("f") * 10.0 ** rng.integers(-9, 1, (7, 5))  # eps matters too
    other = torch.nn.Parameter(torch.from_numpy(start).to(getattr(torch, dtype)))
    variable = tf.Variable(tf.cast(start, dtype), name="weight")
    mine, theirs = _optimizers.Optimizer(adam, [variable]), make([other])
    for gradient in gradients.astype("f"):
        mine.apply([tf.cast(gradient, dtype)])
        other.grad = torch.from_numpy(gradient).to(other.dtype)
        theirs.step()

    moved = tf.cast(variable, tf.float32).numpy() - start
    expected = other.detach().float().numpy() - start
    # bfloat16 has steps of 2^-8 of a number up to 4; of its three roundings per step one may fall the other way
    tolerance = 4 * 2**-7 if dtype == "bfloat16" else 1e-6
    np.testing.assert_allclose(moved, expected, rtol=1e-4 if dtype == "float32" else 0, atol=tolerance)
    assert theirs.defaults["lr"] == adam.lr
    assert theirs.defaults["betas"] == adam.betas
    assert theirs.defaults["eps"] == adam.eps
    assert theirs.defaults["weight_decay"] == adam.weight_decay


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
        ("distilbert", 66_362_880 + 592_130),
        ("gpt2", 124_439_808),
        ("distilgpt2", 81_912_576),
        ("lenet5", 44_426),
        ("mlp", 756),
    ],
)
def test_published_sizes(name: str, parameters: int) -> None:
    assert published_size(name) == parameters


@cache
def published_size(name: str) -> int:
    with tf.Graph().as_default():  # shapes without memory
        network = model(name).network(dimensions(Workload(model=name)))
    return sum(variable.shape.num_elements() for variable in network.trainable_variables)


def test_distilgpt2_is_gpt2_with_other_dimensions() -> None:
    ours, theirs = model("distilgpt2"), model("gpt2")
    assert (ours.build, ours.network) == (theirs.build, theirs.network)


# Steps


@pytest.mark.parametrize("name", EACH)
def test_training_moves_the_parameters(name: str) -> None:
    step = build(name, mode="train")
    before = weights.get_weights(step.model)
    first = step.run()
    second = step.run()

    after = weights.get_weights(step.model)
    assert all(not np.array_equal(before[key], after[key]) for key in before)
    assert np.isfinite(first)
    assert second != first
    assert step.run.function.experimental_get_tracing_count() == 1


def test_only_training_drops() -> None:
    infer, train = build("bert"), build("bert", mode="train")
    np.testing.assert_array_equal(infer.run(), infer.run())
    assert not np.array_equal(train.forward(), train.forward())
    layers = [one for one in train.model.submodules if type(one).__name__ == "Dropout"]
    # embeddings, in the layer attention and two residuals, head
    assert len(layers) == 1 + 3 + 1
    np.testing.assert_allclose(np.mean(layers[0](tf.ones((100, 100)), True) == 0), 0.1, atol=0.02)


def test_a_step_follows_from_its_workload_and_leaves_the_users_random_numbers_alone() -> None:
    def drawn_after(run: Callable[[], object]) -> float:
        tf.random.set_seed(3)
        run()
        return float(tf.random.uniform(()))

    try:
        assert drawn_after(build("bert", mode="train").run) == drawn_after(lambda: None)
    finally:
        context.set_global_seed(None)
    np.testing.assert_array_equal(build("mlp").run(), ran("mlp", "infer").result)
    assert build("bert", mode="train").run() == ran("bert", "train").result


def test_the_step_says_how_much_it_works_on() -> None:
    step = build("bert", batch=3, seq=5, layers=1)

    assert (step.batch, step.seq, step.samples, step.tokens) == (3, 5, 3, 15)
    assert step.parameters == step.trainable == sum(value.size for value in weights.get_weights(step.model).values())
    assert len(step.model.layers) == 1
    images = build("lenet5")
    assert (images.batch, images.seq, images.samples, images.tokens) == (4, None, 4, None)


def test_inputs_travel_from_the_host_in_every_step() -> None:
    device, host = build("mlp", mode="train"), build("mlp", mode="train", input="host")
    assert all(isinstance(value, np.ndarray) for value in tf.nest.flatten(host.run.arguments))
    assert all(isinstance(value, tf.Tensor) for value in tf.nest.flatten(device.run.arguments))
    assert host.run() == device.run()
    assert host.switches["input"] == "host"


# Scopes


def scope_of(name: str) -> str:
    return name.rpartition("/")[0].removeprefix("gradient_tape").lstrip("/")


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("name", EACH)
def test_every_node_has_a_block(name: str, mode: str) -> None:
    step, _, nodes = ran(name, mode)
    scopes = {node: scope_of(node) for node in nodes}

    assert not [node for node, scope in scopes.items() if block_of(scope, step) is None]
    # numbered scopes would be new ones: "bert_1/..."
    assert not [
        scope for scope in scopes.values() if re.match(r"(bert|distilbert|transformer|loss|optimizer)_\d", scope)
    ]
    # what has no scope of its own is the sum of gradients that meet
    assert {nodes[node] for node, scope in scopes.items() if not scope} <= {"AddN"}
    blocks = {block_of(scope, step) for scope in scopes.values()}
    assert {block for _, block in step.blocks} - blocks <= {"input"} | (
        {"loss", "optimizer"} if mode == "infer" else set()
    )


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_nodes_are_in_the_block_of_their_meaning(name: str, mode: str) -> None:
    step = ran(name, mode).step
    # before grappler, which fuses by the processor it finds
    graph = step.run.function.get_concrete_function(*step.run.arguments).graph
    nodes = {op.name: op.type for op in graph.get_operations()}

    def blocks(*ops: str) -> set[str | None]:
        return {block_of(scope_of(node), step) for node, op in nodes.items() if op in ops}

    norm = "norm + residual + dropout"
    assert blocks("Softmax", "BatchMatMulV2") == {"attention core"}
    assert blocks("Tanh" if name == "gpt2" else "Erfc") - {"head"} == {"FFN"}
    assert blocks("ResourceGather") == {"embedding"}
    assert blocks("Rsqrt") == ({norm} if name == "gpt2" else {norm, "embedding"})
    assert blocks("MatMul") == {"attention projections", "FFN", "head"}
    if mode == "train":
        assert blocks("ResourceApplyAdam", "AssignSubVariableOp") == {"optimizer"}
        assert blocks("SparseSoftmaxCrossEntropyWithLogits") == {"loss"}
        assert {norm, "attention core", "embedding"} <= blocks("RandomUniform")
        assert "UnsortedSegmentSum" in {op for node, op in nodes.items() if node.startswith("gradient_tape/")}
        assert blocks("UnsortedSegmentSum") == {"embedding"}
        # two of a dense layer's three products are backward, and their names say so
        products = [node for node, op in nodes.items() if op == "MatMul" and node.startswith("gradient_tape/")]
        dense = sum(type(one).__name__ == "Dense" for one in step.model.submodules) + (name == "gpt2")
        assert len(products) == 2 * dense


@pytest.mark.parametrize("mode", ["infer", pytest.param("train", marks=pytest.mark.thorough)])
def test_what_xla_compiles_keeps_the_scopes(mode: str) -> None:
    step = build("bert", "compile", mode=mode, layers=1)
    text = step.run.function.experimental_get_compiler_ir(*step.run.arguments)(stage="optimized_hlo")
    names = set(re.findall(r'op_name="([^"]*)"', text)) - {"XLA_Args", "XLA_Retvals"}

    assert len(names) > 50
    assert not [name for name in names if block_of(scope_of(name), step) is None]
    unscoped = {name.rpartition("/")[2] for name in names if not scope_of(name)}
    assert all(name.startswith("AddN") for name in unscoped), unscoped
    blocks = {block_of(scope_of(name), step) for name in names}
    assert {block for _, block in step.blocks} - blocks <= {"input"} | (
        {"loss", "optimizer"} if mode == "infer" else set()
    )
    assert step.switches["jit"] == "compile"


# Precision and switches


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_pure_casts_reach_weights_and_results(name: str, precision: str) -> None:
    dtype = {"bf16": tf.bfloat16, "fp16": tf.float16}[precision]
    step = build(name, precision=precision)
    reference = ran(name, "infer").result

    assert {variable.dtype for variable in step.model.trainable_variables} == {dtype}
    assert step.run().dtype == dtype
    near = {"bf16": 2**-8, "fp16": 2**-11}[precision] * 8 * np.abs(reference).max()
    np.testing.assert_allclose(tf.cast(step.run(), tf.float32), reference, rtol=0, atol=near)


def test_training_in_bf16_moves_all_but_the_norms() -> None:
    step = build("bert", mode="train", precision="bf16")
    before = weights.get_weights(step.model)
    assert np.isfinite(step.run())
    after = weights.get_weights(step.model)
    # Below 1 bfloat16 has steps of 2^-8: 1 minus the step's 1e-3 rounds to 1, in torch too.
    assert {key for key in before if np.array_equal(before[key], after[key])} == {
        key for key in before if key.endswith("LayerNorm.weight")
    }
    assert step.switches["optimizer kernel"] == "written out"


@pytest.mark.parametrize("name", EACH)
def test_mixed_precision_keeps_the_weights(name: str) -> None:
    step = build(name, precision="mixed-bf16", mode="train")
    loss = float(step.run())

    assert {variable.dtype for variable in step.model.trainable_variables} == {tf.float32}
    assert step.forward().dtype == tf.bfloat16
    assert loss == pytest.approx(float(ran(name, "train").result), rel=0.05)
    graph = step.run.function.get_concrete_function(*step.run.arguments).graph
    products = [op for op in graph.get_operations() if op.type in ("MatMul", "BatchMatMulV2", "Conv2D")]
    assert {op.outputs[0].dtype for op in products} == {tf.bfloat16}
    statistics = [op for op in graph.get_operations() if op.type in ("Rsqrt", "Softmax")]
    assert {op.outputs[0].dtype for op in statistics} <= {tf.float32}


def test_mixed_fp16_trains_only_with_a_loss_scale() -> None:
    assert build("mlp", precision="mixed-fp16").run().dtype == tf.float16
    with pytest.raises(InputError, match="loss scaling, which this model does not have: use --precision mixed-bf16"):
        build("mlp", precision="mixed-fp16", mode="train")


def test_switches_say_what_was_resolved() -> None:
    bert = build("bert", mode="train").switches
    assert bert["attention"] == "written out"
    assert bert["attention mask"] == "all ones"
    assert (bert["gelu"], bert["dropout"], bert["loss"]) == ("erf", "0.1", "cross entropy")
    assert (bert["optimizer"], bert["optimizer lr"], bert["optimizer weight_decay"]) == ("AdamW", "0.001", "0.01")
    assert (bert["jit"], bert["optimizer kernel"]) == ("off", "ResourceApplyAdam")
    assert bert["float32 matmul (TensorFlow)"] == "ieee"
    assert build("gpt2").switches["gelu"] == "tanh"
    assert build("gpt2").switches["dropout"] == "off"
    lenet = build("lenet5", mode="train").switches
    assert (lenet["optimizer"], lenet["optimizer lr"]) == ("Adam", "0.0003")


@pytest.mark.parametrize("name", EACH)
def test_the_switches_are_those_of_torch(name: str) -> None:
    mine = build(name, mode="train").switches
    theirs = model(name, "torch").build(workload(name, mode="train")).switches

    assert all(isinstance(value, str) for value in mine.values())
    own = {"jit", "optimizer kernel", "float32 matmul (TensorFlow)"}
    own_to_torch = {key for key in theirs if key.startswith("float32 ")} | {"optimizer foreach", "optimizer fused"}
    assert set(mine) - own == set(theirs) - own_to_torch
    same = set(mine) - own - {"attention"}
    assert {key: mine[key] for key in same} == {key: theirs[key] for key in same}


def state() -> tuple[object, object]:
    return tf.config.experimental.tensor_float_32_execution_enabled(), tf.config.optimizer.get_jit()


@pytest.mark.parametrize("tf32", [True, False])
def test_the_users_switches_come_back(tf32: bool) -> None:
    tf.config.experimental.enable_tensor_float_32_execution(tf32)
    before = state()
    with _step.user_state_kept():
        build("mlp", "autocluster", precision="fp32").run()
        assert state() == (False, "autoclustering")
    assert state() == before


def test_the_default_touches_nothing() -> None:
    before = state()
    build("mlp", mode="train").run()
    build("mlp", "compile").run()
    assert state() == before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"precision": "tf32"}, "no TF32 on a CPU: use --precision fp32 or bf16"),
        ({"precision": "int8"}, "fp32, tf32, bf16, fp16, mixed-bf16, mixed-fp16"),
        ({"jit": "on"}, "no jit 'on': use one of off, compile, autocluster"),
    ],
)
def test_what_cannot_be_had_is_refused(asked: Mapping[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build("mlp", **asked)


@pytest.mark.skipif(bool(tf.config.list_physical_devices("GPU")), reason="there is a GPU here")
def test_a_missing_gpu_is_said() -> None:
    with pytest.raises(MissingError, match="--device cpu"):
        build("mlp", device="cuda")


def test_every_model_has_blocks() -> None:
    assert set(NAMES) == set(SMALL)
    for name in NAMES:
        assert geometry(name).blocks["tensorflow"][-1][0] == ""
