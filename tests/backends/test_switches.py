"""The switches that backends declare: what they set exists, and what they read is what the models record."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from roofline import plugins
from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.proof.switches import OF_SETTINGS
from roofline.core.step import Step, Workload
from roofline.core.switch import Switch
from roofline.errors import InputError
from roofline.models import dimensions
from roofline.recording.backend import load
from roofline.xla import flags, jax_environment

BACKENDS = {name: load(name) for name in plugins.names("roofline.backends")}
ALL = [(name, switch) for name, backend in BACKENDS.items() for switch in backend.switches]


@pytest.mark.parametrize(("name", "switch"), ALL, ids=[f"{name}-{switch.name}" for name, switch in ALL])
def test_a_switch_sets_what_its_backend_takes(name: str, switch: Switch) -> None:
    kinds = {annotation.switch for annotation in known_annotations().values()}
    assert switch.kind in kinds.union(*OF_SETTINGS.values())
    if switch.option is not None:
        assert set(switch.turns.values()) <= set(BACKENDS[name].options[switch.option])
        assert f"option {switch.option}" in switch.moves
    else:
        assert switch.backend in BACKENDS
        assert BACKENDS[switch.backend].models == BACKENDS[name].models
        # What the user gave the one backend can be given to the other.
        assert set(BACKENDS[name].options) <= set(BACKENDS[switch.backend].options)
        assert "backend" in switch.moves
    assert switch.reads or switch.assumed


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_needs_the_framework_that_it_names(name: str) -> None:
    backend = BACKENDS[name]
    assert {backend.framework, backend.written_in} - {None} <= set(backend.requires)


def built(model: str, mode: str = "train", **options: str) -> Step:
    module = plugins.load("roofline.models.torch", model, "model", sorted_by_kind=True)
    batch = None if model == "matmul" else 1
    return module.build(Workload(model=model, mode=mode, size="tiny", batch=batch, options=options))


def moved(before: Step, after: Step, switch: Switch) -> dict[str, tuple[str, str]]:
    """The switches that differ; all of them must be among those that the switch may move."""
    found = {
        name: (before.switches[name], after.switches[name])
        for name in before.switches
        if before.switches[name] != after.switches[name]
    }
    assert all(any(fnmatchcase(f"switch {name}", pattern) for pattern in switch.moves) for name in found)
    return found


def switch(name: str) -> Switch:
    return next(each for each in BACKENDS["torch"].switches if each.name == name)


@pytest.mark.parametrize("model", ["bert", "distilbert", "gpt2"])
def test_attention_is_the_library_s_other_form(model: str) -> None:
    before, after = built(model, "infer"), built(model, "infer", attention="eager")
    assert moved(before, after, switch("attention")) == {"attention": ("sdpa", "eager")}
    assert moved(built(model, "infer", attention="sdpa"), before, switch("attention")) == {}  # it is the default


def test_a_layer_alone_takes_the_attention_too() -> None:
    assert built("bert-layer", "infer", attention="eager").switches["attention"] == "eager"


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
    assert moved(before, after, switch("optimizer")) == switches
    after.run()


def test_dropout_off_leaves_the_rest() -> None:
    assert moved(built("bert"), built("bert", dropout="off"), switch("dropout")) == {"dropout": ("0.1", "0.0")}
    both = moved(built("distilbert"), built("distilbert", dropout="off"), switch("dropout"))
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
    assert set(off.split()) - set(on.split()) == {"--xla_gpu_enable_command_buffer="}
    assert on == jax_environment.variables(1, "cuda", {})["XLA_FLAGS"]
    assert on.startswith(flags.dumping()["XLA_FLAGS"])
    with pytest.raises(InputError, match="on GPUs only"):
        jax_environment.variables(1, "cpu", {"command_buffers": "off"})
