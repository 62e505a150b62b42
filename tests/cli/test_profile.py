"""`roofline profile` from end to end on the CPU, `show --format json` of what it wrote, and `roofline.profile(...)`."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import roofline as package
from roofline.core.device import Ceiling, Device
from roofline.core.vocabulary import CLASSES, GROUPS
from roofline.devices import cpu
from roofline.errors import InputError, MissingError
from roofline.measuring import ceilings

torch = pytest.importorskip("torch")
Run = Callable[..., Any]

SMALL = ("--size", "tiny", "--backend", "torch", "--device", "cpu", "--threads", "1", "--steps", "3")
MLP = ("profile", "mlp", *SMALL, "--batch", "64")

#: What docs/json.md promises, level by level.
TOP = {
    *("schema", "model", "backend", "options", "mode", "batch", "seq", "size", "precision", "command", "versions"),
    *("switches", "device", "wall", "busy", "gap", "gap_ci95", "idle_observed", "gap_causes", "overlap", "uncosted"),
    *(
        "inflation",
        "scale",
        "coverage",
        "quality",
        "bounds",
        "bounds_floor",
        "bounds_reach",
        "unattained",
        "roofs",
        "classes",
    ),
    *(
        "groups",
        "phases",
        "blocks",
        "parameters",
        "trainable",
        "samples",
        "tokens",
        "new_tokens",
        "memory",
        "above_ceiling",
        "flags",
    ),
    *("bounds_reach", "bounds_attained", "bounds_turning"),
}
#: What is there beyond it (docs/profile-format.md).
EXTRAS = {
    "host",
    "near_ridge",
    "mfu",
    "missing_ceilings",
    "compilation",
    "imported",
    "preset",
    "counters",
    "devices",
    "energy",
    "waits",
}
BELOW = {
    "device": {"name", "kind", "ceilings", "ceilings_of"},
    "wall": {
        *("median", "mean", "p10", "p90", "steps", "first", "single", "protocol", "processes", "ci95", "source"),
    },
    "coverage": {"flops", "bytes", "time"},
    "quality": {"exact", "assumed", "unknown"},
    "bounds": {"compute", "memory", "overhead", "unknown"},
    "bounds_floor": {"compute", "memory", "overhead", "unknown"},
    "unattained": {"compute", "memory", "overhead", "unknown"},
    "roofs": {"serial", "overlap", "ideal"},
    "memory": {
        *("peak", "parameters", "optimizer", "source"),
        *("at_least", "reached", "parts", "gradients", "resident"),  # added since
    },
}
ROW = {
    *("ops", "kernels", "model_flops", "flops", "useful_flops", "vector_flops", "transcendentals", "int_ops"),
    *(
        "bytes_read",
        "bytes_written",
        "seconds",
        "own_seconds",
        "overlap",
        "uncosted",
        "floor",
        "floor_high",
        "floor_reach",
        "loss",
    ),
    *("divided_seconds", "bounds", "busy_share", "counted_bytes_read", "counted_bytes_written", "uncounted_ops"),
}
TABLES = ("classes", "groups", "phases", "blocks")


def shown(run: Run, file: str | Path, *more: str) -> dict[str, Any]:
    ended = run("show", str(file), "--format", "json", *more)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def closes(document: dict[str, Any]) -> None:
    """The identities of docs/json.md, each to 0.1 % of the wall."""
    wall = document["wall"]["median"]
    near = pytest.approx
    small = 1e-3 * wall
    for table in TABLES:
        rows = document[table].values()
        # Whatever the table, its rows are all of the step: wall = sum(seconds) + gap.
        assert sum(row["seconds"] for row in rows) + document["gap"] == near(wall, abs=small)
        for row in rows:
            whole = row["floor"] + row["loss"] + row["uncosted"] - row["overlap"]
            assert row["seconds"] == near(whole, abs=small)
            assert row["seconds"] == near(row["own_seconds"] - row["overlap"], abs=small)
            assert sum(row["bounds"].values()) == near(row["seconds"], abs=small)
            assert row["floor"] <= row["floor_high"] * 1.001
    assert sum(document["bounds"].values()) == near(document["busy"], abs=small)
    assert document["busy"] + document["gap"] == near(wall, abs=small)
    for name in ("overlap", "uncosted"):
        assert sum(row[name] for row in document["classes"].values()) == near(document[name], abs=small)
    for bound in ("compute", "memory", "overhead"):
        assert document["bounds_floor"][bound] <= document["roofs"]["serial"] + small
    assert sum(document["bounds_floor"].values()) == near(document["roofs"]["serial"], abs=small)


# ------------------------------------------------------------------------------------------------ as the user does


@pytest.mark.slow
def test_from_end_to_end(process: Run, roofline: Run, tmp_path: Path) -> None:
    """With all that a child measures beside the steps."""
    words = (*MLP, "-o", "p.json")
    ended = process(*words)

    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith("mlp tiny · inference · batch 64 · ")
    assert len(lines) <= 24
    assert lines[-2:] == ["Wrote p.json", "Next: roofline show p.json --details"]
    every = roofline("show", "p.json", "--details").out.splitlines()
    for name in ("throughput", "MFU", "peak memory", "first step", "steps", "group", "coverage", "total"):
        assert any(line.startswith(name) for line in every), name
    # Progress is on standard error, so that the result can be piped.
    assert "3 plain steps" in ended.err
    assert "Traceback" not in ended.err
    assert "calibrating" not in ended.err

    document = shown(roofline, "p.json")
    closes(document)
    assert set(document["phases"]) == {"forward"}
    # One thread, as asked, in the child's environment and so in its OpenMP.
    saved = package.load(tmp_path / "p.json")
    assert saved.environment["threads"] == "1"
    assert document["command"] == f"roofline {' '.join(words)}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json"]


# ------------------------------------------------------------------------------------------------ the contract


def test_the_keys_are_those_of_the_contract(roofline: Run, recorded: Path) -> None:
    document = shown(roofline, recorded)

    assert set(document) == TOP | EXTRAS
    for name, keys in BELOW.items():
        assert set(document[name]) == keys, name
    for ceiling in document["device"]["ceilings"].values():
        assert set(ceiling) == {"value", "source", "spread", "date", "waited", "flag"}
    for table in TABLES:
        assert document[table]
        for row in document[table].values():
            assert set(row) == ROW
            assert set(row["bounds"]) == BELOW["bounds"]
    assert set(document["classes"]) <= set(CLASSES)
    assert set(document["groups"]) <= set(GROUPS)
    assert document["schema"] == 1
    assert (document["model"], document["mode"], document["batch"], document["seq"]) == ("mlp", "train", 64, None)
    assert (document["samples"], document["tokens"]) == (64, None)
    # 4-8-8-4: weights 4*8 + 8*8 + 8*4 = 128, biases 8 + 8 + 4 = 20
    assert document["parameters"] == document["trainable"] == 148
    # fp32 weights; Adam keeps two moments of them and one step number (fp32) per tensor: 2*148*4 + 6*4
    assert document["memory"]["parameters"] == 148 * 4
    assert document["memory"]["optimizer"] == 2 * 148 * 4 + 6 * 4
    # Parameters, gradients and the optimizer's state are there at once, and the resident set is not the step's.
    assert 4 * 148 * 4 <= document["memory"]["peak"] < document["memory"]["resident"]
    assert document["memory"]["gradients"] == 148 * 4
    assert (document["memory"]["at_least"], document["memory"]["reached"]["phase"]) == (False, "backward")
    assert document["wall"]["steps"] == 3
    assert document["wall"]["source"] == "plain"
    assert "few-steps" in document["flags"]
    assert document["above_ceiling"] == 0
    assert document["missing_ceilings"] == []


def test_the_identities_hold(roofline: Run, recorded: Path) -> None:
    document = shown(roofline, recorded)
    closes(document)
    assert set(document["phases"]) == {"forward", "backward", "optimizer"}
    assert set(document["blocks"]) == {"dense 1", "dense 2", "dense 3", "loss", "optimizer"}
    # All of it: shares of time that are less than 1 would say how long something took.
    assert document["coverage"] == {"time": 1, "flops": 1, "bytes": 1}


def test_the_check_of_the_identities_can_fail(roofline: Run, recorded: Path) -> None:
    document = shown(roofline, recorded)
    for table in TABLES:
        broken = json.loads(json.dumps(document))
        next(iter(broken[table].values()))["seconds"] += 0.01 * document["wall"]["median"]
        with pytest.raises(AssertionError):
            closes(broken)


@pytest.mark.parametrize(
    ("by", "key"), [("op", "ops"), ("scope", "scopes"), ("kernel", "kernels"), ("source", "sources"), ("class", None)]
)
def test_another_table_on_demand(roofline: Run, recorded: Path, by: str, key: str | None) -> None:
    document = shown(roofline, recorded, "--by", by)
    assert set(document) - TOP - EXTRAS == ({key, "rows_left_out"} if key else set())
    if key is not None:
        rows = document[key] if isinstance(document[key], list) else document[key].values()
        assert sum(row["seconds"] for row in rows) == pytest.approx(document["busy"], rel=1e-3)
    if by == "op":
        assert {row["scope"] for row in rows} >= {"dense1", "dense2", "dense3", "loss", "optimizer"}
        assert {row["phase"] for row in rows} == {"forward", "backward", "optimizer"}
        assert {row["line"] for row in rows} == {None}  # a model of ours: no line is the user's


@pytest.mark.parametrize("format", ["text", "json", "csv", "markdown", "latex", "perfetto"])
def test_every_format_of_a_real_profile(roofline: Run, recorded: Path, format: str) -> None:
    ended = roofline("show", str(recorded), "--format", format)
    assert ended.code == 0
    assert ended.out.strip()
    assert ended.err == ""


# ------------------------------------------------------------------------------------------------ options


def test_what_it_prints_and_writes(measuring: Run, tmp_path: Path) -> None:
    ended = measuring(*MLP)

    assert ended.code == 0, ended.err
    name = "mlp-torch-infer-b64-roomy-cpu-1.json"
    assert ended.out.startswith("mlp tiny · inference · batch 64 · ")
    assert "Roomy CPU" in ended.out
    assert ended.out.endswith(f"Wrote {tmp_path / name}\nNext: roofline show {tmp_path / name} --details\n")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    # The next one takes the next number, and nothing is overwritten.
    before = (tmp_path / name).read_bytes()
    counted = "mlp-torch-infer-b64-not-measured-1.json"
    for further in (counted, counted.replace("-1.json", "-2.json")):
        assert measuring(*MLP, "--count-only").code == 0
        assert (tmp_path / further).exists()
    assert len(list(tmp_path.iterdir())) == 3
    assert (tmp_path / name).read_bytes() == before


def test_rounds_are_further_processes(measuring: Run, tmp_path: Path) -> None:
    assert measuring(*MLP, "--rounds", "2", "-o", "p.json").code == 0
    saved = package.load(tmp_path / "p.json")
    assert [len(steps) for steps in saved.wall.processes] == [3]
    assert shown(measuring, "p.json")["wall"]["processes"] == 2


def test_counting_only_times_nothing(measuring: Run, tmp_path: Path) -> None:
    ended = measuring(*MLP, "--count-only", "--mode", "train", "--rounds", "2", "-o", "p.json")
    assert ended.code == 0, ended.err

    saved = package.load(tmp_path / "p.json")
    assert saved.profiled is None
    assert saved.wall.steps == saved.wall.processes == ()
    assert not saved.device.ceilings
    assert {saved.phases[op.phase] for op in saved.ops} == {"forward", "backward", "optimizer"}
    document = shown(measuring, "p.json")
    for name in ("busy", "gap", "bounds", "roofs", "mfu", "coverage", "above_ceiling", "idle_observed"):
        assert document[name] is None, name
    assert document["wall"]["median"] is None
    assert document["wall"]["steps"] == 0
    assert {row["seconds"] for row in document["classes"].values()} == {None}
    assert "counted and not timed" in ended.out
    # forward 2*64*(4*8 + 8*8 + 8*4) = 16384; backward twice that without the input's gradient, 2*64*4*8 = 4096
    flops = {name: row["flops"] for name, row in document["phases"].items()}
    assert flops == {"forward": 16384, "backward": 2 * 16384 - 4096, "optimizer": 0}


def test_without_optimizer(measuring: Run) -> None:
    assert measuring(*MLP, "--mode", "train", "--no-optimizer", "-o", "p.json").code == 0
    document = shown(measuring, "p.json")
    closes(document)
    assert set(document["phases"]) == {"forward", "backward"}
    assert document["switches"]["optimizer"] == "none"
    assert document["memory"]["optimizer"] is None


@pytest.mark.slow
def test_layers_and_lengths(measuring: Run, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    words = ("profile", "bert", *SMALL, "--layers", "1", "--seq", "8", "--batch", "3", "--count-only", "-o", "p.json")
    assert measuring(*words).code == 0
    saved = package.load(tmp_path / "p.json")
    assert (saved.layers, saved.batch, saved.seq, saved.samples, saved.tokens) == (1, 3, 8, 3, 24)
    assert {scope.split("/")[2] for scope in saved.scopes if scope.startswith("bert/encoder/")} == {"layer.0"}


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", "bf16"), ("fp32", "fp32")])
def test_precisions(measuring: Run, tmp_path: Path, precision: str, dtype: str) -> None:
    assert measuring(*MLP, "--precision", precision, "--count-only", "-o", "p.json").code == 0
    saved = package.load(tmp_path / "p.json")
    used = {s.precision for s in saved.signatures if s.precision is not None}
    assert {(p.inputs, p.output) for p in used} == {(dtype, dtype)}
    assert saved.precision == precision
    if precision == "fp32":
        assert {p.arithmetic for p in used} == {"fp32"}
        assert saved.switches["float32 matmul (oneDNN)"] == "ieee"


def test_its_report_to_look_at(measuring: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")  # nobody looks
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    ended = measuring(*MLP, "--count-only", "--open", "-o", "p.json")
    assert ended.code == 0, ended.err
    (page,) = tmp_path.glob("temporary/roofline-*/report.html")
    assert ended.out.splitlines()[-4:-1] == ["Wrote p.json", f"Wrote {page}", "Did not open it: this is a run in CI."]
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_an_output_is_replaced_when_forced(measuring: Run, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("mine")
    assert measuring(*MLP, "--count-only", "-o", "p.json", "--force").code == 0
    assert package.load(tmp_path / "p.json").model == "mlp"


# ------------------------------------------------------------------------------------------------ a user's own file

USERS_FILE = """
import torch
import roofline
import helper_beside_it

def make_step(batch, mode="infer"):
    weights = torch.ones(8, helper_beside_it.WIDTH)
    x = torch.ones(batch, 8)

    def run():
        with roofline.scope("product"):
            y = x @ weights
        with roofline.scope("rest"):
            return y.exp()

    return run

def make_whole():
    layer = torch.nn.Linear(8, 4)
    x = torch.ones(2, 8)
    return roofline.Step(
        run=lambda: layer(x),
        model=layer,
        parameters=36,
        samples=2,
        batch=2,
        blocks=(("*", "my block"),),
        switches={"colour": "blue"},
    )
"""


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(USERS_FILE)
    (tmp_path / "helper_beside_it.py").write_text("WIDTH = 16\n")
    return tmp_path / "mine.py"


@pytest.mark.usefixtures("users_file")
def test_a_users_callable(measuring: Run) -> None:
    own = ("--backend", "torch", "--device", "cpu", "--threads", "1", "--steps", "3", "--batch", "5")
    ended = measuring("profile", "mine.py:make_step", *own, "-o", "p.json")
    assert ended.code == 0, ended.err
    document = shown(measuring, "p.json")
    closes(document)
    assert document["model"] == "mine:make_step"
    assert (document["batch"], document["samples"], document["parameters"]) == (5, 5, None)
    # A user's model has its top scopes as blocks. 2 * 5 * 8 * 16 in the product, an exp for each of its results.
    assert {name: row["flops"] for name, row in document["blocks"].items()} == {"product": 1280, "rest": 0}
    assert document["classes"]["pointwise"]["transcendentals"] == {"exp": 5 * 16}


@pytest.mark.usefixtures("users_file")
def test_a_users_step(measuring: Run) -> None:
    ended = measuring("profile", "mine.py:make_whole", *SMALL[2:], "--count-only", "-o", "p.json")
    assert ended.code == 0, ended.err
    document = shown(measuring, "p.json")
    assert set(document["blocks"]) == {"my block"}
    assert document["switches"]["colour"] == "blue"
    assert (document["parameters"], document["memory"]["parameters"]) == (36, 36 * 4)


# ------------------------------------------------------------------------------------------------ in this process


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """One thread, the calibration of `cache`, and none of the recording's own measurements."""
    from roofline.pytorch.recording import profiler
    from roofline.recording import record
    from roofline.timing.timed import EventCost

    gc.freeze()
    monkeypatch.setenv("ROOFLINE_CACHE", str(cache))
    monkeypatch.setattr(record, "bandwidth", lambda plan, threads: {})
    monkeypatch.setattr(profiler, "event_cost", lambda: EventCost(2e-7, 2e-7))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def state() -> dict[str, Any]:
    """What a profile in the user's process has to leave as it was."""
    from torch.nn.modules import module
    from torch.optim import optimizer

    from roofline.models.float32 import torch as float32

    return {
        "switches": (float32.switches(), torch.get_float32_matmul_precision()),
        "grad": torch.is_grad_enabled(),
        "random": torch.get_rng_state().tolist(),
        "hooks": [list(vars(module)[name]) for name in sorted(vars(module)) if name.startswith("_global_")
                  and isinstance(vars(module)[name], dict)],
        "optimizer hooks": list(optimizer._global_optimizer_post_hooks),
        "backward": (torch.autograd.backward, torch.autograd.grad),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "collecting": gc.isenabled(),
    }  # fmt: skip


@pytest.mark.usefixtures("here")
def test_in_process_everything_is_put_back(tmp_path: Path) -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = torch.ones(2, 4)

    def train() -> None:
        optimizer.zero_grad()
        layer(x).sum().backward()
        optimizer.step()

    before = state()
    profile = package.profile(train, mode="train", steps=3, device="cpu")

    assert state() == before
    assert "in_process" in profile.flags
    assert profile.model == "train"
    assert profile.mode == "train"
    assert profile.device.name == "Roomy CPU"
    assert profile.environment["threads"] == "1"
    package.save(profile, tmp_path / "p.json")
    assert package.load(tmp_path / "p.json") == profile
    analysis = package.analyze(profile)
    assert analysis.wall == pytest.approx(analysis.busy + analysis.gap)
    # The linear layer forward 2*2*4*4 = 64, its weight's gradient the same; the input asks for none.
    assert {name: total.flops for name, total in analysis.by("phase").items()} == {
        "forward": 64,
        "backward": 64,
        "optimizer": 0,
    }


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("call", [1, 2, 4, 8])
def test_in_process_the_users_exception_passes_through(call: int) -> None:
    """Unchanged, whichever run it happens in: the first step, the counted one, a plain one, a profiled one."""

    class Mine(Exception):
        pass

    error, calls, layer = Mine("mine"), [], torch.nn.Linear(2, 2)

    def step() -> None:
        calls.append(None)
        layer(torch.rand(1, 2))
        if len(calls) == call:
            raise error

    before = state()
    with pytest.raises(Mine) as raised:
        package.profile(step, steps=3, device="cpu")
    assert raised.value is error
    assert len(calls) == call
    assert state() == before


@pytest.mark.usefixtures("here")
def test_in_process_adding_up_a_gradient_belongs_to_its_layer() -> None:
    """Nobody clears the gradients: autograd adds to them outside of every layer, on the data of one."""
    layer, x = torch.nn.Linear(4, 4), torch.ones(2, 4)

    def train() -> None:
        with package.scope("mine"):
            y = layer(x)
        with package.scope("loss"):
            loss = y.sum()
        loss.backward()

    profile = package.profile(train, mode="train", steps=3, device="cpu")
    added = [op for op in profile.ops if profile.signatures[op.signature].name == "aten::add_"]
    assert len(added) == 2  # weight and bias
    assert {(profile.phases[op.phase], profile.scopes[op.scope].partition("/")[0]) for op in added} == {
        ("backward", "mine")
    }


@pytest.mark.usefixtures("here")
def test_in_process_the_users_switches_are_used() -> None:
    x = torch.ones(2, 4, requires_grad=True)
    with torch.no_grad():
        profile = package.profile(lambda: (x @ x.T).exp(), steps=3, device="cpu", name="mine")
    assert profile.model == "mine"
    assert {signature.name for signature in profile.signatures} == {"aten::mm", "aten::exp"}


@pytest.mark.usefixtures("here")
def test_in_process_under_ceilings_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "measured", lambda *_: pytest.fail("ceilings were measured"))
    file, x, ran = tmp_path / "slow.json", torch.ones(2, 4), []
    slow = Ceiling(value=1e3, source="made up", spread=0.01)
    file.write_bytes(msgspec.json.encode(Device(name="Slow", kind="cpu", ceilings={"dram.copy": slow})))
    profile = package.profile(lambda: x @ x.T, steps=3, device="cpu", ceilings=file)
    assert dict(profile.device.ceilings) == {"dram.copy": slow}
    assert (profile.device.name, profile.device.ceilings_of) == (cpu.detect().name, "Slow")
    assert "given-ceilings: Slow" in profile.flags
    with pytest.raises(InputError, match="belong to a cuda device, and the step runs on cpu"):
        package.profile(lambda: ran.append(x), steps=3, device="cpu", ceilings="h100-sxm")
    assert ran == []


def test_in_process_what_is_refused() -> None:
    with pytest.raises(InputError, match=r"callable or a roofline\.Step, not int"):
        package.profile(7)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no backend called 'tensorfow'"):
        package.profile(lambda: None, backend="tensorfow")
    with pytest.raises(InputError, match="no mode 'learn'; there are: infer"):
        package.profile(lambda: None, mode="learn")
    with pytest.raises(InputError, match="no device 'tpu'; there are: auto, cpu, cuda"):
        package.profile(lambda: None, device="tpu")
    with pytest.raises(InputError, match="0 steps are not possible"):
        package.profile(lambda: None, steps=0)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_in_process_a_missing_gpu_is_said() -> None:
    with pytest.raises(MissingError, match="finds no CUDA device here; it finds cpu"):
        package.profile(lambda: None, device="cuda")
