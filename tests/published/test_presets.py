"""Presets: what a benchmark ran, resolved by model, mode and backend, and a profile held against it."""

from __future__ import annotations

from typing import Any

import handmade
import msgspec
import pytest

from roofline import devices, plugins, published
from roofline.cli.options import presets as command_line
from roofline.core.schema import Profile
from roofline.core.step import Workload
from roofline.errors import InputError
from roofline.models import dimensions
from roofline.published import presets
from roofline.published.presets.beside import beside
from roofline.recording.backend import load

KERAS, SIMPLE = presets.load("keras-benchmark"), presets.load("simplechains")


@pytest.mark.parametrize("name", presets.names())
def test_every_name_in_a_preset_is_known(name: str) -> None:
    """Tasks and columns are those of the publication, options those of the backend, sizes those of the model."""
    preset = presets.load(name)
    table = published.load(preset.publication)
    assert {column.name for column in preset.column} <= {cell.column for cell in table.cells}
    assert {row.task for row in preset.row} - {""} <= {row.task for row in table.rows}
    known = _models()
    for row in preset.row:
        assert {column for but in row.but for column in but.columns} <= {column.name for column in preset.column}
        for column in preset.column:
            asked = preset.resolve(row, column, threads=1)
            options = load(column.backend).options
            assert all(value in options[option] for option, value in asked.options.items())
            # A Trainer that compiles is not run.
            assert asked.api is None or asked.api in load(column.backend).apis or column.backend == "torch-compile"
            if row.model in known:
                size = asked.size or "base"
                dimensions(Workload(model=row.model, mode=row.mode, size=size, batch=asked.batch, seq=asked.seq))  # type: ignore[arg-type]


def _models() -> set[str]:
    files = (plugins.folder("roofline.models") / "_geometry").glob("*/*.toml")
    return {file.stem.replace("_", "-") for file in files}


def test_columns_of_one_row_differ_where_the_benchmark_did() -> None:
    """BERT fit: KerasNLP's GELU is the tanh form; the compiled Trainer turns TF32 on; its AdamW is PyTorch's 5e-5."""
    row = KERAS.find("bert", "train", "cuda")
    keras, eager, compiled = (
        KERAS.resolve(row, KERAS.of(backend), threads=1) for backend in ("keras-jax", "torch", "torch-compile")
    )
    assert (keras.batch, keras.seq, keras.steps, keras.input) == (32, 512, 100, "host")
    assert (keras.size, eager.size, compiled.size) == ("base-tanh", "base", "base")
    assert (keras.precision, eager.precision, compiled.precision) == ("default", "default", "tf32")
    assert keras.options == {"jit": "on"}
    assert eager.options == {"attention": "eager"}
    assert compiled.options == {"attention": "eager", "mode": "reduce-overhead"}
    assert keras.switches["optimizer lr"] == "0.001"
    assert eager.switches["optimizer lr"] == "5e-05"
    assert KERAS.of("jax") is None, "the benchmark has no column for JAX without Keras"
    assert KERAS.resolve(row, None, threads=1).options == {}


def test_the_flag_that_never_reached_the_model() -> None:
    row = KERAS.find("segment-anything", "infer", "cuda")
    assert KERAS.resolve(row, KERAS.of("keras2"), threads=1).options == {"jit": "off"}
    assert KERAS.resolve(row, KERAS.of("keras-tensorflow"), threads=1).options == {"jit": "on"}


@pytest.mark.parametrize("mode", ["infer", "train"])
def test_native_segment_anything_writes_attention_out(mode: str) -> None:
    """Meta's code has no fused attention; compiled, it is the same code. That of Stable Diffusion is PyTorch's own."""
    row = KERAS.find("segment-anything", mode, "cuda")
    assert KERAS.resolve(row, KERAS.of("torch"), threads=1).options == {"attention": "eager"}
    compiled = KERAS.resolve(row, KERAS.of("torch-compile"), threads=1)
    assert compiled.options == {"attention": "eager", "mode": "reduce-overhead"}
    other = KERAS.find("stable-diffusion", mode, "cuda")
    assert KERAS.resolve(other, KERAS.of("torch"), threads=1).options == {}


@pytest.mark.parametrize(
    ("model", "mode", "backend", "api"),
    [
        ("bert", "train", "keras-jax", "fit"),
        ("bert", "infer", "keras2", "predict"),
        ("bert", "train", "torch", "Trainer.train"),
        ("bert", "infer", "torch", "Trainer.predict"),
        ("gemma", "train", "torch", "Trainer.train"),
        ("gemma", "generate", "keras-torch", None),  # a step is a call of `generate`
        ("segment-anything", "train", "torch", None),  # a plain loop
        ("stable-diffusion", "infer", "keras-tensorflow", None),  # the library's loop calls predict_on_batch
        ("bert", "train", "jax", None),  # no column
    ],
)
def test_the_function_that_the_benchmark_timed(model: str, mode: str, backend: str, api: str | None) -> None:
    asked = KERAS.resolve(KERAS.find(model, mode, "cuda"), KERAS.of(backend), threads=1)
    assert asked.api == api


def test_rows_are_found_by_mode_batch_and_device() -> None:
    assert KERAS.find("bert", None, "cpu").mode == "infer", "what profile does by itself"
    assert SIMPLE.find("mlp", None, "cpu").mode == "train", "all that it has"
    assert [KERAS.find("gemma", "generate", "cuda", batch).batch for batch in (None, 1, 7)] == [32, 1, 32]
    gpu, cpu = (SIMPLE.find("lenet5", None, device) for device in ("cuda", "cpu"))
    # 10 epochs of 60,000 images: 10 x ceil(60,000 / 2048) = 10 x 30 steps, and 10 x 60,000 / (16 x 4)
    assert (gpu.batch, SIMPLE.resolve(gpu, None, threads=4).steps) == (2048, 300)
    assert (cpu.batch, SIMPLE.resolve(cpu, None, threads=4).batch) == (None, 64)
    assert SIMPLE.resolve(cpu, None, threads=4).steps == 9380
    assert SIMPLE.resolve(gpu, None, threads=4, batch=60_000).steps == 10


def test_what_it_does_not_have_is_said() -> None:
    with pytest.raises(InputError, match=r"^simplechains did not run bert; it has: lenet5, mlp\.$"):
        SIMPLE.find("bert", None, "cpu")
    with pytest.raises(InputError, match=r"^simplechains has no infer of mlp: use --mode train\.$"):
        SIMPLE.find("mlp", "infer", "cpu")
    with pytest.raises(
        InputError, match="There is no preset called 'keras'; there are: hf2019, ivanov, keras-benchmark, simpl"
    ):
        presets.load("keras")


# ----------------------------------------------------------------------------------------------- beside a profile


def bert_fit(**changed: Any) -> Profile:
    """The native eager column of BERT fit, as if it were measured on the published device: mean of 0.7 and 0.9 s."""
    profile = handmade.profile()
    return msgspec.structs.replace(
        profile,
        **{
            "preset": "keras-benchmark",
            "model": "bert",
            "mode": "train",
            "backend": "torch",
            "batch": 32,
            "seq": 512,
            "size": "base",
            "precision": "default",
            "options": {"attention": "eager"},
            "switches": {"input": "host", "optimizer": "AdamW", "optimizer lr": "5e-05", "optimizer weight_decay": "0"},
            "device": msgspec.structs.replace(devices.load("a100-40gb"), name="NVIDIA A100-SXM4-40GB"),
            "wall": msgspec.structs.replace(profile.wall, steps=(0.7, 0.9) * 50),
            **changed,
        },
    )


def test_the_same_step_on_the_same_device_has_a_ratio() -> None:
    found = beside(bert_fit())
    assert found is not None
    assert found.differences == ()
    (figure,) = found.figures
    assert (figure.cell.value, figure.cell.unit, figure.measured_on) == (693.37, "ms", True)
    assert found.mean == pytest.approx(0.8)
    assert found.ratio(figure) == pytest.approx(0.8 / 0.69337)


@pytest.mark.parametrize(
    ("changed", "differences"),
    [
        ({"batch": 1}, [("batch", "1", "32")]),
        ({"options": {}}, [("attention", "default", "eager")]),
        ({"layers": 2}, [("layers", "2", "that of the size")]),
        (
            {"switches": {"input": "device", "optimizer": "AdamW", "optimizer lr": "0.001"}},
            [("input", "device", "host"), ("optimizer lr", "0.001", "5e-05")],
        ),
    ],
)
def test_another_step_has_no_ratio(changed: dict[str, Any], differences: list[tuple[str, str, str]]) -> None:
    found = beside(bert_fit(**changed))
    assert found is not None
    assert [(one.setting, one.run_value, one.benchmark_value) for one in found.differences] == differences
    assert all(found.ratio(figure) is None for figure in found.figures)


def test_fewer_steps_are_the_same_step() -> None:
    profile = bert_fit()
    found = beside(msgspec.structs.replace(profile, wall=msgspec.structs.replace(profile.wall, steps=(0.7, 0.9))))
    assert found is not None
    assert [(one.setting, one.run_value, one.benchmark_value) for one in found.differences] == [("steps", "2", "100")]
    assert found.ratio(found.figures[0]) is not None


def test_a_counted_step_was_not_timed_in_fewer_steps() -> None:
    profile = bert_fit()
    wall = msgspec.structs.replace(profile.wall, steps=())
    found = beside(msgspec.structs.replace(profile, profiled=None, wall=wall))
    assert found is not None
    assert (found.mean, found.differences) == (None, ())


def test_the_published_size_is_base() -> None:
    found = beside(bert_fit(size="published"))
    assert found is not None
    assert found.differences == ()
    other = beside(bert_fit(size="published", backend="keras-jax", options={"jit": "on"}))
    assert other is not None
    assert ("size", "base", "base-tanh") in [
        (one.setting, one.run_value, one.benchmark_value) for one in other.differences
    ]


def test_several_devices_are_known_by_the_datasheet_of_one() -> None:
    device = bert_fit().device
    found = beside(bert_fit(device=device.together(4)))
    assert found is not None
    assert found.figures
    assert all(figure.measured_on for figure in found.figures)


def test_another_device_has_no_ratio() -> None:
    for name in ("a100-80gb", "h100-sxm"):
        device = devices.load(name)
        found = beside(bert_fit(device=msgspec.structs.replace(device, name=f"NVIDIA {device.name}")))
        assert found is not None
        assert found.figures
        assert not any(figure.measured_on for figure in found.figures)
        assert found.ratio(found.figures[0]) is None


def test_a_figure_of_all_epochs_is_one_of_each_step() -> None:
    """15.28 s for 10,000 steps are 1.528 ms; LeNet5's 11.24 s on a CPU are of a batch that is not published."""
    wanted = {
        "preset": "simplechains",
        "mode": "train",
        "seq": None,
        "options": {},
        "device": handmade.profile().device,
    }
    mlp = beside(bert_fit(**wanted, model="mlp", batch=10_000))
    assert mlp is not None
    first = next(figure for figure in mlp.figures if figure.cell.hardware == "i9-10980XE" and figure.cell.run == "1")
    assert first.seconds == pytest.approx(15.28 / 10_000)
    lenet = beside(bert_fit(**wanted, model="lenet5", batch=16))
    assert lenet is not None
    on = {figure.cell.hardware: figure.seconds for figure in lenet.figures}
    assert on["i9-10980XE"] is None
    assert "V100" not in on, "which ran another batch"
    gpu = msgspec.structs.replace(devices.load("v100-sxm2"), name="Tesla V100-SXM2-16GB")
    lenet = beside(bert_fit(**{**wanted, "device": gpu}, model="lenet5", batch=2048))
    assert lenet is not None
    seconds = {(figure.cell.hardware, figure.cell.run): figure.seconds for figure in lenet.figures}
    assert seconds["V100", "2"] == pytest.approx(15.94 / 300)


def test_a_grid_is_no_difference() -> None:
    wanted = {"preset": "hf2019", "mode": "infer", "switches": {"input": "device"}}
    on_grid, off_grid = (beside(bert_fit(**wanted, batch=batch, seq=64)) for batch in (8, 3))
    assert on_grid is not None
    assert off_grid is not None
    assert [one.setting for one in on_grid.differences] == ["steps"]  # 100 and not 90
    assert [one.setting for one in off_grid.differences] == ["batch", "steps"]
    assert on_grid.figures == (), "the table has averages over all models only"


def test_a_preset_that_is_not_known_here_is_none() -> None:
    assert beside(bert_fit(preset="of-the-future")) is None
    assert beside(bert_fit(preset=None)) is None
    assert beside(bert_fit(model="elmo")) is None


@pytest.mark.parametrize(
    ("backend", "device", "told"),
    [
        ("tensorflow-xla", None, True),
        ("tensorflow-xla", "v100-sxm2", False),
        ("tensorflow", None, False),
    ],
)
def test_a_column_that_was_published_for_another_kind_of_device(backend: str, device: str | None, told: bool) -> None:
    """hf2019 ran XLA on the GPU only."""
    run = bert_fit(preset="hf2019", mode="infer", backend=backend, options={"mode": "autocluster"}, switches={})
    here = handmade.profile().device if device is None else devices.load(device)
    found = beside(msgspec.structs.replace(run, device=here))
    assert found is not None
    assert any("auto-clustering on the GPU only" in each for each in found.apart) == told
    assert any("AutoModel, without a head" in each for each in found.apart), "of every run"


@pytest.mark.parametrize("name", presets.names())
def test_what_is_apart_in_some_columns_names_columns(name: str) -> None:
    preset = presets.load(name)
    known = {column.name for column in preset.column}
    for each in (*preset.apart, *(one for row in preset.row for one in row.apart)):
        if isinstance(each, presets.Apart):
            assert set(each.columns) <= known
            assert each.columns or each.device
            assert each.device in ("", "cpu", "cuda")


def test_a_column_that_a_row_does_not_have_names_the_others() -> None:
    """As the table has it: NA, and no such model there."""
    for row in KERAS.row:
        for column in KERAS.column:
            told = ""
            try:
                KERAS.check_column(row, column, lambda backend: True)
            except InputError as error:
                told = str(error)
            cells = [each for each in published.load("keras-benchmark").cells if each.task == row.task]
            figures = {each.value for each in cells if each.column == column.name}
            built = row.model in plugins.names(load(column.backend).models, sorted_by_kind=True)
            assert bool(told) == (figures == {None}) == (not built), (row.task, column.name)
            if told:
                assert f"has no column Keras 2 (TF) for {row.task}, and Keras 2 has no such model" in told
                assert told.endswith("use --backend torch, torch-compile, keras-tensorflow, keras-jax or keras-torch.")
    KERAS.check_column(KERAS.find("gemma", "train", "cuda"), None, lambda backend: True)


@pytest.mark.parametrize(
    ("builds", "cure"), [({"torch"}, "use --backend torch."), (set(), "use another model.")], ids=["one", "none"]
)
def test_only_backends_that_have_the_model_are_named(builds: set[str], cure: str) -> None:
    preset = presets.load("hf2019")
    row = preset.find("transformer-xl", "infer", "cpu")
    with pytest.raises(InputError) as caught:
        preset.check_column(row, preset.of("torchscript"), builds.__contains__)
    assert str(caught.value).endswith(f"traced every model but this one: {cure}")


def test_the_layer_of_ivanov_et_al_runs_on_a_gpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward without an optimizer, in fp16, at both published sizes; a CPU is refused with the cure."""
    preset = presets.load("ivanov")
    for given, batch, seq in ((None, 8, 512), (8, 8, 512), (96, 96, 128)):
        asked = preset.resolve(preset.find("bert-layer", None, "cuda", given), preset.of("torch"), threads=1)
        assert (asked.batch, asked.seq, asked.precision, asked.options) == (batch, seq, "fp16", {"attention": "eager"})
    with pytest.raises(InputError, match=r"^ivanov ran train of bert-layer on another device: use --device cuda\.$"):
        preset.find("bert-layer", None, "cpu")
    monkeypatch.setattr("roofline.devices.calibration.resolve", lambda device: "cuda")
    asked = {"mode": "infer", "device": "auto", "batch": None, "threads": 1, "optimizer": True}
    backend, filled, lines = command_line.fill("ivanov", "bert-layer", "torch", asked, (), core=False)
    assert (backend, filled["mode"], filled["optimizer"]) == ("torch:attention=eager", "train", False)
    assert "--no-optimizer" in lines[0]


def test_the_layer_of_ivanov_et_al_with_an_optimizer_is_another_step() -> None:
    """9.14 ms were published of PyTorch on a V100 without one: the ratio of 10 ms to it is 1.094."""
    wanted = {
        "preset": "ivanov", "model": "bert-layer", "batch": 8, "seq": 512, "precision": "fp16",
        "device": msgspec.structs.replace(devices.load("v100-sxm2"), name="Tesla V100-SXM2-16GB"),
        "wall": msgspec.structs.replace(handmade.profile().wall, steps=(0.01,) * 10),
    }  # fmt: skip
    switches = {"input": "device", "optimizer": "none", "dropout": "0.1"}
    found = beside(bert_fit(**wanted, switches=switches))
    assert found is not None
    assert found.ratio(found.figures[0]) == pytest.approx(10 / 9.14)
    other = beside(bert_fit(**wanted, switches={**switches, "optimizer": "AdamW"}))
    assert other is not None
    assert [(one.setting, one.run_value, one.benchmark_value) for one in other.differences] == [
        ("optimizer", "AdamW", "none")
    ]
