"""Which switch is turned for a row, and from what to what."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from synthetic import step

from roofline import plugins
from roofline.comparison.account.annotate import known_annotations
from roofline.comparison.account.row import OpChange, Row
from roofline.comparison.proof.switches import kinds_of, setting_for, why_none
from roofline.core.schema import Profile
from roofline.core.switch import (
    ATTENTION,
    COMMAND_BUFFERS,
    COMPILED_AWAY,
    COMPILED_THERE,
    DROPOUT,
    FLOAT32,
    JIT,
    MEMORY,
    OPTIMIZER,
    OWN_JIT,
    OWN_OPTIMIZERS,
    THREADS,
    Switch,
)
from roofline.recording.backend import load

COMPILED = (COMPILED_AWAY,)


@pytest.mark.parametrize(
    ("switch", "mine", "other", "text"),
    [
        (JIT, {"jit": "off"}, {"jit": "on"}, "jit off -> on"),
        (JIT, {"jit": "off"}, {"jit": "off"}, "jit off -> on"),  # both could, and this one spends more
        (JIT, {"jit": "off"}, {"jit": "compile"}, "jit off -> on"),  # what another backend calls it
        (JIT, {"jit": "on"}, {"jit": "off"}, None),
        (JIT, {}, {"jit": "on"}, None),  # it is not known how it stands
        (ATTENTION, {"attention": "eager"}, {"attention": "written out"}, "attention eager -> sdpa"),
        (ATTENTION, {"attention": "sdpa"}, {"attention": "written out"}, "attention sdpa -> eager"),
        (ATTENTION, {"attention": "sdpa"}, {"attention": "sdpa"}, "attention sdpa -> eager"),
        (ATTENTION, {"attention": "written out"}, {"attention": "sdpa"}, "attention written out -> sdpa"),
        (DROPOUT, {"dropout": "0.1"}, {"dropout": "off"}, "dropout 0.1 -> off"),
        (DROPOUT, {"dropout": "off"}, {"dropout": "0.1"}, None),
        (OPTIMIZER, {"optimizer fused": "False"}, {}, "optimizer not fused -> fused"),
        (OPTIMIZER, {"optimizer fused": "True"}, {}, None),
        (COMMAND_BUFFERS, {}, {}, None),  # a CPU has none
    ],
)
def test_a_switch_is_turned_from_how_it_stands(
    switch: Switch, mine: dict[str, str], other: dict[str, str], text: str | None
) -> None:
    a, b = step(switches=mine, options={"kept": "yes"}), step(switches=other)
    setting = setting_for((switch.kind,), a, b, (switch,))
    assert (setting.text if setting else None) == text
    if setting is not None:
        assert setting.options is not None
        assert setting.options["kept"] == "yes"


def test_another_backend_gets_the_same_options() -> None:
    compiler = Switch(
        name="compile", kind=COMPILED_AWAY, assumed="off", turns={"off": "on"}, backend="compiled", moves=("backend",)
    )
    setting = setting_for(COMPILED, step(options={"attention": "eager"}), step(), (ATTENTION, compiler, JIT))
    assert setting is not None
    assert (setting.backend, setting.options) == ("compiled", {"attention": "eager"})


def test_rows_are_answered_by_their_names() -> None:
    """A setting by what parity calls it, any other row by its annotations."""
    settings = tuple(OpChange(name=name, a="1", b="2") for name in ("attention", "versions", "threads"))
    assert kinds_of(Row(kind="setting", ops=settings)) == {"attention": ("attention",), "threads": (THREADS,)}
    assert kinds_of(Row(kind="only", seconds=1.0)) == {}
    names = "attention-written-out", "op-by-op", "broadcast-copy", "nobody knows it"
    assert kinds_of(Row(kind="only", seconds=1.0, annotations=names)) == {
        "attention-written-out": ("attention",), "op-by-op": (COMPILED_AWAY, COMPILED_THERE),
        "broadcast-copy": (), "nobody knows it": (),
    }  # fmt: skip


def test_the_kinds_of_annotations_are_those_of_switches() -> None:
    backends = [load(name) for name in plugins.names("roofline.backends")]
    known = {switch.kind for backend in backends for switch in (*backend.switches, *backend.own_switches)}
    known |= {THREADS, MEMORY, FLOAT32}
    assert {annotation.switch for annotation in known_annotations().values()} - {None} <= known


def test_switches_of_every_run() -> None:
    one, two = step(environment={"threads": "1"}), step(environment={"threads": "2"})
    threads = setting_for((THREADS,), one, two, ())
    assert threads is not None
    assert (threads.text, threads.threads) == ("threads 1 -> 2", 2)
    assert setting_for((THREADS,), one, one, ()) is None
    for nonsense in ("", "-1", "0", "two", "²"):
        assert setting_for((THREADS,), one, step(environment={"threads": nonsense}), ()) is None
    memory = setting_for((MEMORY,), one, two, ())
    assert memory is not None
    assert set(memory.variables) == {"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"}
    told = step(environment={"MALLOC_MMAP_MAX_": "0"})
    assert setting_for((MEMORY,), told, two, ()) is None


def test_tf32_is_turned_on_a_gpu_only() -> None:
    def on_gpu(precision: str, arithmetic: str | None = "fp32", inputs: str = "fp32") -> Profile:
        profile = step()
        ran = [
            replace(each, precision=each.precision and replace(each.precision, inputs=inputs, arithmetic=arithmetic))
            for each in profile.signatures
        ]
        device = replace(profile.device, kind="cuda")
        return replace(profile, device=device, precision=precision, signatures=tuple(ran))

    def turned(mine: Profile, other: Profile) -> str | None:
        setting = setting_for((FLOAT32,), mine, other, ())
        return setting and setting.precision

    # What ran decides: frameworks differ in what they do where nothing is asked for.
    assert turned(on_gpu("default"), on_gpu("default")) == "tf32"
    assert turned(on_gpu("default", "tf32"), on_gpu("default")) == "fp32"
    assert turned(on_gpu("default", "tf32"), on_gpu("tf32", "tf32")) == "fp32"
    assert turned(on_gpu("fp32"), on_gpu("tf32", "tf32")) == "tf32"
    assert turned(on_gpu("tf32", "tf32"), on_gpu("fp32")) == "fp32"
    # Not recorded: what was asked for, if anything.
    assert turned(on_gpu("default", None), on_gpu("tf32", "tf32")) is None
    assert turned(on_gpu("fp32", None), on_gpu("default")) == "tf32"
    assert turned(on_gpu("tf32", None), on_gpu("default")) == "fp32"
    # Asked for, and not what ran: asking again changes nothing.
    assert turned(on_gpu("tf32", "fp32"), on_gpu("default", "tf32")) is None
    assert turned(on_gpu("fp32", "tf32"), on_gpu("default")) is None
    # 16-bit data are no matter of TF32.
    assert turned(on_gpu("bf16", "bf16", "bf16"), on_gpu("fp32")) is None
    assert turned(on_gpu("default", "bf16", "bf16"), on_gpu("fp32")) is None
    assert turned(step(), step()) is None


# ------------------------------------------------------------------------------------------ a step of the user's own


def own(**changes: object) -> Profile:
    return replace(step(), **{"model": "mine:step", **changes})


def test_an_optimizer_of_the_user_s_gets_the_form_of_the_other_run() -> None:
    loops = own(switches={"optimizer foreach": "False", "optimizer fused": "False"})
    foreach = own(switches={"optimizer foreach": "True", "optimizer fused": "False"})
    turned = setting_for(("optimizer",), loops, foreach, OWN_OPTIMIZERS)
    assert turned is not None
    assert (turned.text, dict(turned.in_step)) == ("optimizer foreach off -> on", {"optimizer foreach": "True"})
    turned = setting_for(("optimizer",), loops, own(), OWN_OPTIMIZERS)
    assert turned is not None
    assert (turned.text, dict(turned.in_step)) == ("optimizer fused off -> on", {"optimizer fused": "True"})
    # One that has no fused form gets the other one, and an update that no optimizer makes none.
    assert setting_for(("optimizer",), own(switches={"optimizer foreach": "False"}), own(), OWN_OPTIMIZERS) is not None
    assert setting_for(("optimizer",), own(), foreach, OWN_OPTIMIZERS) is None


def test_what_is_compiled_in_one_run_only_is_undone_there() -> None:
    jitted = own(switches={"jit": "on"})
    assert setting_for((COMPILED_THERE,), jitted, jitted, (OWN_JIT,)) is None
    undone = setting_for((COMPILED_THERE,), jitted, jitted, (OWN_JIT,), undone=True)
    assert undone is not None
    assert (undone.text, dict(undone.in_step)) == ("jax.jit on -> off", {"jit": "off"})
    assert setting_for(COMPILED, jitted, jitted, (OWN_JIT,), undone=True) is None  # which is not what it says
    assert setting_for((THREADS,), jitted, own(environment={"threads": "9"}), (OWN_JIT,), undone=True) is None


def test_the_arithmetic_of_a_step_that_takes_no_precision() -> None:
    profile = replace(step(), device=replace(step().device, kind="cuda"))
    turned = setting_for((FLOAT32,), replace(profile, model="mine:step"), profile, ())
    assert turned is not None
    assert (turned.text, dict(turned.in_step)) == ("float32 products fp32 -> tf32", {"float32": "tf32"})
    assert turned.precision is None
    wide, narrow = own(switches={"jax_enable_x64": "True"}), own(switches={"jax_enable_x64": "False"})
    turned = setting_for((FLOAT32,), wide, narrow, ())
    assert turned is not None
    assert dict(turned.in_step) == {"jax_enable_x64": "False"}
    assert setting_for((FLOAT32,), narrow, wide, ()) is None


def test_why_there_is_no_switch() -> None:
    assert why_none(("attention",), own()) == "its attention is written in your file"
    assert "optimizer of PyTorch's" in why_none(("optimizer",), own())
    assert why_none((), own()) == ""  # nowhere
    assert why_none(("attention",), step()) == ""  # of ours the switch says so
    assert why_none(("nonsense",), own()) == ""
