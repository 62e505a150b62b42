"""The profiles that ship: each can be read, closes, and is what the README shows."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from roofline.analysis.analysis import analyze
from roofline.core import shipped
from roofline.core.schema import load, slug
from roofline.published import presets

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = shipped.paths()
#: The flags of each profile that has some, those of presets apart.
FLAGS = {
    # Graph breaks at `nonzero` of its adaptive softmax leave regions of whose inside nothing was noted.
    "hf2019/transformer-xl-infer-b1-torch-compile": {"opaque-regions"},
    # Kernels of a CUDA graph name no op, and traces of PyTorch 2.11 no nodes of it: they are joined in their order.
    "h100/bert-torch-compile-reduce-overhead-infer-b1-bf16": {"replays-by-order"},
    "h100/bert-torch-compile-reduce-overhead-infer-b32-bf16": {"replays-by-order"},
    "h100/bert-torch-compile-reduce-overhead-train-b32-bf16": {"replays-by-order"},
    # Steps 42 % and 26 % shorter at the end of 100 than at their begin.
    "h100/bert-keras-jax-infer-b32-tf32": {"shrinking"},
    "h100/bert-torch-infer-b1-fp32": {"shrinking"},
}
#: Of steps of seconds there are few, and `show` says what a profiler cost short ops and whether others were there.
OF_PRESETS = {"few-steps", "inflated", "contended"}
#: Profiles that `make reference` has not measured yet. `compare --preset` says of their rows that there is one alone.
MISSING = {"hf2019/distilgpt2-infer-b1-tensorflow"}
#: Ops faster than their floors. XLA computes that row of a layer norm alone which is used; all rows are counted.
ABOVE = {"keras-benchmark/bert-infer-b1-keras-jax": 1, "keras-benchmark/bert-train-b1-keras-jax": 1}


def test_every_file_has_a_short_name() -> None:
    assert sorted(SHIPPED.values()) == sorted((ROOT / "profiles").rglob("*.json"))
    assert len([name for name in SHIPPED if name.startswith("h100/")]) == 28


def test_flags_are_of_profiles_that_ship() -> None:
    assert set(FLAGS) <= set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_profile_closes_and_has_no_defect(name: str) -> None:
    path = SHIPPED[name]
    analysis = analyze(load(path))
    assert analysis.above_ceiling == ABOVE.get(name, 0)
    flags = {slug(flag) for flag in analysis.flags} - {"above-ceiling"}
    if analysis.profile.preset:
        assert flags <= OF_PRESETS | FLAGS.get(name, set())
    else:
        assert flags == FLAGS.get(name, set())
    # wall = sum of the classes + gap, to 0.1 %
    seconds = sum(total.seconds for total in analysis.by("class").values())
    assert seconds + analysis.gap == pytest.approx(analysis.wall, rel=1e-3)
    assert analysis.profile.command.startswith("roofline profile")
    assert "/" not in analysis.profile.command
    assert path.stat().st_size < 1_000_000


def test_pages_name_profiles_that_ship() -> None:
    """`h100/bert-...` in a page is a short name, or an output that a page has there."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"(?<![/\w])h100/bert[\w-]+", page.read_text("utf-8"))}
    assert len(named) >= 8  # the runs of the first picture
    assert named <= set(SHIPPED)


def test_gpu_profiles_are_called_after_their_rows() -> None:
    """MODEL-BACKEND[-options]-MODE-bN-PRECISION, all measured on one kind of GPU and no figure of another."""
    for name, path in SHIPPED.items():
        if not name.startswith("h100/"):
            continue
        profile = load(path)
        assert profile.device.name == "NVIDIA H100 80GB HBM3"
        assert name.startswith(f"h100/{profile.model}-{profile.backend}-")
        assert name.endswith(f"-{profile.mode}-b{profile.batch}-{profile.precision}")
        assert all(option in name for option in profile.options.values())


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_profiles", ROOT / "benchmarks" / "reference_profiles.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks its annotations up
    spec.loader.exec_module(module)
    return module


def test_every_row_of_every_preset_has_two_backends_but_those_that_are_missing(reference: ModuleType) -> None:
    """The rows that the benchmark ran on a GPU alone have none; two rows of a model and mode differ in their batch."""
    wanted = {str(profile.path.with_suffix("")) for profile in reference.rows()}
    rows = [(name, row) for name in presets.names() for row in presets.load(name).row if row.device in ("", "cpu")]
    assert len(wanted) == 2 * len(rows)
    measured = {name for name, path in SHIPPED.items() if load(path).preset}
    assert wanted - measured == MISSING
    assert measured - wanted == set()
    backends = Counter(name.rpartition("-b")[0] for name in wanted)
    assert min(backends.values()) >= 2


def test_the_second_backend_is_of_another_framework_where_one_has_the_model(reference: ModuleType) -> None:
    """JAX before TensorFlow before PyTorch in another way; torchscript of Transformer-XL is refused by its row."""
    chosen = {profile.path.stem.rpartition("-b1-")[0]: profile.backend for profile in reference.rows()}
    assert chosen["bert-train"] == "keras-jax"  # of keras-benchmark, which has no column for jax
    assert chosen["gpt2-infer"] == "tensorflow"  # of hf2019, which has none for JAX; jax has the model
    assert chosen["roberta-infer"] == "torchscript"  # which the TensorFlow backends do not have
    assert chosen["transformer-xl-infer"] == "torch-compile"  # and no column for it


def test_a_profile_of_a_preset_is_called_after_its_step() -> None:
    for name, path in SHIPPED.items():
        profile = load(path)
        if profile.preset is not None:
            step = f"{profile.model}-{profile.mode}-b{profile.batch}-{profile.backend}"
            assert name == f"{profile.preset}/{step}"
