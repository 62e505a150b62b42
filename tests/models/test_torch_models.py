from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils._python_dispatch import TorchDispatchMode

from roofline import plugins
from roofline.core.step import Step, Workload, scopes_through
from roofline.errors import InputError, MissingError
from roofline.models import dimensions, geometry
from roofline.models.float32 import torch as float32
from roofline.models.torch import _step
from roofline.models.torch._lora import add_lora

NAMES = plugins.names("roofline.models.torch", sorted_by_kind=True)
SMALL = {
    "bert": {"batch": 2, "seq": 16},
    "bert-layer": {"batch": 2, "seq": 16},
    "ctrl": {"batch": 2, "seq": 16, "layers": 1},
    "distilbert": {"batch": 2, "seq": 16},
    "distilgpt2": {"batch": 2, "seq": 16},
    "gemma": {"batch": 2, "seq": 16},
    "dlrm": {"batch": 4},
    "gpt2": {"batch": 2, "seq": 16},
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
#: Training learns low-rank updates of two projections, and the weights are frozen; no biases, no dropout, RMSNorm.
LORA = ("gemma", "mistral")
#: Blocks of one mode, where only a part of the model is trained.
ONLY = {
    ("segment-anything", "infer"): {"prompt encoder", "mask decoder"},
    ("stable-diffusion", "infer"): {"cross attention", "FFN", "time embedding", "guidance + scheduler"},
}
#: Parameters that the step of a model does not come to: XLNet's for tokens to be predicted, and for segments.
IDLE = {"xlnet": ("*.mask_emb", "*.rel_attn.seg_embed", "*.rel_attn.r_s_bias")}


@pytest.fixture(autouse=True)
def _user_state_kept() -> Iterator[None]:
    with _step.user_state_kept():
        yield


def module(name: str) -> Any:
    if name == "stable-diffusion":
        pytest.importorskip("diffusers")
    return plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True)


def build(name: str, **asked: Any) -> Step:
    return module(name).build(Workload(model=name, size="tiny", **{**SMALL[name], **asked}))


def network(name: str, part: str = "network") -> nn.Module:
    """The network, or the part that is trained, at its published size, without memory for its weights."""
    make = getattr(module(name), part)
    with torch.device("meta"):
        return make(dimensions(Workload(model=name)))


def learning(name: str, step: Step) -> list[nn.Parameter]:
    """The parameters that training changes: all but the idle and the frozen ones."""
    return [
        parameter
        for path, parameter in step.model.named_parameters()
        if parameter.requires_grad and not any(fnmatchcase(path, pattern) for pattern in IDLE.get(name, ()))
    ]


class Dispatched(TorchDispatchMode):
    """Collects (op, scope) of every op, with scopes from nested module calls as backends build them."""

    def __init__(self, root: nn.Module) -> None:
        super().__init__()
        self.names = {module: name for name, module in root.named_modules()}
        self.calls: list[str] = []  # full names of the modules now running
        self.scope: list[str] = []
        self.seen: set[tuple[str, str]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add((func._schema.name.removeprefix("aten::"), "/".join(self.scope)))
        return func(*args, **(kwargs or {}))

    def enter(self, module: nn.Module, args: Any) -> None:
        above = self.calls[-1] if self.calls else ""
        # A module made inside forward() is not in the tree.
        name = self.names.get(module, f"{above}.{type(module).__name__}".lstrip("."))
        self.calls.append(name)
        if name:
            self.scope.append(name.removeprefix(f"{above}.") if above else name)

    def leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if self.calls.pop():
            self.scope.pop()

    @contextmanager
    def named(self, name: str) -> Iterator[None]:
        self.scope.append(name)
        yield
        self.scope.pop()


def dispatched(step: Step, run: Callable[[], object] | None = None) -> set[tuple[str, str]]:
    """(op, scope) of the whole step, or of `run`; backward ops have no module calls and count as the root's."""
    mode = Dispatched(step.model)
    hooks = [register_module_forward_pre_hook(mode.enter), register_module_forward_hook(mode.leave)]
    try:
        with scopes_through(mode.named), mode:
            (run or step.run)()
    finally:
        for hook in hooks:
            hook.remove()
    return mode.seen


def block_of(scope: str, step: Step) -> str | None:
    return next((block for pattern, block in step.blocks if fnmatchcase(scope, pattern)), None)


def test_every_model_has_a_geometry_and_every_geometry_a_model() -> None:
    assert set(NAMES) == set(SMALL)
    for name in NAMES:
        assert geometry(name).blocks["torch"]


@pytest.mark.parametrize("name", NAMES)
def test_inference_runs_without_gradients(name: str) -> None:
    step = build(name)
    output = step.run()

    outputs = output if isinstance(output, list | tuple) else [output["logits"] if hasattr(output, "keys") else output]
    assert all(torch.isfinite(value).all() and not value.requires_grad for value in outputs)
    assert not step.model.training
    assert step.forward is not None
    assert "optimizer" not in step.switches


@pytest.mark.parametrize("name", NAMES)
def test_training_moves_the_parameters(name: str) -> None:
    step = build(name, mode="train")
    before = [parameter.detach().clone() for parameter in learning(name, step)]
    step.run()
    step.run()

    after = learning(name, step)
    assert all(
        (parameter.grad is None) == (id(parameter) not in map(id, after)) for parameter in step.model.parameters()
    )
    if name == "matmul":
        assert not after
        assert step.switches["optimizer"] == "none"
        return
    assert all(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert step.model.training


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough) if name == "stable-diffusion" else name
        for name in NAMES
        if name != "matmul"
    ],
)
def test_without_optimizer_the_parameters_stay_and_gradients_do_not_pile_up(name: str) -> None:
    step = build(name, mode="train", optimizer=False)
    before = [parameter.detach().clone() for parameter in step.model.parameters()]
    torch.manual_seed(1)
    step.run()
    once = [parameter.grad.clone() for parameter in learning(name, step)]
    torch.manual_seed(1)
    step.run()

    assert all(torch.equal(old, new) for old, new in zip(before, step.model.parameters(), strict=True))
    assert all(torch.equal(old, p.grad) for old, p in zip(once, learning(name, step), strict=True))
    assert step.switches["optimizer"] == "none"


def test_the_same_seed_gives_the_same_step() -> None:
    assert torch.equal(build("bert").run()["logits"], build("bert").run()["logits"])


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
        ("openai-gpt", 116_534_784),
        ("ctrl", 1_637_718_016 + 246_534),  # the bias of the head
        ("roberta", 124_645_632 + (768 * 2 + 2)),  # the head has a layer like the pooler, which is left out
        # the body alone, and a matrix and biases that the head does not share
        ("transformer-xl", 283_885_936 + 1024 * 1024 + 267_735 + 3 * 1024 + 3),
        ("xlm", 667_088_896 + (2048 * 2 + 2)),
        ("xlnet", 116_718_336 + (768 * 768 + 768) + (768 * 2 + 2)),
        ("bert-layer", 4 * (1024 * 1024 + 1024) + 2 * 1024 * 4096 + 4096 + 1024 + 4 * 1024),
        ("bert-layer", 12_596_224),
        # the token table; per layer query, key, value and output, three FFN products, two norms; the last norm
        ("gemma", 256_000 * 3072 + 28 * (4 * 3072 * 16 * 256 + 3 * 3072 * 24_576 + 2 * 3072) + 3072),
        ("gemma", 8_537_680_896),
        # a head of its own; the 8 heads of keys and values are as wide as 8 of the 32 of queries
        (
            "mistral",
            2 * 32_000 * 4096 + 32 * (2 * 4096 * 32 * 128 + 2 * 4096 * 8 * 128 + 3 * 4096 * 14_336 + 2 * 4096) + 4096,
        ),
        ("mistral", 7_241_732_096),
        ("segment-anything", 641_090_864),
        ("stable-diffusion", 859_520_964),
        # eight tables; 512-512-64; 64 numbers and 9 x 8 / 2 products to 1024-1024-1024-1
        (
            "dlrm",
            8 * 1_000_000 * 64
            + (512 * 512 + 512 + 512 * 64 + 64)
            + (100 * 1024 + 1024 + 2 * (1024 * 1024 + 1024) + 1024 + 1),
        ),
        ("dlrm", 514_499_137),
        ("lenet5", 44_426),
        ("mlp", (4 * 32 + 32) + (32 * 16 + 16) + (16 * 4 + 4)),
        ("matmul", 0),
    ],
)
def test_published_sizes(name: str, parameters: int) -> None:
    assert sum(parameter.numel() for parameter in network(name).parameters()) == parameters


@pytest.mark.parametrize(
    ("name", "learned"),
    [
        # rank 4, for query and value: A has as many columns as the hidden states are wide, B as many rows as the heads
        ("gemma", 28 * 4 * (2 * 3072 + 16 * 256 + 16 * 256)),
        ("gemma", 1_605_632),
        ("mistral", 32 * 4 * (2 * 4096 + 32 * 128 + 8 * 128)),
        ("mistral", 1_703_936),
    ],
)
def test_lora_learns_as_much_as_published(name: str, learned: int) -> None:
    model = network(name)
    whole = sum(parameter.numel() for parameter in model.parameters())
    dims = dimensions(Workload(model=name))
    add_lora(model, ("q_proj", "v_proj"), dims["lora_rank"], dims["lora_alpha"])
    assert sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad) == learned
    assert sum(parameter.numel() for parameter in model.parameters()) == whole + learned


def test_lora_adds_the_scaled_product_of_its_two_matrices() -> None:
    torch.manual_seed(1)
    model = nn.ModuleDict({"q": nn.Linear(6, 10, bias=False), "k": nn.Linear(6, 10, bias=False)})
    weight, x = model["q"].weight, torch.randn(3, 6)
    add_lora(model, ["q"], rank=4, alpha=8)
    assert torch.equal(model["q"](x), x @ weight.T), "B begins at 0"
    nn.init.normal_(model["q"].lora_B.weight)
    merged = weight + 8 / 4 * model["q"].lora_B.weight @ model["q"].lora_A.weight
    torch.testing.assert_close(model["q"](x), x @ merged.T)
    assert isinstance(model["k"], nn.Linear)
    assert {path for path, parameter in model.named_parameters() if parameter.requires_grad} == {
        "q.lora_A.weight",
        "q.lora_B.weight",
    }


@pytest.mark.parametrize("name", LORA)
def test_only_training_has_lora(name: str) -> None:
    infer, train = build(name), build(name, mode="train")
    assert infer.trainable == infer.parameters
    assert (train.parameters, "lora" in infer.switches) == (infer.parameters + train.trainable, False)
    assert train.switches["lora"] == "rank 4, alpha 8, query and value"
    assert train.switches["dropout"] == infer.switches["dropout"] == "off"
    with pytest.raises(InputError, match=f"{name} has no dropout"):
        build(name, mode="train", options={"dropout": "off"})
    assert build(name, options={"attention": "eager"}).switches["attention"] == "eager"


@pytest.mark.parametrize(("name", "parameters"), [("segment-anything", 637_026_048), ("stable-diffusion", 34_163_592)])
def test_the_parts_that_are_trained_have_their_published_sizes(name: str, parameters: int) -> None:
    assert sum(parameter.numel() for parameter in network(name, "encoder").parameters()) == parameters


def test_every_eighth_layer_of_segment_anything_attends_over_the_whole_image() -> None:
    windows = [layer.window_size for layer in network("segment-anything", "encoder").vision_encoder.layers]
    assert windows == [0 if number in {7, 15, 23, 31} else 14 for number in range(32)]
    few = build("segment-anything", mode="train", layers=3).model.vision_encoder.layers
    assert [layer.window_size for layer in few] == [4, 0, 4]


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("name", ["segment-anything", "stable-diffusion"])
def test_images_come_out_the_same_whatever_computes_their_attention(name: str, mode: str) -> None:
    fused, eager = (build(name, mode=mode, options={"attention": form}) for form in ("sdpa", "eager"))
    assert (fused.switches["attention"], eager.switches["attention"]) == ("sdpa", "eager")
    outputs = []
    for step in (fused, eager):
        torch.manual_seed(1)
        with torch.no_grad():  # large enough that scores differ
            for parameter in step.model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        output = step.forward()
        outputs.append(output if isinstance(output, torch.Tensor) else output[0])
    assert outputs[0].abs().max() > 0.05
    torch.testing.assert_close(*outputs, atol=1e-4, rtol=1e-4)
    seen = dispatched(eager)
    assert "_softmax" in {op for op, scope in seen if block_of(scope, eager) == "attention core"}
    assert not any(op.startswith("_scaled_dot_product") for op, _ in seen)


def test_an_attention_that_stable_diffusion_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="use attention=sdpa or attention=eager"):
        build("stable-diffusion", options={"attention": "flash"})


def test_a_denoising_step_is_what_the_library_makes_of_it() -> None:
    """Classifier-free guidance in one call of the UNet, and PNDM's fourth step or a later one."""
    diffusers = pytest.importorskip("diffusers")
    published = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "steps_offset": 1}
    scheduler = diffusers.PNDMScheduler(**published, set_alpha_to_one=False, skip_prk_steps=True)
    scheduler.set_timesteps(50)
    assert 501 in scheduler.timesteps
    step = build("stable-diffusion")
    given: dict[str, Any] = {}
    step.model.register_forward_pre_hook(lambda _, args, kwargs: given.update(kwargs), with_kwargs=True)
    ours = step.run()

    latents, before = given["latents"], given["before"]
    with torch.no_grad():
        noise = step.model.unet(torch.cat([latents] * 2), given["timestep"], given["text"]).sample
    without, with_text = noise.chunk(2)
    scheduler.ets, scheduler.counter = [*before.flip(0)], 4
    theirs = scheduler.step(without + 7.5 * (with_text - without), 501, latents).prev_sample
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_the_step_says_how_much_it_works_on() -> None:
    step = build("bert", batch=3, seq=5, layers=1)

    assert (step.batch, step.seq, step.samples, step.tokens) == (3, 5, 3, 15)
    assert step.parameters == sum(parameter.numel() for parameter in step.model.parameters())
    assert len(step.model.bert.encoder.layer) == 1
    images = build("lenet5")
    assert (images.batch, images.seq, images.samples, images.tokens) == (4, None, 4, None)
    products = build("matmul")
    assert (products.batch, products.samples, products.tokens) == (None, None, None)


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("name", NAMES)
def test_every_scope_has_a_block(name: str, mode: str) -> None:
    step = build(name, mode=mode)
    seen = dispatched(step)

    assert len({scope for _, scope in seen}) > 3
    assert not {scope for _, scope in seen if block_of(scope, step) is None}
    unused = {block for _, block in step.blocks if block not in {block_of(s, step) for _, s in seen}}
    not_run = {"input", "other"} | ({"loss", "optimizer"} if mode == "infer" else set())
    if name in {"bert-layer", "matmul"}:
        not_run.add("loss")
    if name == "matmul":
        not_run |= {"optimizer", *(f"n = {2**power}" for power in range(7, 13))}
    not_run |= ONLY.get((name, "infer" if mode == "train" else "train"), set())
    assert unused <= not_run


#: The others': gelu.
ACTIVATIONS = {
    "ctrl": "relu",
    "distilgpt2": "pow",
    "gpt2": "pow",
    "mistral": "silu",
    "openai-gpt": "pow",
    "transformer-xl": "relu",
}
#: Where a model looks at a number on the device, the mask or how many tokens there are; the others: attention core.
LOOKS = {"ctrl": "embedding", "distilgpt2": "embedding", "gpt2": "embedding", "xlm": "norm + residual + dropout"}


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_ops_are_in_the_block_of_their_meaning(name: str, mode: str) -> None:
    step = build(name, mode=mode)
    seen = dispatched(step, step.forward)

    def blocks(*ops: str) -> set[str | None]:
        return {block_of(scope, step) for op, scope in seen if op in ops}

    norm = "norm + residual + dropout"
    attention = {"_softmax", "_safe_softmax", "_scaled_dot_product_flash_attention_for_cpu"}
    products, norms = ({"mm"}, "rsqrt") if name in LORA else ({"addmm"}, "native_layer_norm")
    # XLNet's projections are einsums, which are batched products.
    (products if name == "xlnet" else attention).add("bmm")
    if name == "transformer-xl":
        products.add("mm")  # without biases
    assert blocks(ACTIVATIONS.get(name, "gelu")) == {"FFN"}
    assert blocks(*attention) == {"attention core"}
    assert norm in blocks(norms)
    assert blocks(norms) <= {norm, "embedding"}
    assert {"attention projections", "FFN"} <= blocks(*products)
    assert "attention core" not in blocks("addmm", "mm")
    assert norm in blocks("add")
    if name != "bert-layer":
        assert blocks("embedding") == {"embedding"}
        assert "head" in blocks("addmm", "mm")
        looks = set() if name in {"openai-gpt", "transformer-xl", "xlnet"} else {LOOKS.get(name, "attention core")}
        assert looks <= blocks("_local_scalar_dense")
    if mode == "train" and name not in LORA:
        assert {norm, *([] if name in {"ctrl", "transformer-xl"} else ["attention core"])} <= blocks("bernoulli_")


def test_distilgpt2_is_gpt2_with_other_dimensions() -> None:
    ours, theirs = (
        plugins.load("roofline.models.torch", name, "model", sorted_by_kind=True) for name in ("distilgpt2", "gpt2")
    )
    assert (ours.build, ours.network) == (theirs.build, theirs.network)


@pytest.mark.parametrize("name", ["openai-gpt", "xlm", "xlnet"])
def test_attention_that_is_only_written_out_cannot_be_fused(name: str) -> None:
    assert build(name, options={"attention": "eager"}).switches["attention"] == "eager"
    with pytest.raises(InputError, match=f"{name}'s attention out: use attention=eager"):
        build(name, options={"attention": "sdpa"})


def test_no_token_of_roberta_is_padding() -> None:
    """Padding would have no position of its own: 512 tokens take the rows 2 to 513 of 514."""
    step = build("roberta", batch=1, seq=512)
    rows: list[torch.Tensor] = []
    table = step.model.roberta.embeddings.position_embeddings
    table.register_forward_pre_hook(lambda module, args: rows.append(args[0]))
    step.run()
    assert rows[0].tolist() == [list(range(2, 514))]
    assert table.num_embeddings == 514


def test_matmul_writes_where_it_is_told() -> None:
    step = build("matmul")
    products = step.run()

    assert torch.equal(products[2], step.model.get_buffer("matrix4"))
    assert torch.equal(products[3], step.model.get_buffer("vector4"))
    scopes = {scope for op, scope in dispatched(step) if op in {"mm", "mv"} and scope.startswith("n=64/")}
    assert scopes == {f"n=64/{kind}/{where}" for kind in ("matrix", "vector") for where in ("allocating", "given")}


def test_the_layer_alone_also_computes_its_input_gradient() -> None:
    # per projection and FFN matrix one product for the weight and one for the input; without the input's
    # gradient the three that read the layer's input would lack one
    step = build("bert-layer", mode="train", optimizer=False)
    products = []

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten.mm.default:
                products.append(func)
            return func(*args, **(kwargs or {}))

    with Count():
        step.run()
    assert len(products) == 2 * 6


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_pure_casts_reach_weights_and_inputs(precision: str) -> None:
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    step = build("mlp", mode="train", precision=precision)

    assert {parameter.dtype for parameter in step.model.parameters()} == {dtype}
    assert step.run().dtype == dtype


def test_autocast_keeps_the_weights() -> None:
    step = build("gpt2", precision="mixed-bf16")
    assert {parameter.dtype for parameter in step.model.parameters()} == {torch.float32}
    assert step.run()["logits"].dtype == torch.bfloat16

    scaled = build("mlp", mode="train", precision="mixed-fp16")
    assert scaled.switches["gradient scaler"] == "on"
    assert scaled.run().dtype == torch.float32


def test_switches_say_what_was_resolved() -> None:
    bert = build("bert", mode="train").switches
    assert bert["attention"] == "sdpa"
    assert bert["gelu"] == "erf"
    assert bert["dropout"] == "0.1"
    assert bert["loss"] == "cross entropy"
    assert (bert["optimizer"], bert["optimizer lr"]) == ("AdamW", "0.001")
    assert (bert["optimizer foreach"], bert["optimizer fused"]) == ("False", "False")
    assert build("gpt2").switches["gelu"] == "tanh"
    assert build("gpt2").switches["dropout"] == "off"
    lenet = build("lenet5", mode="train").switches
    assert (lenet["optimizer"], lenet["optimizer lr"]) == ("Adam", "0.0003")


@pytest.mark.parametrize("name", NAMES)
def test_all_switches_are_text(name: str) -> None:
    assert all(isinstance(value, str) for value in build(name, mode="train").switches.values())


def test_there_is_no_tf32_on_a_cpu() -> None:
    with pytest.raises(InputError, match="no TF32 on a CPU: use --precision fp32 or bf16"):
        build("mlp", precision="tf32")


def test_an_unknown_precision_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="fp32, tf32, bf16, fp16, mixed-bf16, mixed-fp16"):
        build("mlp", precision="int8")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_missing_gpu_is_said() -> None:
    with pytest.raises(MissingError, match="--device cpu"):
        build("mlp", device="cuda")


def older_switches() -> tuple[str, bool, bool]:
    backends = torch.backends
    return torch.get_float32_matmul_precision(), backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32


@pytest.mark.parametrize("chosen", ["highest", "high", "medium"])
def test_the_users_switches_come_back(chosen: str) -> None:
    torch.set_float32_matmul_precision(chosen)
    before = older_switches(), float32.switches()
    state = torch.get_rng_state()
    with _step.user_state_kept():
        step = build("mlp", precision="fp32")
        assert older_switches() == ("highest", False, False)
        assert set(float32.switches().values()) == {"ieee"}
        assert step.switches["float32 matmul (cuBLAS)"] == "ieee"
        step.run()

    assert (older_switches(), float32.switches()) == before
    assert torch.equal(torch.get_rng_state(), state)


def test_the_users_newer_switches_come_back_too() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"  # makes reading the older ones raise
    torch.backends.cudnn.conv.fp32_precision = "ieee"
    before = float32.switches()
    with _step.user_state_kept():
        build("mlp", precision="fp32")
        assert older_switches() == ("highest", False, False)

    assert float32.switches() == before


def test_the_users_switches_come_back_after_an_error() -> None:
    before = float32.switches()

    def fail() -> None:
        with _step.user_state_kept():
            build("mlp", precision="fp32")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert float32.switches() == before


def test_default_precision_touches_nothing() -> None:
    torch.set_float32_matmul_precision("high")
    before = float32.switches()
    build("mlp", mode="train").run()
    assert float32.switches() == before


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU here")
@pytest.mark.parametrize("name", NAMES)
def test_inputs_travel_from_the_host_in_every_step(name: str) -> None:
    step = build(name, mode="train", device="cuda", input="host", precision="tf32")
    copies = [scope for op, scope in dispatched(step) if op == "_to_copy" and scope == "input"]
    assert copies
    assert block_of("input", step) == "input"
    assert torch.backends.cudnn.allow_tf32


def test_on_a_cpu_the_host_is_the_device() -> None:
    assert "input" not in {scope for _, scope in dispatched(build("mlp", input="host"))}
