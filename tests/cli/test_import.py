"""The verb `import`: what it writes, prints and refuses, from files to saved profiles that the other verbs take."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")

from roofline import cli
from roofline.analysis.analysis import analyze
from roofline.content import json_document
from roofline.core.schema import Profile, load

TESTS = Path(__file__).resolve().parents[1]
RECORDED = Path(os.environ.get("ROOFLINE_TRACES", TESTS.parents[1] / "shared" / "traces"))


@pytest.fixture(scope="session")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_kineto_for_cli", TESTS / "data" / "make_kineto.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


def changed(text: bytes, **header: Any) -> bytes:
    return json.dumps(json.loads(text) | header).encode()


def near(value: float) -> Any:
    return pytest.approx(value, rel=1e-9)


def hold_identities(profile: Profile) -> dict[str, Any]:
    document = json_document.document(analyze(profile))
    classes = document["classes"].values()
    assert document["wall"]["median"] == near(sum(row["seconds"] for row in classes) + document["gap"])
    for row in classes:
        assert row["seconds"] == pytest.approx(row["floor"] + row["loss"] + row["uncosted"] - row["overlap"])
        assert sum(row["bounds"].values()) == pytest.approx(row["seconds"])
        assert row["floor_high"] >= row["floor"]
    json.dumps(document, allow_nan=False)
    return document


# From a trace to a profile


def test_a_profile_is_written_and_shown(make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "my.pt.trace.json.gz"
    trace.write_bytes(gzip.compress(make.training().write()))
    assert run("import", trace, "-o", "p.json", "--device", "h100-sxm") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("my · training · torch · NVIDIA H100 SXM\n")
    assert printed.out.count("\n") <= 24
    assert "Next: roofline show p.json --details" in printed.out
    assert "Wrote p.json" in printed.out
    profile = load(tmp_path / "p.json")
    document = hold_identities(profile)
    assert (profile.backend, profile.mode, profile.wall.source) == ("torch", "train", "profiled")
    assert profile.command.startswith("roofline")
    assert (document["wall"]["steps"], document["busy"]) == (2, pytest.approx(441e-6))
    assert document["imported"]["files"] == ("my.pt.trace.json.gz",)
    assert (document["imported"]["steps"], document["imported"]["marks"]) == (3, "roofline:step#")
    assert document["imported"]["exposed"] == near(40e-6)
    for by in ("class", "op", "kernel", "block", "phase", "scope", "source"):
        assert run("show", "p.json", "--by", by) == 0
    assert run("plot", "p.json", "-o", "p.svg") == 0
    assert (tmp_path / "p.svg").is_file()


@pytest.mark.parametrize(
    ("options", "steps", "used", "rule"),
    [
        (("--steps", "2:4"), 6, 3, "roofline:step#N, number 2 to 4 by hand"),
        (("--step", "5"), 6, 1, "roofline:step#N, number 5 by hand"),
        (("--between", "Optimizer.step"), 5, 4, "from one Optimizer.step to the next"),
        (("--trim", "1:"), 4, 3, "roofline:step#N, in a part of the trace"),  # the first op begins at 0.096
    ],
)
def test_steps_by_hand(
    make: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, str],
    steps: int,
    used: int,
    rule: str,
) -> None:
    (tmp_path / "t.json").write_bytes(make.training(6).write())
    assert run("import", "t.json", "-o", "p.json", *options) == 0
    assert f"a step: {rule}, {steps} seen" in " ".join(capsys.readouterr().out.split())
    profile = load(tmp_path / "p.json")
    assert profile.imported is not None
    assert (profile.imported.steps, profile.imported.rule) == (steps, rule)
    assert profile.wall.steps == pytest.approx((1e-3,) * used, rel=0.2)


def test_steps_that_no_mark_shows_are_flagged(make: ModuleType, tmp_path: Path) -> None:
    """Twelve ops, four times over, and once with marks."""
    flags = []
    for marked in (False, True):
        made = make.Trace()
        for number in range(48):
            made.op(f"aten::op{number % 12}", 10 * number, 10 * number + 9, make.X)
        for number in range(4 if marked else 0):
            made.annotation(f"ProfilerStep#{number}", 120 * number, 120 * number + 119)
        (tmp_path / "t.json").write_bytes(made.write())
        assert run("import", "t.json", "-o", "p.json", "--force") == 0
        profile = load(tmp_path / "p.json")
        assert profile.imported is not None
        assert profile.imported.steps == 4
        flags.append([flag for flag in profile.flags if flag.startswith("steps-inferred")])
    assert flags == [["steps-inferred: a block of ops that repeats"], []]


@pytest.mark.parametrize("options", [("--steps", "9"), ("--steps", "x"), ("--between", "nothing"), ("--trim", "5")])
def test_steps_that_a_trace_does_not_have(make: ModuleType, tmp_path: Path, options: tuple[str, str]) -> None:
    (tmp_path / "t.json").write_bytes(make.training(2).write())
    assert run("import", "t.json", "-o", "p.json", *options) == 2
    assert not (tmp_path / "p.json").exists()


def test_floors_are_intervals_where_buffers_are_not_known(make: ModuleType, tmp_path: Path) -> None:
    # gelu reads and writes 32 x 512 float32, which the 33 MiB of an H100's cache may have held.
    made = make.Trace()
    made.annotation("ProfilerStep#0", 0, 100)
    made.op("aten::gelu", 10, 20, make.H, "none")
    made.launch("gelu", 11, 30, 40)
    big = ([8192, 8192], "float", [8192, 1])  # 256 MiB
    made.op("aten::relu", 50, 60, big)
    made.launch("relu", 51, 70, 400)
    (tmp_path / "t.json").write_bytes(made.write())
    assert run("import", "t.json", "-o", "p.json", "--device", "h100-sxm") == 0
    analysis = analyze(load(tmp_path / "p.json"))
    table, bandwidth, cache, cache_rate, launch = analysis.table, 3350e9, 34_603_008, 7606e9, 863e-9
    assert table.memory[0] == near(2 * 4 * 32 * 512 / cache_rate)
    assert table.floor[0] == table.floor_high[0] == near(launch)
    size = 4 * 8192 * 8192
    # What is read is more than the cache holds, so nothing of it is left from before; what is written may stay there.
    assert table.floor[1] == near((2 * size - cache) / bandwidth)
    assert table.floor_high[1] == near(2 * size / bandwidth)
    assert table.loss[1] == near(330e-6 - table.floor[1])
    assert [("compute", "memory", "overhead", "unknown")[code] for code in table.bound] == ["overhead", "memory"]
    assert analysis.roofs["ideal"] is None
    assert analysis.total.uncosted == 0


def test_the_device_is_recognised_by_name_and_memory(make: ModuleType, tmp_path: Path) -> None:
    text = make.training().write()
    for name, memory, expected, ceilings in [
        ("NVIDIA H100 80GB HBM3", 85018279936, "NVIDIA H100 SXM", True),
        ("NVIDIA A100-SXM4-80GB", 85031714816, "NVIDIA A100 SXM 80GB", True),
        ("NVIDIA A100-SXM4-80GB", 10 * 2**30, "NVIDIA A100-SXM4-80GB", False),  # a slice of one
        ("Imaginary GPU", 80 * 2**30, "Imaginary GPU", False),
        ("", 80 * 2**30, "NVIDIA GPU of 80 GiB", False),
    ]:
        properties = [{"id": 0, "name": name, "totalGlobalMem": memory}]
        (tmp_path / "t.json").write_bytes(changed(text, deviceProperties=properties))
        assert run("import", "t.json", "-o", "p.json", "--force") == 0
        profile = load(tmp_path / "p.json")
        assert bool(profile.device.ceilings) == ceilings, name
        assert ("no-ceilings" in profile.flags) != ceilings
        if not ceilings or "H100" in name:
            assert profile.device.name == expected
        hold_identities(profile)


def test_a_device_can_be_a_file(make: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(make.training().write())
    device = {"name": "Mine", "kind": "cuda", "ceilings": {"dram.copy": {"value": 1e12, "source": "measured"}}}
    (tmp_path / "mine.json").write_text(json.dumps({"device": device}))
    assert run("import", "t.json", "-o", "p.json", "--device", "mine.json") == 0
    assert load(tmp_path / "p.json").device.name == "Mine"


def test_a_cpus_ceilings_are_not_those_of_a_gpu(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_bytes(make.training().write())
    (tmp_path / "cpu.json").write_text(json.dumps({"name": "My CPU", "kind": "cpu", "ceilings": {}}))
    assert run("import", "t.json", "-o", "p.json", "--device", "cpu.json") == 2
    assert "is the trace of an NVIDIA GPU, and My CPU is a CPU" in capsys.readouterr().err


def test_a_device_of_another_vendor_is_refused(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_bytes(make.training().write())
    assert run("import", "t.json", "-o", "p.json", "--device", "mi300x") == 2
    assert "is the trace of an NVIDIA GPU, and AMD Instinct MI300X is an AMD GPU" in capsys.readouterr().err
    assert not (tmp_path / "p.json").exists()


def test_a_device_that_the_trace_contradicts_is_told(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = make.training().write()
    for name, gib, device, told in [
        ("NVIDIA H100 80GB HBM3", 79.2, "h100-sxm", ""),
        (
            "NVIDIA A100-SXM4-80GB",
            79.2,
            "h100-sxm",
            "the trace was recorded on NVIDIA A100 SXM 80 GB, and --device gives the ceilings of NVIDIA H100",
        ),
        (
            "Imaginary GPU",
            80,
            "h100-sxm",
            "the trace was recorded on Imaginary GPU, and --device gives the ceilings of NVIDIA H100",
        ),
        ("Mine", 80, "mine.json", ""),
        (
            "mine",
            10,
            "mine.json",
            "the trace was recorded on a device with 10 GiB of memory, and --device gives the ceilings of Mine with 80",
        ),
        ("", 80, "h100-sxm", ""),
    ]:
        mine = {"name": "Mine", "kind": "cuda", "ceilings": {}, "memory": 80 * 2**30}
        (tmp_path / "mine.json").write_text(json.dumps(mine))
        properties = [{"id": 0, "name": name, "totalGlobalMem": int(gib * 2**30)}]
        (tmp_path / "t.json").write_bytes(changed(text, deviceProperties=properties))
        assert run("import", "t.json", "-o", "p.json", "--force", "--device", device) == 0
        facts = load(tmp_path / "p.json").imported
        assert facts is not None
        assert [warning for warning in facts.warnings if "--device gives" in warning] == [
            warning for warning in facts.warnings if told and warning.startswith(told)
        ], name
        assert len(facts.warnings) == bool(told), name
        assert (told in capsys.readouterr().err) or not told


@pytest.mark.parametrize("given", [("captures/b.json",), ("captures",), ("captures/a.json", "captures/b.json")])
def test_a_replay_with_its_capture_is_not_without_shapes(
    make: ModuleType, tmp_path: Path, given: tuple[str, ...]
) -> None:
    made = make.Trace()
    made.kernel("Cijk_gemm", 20, 30, made.call("hipGraphLaunch", 5, 10))
    (tmp_path / "t.json").write_bytes(changed(made.write(), record_shapes=0))
    (tmp_path / "captures").mkdir()
    for name, kernel in (("a", "other"), ("b", "Cijk_gemm")):
        made = make.Trace()
        made.call("hipStreamBeginCapture", 0, 2)
        made.op("aten::mm", 10, 20, make.X, make.WT)
        made.call("hipLaunchKernel", 12, 15)
        made.events[-1]["args"]["kernel"] = kernel
        made.call("hipStreamEndCapture", 30, 32)
        (tmp_path / "captures" / f"{name}.json").write_bytes(made.write())
    captures = [word for file in given for word in ("--capture", file)]
    assert run("import", "t.json", "-o", "p.json", *captures, "--device", "mi300x") == 0
    profile = load(tmp_path / "p.json")
    assert hold_identities(profile)["classes"]["contraction"]["flops"] == 2 * 32 * 256 * 512
    assert "no-shapes" not in profile.flags
    assert profile.imported is not None
    assert not profile.imported.notes


def test_without_shapes_one_sentence_says_what_to_add(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = json.loads(make.training().write())
    for event in trace["traceEvents"]:
        for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs"):
            event["args"].pop(key, None)
    (tmp_path / "t.json").write_text(json.dumps(trace))
    assert run("import", "t.json", "-o", "p.json", "--device", "h100-sxm") == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "record_shapes=True" in line]
    assert len(told) == 1
    profile = load(tmp_path / "p.json")
    assert "no-shapes" in profile.flags
    # What is known is a scalar copied to the host, 2 of 441 µs, in which ops of 521 µs run.
    assert hold_identities(profile)["quality"]["unknown"] == pytest.approx(1 - 2 / 441)


def test_a_cpus_trace_is_a_cpus_profile(make: ModuleType, tmp_path: Path) -> None:
    made = make.Trace()
    for number in range(2):
        made.annotation(f"ProfilerStep#{number}", 100 * number, 100 * number + 90)
        made.op("aten::mm", 100 * number + 10, 100 * number + 50, make.X, make.WT)
    (tmp_path / "t.json").write_bytes(changed(made.write(), deviceProperties=[]))
    assert run("import", "t.json", "-o", "p.json") == 0
    profile = load(tmp_path / "p.json")
    assert (profile.device.kind, profile.device.ceilings) == ("cpu", {})
    document = hold_identities(profile)
    assert document["busy"] == near(40e-6)
    assert document["gap"] == near(50e-6)
    assert document["classes"]["contraction"]["flops"] == 2 * 32 * 256 * 512


def test_what_is_mended_is_said_and_kept(make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = json.loads(make.training().write())
    kernels = [event for event in trace["traceEvents"] if event["cat"] == "kernel"]
    kernels[3]["dur"] = -5
    (tmp_path / "t.json").write_text(json.dumps(trace))
    assert run("import", "t.json", "-o", "p.json") == 0
    assert "duration" in capsys.readouterr().err
    facts = load(tmp_path / "p.json").imported
    assert facts is not None
    assert any("duration" in warning for warning in facts.warnings)


def test_the_default_name(make: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "odd name;.json").write_bytes(make.training().write())
    assert run("import", "odd name;.json", "--device", "h100-sxm") == 0
    assert (tmp_path / "odd-name-torch-train-nvidia-h100-sxm-1.json").is_file()


# Ranks


def ranks(make: ModuleType, tmp_path: Path, *infos: dict[str, int] | None) -> list[str]:
    for number, info in enumerate(infos):
        text = make.training().write()
        (tmp_path / f"r{number}.json").write_bytes(changed(text, distributedInfo=info) if info else text)
    return [f"r{number}.json" for number in range(len(infos))]


def test_traces_of_one_step_are_checked_under_one_name(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("before", "after"):
        (tmp_path / f"{file}.json").write_bytes(make.training().write())
        assert run("import", f"{file}.json", "--device", "h100-sxm", "-o", f"{file}-profile.json") == 0
        assert run("import", f"{file}.json", "--device", "h100-sxm", "-o", f"{file}-named.json", "--name", "net") == 0
    capsys.readouterr()
    assert load(tmp_path / "after-named.json").model == "net"
    assert run("check", "before-named.json", "after-named.json") == 0
    assert run("check", "before-profile.json", "after-profile.json") == 2
    assert capsys.readouterr().err == (
        "roofline: The profiles are not of the same step: model is 'before' in BASELINE and 'after' in CURRENT; import "
        "both traces with one --name, or add --allow-name if only the name differs.\n"
    )
    assert run("check", "before-profile.json", "after-profile.json", "--allow-name") == 0
    assert "Different, too: model before → after." in capsys.readouterr().out
    assert run("import", "before.json", "--name", "../net") == 2
    assert "'../net' is no name for a model: give up to 60 letters" in capsys.readouterr().err


def test_ranks_give_a_profile_each(make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ranks(make, tmp_path, {"rank": 1, "world_size": 2}, {"rank": 0, "world_size": 2})
    trace = json.loads((tmp_path / "r0.json").read_text())
    for event in trace["traceEvents"]:
        if "nccl" in event["name"]:
            event["dur"] -= 20  # rank 1 comes 20 µs later, so that rank 0 waits for it
    (tmp_path / "r0.json").write_text(json.dumps(trace))
    assert run("import", *files, "-o", "job.json") == 0
    assert "Wrote job-rank0.json and job-rank1.json\n" in capsys.readouterr().out
    profiles = [load(tmp_path / f"job-rank{number}.json") for number in range(2)]
    assert [one.model for one in profiles] == ["r1-rank0", "r0-rank1"]
    assert [one.imported and one.imported.waiting for one in profiles] == pytest.approx([20e-6, 0])
    assert run("import", *files, "-o", "job.json") == 2  # the files are there


def test_a_folder_of_traces_gives_a_folder_of_ranks(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "traces").mkdir()
    ranks(make, tmp_path / "traces", {"rank": 1, "world_size": 2}, {"rank": 0, "world_size": 2})
    (tmp_path / "traces" / "notes.txt").write_text("no trace")
    assert run("import", "traces", "-o", "job", "--device", "h100-sxm") == 0
    shown = capsys.readouterr().out
    assert "2 of 2 ranks" in shown.splitlines()[0]
    assert "Wrote job/rank-0.json and job/rank-1.json\n" in shown
    assert sorted(file.name for file in (tmp_path / "job").iterdir()) == ["rank-0.json", "rank-1.json", "ranks.json"]
    assert run("show", "job") == 0
    assert capsys.readouterr().out.splitlines()[0] == shown.splitlines()[0]
    assert run("show", "job", "--format", "json") == 0
    assert [row["number"] for row in json.loads(capsys.readouterr().out)["ranks"]] == [0, 1]
    assert run("import", "traces", "-o", "job") == 2  # the profiles are there
    assert run("import", "traces", "-o", "job", "--force") == 0
    for wrong in (
        ("show", "job", "--by", "op"),
        ("show", "traces"),
        ("import", "."),
        ("import", "traces", "-o", "no/job"),
    ):
        capsys.readouterr()
        assert run(*wrong) == 2, wrong
        assert capsys.readouterr().err.startswith("roofline: ")


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"rank": 0, "world_size": 2}, "both name rank 0"),
        ({"rank": 1, "world_size": 8}, "from a job of 8 ranks"),
        ({"rank": 5, "world_size": 2}, "rank 5 in a job of 2 ranks"),
        (None, "does not name its rank"),
    ],
)
def test_files_that_do_not_belong_together(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], second: dict[str, int] | None, why: str
) -> None:
    files = ranks(make, tmp_path, {"rank": 0, "world_size": 2}, second)
    assert run("import", *files, "-o", "job.json") == 2
    told = capsys.readouterr().err
    assert why in told
    assert told.count("\n") == 1
    assert not list(tmp_path.glob("job*"))


def test_outputs_of_ranks_are_checked_before_their_traces_are_read(
    make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ranks(make, tmp_path, {"rank": 0, "world_size": 2}, {"rank": 1, "world_size": 2})
    # No trace, behind its header.
    (tmp_path / "r1.json").write_text('{"distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [')
    (tmp_path / "job-rank1.json").write_text("mine")
    assert run("import", *files, "-o", "job.json") == 2
    assert "job-rank1.json exists" in capsys.readouterr().err
    assert run("import", *files, "-o", "job.json", "--force") == 2
    assert "exists" not in capsys.readouterr().err
    assert (tmp_path / "job-rank1.json").read_text() == "mine"


def test_a_rank_that_its_job_does_not_have_is_told(make: ModuleType, tmp_path: Path) -> None:
    (file,) = ranks(make, tmp_path, {"rank": 5, "world_size": 2})
    assert run("import", file, "-o", "p.json", "--device", "h100-sxm") == 0
    facts = load(tmp_path / "p.json").imported
    assert facts is not None
    assert "the trace names rank 5 in a job of 2 ranks (counted from 0)" in facts.warnings


# Refusals: one sentence, an exit code, nothing written


def refused(capsys: pytest.CaptureFixture[str], code: int, why: str, *arguments: object) -> None:
    assert run("import", *arguments, "-o", "p.json") == code
    told = capsys.readouterr().err.strip().splitlines()
    assert [line[:10] for line in told] == ["roofline: "]
    assert why in told[0]
    assert not Path("p.json").exists()


def test_bad_input(make: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = make.training().write()
    (tmp_path / "good.json").write_bytes(text)
    only_host = json.loads(text)
    only_host["traceEvents"] = [e for e in only_host["traceEvents"] if e["cat"] not in ("kernel", "gpu_memcpy")]
    (tmp_path / "host.json").write_text(json.dumps(only_host))
    # The order of Kineto: host events first. Cut behind them, a GPU's trace looks like a CPU's.
    hosts = [e for e in only_host["traceEvents"] if e["cat"] == "cpu_op"]
    cut = json.dumps(only_host | {"traceEvents": hosts})
    (tmp_path / "cut.json").write_text(cut[: int(len(cut) * 0.8)])
    for name, content in [
        ("empty.json", b""),
        ("text.json", b"hello"),
        ("html.json", b"<html></html>"),
        ("none.json", b'{"traceEvents": []}'),
        ("cut.json.gz", gzip.compress(text)[:20]),
        ("x.xplane.pb", b"\x00\x01garbage"),
    ]:
        (tmp_path / name).write_bytes(content)
    refused(capsys, 2, "absent.json", "absent.json")
    refused(capsys, 2, "empty.json", "empty.json")
    refused(capsys, 2, "not a Chrome trace", "text.json")
    refused(capsys, 2, "not a Chrome trace", "html.json")
    refused(capsys, 2, "none.json", "none.json")
    refused(capsys, 2, "cut.json.gz", "cut.json.gz")
    refused(capsys, 2, "x.xplane.pb", "x.xplane.pb")
    refused(capsys, 4, "of its kernels none was recorded", "host.json")
    refused(capsys, 4, "of its kernels none is left", "cut.json")
    unknown = json.dumps({"traceEvents": hosts})
    (tmp_path / "which.json").write_text(unknown[: int(len(unknown) * 0.8)])
    refused(capsys, 4, "it may be a GPU's trace", "which.json")
    refused(capsys, 2, "no device called 'h1000'", "good.json", "--device", "h1000")
    refused(capsys, 2, "holds no captured graph", "good.json", "--capture", "good.json")
    refused(capsys, 2, "by itself", "good.json", "x.xplane.pb")


@pytest.mark.parametrize("value", [None, 0, -1, 1e308, 5e-324, "long"])
@pytest.mark.parametrize("kinds", [("kernel",), ("kernel", "gpu_memcpy", "gpu_memset"), ("cpu_op",)])
def test_a_trace_without_times_is_no_step(
    make: ModuleType, capsys: pytest.CaptureFixture[str], kinds: tuple[str, ...], value: object
) -> None:
    trace = json.loads(make.training().write())
    if kinds == ("cpu_op",):
        trace["traceEvents"] = [
            event for event in trace["traceEvents"] if event["cat"] in ("cpu_op", "user_annotation")
        ]
    for event in trace["traceEvents"]:
        if event["cat"] in kinds:
            event["dur"] = value
    Path("t.json").write_text(json.dumps(trace))
    refused(capsys, 4, "record it ", "t.json")


def test_outputs_are_checked_before_anything_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there.json").write_text("mine")
    for name, why in [
        ("there.json", "add --force"),
        ("no/p.json", "there is no folder"),
        ("p.txt", "must end in .json"),
    ]:
        assert run("import", "absent.json", "-o", name) == 2
        assert why in capsys.readouterr().err
    assert (tmp_path / "there.json").read_text() == "mine"


# Recorded by others


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("h100_bert_small_infer.json.gz", ()),
        ("h100_qwen_0.5b_infer.json.gz", ()),
        ("mi300x_vllm_decode_graph.json.gz", ("--device", "mi300x")),
        ("mi300x_jax_conv.xplane.pb", ("--device", "mi300x")),
        ("mi300x_jax_conv.xplane.pb", ()),
    ],
)
def test_recorded_traces(name: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    if not (RECORDED / name).exists():
        pytest.skip(f"the recorded trace {name} is not at hand; set ROOFLINE_TRACES to its folder")
    assert run("import", RECORDED / name, *arguments, "-o", "p.json") == 0
    document = hold_identities(load(tmp_path / "p.json"))
    for by in ("class", "op", "kernel"):
        assert run("show", "p.json", "--by", by) == 0
    assert run("plot", "p.json", "-o", "p.svg") == 0
    if name.startswith("h100_bert"):
        # All of the GPU's time has FLOPs, bytes and a bound, the copy to the host (2.24 µs) too.
        assert (document["coverage"]["flops"], document["coverage"]["bytes"]) == (1, 1)
        assert document["bounds"]["unknown"] == 0
    if "jax" in name:
        assert document["imported"]["steps"] == 5
        assert document["quality"] == {"exact": 1, "assumed": 0, "unknown": 0}
        assert "optimised-only" in document["flags"]
        assert document["classes"]["contraction"]["flops"] > 3e10


def test_the_cache_of_the_compiler(make, tmp_path, capsys):
    """A kernel that adds in place: 3 tensors of 8192 floats move by its source, 2 by the names."""
    made = make.Trace()
    made.annotation("ProfilerStep#0", 0, 200)
    said = {"kernel_backend": "triton", "kernel_hash": "cabc", "kernel_kwargs": "XBLOCK=256"}
    made.op("triton_poi_fused_add_0", 0, 20, *[([32, 256], "float", [256, 1])] * 2, "8192", **said)
    made.launch("triton_poi_fused_add_0", 5, 30, 40)
    Path("trace.json").write_bytes(made.write())
    (tmp_path / "inductor" / "ab").mkdir(parents=True)
    source = """
@triton.jit
def triton_poi_fused_add_0(in_out_ptr0, in_ptr0, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    x0 = xindex
    tl.store(in_out_ptr0 + (x0), tl.load(in_out_ptr0 + (x0), None) + tl.load(in_ptr0 + (x0), None), None)
"""
    (tmp_path / "inductor" / "ab" / "cabc.py").write_text(source, encoding="utf-8")
    assert run("import", "trace.json", "--inductor-cache", "inductor", "-o", "with.json") == 0
    assert run("import", "trace.json", "-o", "without.json") == 0
    moved = [
        [cost.bytes_read + cost.bytes_written for cost in (op.cost for op in load(Path(file)).signatures)]
        for file in ("with.json", "without.json")
    ]
    assert moved == [[3 * 4 * 8192], [2 * 4 * 8192]]
    (tmp_path / "inductor" / "ab" / "cabc.py").unlink()
    assert run("import", "trace.json", "--inductor-cache", "inductor", "-o", "lacks.json") == 0
    assert any("--inductor-cache lacks" in note for note in load(Path("lacks.json")).imported.notes)
    capsys.readouterr()
    assert run("import", "trace.json", "--inductor-cache", "nowhere", "-o", "none.json") == 2
    assert "no folder nowhere" in capsys.readouterr().err


def test_a_name_of_several_cards(make):
    """A GH200 has one of two memories, and its name tells not which: the trace or the user does, or none is taken."""
    text = make.training().write()
    properties = {"id": 0, "name": "NVIDIA GH200 480GB"}
    Path("either.json").write_bytes(changed(text, deviceProperties=[properties]))
    Path("small.json").write_bytes(changed(text, deviceProperties=[properties | {"totalGlobalMem": 95 * 2**30}]))
    assert run("import", "either.json", "-o", "unknown.json") == 0
    unknown = load(Path("unknown.json"))
    assert (unknown.device.name, any(name.startswith("matrix.") for name in unknown.device.ceilings)) == (
        "NVIDIA GH200 480GB",
        False,
    )
    assert any("gh200-144gb or gh200-96gb" in note for note in unknown.imported.notes)
    assert run("import", "either.json", "--device", "gh200-96gb", "-o", "asked.json") == 0
    assert run("import", "small.json", "-o", "small-profile.json") == 0
    for file in ("asked.json", "small-profile.json"):
        profile = load(Path(file))
        assert (profile.device.name, profile.device.rate("dram.read")) == ("NVIDIA GH200 96 GB", 4e12)
        assert not any("recorded on" in warning for warning in profile.imported.warnings)


def test_the_board_number_of_an_a100(make):
    text = make.training().write()
    properties = {"id": 0, "name": "NVIDIA A100-PG509-200", "totalGlobalMem": 42505273344}
    Path("trace.json").write_bytes(changed(text, deviceProperties=[properties]))
    assert run("import", "trace.json", "-o", "profile.json") == 0
    assert load(Path("profile.json")).device.rate("dram.read") == 1555e9


def test_a_part_without_shapes_of_a_trace_that_has_them(make: ModuleType, tmp_path: Path) -> None:
    made = make.Trace()
    for begin, arguments in ((0, ()), (2000, (make.H,))):
        made.op("aten::relu", begin, begin + 9, *arguments)
        made.launch("relu", begin + 2, begin + 10, begin + 30)
    (tmp_path / "t.json").write_bytes(made.write())
    assert run("import", "t.json", "-o", "p.json", "--trim", "0:1", "--device", "h100-sxm") == 0
    assert "no-shapes" not in load(tmp_path / "p.json").flags
