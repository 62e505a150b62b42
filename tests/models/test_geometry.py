from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofline import plugins
from roofline.core.step import PRECISIONS, Workload
from roofline.errors import InputError
from roofline.models import dimensions, geometry
from roofline.models._precision import precision

FILES = (plugins.folder("roofline.models") / "_geometry").glob("*/*.toml")
NAMES = tuple(sorted(file.stem.replace("_", "-") for file in FILES))
TRANSFORMER_BLOCKS = {
    "embedding",
    "attention core",
    "attention projections",
    "FFN",
    "norm + residual + dropout",
    "head",
    "loss",
    "optimizer",
    "input",
}


def test_every_name_of_a_precision_has_a_meaning() -> None:
    for name in PRECISIONS:
        asked = precision(Workload(model="mlp", precision=name, device="cuda"))
        assert (asked == precision(Workload(model="mlp"))) == (name == "default")


def test_no_model_goes_away() -> None:
    encoders = {"bert", "bert-layer", "distilbert", "roberta", "xlm", "xlnet"}
    decoders = {"ctrl", "distilgpt2", "gemma", "gpt2", "mistral", "openai-gpt"}
    images = {"lenet5", "segment-anything", "stable-diffusion"}
    assert set(NAMES) >= {*encoders, *decoders, *images, "matmul", "mlp"}


@pytest.mark.parametrize("name", NAMES)
def test_every_geometry_is_complete(name: str) -> None:
    model = geometry(name)

    assert model.name == name
    assert model.title
    assert model.source
    assert {"tiny", "base"} <= set(model.sizes)
    assert model.sizes["tiny"].keys() == model.sizes["base"].keys()
    assert model.modes in (("infer", "train"), ("infer", "train", "generate"))
    for kind in ("cpu", "cuda"):
        for mode in model.modes:
            new = {"new_tokens"} if mode == "generate" else set()
            assert set(model.defaults[kind][mode]) == model.takes & {"batch", "seq"} | new
    assert ("layers" in model.takes) == ("layers" in model.sizes["base"])
    assert model.blocks["torch"][-1][0] == "", "what the root itself runs needs a block"


def test_a_geometry_like_another_differs_in_what_it_gives() -> None:
    distilled, whole = geometry("distilgpt2"), geometry("gpt2")
    layers = {"tiny": 1, "base": 6, "published": 6, "one-layer": 1}
    assert distilled.sizes == {size: {**whole.sizes[size], "layers": n} for size, n in layers.items()}
    for same in ("takes", "defaults", "modes", "blocks"):
        assert getattr(distilled, same) == getattr(whole, same)


@pytest.mark.parametrize("name", NAMES)
def test_sizes_that_follow_from_base(name: str) -> None:
    model, base = geometry(name), dimensions(Workload(model=name))
    assert dimensions(Workload(model=name, size="published")) == base
    if "layers" in model.takes:
        assert dimensions(Workload(model=name, size="one-layer")) == {**base, "layers": 1}
    else:
        with pytest.raises(InputError, match=f"{name} has no size 'one-layer': use --size with one of tiny, base"):
            dimensions(Workload(model=name, size="one-layer"))


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "heads" in geometry(name).sizes["tiny"] and "seq" in geometry(name).takes]
)
def test_transformers_use_the_common_blocks(name: str) -> None:
    assert {block for _, block in geometry(name).blocks["torch"]} <= TRANSFORMER_BLOCKS


@pytest.mark.parametrize(
    ("name", "device", "batch", "seq"),
    [
        ("bert", "cpu", 1, 128),
        ("bert", "cuda", 32, 128),
        ("bert-layer", "cpu", 8, 512),
        ("bert-layer", "cuda", 8, 512),
        ("mlp", "cpu", 10_000, None),
        ("lenet5", "cuda", 2048, None),
        ("segment-anything", "cuda", 4, None),
        ("segment-anything", "cpu", 1, None),
        ("stable-diffusion", "cuda", 13, None),
        ("matmul", "cpu", None, None),
    ],
)
def test_defaults(name: str, device: str, batch: int | None, seq: int | None) -> None:
    dims = dimensions(Workload(model=name, device=device))

    assert dims.get("batch") == batch
    assert dims.get("seq") == seq


def test_what_is_asked_for_wins() -> None:
    dims = dimensions(Workload(model="bert", size="tiny", batch=3, seq=7, layers=5))

    assert (dims["batch"], dims["seq"], dims["layers"], dims["hidden"]) == (3, 7, 5, 64)
    assert geometry("bert").sizes["tiny"]["layers"] == 2, "the geometry itself must not change"


@given(seq=st.integers(-5, 2000))
def test_a_sequence_fits_the_position_table_or_is_refused(seq: int) -> None:
    workload = Workload(model="bert", seq=seq)
    if 1 <= seq <= 512:
        assert dimensions(workload)["seq"] == seq
    else:
        with pytest.raises(InputError, match="--seq"):
            dimensions(workload)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (
            Workload(model="elmo"),
            f"There is no model called 'elmo'; there are: {', '.join(NAMES)}.",
        ),
        (Workload(model="../bert"), r"There is no model called '../bert'"),
        (
            Workload(model="bert", size="huge"),
            "bert has no size 'huge': use --size with one of tiny, base, base-tanh, published, one-layer.",
        ),
        (Workload(model="bert", batch=0), "--batch 0 is not possible: give at least 1."),
        (Workload(model="bert", seq=-1), "--seq -1 is not possible: give at least 1."),
        (Workload(model="bert", layers=0), "--layers 0 is not possible: give at least 1."),
        (
            Workload(model="gpt2", seq=2048),
            "gpt2 has positions for 1024 tokens: use --seq 1024 or less, not 2048.",
        ),
        (
            Workload(model="bert", mode="generate"),
            "bert has no mode 'generate' yet: use --mode with one of infer, train.",
        ),
        (
            Workload(model="lenet5", layers=3),
            "lenet5 has no number of layers to choose: leave --layers out.",
        ),
        (Workload(model="mlp", seq=8), "mlp has no sequence: leave --seq out."),
        (Workload(model="matmul", batch=8), "matmul has no batch: leave --batch out."),
    ],
)
def test_errors_name_the_cure(workload: Workload, message: str) -> None:
    with pytest.raises(InputError) as caught:
        dimensions(workload)

    text = str(caught.value)
    assert text.startswith(message)
    assert text.endswith(".")


def test_reading_a_geometry_imports_no_framework() -> None:
    code = (
        "import sys; from roofline.models import geometry; geometry('bert');"
        "print(sorted({'torch', 'jax', 'tensorflow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
