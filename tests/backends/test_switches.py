"""The knobs that backends declare: what they set exists, and what they read is what the models record."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib import import_module

import pytest

from roofline import plugins
from roofline.comparison.causes.wording import SENTENCES
from roofline.core.step import Step, Workload
from roofline.core.switch import Knob
from roofline.errors import InputError
from roofline.models import dimensions
from roofline.xla import flags, jax_environment

BACKENDS = {name: plugins.load("roofline.backends", name, "backend") for name in plugins.names("roofline.backends")}
ALL = [(name, knob) for name, module in BACKENDS.items() for knob in module.KNOBS]


@pytest.mark.parametrize(("name", "knob"), ALL, ids=[f"{name}-{knob.name}" for name, knob in ALL])
def test_a_knob_sets_what_its_backend_takes(name: str, knob: Knob) -> None:
    assert set(knob.rules) <= set(SENTENCES) | {"compiled-not-used", "jit-not-in-effect"}
    if knob.option is not None:
        assert set(knob.turns.values()) <= set(BACKENDS[name].OPTIONS[knob.option])
        assert f"option {knob.option}" in knob.moves
    else:
        assert knob.backend in BACKENDS
        assert BACKENDS[knob.backend].MODELS == BACKENDS[name].MODELS
        # What the user gave the one backend can be given to the other.
        assert set(BACKENDS[name].OPTIONS) <= set(BACKENDS[knob.backend].OPTIONS)
        assert "backend" in knob.moves
    assert knob.reads or knob.assumed


def built(model: str, mode: str = "train", **options: str) -> Step:
    module = import_module(f"roofline.models.torch.{model}")
    batch = None if model == "matmul" else 1
    name = model.replace("_", "-")
    return module.build(Workload(model=name, mode=mode, size="tiny", batch=batch, options=options))


def moved(before: Step, after: Step, knob: Knob) -> dict[str, tuple[str, str]]:
    """The switches that differ; all of them must be among those that the knob may move."""
    found = {
        name: (before.switches[name], after.switches[name])
        for name in before.switches
        if before.switches[name] != after.switches[name]
    }
    assert all(any(fnmatchcase(f"switch {name}", pattern) for pattern in knob.moves) for name in found)
    return found


def knob(name: str) -> Knob:
    return next(each for each in BACKENDS["torch"].KNOBS if each.name == name)


@pytest.mark.parametrize("model", ["bert", "distilbert", "gpt2"])
def test_attention_is_the_library_s_other_form(model: str) -> None:
    before, after = built(model, "infer"), built(model, "infer", attention="eager")
    assert moved(before, after, knob("attention")) == {"attention": ("sdpa", "eager")}
    assert moved(built(model, "infer", attention="sdpa"), before, knob("attention")) == {}  # it is the default


def test_a_layer_alone_takes_the_attention_too() -> None:
    assert built("bert_layer", "infer", attention="eager").switches["attention"] == "eager"


@pytest.mark.parametrize(
    ("form", "switches"),
    [
        ("loop", {}),  # PyTorch's default on a CPU
        ("foreach", {"optimizer foreach": ("False", "True")}),
        ("fused", {"optimizer fused": ("False", "True")}),
    ],
)
def test_the_optimizer_s_form(form: str, switches: dict[str, tuple[str, str]]) -> None:
    before, after = built("lenet5"), built("lenet5", optimizer=form)
    assert moved(before, after, knob("optimizer")) == switches
    after.run()


def test_dropout_off_leaves_the_rest() -> None:
    assert moved(built("bert"), built("bert", dropout="off"), knob("dropout")) == {"dropout": ("0.1", "0.0")}
    both = moved(built("distilbert"), built("distilbert", dropout="off"), knob("dropout"))
    assert both == {"dropout": ("0.1, 0.2 in the head", "0.0, 0.0 in the head")}


def test_dropout_off_is_one_rule_for_all_frameworks() -> None:
    dims = dimensions(Workload(model="distilbert", size="tiny", options={"dropout": "off"}))
    assert (dims["dropout"], dims["head_dropout"]) == (0.0, 0.0)
    others = dimensions(Workload(model="distilbert", size="tiny"))
    assert {name for name in dims if dims[name] != others[name]} == {"dropout", "head_dropout"}


@pytest.mark.parametrize(
    ("model", "mode", "options", "message"),
    [
        ("mlp", "infer", {"attention": "eager"}, "mlp has no attention"),
        ("lenet5", "train", {"dropout": "off"}, "lenet5 has no dropout"),
        ("bert", "infer", {"optimizer": "fused"}, "no optimizer in this step"),
        ("matmul", "train", {"optimizer": "fused"}, "matmul has nothing to learn"),
    ],
)
def test_an_option_that_means_nothing_is_refused(model: str, mode: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        built(model, mode, **options)


def test_command_buffers_are_a_flag_of_xla_s_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    off = jax_environment.variables(1, "cuda", {"command_buffers": "off"})["XLA_FLAGS"]
    on = jax_environment.variables(1, "cuda", {"command_buffers": "on"})["XLA_FLAGS"]
    assert off == f"{on} --xla_gpu_enable_command_buffer="
    assert on == jax_environment.variables(1, "cuda", {})["XLA_FLAGS"] == flags.dumping("cuda")["XLA_FLAGS"]
    with pytest.raises(InputError, match="on GPUs only"):
        jax_environment.variables(1, "cpu", {"command_buffers": "off"})
