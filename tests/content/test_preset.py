"""What `show` says of a profile of a preset; its figures are tested in tests/published/test_presets.py."""

from __future__ import annotations

from collections.abc import Callable

import handmade
import msgspec
import pytest

from roofline import devices
from roofline.analysis.analysis import analyze
from roofline.content.facts import preset
from roofline.core.schema import Api, Profile


def bert_fit(device: str = "a100-40gb", steps: tuple[float, ...] = (0.7, 0.9) * 50) -> Profile:
    """The native eager column of BERT fit: mean and median of 0.8 s."""
    profile = handmade.profile()
    sheet = devices.load(device)
    return msgspec.structs.replace(
        profile,
        preset="keras-benchmark",
        model="bert",
        mode="train",
        backend="torch",
        batch=32,
        seq=512,
        size="base",
        precision="default",
        options={"attention": "eager"},
        switches={"input": "host", "optimizer": "AdamW", "optimizer lr": "5e-05", "optimizer weight_decay": "0.0"},
        device=msgspec.structs.replace(sheet, name=f"NVIDIA {sheet.name.removeprefix('NVIDIA ')}"),
        wall=msgspec.structs.replace(profile.wall, steps=steps),
    )


def told(profile: Profile) -> str:
    return "\n".join(f"{name}: {words}" for name, words in preset.facts(analyze(profile)))


def test_the_same_step_and_device_have_a_ratio() -> None:
    """0.8 s / 0.69337 s = 1.154"""
    name = "NVIDIA A100-SXM4-40GB"
    profile = bert_fit()
    words = told(msgspec.structs.replace(profile, device=msgspec.structs.replace(profile.device, name=name)))
    assert "preset: keras-benchmark, BERT fit, as Native PyTorch (eager)" in words
    assert "differs" not in words
    assert "mean of 100 plain steps 800 ms, median 800 ms; the publication's is the mean of 100 steps" in words
    assert "published: 693 ms on A100 40 GB; the mean here is 1.15 times that, with today's libraries" in words


def test_another_device_is_said_and_has_no_ratio() -> None:
    words = told(bert_fit("h100-sxm"))
    assert "693 ms on A100 40 GB, which is another device than this one: no ratio" in words
    assert "times that" not in words


def test_a_profile_without_a_preset_says_nothing() -> None:
    assert told(handmade.profile()) == ""
    assert preset.document(analyze(handmade.profile())) is None


def with_api(name: str = "fit", backend: str = "keras-jax", **more: object) -> Profile:
    """Keras's BERT fit on its device: plain steps of 0.8 s, in the benchmark's function 0.9 s, 0.02 s of them waiting.

    All of them spread by 10 ms.
    """
    given: dict[str, object] = {"data": "tf.data", "waiting": 0.02, "after": (0.79, 0.8, 0.81), **more}
    profile = bert_fit(steps=(0.79, 0.8, 0.81) * 30 + (0.8,) * 10)
    switches = {**profile.switches, "optimizer lr": "0.001", "optimizer weight_decay": "0.004"}
    return msgspec.structs.replace(
        profile,
        backend=backend,
        size="base-tanh",
        options={"jit": "on"},
        switches=switches,
        device=msgspec.structs.replace(profile.device, name="NVIDIA A100-SXM4-40GB"),
        api=Api(name=name, steps=(0.89, 0.9, 0.91) * 30 + (0.9,) * 10, **given),  # type: ignore[arg-type]
    )


def test_what_the_benchmark_timed_stands_beside_its_figure(golden: Callable[[str, str], None]) -> None:
    """0.9 / 0.22237 = 4.05. Between lie 0.9 - 0.8 = 0.1 s: it waits 0.02 s, and the other 0.08 s are the host's."""
    profile = with_api()
    golden("preset-api.txt", told(profile) + "\n")
    found = preset.document(analyze(profile))
    assert found is not None
    api, (figure,) = found["api"], found["published"]
    assert (api["name"], api["steps"], api["data"]) == ("fit", 100, "tf.data")
    assert (api["mean"], api["median"]) == pytest.approx((0.9, 0.9))
    assert (found["mean"], figure["ratio"], figure["api_ratio"]) == pytest.approx((0.8, 0.8 / 0.22237, 0.9 / 0.22237))
    between = api["between"]
    assert (between["seconds"], between["input"], between["rest"]) == pytest.approx((0.1, 0.02, 0.08))
    assert between["resolved"]


def test_waiting_that_the_library_hides_is_not_told_apart() -> None:
    words = told(with_api(waiting=None, alone=0.005))
    assert "Python); tf.data alone, read without a model, takes 5.00 ms a batch" in words
    assert "in which it waits" not in words


def test_what_a_trainer_does_besides_is_not_called_host_time_alone() -> None:
    profile = with_api("Trainer.train", "torch", data="a DataLoader")
    words = told(msgspec.structs.replace(profile, options={"attention": "eager"}, size="base"))
    assert "in which it waits for a DataLoader, and +80.0 ms host time and its own work (callbacks, gradient" in words


def test_a_difference_that_is_not_resolved_is_not_split() -> None:
    """The machine was slower by 0.3 s behind fit than before it: 0.9 - 1.1 s to 0.9 - 0.8 s."""
    words = told(with_api(after=(1.1, 1.1, 1.1)))
    assert "fit takes 100 ms more per step than the bare step (95 % interval -20" in words
    assert "not resolved; of its step it waits 20.0 ms for tf.data" in words
    assert "host time" not in words
    assert "not resolved, for that takes 3 steps of each" in told(
        msgspec.structs.replace(with_api(), api=Api(name="fit", steps=(0.9, 0.9)))
    )


def test_the_bare_step_alone_says_what_it_leaves_out() -> None:
    """Also where a profile holds another function than the benchmark's."""
    bare = "apart: Keras's fit and predict add callbacks, progress and tf.data around the bare step"
    assert bare in told(msgspec.structs.replace(with_api(), api=None))
    assert bare in told(with_api("predict"))
    assert bare not in told(with_api())
    document = preset.document(analyze(msgspec.structs.replace(with_api(), api=None)))
    assert document is not None
    assert (document["asked_api"], document["api"]) == ("fit", None)
