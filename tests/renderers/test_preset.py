"""What `show` says of a profile of a preset; its figures are tested in tests/published/test_presets.py."""

from __future__ import annotations

import handmade
import msgspec

from roofline import devices
from roofline.analysis.analysis import analyze
from roofline.core.schema import Profile
from roofline.renderers._facts import preset


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
    return "\n".join(f"{name}: {words}" for name, words in preset.told(analyze(profile)))


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
