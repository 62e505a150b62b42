"""Every model of our own, recorded by the torch backend at its tiny size, against closed forms of its dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from roofline import plugins
from roofline.analysis.analysis import Analysis, analyze
from roofline.backends.torch import BACKEND
from roofline.core.device import Device
from roofline.core.schema import encode
from roofline.core.step import Workload
from roofline.measuring import session
from roofline.models import dimensions, geometry
from roofline.models.torch import _step
from roofline.pytorch.recording import profiler
from roofline.recording import record
from roofline.recording.recording import Plan, Recording
from roofline.recording.request import Request
from roofline.timing.timed import EventCost

SMALL: dict[str, dict[str, int]] = {
    "bert": {"batch": 2, "seq": 16},
    "bert-layer": {"batch": 2, "seq": 16},
    "distilbert": {"batch": 2, "seq": 16},
    "gpt2": {"batch": 2, "seq": 16},
    "lenet5": {"batch": 4},
    "matmul": {},
    "mlp": {"batch": 32},
}
TRANSFORMERS = ("bert", "bert-layer", "distilbert", "gpt2")
CASES = [(name, mode) for name in SMALL for mode in ("infer", "train")]
every_case = pytest.mark.parametrize(("name", "mode"), CASES, ids=[f"{name}-{mode}" for name, mode in CASES])


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """One thread, as users set it, and no measuring of what is not tested here: ceilings, the profiler's own cost."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch, _step.user_state_kept():
        patch.setattr(record, "bandwidth", lambda plan, threads: {})
        patch.setattr(profiler, "event_cost", lambda: EventCost(2e-7, 2e-7))
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(threads)
    recorded.cache_clear()


def workload(name: str, mode: str) -> Workload:
    return Workload(model=name, mode=mode, size="tiny", **SMALL[name])  # type: ignore[arg-type]


@cache
def recorded(name: str, mode: str) -> tuple[Recording, Analysis]:
    """Three plain steps and five under the profiler, once per case."""
    step = plugins.load("roofline.models.torch", name, "model").build(workload(name, mode))
    recording = BACKEND.recorder.record(step, Plan(device="cpu", threads=1, steps=3), lambda text: None)
    request = Request(backend="torch", workload=workload(name, mode))
    profile = session.to_profile(recording, request, Device(name="none", kind="cpu", ceilings={}), "")
    return recording, analyze(profile)


def test_every_model_is_here() -> None:
    assert set(plugins.names("roofline.models.torch")) == set(SMALL)


# ------------------------------------------------------------------------------------------------ nothing is lost


@every_case
def test_every_op_is_joined_counted_and_placed(name: str, mode: str) -> None:
    recording, analysis = recorded(name, mode)

    assert recording.notes == (), "no op of unknown work"
    assert recording.profiled is not None
    assert recording.profiled.joined == 1
    assert "unjoined" not in recording.flags
    assert analysis.coverage == {"time": 1, "flops": 1, "bytes": 1}

    known = {block for _, block in geometry(name).blocks["torch"]} | {"optimizer"}
    phases = set()
    for op in recording.ops:
        phase, block = recording.phases[op.phase], recording.blocks[op.block]
        phases.add(phase)
        assert recording.scopes[op.scope] is not None
        assert block in known - {"other"}
        assert (block == "optimizer") == (phase == "optimizer")
        assert (recording.scopes[op.scope] == "optimizer") == (phase == "optimizer")
    learns = name != "matmul"  # which has no parameters
    assert phases == ({"forward"} if mode == "infer" else {"forward", "backward", *(["optimizer"] if learns else [])})


@every_case
def test_hardly_an_op_is_outside_of_every_layer(name: str, mode: str) -> None:
    """Backward has the scope of its forward. What is left: the 1 it starts from, and the gradient of a slice that
    the model itself takes (DistilBERT's first token)."""
    recording, _ = recorded(name, mode)
    outside = [recording.signatures[op.signature].name for op in recording.ops if recording.scopes[op.scope] == ""]
    assert set(outside) <= {"aten::ones_like", "aten::select_backward"}
    assert len(outside) <= 2


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("bert", "bert/encoder/layer.{}/"),
        ("distilbert", "distilbert/transformer/layer.{}/"),
        ("gpt2", "transformer/h.{}/"),
    ],
)
def test_every_layer_has_all_its_parts_in_both_directions(name: str, layers: str) -> None:
    recording, _ = recorded(name, "train")
    parts: dict[int, set[tuple[str, str]]] = {0: set(), 1: set()}
    for op in recording.ops:
        for layer, found in parts.items():
            if f"{recording.scopes[op.scope]}/".startswith(layers.format(layer)):
                found.add((recording.phases[op.phase], recording.blocks[op.block]))
    blocks = ("attention core", "attention projections", "FFN", "norm + residual + dropout")
    assert parts[0] == parts[1] == {(phase, block) for phase in ("forward", "backward") for block in blocks}


# ------------------------------------------------------------------------------------------------ closed forms


class Work(NamedTuple):
    """Matrix FLOPs of one block in one forward pass.

    backward: those of its backward pass. Each product of two operands has two gradients, and each gradient is a
    product of as many multiply-adds, so it is twice `forward`, less the gradients that nobody asks for.
    useful: of the forward pass, what a causal mask leaves; None: all of it.
    """

    forward: int
    backward: int
    useful: int | None = None


def twice(forward: int, useful: int | None = None) -> Work:
    return Work(forward, 2 * forward, useful)


def encoder(d: dict[str, Any]) -> dict[str, Work]:
    """The blocks of L layers; T = B S tokens. 2 FLOP per multiply-add."""
    layers, tokens = d.get("layers", 1), d["batch"] * d["seq"]
    hidden = d["hidden"]
    return {
        # Q, K, V and the output: four products [T, H] x [H, H]
        "attention projections": twice(layers * 4 * 2 * tokens * hidden * hidden),
        # Q K^T and P V: [S, H/A] x [H/A, S] and [S, S] x [S, H/A] for each of B samples and A heads
        "attention core": twice(layers * 2 * 2 * d["batch"] * d["seq"] * d["seq"] * hidden),
        # [T, H] x [H, F] and [T, F] x [F, H]
        "FFN": twice(layers * 2 * 2 * tokens * hidden * d["ffn"]),
    }


def bert(d: dict[str, Any], mode: str) -> dict[str, Work]:
    # On the first token of each sample: the pooler or pre-classifier [B, H] x [H, H], the classifier [B, H] x [H, C].
    head = 2 * d["batch"] * d["hidden"] * (d["hidden"] + d["classes"])
    return {**encoder(d), "head": twice(head)}


def bert_layer(d: dict[str, Any], mode: str) -> dict[str, Work]:
    return encoder(d)  # the gradient of its input is asked for


def gpt2(d: dict[str, Any], mode: str) -> dict[str, Work]:
    blocks = encoder(d)
    if mode == "infer":
        # One causal kernel, which may skip the scores above the diagonal: S (S + 1) / 2 of S S are useful.
        core = blocks["attention core"].forward
        blocks["attention core"] = twice(core, core * (d["seq"] + 1) // (2 * d["seq"]))
    # The head, tied to the token table: [T, H] x [H, V]
    return {**blocks, "head": twice(2 * d["batch"] * d["seq"] * d["hidden"] * d["vocabulary"])}


def mlp(d: dict[str, Any], mode: str) -> dict[str, Work]:
    blocks = {}
    for number, (width_in, width_out) in enumerate(pairwise(d["widths"]), start=1):
        forward = 2 * d["batch"] * width_in * width_out
        # Nobody asks for the gradient of the data, so that the first layer has that of its weights alone.
        blocks[f"dense {number}"] = Work(forward, forward if number == 1 else 2 * forward)
    return blocks


def lenet5(d: dict[str, Any], mode: str) -> dict[str, Work]:
    blocks, side = {}, d["image"]
    for number, (channels_in, channels_out) in enumerate(pairwise([1, *d["channels"]]), start=1):
        side = side - d["kernel"] + 1  # no padding, so that every position is valid
        forward = 2 * d["batch"] * channels_out * side**2 * channels_in * d["kernel"] ** 2
        blocks[f"conv {number}"] = Work(forward, forward if number == 1 else 2 * forward)
        side //= 2  # pooling
    widths = [d["channels"][-1] * side**2, *d["dense"]]
    for number, (width_in, width_out) in enumerate(pairwise(widths), start=1):
        blocks[f"dense {number}"] = twice(2 * d["batch"] * width_in * width_out)
    return blocks


def matmul(d: dict[str, Any], mode: str) -> dict[str, Work]:
    blocks = {}
    for n in d["n"]:
        matrix, vector = 2 * n**3, 2 * n**2
        # Inference runs both also into a given output, which has no gradient. The gradient of the vector is a
        # product; PyTorch makes that of its matrix, an outer product, by multiplying: n n vector FLOPs.
        forward = (matrix + vector) * (2 if mode == "infer" else 1)
        blocks[f"n = {n}"] = Work(forward, 2 * matrix + vector)
    return blocks


CLOSED = {
    "bert": bert,
    "bert-layer": bert_layer,
    "distilbert": bert,
    "gpt2": gpt2,
    "lenet5": lenet5,
    "matmul": matmul,
    "mlp": mlp,
}


def test_the_closed_form_of_bert_on_paper() -> None:
    """BERT tiny, 2 x 16 tokens, H 64, F 256, 2 layers: 4*2*32*64*64 + 2*2*2*16*16*64 + 2*2*32*64*256 = 3,276,800
    per layer, and a head of 2*2*64*(64 + 2) = 16,896."""
    work = bert(dimensions(workload("bert", "infer")), "infer")
    assert sum(block.forward for block in work.values()) == 2 * 3_276_800 + 16_896


@every_case
def test_matrix_flops_equal_the_closed_form(name: str, mode: str) -> None:
    """Model and executed FLOPs, exactly, per phase and per block.

    They are equal: nothing is padded or computed twice. On a CPU, attention in training is written out, since its
    dropout has no fused kernel there.
    """
    _, analysis = recorded(name, mode)
    expected = CLOSED[name](dimensions(workload(name, mode)), mode)

    forward = sum(work.forward for work in expected.values())
    backward = sum(work.backward for work in expected.values())
    useful = sum(work.forward if work.useful is None else work.useful for work in expected.values())
    phases = {phase: (sums.model_flops, sums.flops, sums.useful_flops) for phase, sums in analysis.by("phase").items()}
    assert phases.pop("forward") == (forward, forward, useful)
    if mode == "train":
        assert phases.pop("backward") == (backward, backward, backward)
    assert set(phases.values()) <= {(0, 0, 0)}  # the optimizer multiplies no matrices

    whole = {block: work.forward + (work.backward if mode == "train" else 0) for block, work in expected.items()}
    for count in ("model_flops", "flops"):
        found = {block: getattr(sums, count) for block, sums in analysis.by("block").items()}
        assert {block: flops for block, flops in found.items() if flops} == whole


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_attention_is_fused_in_inference_and_written_out_in_training(name: str, mode: str) -> None:
    _, analysis = recorded(name, mode)
    core = CLOSED[name](dimensions(workload(name, mode)), mode)["attention core"]
    classes = analysis.by("class")
    if mode == "infer":
        assert classes["attention"].model_flops == classes["attention"].flops == core.forward
        assert "softmax" not in classes
    else:
        assert "attention" not in classes
        assert {"softmax", "random"} <= set(classes)


#: Numbers that an optimizer keeps for each parameter; SGD without momentum.
MOMENTS = {"Adam": 2, "AdamW": 2, "SGD": 0}


@pytest.mark.parametrize("name", [name for name in SMALL if name != "matmul"])
def test_the_optimizer_touches_every_parameter(name: str) -> None:
    """It updates in place: at least parameter, gradient and moments are read, all but the gradient written, in fp32."""
    recording, analysis = recorded(name, "train")
    assert recording.trainable is not None
    moments = MOMENTS[recording.switches["optimizer"]]
    optimizer = analysis.by("phase")["optimizer"]
    assert optimizer.bytes_read >= (2 + moments) * 4 * recording.trainable
    assert optimizer.bytes_written >= (1 + moments) * 4 * recording.trainable
    # The moments of each parameter, and beside them a number of steps (fp32) per tensor.
    tensors = len(list(plugins.load("roofline.models.torch", name, "model").network(dims(name)).parameters()))
    assert recording.memory.optimizer == moments * 4 * recording.trainable + (4 * tensors if moments else 0)


def dims(name: str) -> dict[str, Any]:
    return dimensions(workload(name, "train"))


# ------------------------------------------------------------------------------------------------ sizes


def parameters(name: str, d: dict[str, Any]) -> int:
    """The number of parameters from the dimensions."""
    if name == "matmul":
        return 0
    if name == "mlp":
        return sum(i * o + o for i, o in pairwise(d["widths"]))
    if name == "lenet5":
        side = ((d["image"] - d["kernel"] + 1) // 2 - d["kernel"] + 1) // 2
        convolutions = sum(i * o * d["kernel"] ** 2 + o for i, o in pairwise([1, *d["channels"]]))
        return convolutions + sum(i * o + o for i, o in pairwise([d["channels"][-1] * side**2, *d["dense"]]))
    h, f = d["hidden"], d["ffn"]
    # four projections and two FFN products with biases, two norms of scale and shift
    layers = d.get("layers", 1) * (4 * (h * h + h) + (h * f + f) + (f * h + h) + 2 * 2 * h)
    if name == "bert-layer":
        return layers
    tables = (d["vocabulary"] + d["positions"]) * h
    if name == "gpt2":
        return tables + layers + 2 * h  # a last norm; the head is the token table
    tables += d.get("token_types", 0) * h + 2 * h  # and the norm of the sum
    return tables + layers + (h * h + h) + (h * d["classes"] + d["classes"])


@every_case
def test_parameters_samples_and_tokens(name: str, mode: str) -> None:
    recording, _ = recorded(name, mode)
    d = dimensions(workload(name, mode))
    assert recording.parameters == recording.trainable == parameters(name, d)
    # fp32; the buffers of matmul's given outputs are no parameters
    assert recording.memory.parameters == 4 * parameters(name, d)
    assert (recording.batch, recording.seq, recording.samples) == (d.get("batch"), d.get("seq"), d.get("batch"))
    assert recording.tokens == (prod((d["batch"], d["seq"])) if "seq" in d else None)


@every_case
def test_the_step_closes_and_can_be_saved(name: str, mode: str) -> None:
    recording, analysis = recorded(name, mode)
    sums = analysis.total
    assert analysis.wall == pytest.approx(analysis.busy + analysis.gap, rel=1e-9)
    assert sums.seconds == pytest.approx(sums.floor + sums.loss + sums.uncosted - sums.overlap, rel=1e-9)
    # One thread runs one op at a time.
    assert sums.overlap == pytest.approx(0, abs=1e-12)
    assert len(recording.wall.steps) == 3
    assert all(len(op.own_ns) == len(recording.profiled.corrected) for op in recording.ops)  # type: ignore[union-attr]


def test_twelve_layers_of_training_are_saved_in_less_than_a_megabyte() -> None:
    """The rows of BERT base: as many ops, of smaller tensors."""
    asked = Workload(model="bert", mode="train", size="tiny", batch=1, seq=16, layers=12)
    step = plugins.load("roofline.models.torch", "bert", "model").build(asked)
    recording = BACKEND.recorder.record(step, Plan(device="cpu", threads=1, steps=3), lambda text: None)
    request = Request(backend="torch", workload=asked)
    profile = session.to_profile(recording, request, Device(name="none", kind="cpu", ceilings={}), "")
    assert len(profile.ops) > 2000
    assert len(encode(profile)) < 1_000_000
