"""Every model of our own, recorded by the torch backend at its tiny size, against closed forms of its dimensions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from fnmatch import fnmatch
from functools import cache
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from roofline import plugins
from roofline.analysis.analysis import Analysis, analyze
from roofline.backends.torch import BACKEND
from roofline.core.device import Device
from roofline.core.executor import OP_ALONE, OP_COLD, OP_IN_LAYERS
from roofline.core.schema import encode
from roofline.core.step import Workload
from roofline.measuring import session
from roofline.models import dimensions, geometry
from roofline.models.torch import _step
from roofline.models.torch._step import user_state_kept
from roofline.models.torch._transformers import tuned
from roofline.pytorch.recording import host_cost, profiler, shapes
from roofline.recording import record
from roofline.recording.backend import NeedsData
from roofline.recording.recording import Plan, Recording
from roofline.recording.request import Request
from roofline.timing.timed import EventCost

sys.path.append(str(Path(__file__).parent))
from work import Work, twice
from work_of_images import (
    parameters_of_segment_anything,
    parameters_of_stable_diffusion,
    segment_anything,
    stable_diffusion,
)

SMALL: dict[str, dict[str, int]] = {
    "bert": {"batch": 2, "seq": 16},
    "bert-layer": {"batch": 2, "seq": 16},
    "ctrl": {"batch": 2, "seq": 16, "layers": 1},
    "distilbert": {"batch": 2, "seq": 16},
    "gemma": {"batch": 2, "seq": 16},
    "dlrm": {"batch": 4},
    "gpt2": {"batch": 2, "seq": 16, "layers": 1},
    "lenet5": {"batch": 4},
    "matmul": {},
    "mistral": {"batch": 2, "seq": 16},
    "mlp": {"batch": 32},
    "openai-gpt": {"batch": 2, "seq": 16, "layers": 1},
    "roberta": {"batch": 2, "seq": 16, "layers": 1},
    "segment-anything": {"batch": 2},
    "stable-diffusion": {"batch": 2},
    "transformer-xl": {"batch": 2, "seq": 16, "layers": 1},
    "xlm": {"batch": 2, "seq": 16, "layers": 1},
    "xlnet": {"batch": 2, "seq": 16, "layers": 1},
}
TRANSFORMERS = tuple(
    name for name in SMALL if "heads" in geometry(name).sizes["tiny"] and "seq" in geometry(name).takes
)
LORA = ("gemma", "mistral")  # training learns low-rank updates of two projections alone
UNDROPPED = {"ctrl", *LORA}  # nothing is dropped in their attention
WRITTEN_OUT = {"openai-gpt", "transformer-xl", "xlm", "xlnet"}  # there is no other form of their attention
CASES = [(name, mode) for name in SMALL for mode in ("infer", "train")]
#: Recorded by `make test-all` alone: what takes longest, and transformers of which another one has every op.
THOROUGH = {
    *("ctrl", "distilbert", "mistral", "openai-gpt", "roberta", "transformer-xl", "xlm", "xlnet"),
    *("segment-anything", "stable-diffusion"),
}
#: What `make test` records too: training, whose forward pass is that of inference.
BRIEF = {("bert", "infer"), ("gpt2", "infer"), *((name, "train") for name in SMALL if name not in THOROUGH)}
every_case = pytest.mark.parametrize(
    ("name", "mode"),
    [pytest.param(*case, marks=() if case in BRIEF else pytest.mark.thorough, id="-".join(case)) for case in CASES],
)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """One thread, as users set it, and no measuring of what is not tested here: ceilings, what events and ops cost."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch, _step.user_state_kept():
        patch.setattr(record, "bandwidth", lambda plan, threads: {})
        patch.setattr(profiler, "event_cost", lambda: EventCost(2e-7, 2e-7))
        patch.setattr(host_cost, "conditions", lambda layer: dict.fromkeys((OP_ALONE, OP_IN_LAYERS, OP_COLD), 1e-6))
        torch.set_num_threads(1)
        yield
        torch.set_num_threads(threads)
    recorded.cache_clear()


def workload(name: str, mode: str) -> Workload:
    return Workload(model=name, mode=mode, size="tiny", **SMALL[name])  # type: ignore[arg-type]


def module(name: str) -> Any:
    if name == "stable-diffusion":
        pytest.importorskip("diffusers")
    return plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True)


@cache
def recorded(name: str, mode: str) -> tuple[Recording, Analysis]:
    """Three plain steps and two under the profiler, once per case."""
    step = module(name).build(workload(name, mode))
    plan = Plan(device="cpu", threads=1, steps=3, profiled_steps=2)
    recording = BACKEND.recorder.record(step, plan, lambda text: None)
    request = Request(backend="torch", workload=workload(name, mode))
    profile = session.to_profile(recording, request, Device(name="none", kind="cpu", ceilings={}), "")
    return recording, analyze(profile)


def test_every_model_is_here() -> None:
    """distilgpt2 is gpt2 with other dimensions, as tests/models/test_torch_models.py shows."""
    assert set(plugins.names("roofline.models.torch", sorted_by_kind=True)) == {*SMALL, "distilgpt2"}


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
        ("ctrl", "transformer/h.{}/"),
        ("gemma", "model/layers.{}/"),
        ("mistral", "model/layers.{}/"),
        ("openai-gpt", "transformer/h.{}/"),
        ("roberta", "roberta/encoder/layer.{}/"),
        pytest.param("transformer-xl", "layers.{}/", marks=pytest.mark.thorough),
        ("xlnet", "transformer/layer.{}/"),
    ],
)
def test_every_layer_has_all_its_parts_in_both_directions(name: str, layers: str) -> None:
    recording, _ = recorded(name, "train")
    parts: dict[int, set[tuple[str, str]]] = {layer: set() for layer in range(dims(name)["layers"])}
    for op in recording.ops:
        for layer, found in parts.items():
            if f"{recording.scopes[op.scope]}/".startswith(layers.format(layer)):
                found.add((recording.phases[op.phase], recording.blocks[op.block]))
    blocks = ("attention core", "attention projections", "FFN", "norm + residual + dropout")
    everything = {(phase, block) for phase in ("forward", "backward") for block in blocks}
    assert all(found == everything for found in parts.values())


# ------------------------------------------------------------------------------------------------ closed forms


def causal_kernel(core: int, seq: int, *, backward: bool) -> Work:
    """Attention in one causal kernel, which may skip the scores above the diagonal: S (S + 1) / 2 of S S are useful.

    backward: in one kernel as well, which makes the scores again: five products, of which four are gradients.
    """
    ran = core // 2 * 5 if backward else 2 * core
    useful = ran * (seq + 1) // (2 * seq) if backward else None
    return Work(core, 2 * core, core * (seq + 1) // (2 * seq), ran, useful)


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


def tied_head(d: dict[str, Any]) -> Work:
    """The head, tied to the token table: [T, H] x [H, V]"""
    return twice(2 * d["batch"] * d["seq"] * d["hidden"] * d["vocabulary"])


def gpt2(d: dict[str, Any], mode: str) -> dict[str, Work]:
    blocks = encoder(d)
    if mode == "infer":
        blocks["attention core"] = causal_kernel(blocks["attention core"].forward, d["seq"], backward=False)
    return {**blocks, "head": tied_head(d)}


def openai_gpt(d: dict[str, Any], mode: str) -> dict[str, Work]:
    return {**encoder(d), "head": tied_head(d)}  # all scores are computed, and those of later tokens replaced


def ctrl(d: dict[str, Any], mode: str) -> dict[str, Work]:
    core = causal_kernel(encoder(d)["attention core"].forward, d["seq"], backward=True)
    return {**encoder(d), "attention core": core, "head": tied_head(d)}


def rotary_decoder(d: dict[str, Any], mode: str) -> dict[str, Work]:
    """Gemma and Mistral: A query heads and K of keys and values, each D wide, D A is not always H; no biases.

    In training, the weights W are frozen, so that a product with W has one gradient, that of its input, and none where
    that comes from the token table: query, key and value in the first layer. Rank R: x A^T [T, H] x [H, R] and then
    [T, R] x [R, width], for query and value.
    """
    layers, tokens, hidden, rank = d["layers"], d["batch"] * d["seq"], d["hidden"], d["lora_rank"]
    queries, keys = d["heads"] * d["head"], d["kv_heads"] * d["head"]
    into, out = 2 * tokens * hidden * (queries + 2 * keys), 2 * tokens * queries * hidden
    # all A heads of queries, whether their keys are shared or not
    core = layers * 2 * 2 * d["batch"] * d["seq"] ** 2 * queries
    ffn = layers * 3 * 2 * tokens * hidden * d["ffn"]  # gate, up, down
    head = 2 * tokens * hidden * d["vocabulary"]
    projections = layers * (into + out)
    if mode == "infer":
        blocks = {"attention projections": projections, "FFN": ffn, "head": head}
        core_work = causal_kernel(core, d["seq"], backward=False)
        return {**{block: Work(work, 0) for block, work in blocks.items()}, "attention core": core_work}
    down, up = 2 * 2 * tokens * hidden * rank, 2 * tokens * rank * (queries + keys)
    forward = projections + layers * (down + up)
    backward = (layers - 1) * into + layers * out + layers * (down + 2 * up) + (layers - 1) * down
    return {
        "attention projections": Work(forward, backward),
        "attention core": causal_kernel(core, d["seq"], backward=True),
        "FFN": Work(ffn, ffn),
        "head": Work(head, head),
    }


def clusters(d: dict[str, Any]) -> list[tuple[int, int]]:
    """(words, width of their vectors) of each cluster."""
    ends = [0, *d["cutoffs"], d["vocabulary"]]
    return [(end - start, d["hidden"] // d["divisor"] ** n) for n, (start, end) in enumerate(pairwise(ends))]


def in_clusters(words: Any, d: dict[str, Any]) -> list[int]:
    """How many of the words are in each cluster."""
    ends = [0, *d["cutoffs"], d["vocabulary"]]
    return [int(((words >= start) & (words < end)).sum()) for start, end in pairwise(ends)]


def transformer_xl(d: dict[str, Any], mode: str) -> dict[str, Work]:
    layers, tokens, hidden = d["layers"], d["batch"] * d["seq"], d["hidden"]
    before, keys = d["batch"] * d["memory"], d["memory"] + d["seq"]
    # Query, key and value of segment and memory, [T + M, H] x [H, 3 H], and the output, [T, H] x [H, H].
    products = layers * (3 * 2 * (tokens + before) * hidden * hidden + 2 * tokens * hidden * hidden)
    # A key for each distance, [K, H] x [H, H], once for the batch. Dropout of what is not learned needs no gradient.
    far = layers * 2 * keys * hidden * hidden
    drawn = transformer_xl_words(d)
    embedded, asked = in_clusters(drawn[:, :-1], d), in_clusters(drawn[:, 1:], d)
    embedding = sum(2 * n * width * hidden for n, (_, width) in zip(embedded, clusters(d), strict=True))
    # All tokens among the common words and three clusters; in training, only those of a cluster inside of it.
    (common, _), *rare = clusters(d)
    inside = asked[1:] if mode == "train" else [tokens] * len(rare)
    head = 2 * tokens * hidden * (hidden + common + len(rare))
    head += sum(2 * n * width * (hidden + size) for n, (size, width) in zip(inside, rare, strict=True))
    return {
        "embedding": twice(embedding),
        "attention projections": Work(products + far, 2 * products + far),
        # Scores by content and by distance, and the mixing: [S, H/A] x [H/A, K] and [S, K] x [K, H/A]
        "attention core": twice(layers * 3 * 2 * tokens * keys * hidden),
        "FFN": twice(layers * 2 * 2 * tokens * hidden * d["ffn"]),
        "head": twice(head),
    }


def transformer_xl_words(d: dict[str, Any]) -> Any:
    return plugins.load("roofline.models.torch", "transformer-xl", "model", sorted_by_kind=True).words(d)


def xlm(d: dict[str, Any], mode: str) -> dict[str, Work]:
    # On the first token of each sample: the classifier [B, H] x [H, C]
    return {**encoder(d), "head": twice(2 * d["batch"] * d["hidden"] * d["classes"])}


def xlnet(d: dict[str, Any], mode: str) -> dict[str, Work]:
    blocks, batch, seq, hidden = bert(d, mode), d["batch"], d["seq"], d["hidden"]
    # A key for each of 2 S distances and each sample, [2 S B, H] x [H, H]; the sines and cosines are not learned.
    keys = d["layers"] * 2 * (2 * seq * batch) * hidden * hidden
    projections = blocks["attention projections"].forward
    blocks["attention projections"] = Work(projections + keys, 2 * projections + keys)
    # Q R^T of the queries with these keys, [S, H/A] x [H/A, 2 S] for each of B samples and A heads
    by_distance = d["layers"] * 2 * batch * seq * (2 * seq) * hidden
    blocks["attention core"] = twice(blocks["attention core"].forward + by_distance)
    return blocks


def mlp(d: dict[str, Any], mode: str) -> dict[str, Work]:
    blocks = {}
    for number, (width_in, width_out) in enumerate(pairwise(d["widths"]), start=1):
        forward = 2 * d["batch"] * width_in * width_out
        # Nobody asks for the gradient of the data, so that the first layer has that of its weights alone.
        blocks[f"dense {number}"] = Work(forward, forward if number == 1 else 2 * forward)
    return blocks


def dlrm(d: dict[str, Any], mode: str) -> dict[str, Work]:
    batch, vectors, width = d["batch"], d["tables"] + 1, d["bottom"][-1]
    # The features need no gradient; bags only add, and their backward puts rows into the table.
    bottom = [2 * batch * i * o for i, o in pairwise(d["bottom"])]
    top = sum(2 * batch * i * o for i, o in pairwise([width + vectors * (vectors - 1) // 2, *d["top"]]))
    return {
        "bottom MLP": Work(sum(bottom), 2 * sum(bottom) - bottom[0]),
        # All V x V products of V vectors, [V, W] x [W, V] for each sample; half of them are kept.
        "interaction": twice(2 * batch * vectors * vectors * width),
        "top MLP": twice(top),
    }


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
    "ctrl": ctrl,
    "distilbert": bert,
    "gemma": rotary_decoder,
    "dlrm": dlrm,
    "gpt2": gpt2,
    "lenet5": lenet5,
    "matmul": matmul,
    "mistral": rotary_decoder,
    "mlp": mlp,
    "openai-gpt": openai_gpt,
    "roberta": bert,  # its head is the pooler's product and the classifier
    "segment-anything": segment_anything,
    "stable-diffusion": stable_diffusion,
    "transformer-xl": transformer_xl,
    "xlm": xlm,
    "xlnet": xlnet,
}


def test_the_closed_form_of_bert_on_paper() -> None:
    """BERT tiny, 2 x 16 tokens, H 64, F 256, 2 layers: 4*2*32*64*64 + 2*2*2*16*16*64 + 2*2*32*64*256 = 3,276,800
    per layer, and a head of 2*2*64*(64 + 2) = 16,896."""
    work = bert(dimensions(workload("bert", "infer")), "infer")
    assert sum(block.forward for block in work.values()) == 2 * 3_276_800 + 16_896


@every_case
def test_matrix_flops_equal_the_closed_form(name: str, mode: str) -> None:
    """Model and executed FLOPs, exactly, per phase and per block.

    They are equal: nothing is computed twice, and padded is only what an op of its own pads. On a CPU, attention in
    training is written out, since its dropout has no fused kernel there; some have no such dropout, and the backward of
    their kernel makes the scores again.
    """
    _, analysis = recorded(name, mode)
    expected = CLOSED[name](dimensions(workload(name, mode)), mode)

    forward = sum(work.forward for work in expected.values())
    backward = sum(work.backward for work in expected.values())
    first = {block: work.forward if work.ran_forward is None else work.ran_forward for block, work in expected.items()}
    ran = {block: work.backward if work.ran is None else work.ran for block, work in expected.items()}
    useful = sum(first[block] if work.useful is None else work.useful for block, work in expected.items())
    phases = {phase: (sums.model_flops, sums.flops, sums.useful_flops) for phase, sums in analysis.by("phase").items()}
    assert phases.pop("forward") == (forward, sum(first.values()), useful)
    if mode == "train":
        unused = sum(ran[block] - work.useful_backward for block, work in expected.items() if work.useful_backward)
        executed = sum(ran.values())
        assert phases.pop("backward") == (backward, executed, executed - unused)
    assert set(phases.values()) <= {(0, 0, 0)}  # the optimizer multiplies no matrices

    trains = mode == "train"
    whole = {
        "model_flops": {block: work.forward + trains * work.backward for block, work in expected.items()},
        "flops": {block: first[block] + trains * ran[block] for block in expected},
    }
    for count, blocks in whole.items():
        found = {block: getattr(sums, count) for block, sums in analysis.by("block").items()}
        assert {block: flops for block, flops in found.items() if flops} == blocks


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name in CLOSED for mode in ("infer", "train")])
def test_published_sizes_ask_for_the_closed_form(name: str, mode: str) -> None:
    """As `--count-only` counts them: by shapes alone, but where the model reads numbers of its input."""
    module(name)
    one = 1 if "batch" in geometry(name).takes else None
    asked = Workload(model=name, mode=mode, size="published", batch=one)  # type: ignore[arg-type]
    try:
        recording = counted(asked, data=False)
    except NeedsData:
        recording = counted(asked, data=True)
    expected = CLOSED[name](dimensions(asked), mode).values()
    total = sum(recording.signatures[op.signature].cost.model_flops or 0.0 for op in recording.ops)
    assert total == sum(work.forward + (work.backward if mode == "train" else 0) for work in expected)


def counted(asked: Workload, *, data: bool) -> Recording:
    with nullcontext() if data else shapes.without_data(), user_state_kept():
        plan = Plan(device="cpu", threads=1, steps=1, count_only=True)
        return BACKEND.recorder.record(module(asked.model).build(asked), plan, lambda text: None)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        # Of inference, `make test` looks at what it records anyway.
        pytest.param(name, mode, marks=() if mode == "train" or (name, mode) in BRIEF else pytest.mark.thorough)
        for name in TRANSFORMERS
        for mode in ("infer", "train")
    ],
)
def test_attention_is_fused_where_the_library_can(name: str, mode: str) -> None:
    """That is in inference, and in training without dropout in attention, which has no kernel on a CPU."""
    _, analysis = recorded(name, mode)
    core = CLOSED[name](dimensions(workload(name, mode)), mode)["attention core"]
    classes = analysis.by("class")
    if name in WRITTEN_OUT or (mode == "train" and name not in UNDROPPED):
        assert "attention" not in classes
        assert {"softmax", *(["random"] if mode == "train" else [])} <= set(classes)
    elif mode == "infer":
        assert classes["attention"].model_flops == classes["attention"].flops == core.forward
        assert "softmax" not in classes
    else:
        assert classes["attention"].model_flops == core.forward + core.backward
        assert classes["attention"].flops == core.forward + (core.ran or 0)


#: Parameters of XLNet without a gradient: the embedding of a token to be predicted, and those of segments.
IDLE = ("*.mask_emb", "*.seg_embed", "*.r_s_bias")


def idle(name: str, d: dict[str, Any]) -> int:
    """One embedding, and in each layer two for segments and a bias."""
    return d["hidden"] + d["layers"] * 3 * d["hidden"] if name == "xlnet" else 0


#: Numbers that an optimizer keeps for each parameter; SGD without momentum.
MOMENTS = {"Adam": 2, "AdamW": 2, "SGD": 0}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough) if name in THOROUGH else name
        for name in SMALL
        if name != "matmul"
    ],
)
def test_the_optimizer_touches_every_parameter(name: str) -> None:
    """It updates in place: at least parameter, gradient and moments are read, all but the gradient written, in fp32."""
    recording, analysis = recorded(name, "train")
    assert recording.trainable is not None
    moments = MOMENTS[recording.switches["optimizer"]]
    learning = recording.trainable - idle(name, dims(name))
    optimizer = analysis.by("phase")["optimizer"]
    assert optimizer.bytes_read >= (2 + moments) * 4 * learning
    assert optimizer.bytes_written >= (1 + moments) * 4 * learning
    # The moments of each parameter, and beside them a number of steps (fp32) per tensor.
    learn = [
        p.numel()
        for path, p in trained(name).named_parameters()
        if p.requires_grad and not any(fnmatch(path, idle) for idle in IDLE)
    ]
    assert recording.trainable - sum(learn) == idle(name, dims(name))
    assert recording.memory.optimizer == moments * 4 * sum(learn) + (4 * len(learn) if moments else 0)


def trained(name: str) -> torch.nn.Module:
    """The network as training has it."""
    network = getattr(module(name), "encoder", module(name).network)(dims(name))
    return tuned(workload(name, "train"), dims(name), network) if name in LORA else network


def dims(name: str) -> dict[str, Any]:
    return dimensions(workload(name, "train"))


# ------------------------------------------------------------------------------------------------ sizes


def parameters(name: str, mode: str) -> int:
    """The number of parameters from the dimensions."""
    d = dimensions(workload(name, mode))
    if name == "segment-anything":
        return parameters_of_segment_anything(d, mode)
    if name == "stable-diffusion":
        return parameters_of_stable_diffusion(d, mode)
    if name == "matmul":
        return 0
    if name == "mlp":
        return sum(i * o + o for i, o in pairwise(d["widths"]))
    if name == "lenet5":
        side = ((d["image"] - d["kernel"] + 1) // 2 - d["kernel"] + 1) // 2
        convolutions = sum(i * o * d["kernel"] ** 2 + o for i, o in pairwise([1, *d["channels"]]))
        return convolutions + sum(i * o + o for i, o in pairwise([d["channels"][-1] * side**2, *d["dense"]]))
    if name == "dlrm":
        width, vectors = d["bottom"][-1], d["tables"] + 1
        top = [width + vectors * (vectors - 1) // 2, *d["top"]]
        dense = sum(i * o + o for widths in (d["bottom"], top) for i, o in pairwise(widths))
        return d["tables"] * d["rows"] * width + dense
    h, f = d["hidden"], d["ffn"]
    if name in LORA:
        queries, keys = d["heads"] * d["head"], d["kv_heads"] * d["head"]
        # query and output, key and value, three FFN products and two norms of a scale; a last norm
        layers = d["layers"] * (2 * h * queries + 2 * h * keys + 3 * h * f + 2 * h) + h
        return layers + d["vocabulary"] * h * (2 if name == "mistral" else 1)  # Gemma's head is the token table
    # four projections and two FFN products with biases, two norms of scale and shift
    layers = d.get("layers", 1) * (4 * (h * h + h) + (h * f + f) + (f * h + h) + 2 * 2 * h)
    if name == "bert-layer":
        return layers
    if name == "ctrl":
        return d["vocabulary"] * h + layers + 2 * h + d["vocabulary"]  # no table of positions; the head has a bias
    if name == "transformer-xl":
        # Five products without biases, a fused one of three among them; two biases of queries, FFN, two norms.
        layers = d["layers"] * (5 * h * h + 2 * h + (h * f + f) + (f * h + h) + 2 * 2 * h)
        tables = sum(size * width + width * h for size, width in clusters(d))
        return tables + layers + h * h + d["vocabulary"] + (len(d["cutoffs"]) * (h + 1))
    if name == "xlnet":
        # No biases but those of queries: three instead of four, and a fifth projection. Two segments per layer.
        layers += d["layers"] * (h * h + (3 - 4) * h + 2 * h)
        tables = d["vocabulary"] * h + h  # a token to be predicted; no positions, no norm
        return tables + layers + (h * h + h) + (h * d["classes"] + d["classes"])
    tables = (d["vocabulary"] + d["positions"]) * h
    if name == "openai-gpt":
        return tables + layers  # the head is the token table
    if name == "gpt2":
        return tables + layers + 2 * h  # and a last norm
    tables += d.get("token_types", 0) * h + 2 * h  # and the norm of the sum
    if name == "roberta":
        tables += 2 * h  # positions start after that of padding, at 2
    head = 0 if name == "xlm" else h * h + h
    return tables + layers + head + (h * d["classes"] + d["classes"])


@every_case
def test_parameters_samples_and_tokens(name: str, mode: str) -> None:
    recording, _ = recorded(name, mode)
    d = dimensions(workload(name, mode))
    everything = learned = parameters(name, mode)
    if name in LORA and mode == "train":  # A and B for query and value
        learned = d["layers"] * d["lora_rank"] * (2 * d["hidden"] + (d["heads"] + d["kv_heads"]) * d["head"])
        everything += learned
    assert (recording.parameters, recording.trainable) == (everything, learned)
    # fp32; the buffers of matmul's given outputs are no parameters
    assert recording.memory.parameters == 4 * everything
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


@pytest.mark.thorough
def test_twelve_layers_of_training_are_saved_in_less_than_a_megabyte() -> None:
    """The rows of BERT base: as many ops, of smaller tensors."""
    asked = Workload(model="bert", mode="train", size="tiny", batch=1, seq=16, layers=12)
    step = plugins.load("roofline.models.torch", "bert", "model", sorted_by_kind=True).build(asked)
    recording = BACKEND.recorder.record(step, Plan(device="cpu", threads=1, steps=3), lambda text: None)
    request = Request(backend="torch", workload=asked)
    profile = session.to_profile(recording, request, Device(name="none", kind="cpu", ceilings={}), "")
    assert len(profile.ops) > 2000
    assert len(encode(profile)) < 1_000_000
