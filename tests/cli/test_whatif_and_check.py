"""The verbs `whatif` and `check`: what they print, and how they exit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import handmade
import msgspec
import pytest
from msgspec.structs import replace

from roofline import plugins
from roofline.analysis.analysis import WorkAnalysis, analyze
from roofline.core.schema import Compilation, Memory, Profile, Wall, load, save
from roofline.projection.project import project
from roofline.regression import check
from roofline.regression.batch import Judged
from roofline.regression.limits import Limits
from roofline.renderers.check import github
from roofline.renderers.whatif import text as whatif

Run = Callable[..., Any]
Golden = Callable[[str, str], None]

#: A device with everything but functions, fp32 and launch floors twice as fast, and its file.
OTHER = """
name = "Other Device"
kind = "cuda"
date = "2026-01-01"
memory = 30e6
match = ["Other Device"]
memory_range = [0, 1e12]
[sources]
[matrix]
bf16 = { value = 400e9, source = "made up" }
[vector]
fp32 = { value = 100e9, source = "made up" }
[dram]
any = { value = 20e9, source = "made up" }
"""


def put(folder: Path, name: str, profile: Profile) -> str:
    save(profile, folder / name)
    return name


def worse() -> Profile:
    """The hand-made step 1 ms longer, with a softmax more, a graph break and another version."""
    return handmade.profile(
        ops=(*handmade.OPS[:7], replace(handmade.OPS[4], overlap_ns=0, own_ns=(1_000_000,) * 3), handmade.OPS[7]),
        wall=Wall(steps=tuple(step + 1e-3 for step in handmade.profile().wall.steps)),
        profiled=replace(handmade.profile().profiled, corrected=(13.4e-3, 13.5e-3, 13.6e-3)),
        memory=replace(handmade.profile().memory, peak=40.5e6),
        compilation=Compilation(compiler="torch.compile", breaks={"call to print": 1}),
        versions={"torch": "2.14.0", "python": "3.11.9"},
    )


def base() -> Profile:
    return handmade.profile(compilation=Compilation(compiler="torch.compile"))


def rendered(verb: str, form: str, found: object) -> str:
    return plugins.load(f"roofline.renderers.{verb}", form, "format").render(found)


def rounded(text: str) -> str:
    """JSON whose last digits do not depend on the version of numpy."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.6g}", text)


# ------------------------------------------------------------------------------------- whatif


def test_whatif_prints_the_table(roofline: Run, tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "other.toml").write_text(OTHER)
    name = put(tmp_path, "p.json", handmade.profile(flags=("in-process",)))
    ended = roofline("whatif", name, "--device", "other.toml")
    assert (ended.code, ended.err) == (0, "")
    golden("whatif.txt", ended.out)
    assert all(len(line) <= 100 for line in ended.out.splitlines())


def test_whatif_as_json(roofline: Run, tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "other.toml").write_text(OTHER)
    name = put(tmp_path, "p.json", handmade.profile())
    ended = roofline("whatif", name, "--device", "other.toml", "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    golden("whatif.json", rounded(ended.out))
    found = json.loads(ended.out)
    assert found["seconds"] == pytest.approx(sum(row["there"] for row in found["groups"].values()) + found["gap"])
    assert found["compared"] + found["not_carried"] == pytest.approx(found["here"]["wall"])


def test_whatif_says_where_ceilings_alone_are_no_least_time() -> None:
    # Two products of 1 GFLOP at 100 GFLOP/s: 20 ms by the count, of 5 in kernels that may need fewer than are counted.
    kernel = {"kernels": ((0, 1),)}
    addmm = handmade.SIGNATURES[1]
    many = replace(addmm, kind="convolution", cost=replace(addmm.cost, flops=1e9, useful_flops=1e9))
    signatures = (handmade.SIGNATURES[0], many, *handmade.SIGNATURES[2:])
    ops = tuple(replace(op, **kernel) if op.signature == 1 else op for op in handmade.OPS)
    told = [
        rendered("whatif", "text", project(analyze(made), handmade.device(matrix_fp32=200e9)))
        for made in (handmade.profile(signatures=signatures, ops=ops, kernels=("winograd_3x3",)), handmade.profile())
    ]
    assert "need fewer multiplications than are counted" in " ".join(told[0].split())
    assert "ceilings alone is no lower limit" in " ".join(told[0].split())
    assert "is not the least" not in " ".join(told[1].split())


def test_whatif_of_ops_that_take_no_time(roofline: Run, tmp_path: Path) -> None:
    """Then only the gap is left, and no factor can be said of ops."""
    ops = tuple(replace(op, own_ns=(0,) * len(op.own_ns), overlap_ns=0) for op in handmade.OPS)
    name = put(tmp_path, "p.json", handmade.profile(ops=ops))
    (tmp_path / "round.json").write_bytes(msgspec.json.encode(handmade.device()))
    ended = roofline("whatif", name, "--device", "round.json")
    assert (ended.code, ended.err) == (0, "")
    assert "no op of it can be projected to Round Device." in " ".join(ended.out.split())


def test_whatif_on_the_same_device(roofline: Run, tmp_path: Path) -> None:
    name = put(tmp_path, "p.json", handmade.profile())
    (tmp_path / "round.json").write_bytes(msgspec.json.encode(handmade.device()))
    ended = roofline("whatif", name, "--device", "round.json")
    assert ended.code == 0
    out = " ".join(ended.out.split())
    assert (
        "12.5 ms per step on Round Device, 2 threads. The ops that can be projected take 10.4 ms here and 10.4" in out
    )
    # 10.4 ms of ops and 1.8 ms of host time; 267 µs are not carried
    assert "as fast as here. With as much host time as here, 1.80 ms, that is 12.2 ms there" in out
    assert "The other 267 µs are left out on both sides." in out


def test_whatif_says_what_is_typical_of_a_library_where_other_kernels_run() -> None:
    faster = handmade.device(matrix_fp32=200e9)
    for there, change in ((handmade.device(), None), (faster, "processor"), (replace(faster, name="Other"), "cpu")):
        found = project(analyze(handmade.profile()), there)
        assert found.change == change
        out = " ".join(whatif.render(found).split())
        assert ("what is typical of another device" in out) == (change == "cpu")
        assert ("other kernels alone" in out) == (change is not None)


def test_whatif_of_a_real_profile(roofline: Run, recorded: Path) -> None:
    ended = roofline("whatif", str(recorded), "--device", "h100-sxm", "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert found["there"] == {"device": "NVIDIA H100 SXM", "kind": "cuda"}
    assert found["range"][0] <= found["seconds"] <= found["range"][1]
    assert found["gap"] < found["seconds"]
    text = roofline("whatif", str(recorded), "--device", "h100-sxm").out
    assert "cpu here and cuda there: other kernels will run" in " ".join(text.split())


def test_memory_that_does_not_fit() -> None:
    there = replace(handmade.device(), memory=30e6)
    on_gpu = handmade.profile(device=replace(handmade.device(), kind="cuda"))
    text = whatif.render(project(analyze(on_gpu), there))
    assert "does not fit:" in text
    assert "= 40.0 MB of 30.0 MB" in " ".join(text.split())
    # The memory of a process holds the libraries, which the other device need not.
    of_process = handmade.profile(memory=Memory(resident=40e6, parameters=4e6, optimizer=8e6))
    larger = replace(there, memory=39e6)
    assert "not known to fit:" in whatif.render(project(analyze(of_process), larger))


def test_whatif_says_where_its_range_does_not_tell_faster_from_slower(roofline: Run, tmp_path: Path) -> None:
    # Most ceilings 1.05 or four times those of here, and kernels of up to twice as fast or slow.
    put(tmp_path, "p.json", handmade.profile())
    told = {}
    for name, factor in (("near", 1.05), ("far", 4.0)):
        text = re.sub(r"value = (\d+)e9", lambda number, by=factor: f"value = {float(number[1]) / 2 * by}e9", OTHER)
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
        told[name] = " ".join(roofline("whatif", "p.json", "--device", f"{name}.toml").out.split())
    assert "which is not resolved: the range includes the time here" in told["near"]
    assert "not resolved" not in told["far"]


@pytest.mark.parametrize("name", handmade.HOSTILE)
def test_names_cannot_act_on_a_terminal(name: str) -> None:
    found = project(analyze(handmade.hostile(name)), replace(handmade.device(), name=name))
    assert all(c.isprintable() or c == "\n" for c in whatif.render(found))
    json.loads(rendered("whatif", "json", found))
    grown = replace(handmade.hostile(name), ops=(*handmade.hostile(name).ops, *handmade.hostile(name).ops[:5]))
    result = check.check(handmade.hostile(name), grown, Limits(), counts_only=True)
    assert result.failed
    judged = [Judged("b.json", result)]
    for form in ("text", "github", "junit"):
        text = rendered("check", form, judged)
        assert all(c.isprintable() or c == "\n" for c in text)
    json.loads(rendered("check", "json", judged))
    assert len(ElementTree.fromstring(rendered("check", "junit", [*judged, Judged(name)]))) == 2


# ------------------------------------------------------------------------------------- check


def test_check_passes(roofline: Run, tmp_path: Path, golden: Golden) -> None:
    put(tmp_path, "a.json", base())
    for form in ("text", "github"):
        ended = roofline("check", "a.json", "a.json", "--format", form)
        assert (ended.code, ended.err) == (0, "")
        golden("check-passed.txt", ended.out)


@pytest.mark.parametrize("form", ["text", "github", "json", "junit"])
def test_check_fails_and_says_where(roofline: Run, tmp_path: Path, golden: Golden, form: str) -> None:
    put(tmp_path, "a.json", base())
    put(tmp_path, "b.json", worse())
    ended = roofline("check", "a.json", "b.json", "--format", form)
    assert ended.code == 1
    assert ended.err == "roofline: b.json is worse than a.json: time, bytes, kernels, graph breaks.\n"
    suffix = {"text": "txt", "github": "github.txt", "json": "json", "junit": "junit.xml"}[form]
    golden(f"check-failed.{suffix}", rounded(ended.out) if form == "json" else ended.out)


def test_several_profiles_are_judged_each_and_the_worst_decides(roofline: Run, tmp_path: Path) -> None:
    put(tmp_path, "a.json", base())
    put(tmp_path, "b.json", worse())
    put(tmp_path, "c.json", replace(base(), flags=("contended",)))
    put(tmp_path, "d.json", replace(base(), model="gpt2"))
    assert roofline("check", "a.json", "a.json", "a.json").code == 0
    assert roofline("check", "a.json", "a.json", "c.json").code == 4
    ended = roofline("check", "a.json", "c.json", "a.json", "d.json")
    assert (ended.code, ended.err) == (2, "roofline: 2 of 3 profiles cannot be judged: c.json, d.json.\n")
    ended = roofline("check", "a.json", "c.json", "a.json", "b.json", "d.json", "absent.json")
    assert ended.code == 1
    assert ended.err == (
        "roofline: 1 of 5 profiles is worse than a.json: b.json (time, bytes, kernels, graph breaks); 3 cannot be "
        "judged: c.json, d.json, absent.json.\n"
    )
    for told in (
        "c.json: not judged: The times of CURRENT cannot be judged, it is flagged contended",
        "a.json: toy train, b4 s25: passed",
        "b.json: toy train, b4 s25: 4 of 10 gates failed",
        "d.json: not judged: The profiles are not of the same step: model is",
        "absent.json: not judged: Cannot read absent.json",
    ):
        assert told in " ".join(ended.out.split())
    found = json.loads(roofline("check", "a.json", "c.json", "b.json", "--format", "json").out)
    assert found["passed"] is False
    assert [one["passed"] for one in found["profiles"]] == [None, False]
    assert [one["file"] for one in found["profiles"]] == ["c.json", "b.json"]
    assert found["profiles"][0]["code"] == 4
    github = roofline("check", "a.json", "c.json", "b.json", "--format", "github").out
    assert github.startswith("::error title=roofline::c.json: The times of CURRENT")
    suites = ElementTree.fromstring(roofline("check", "a.json", "c.json", "b.json", "--format", "junit").out)
    assert [suite.get("name") for suite in suites] == ["c.json", "b.json"]
    assert [case.find("error") is not None for case in suites[0]] == [True]
    assert [case.get("name") for case in suites[1] if case.find("failure") is not None] == [
        "time",
        "bytes",
        "kernels",
        "graph breaks",
    ]
    assert (suites.get("failures"), suites.get("errors")) == ("4", "1")


def test_a_lone_profile_that_cannot_be_judged_is_in_what_programs_read(roofline: Run, tmp_path: Path) -> None:
    put(tmp_path, "a.json", base())
    words = ("check", "a.json", "absent.json", "--format")
    assert {roofline(*words, form).code for form in ("text", "json", "junit", "github")} == {2}
    assert roofline(*words, "text").out == ""
    assert json.loads(roofline(*words, "json").out)["passed"] is None
    assert '<error message="Cannot read absent.json' in roofline(*words, "junit").out
    assert roofline(*words, "github").out.startswith("::error title=roofline::Cannot read absent.json")


def test_limits_are_the_users(roofline: Run, tmp_path: Path) -> None:
    put(tmp_path, "a.json", handmade.profile())
    put(tmp_path, "b.json", replace(worse(), compilation=None))
    loose = ("--max-time", "20%", "--max-bytes", "0.2", "--max-kernels", "1", "--max-gap", "5%", "--max-memory", "2%")
    assert roofline("check", "a.json", "b.json", *loose).code == 0
    for option, value in (("--max-time", "0"), ("--max-bytes", "15%"), ("--max-kernels", "0"), ("--max-memory", "1%")):
        ended = roofline("check", "a.json", "b.json", *loose, option, value)
        assert (ended.code, ended.err) == (1, f"roofline: b.json is worse than a.json: {option[6:]}.\n")


def test_limits_may_stand_in_a_file_and_options_go_before_it(roofline: Run, tmp_path: Path) -> None:
    put(tmp_path, "a.json", handmade.profile())
    put(tmp_path, "b.json", replace(worse(), compilation=None))
    (tmp_path / "l.toml").write_text('time = 0.2\nbytes = "20%"\nkernels = 1\ngap = "5%"\n')
    assert roofline("check", "a.json", "b.json", "--limits", "l.toml").code == 0
    ended = roofline("check", "a.json", "b.json", "--limits", "l.toml", "--max-bytes", "15%")
    assert (ended.code, ended.err) == (1, "roofline: b.json is worse than a.json: bytes.\n")
    (tmp_path / "l.toml").write_text("times = 0.2\n")
    ended = roofline("check", "a.json", "b.json", "--limits", "l.toml")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("roofline: l.toml sets 'times', which is no limit; there are: time, ")


def test_a_contended_profile_is_4_and_its_counts_are_judged(roofline: Run, tmp_path: Path) -> None:
    put(tmp_path, "a.json", handmade.profile())
    put(tmp_path, "b.json", handmade.profile(flags=("contended",), wall=Wall(steps=(1.0, 1.0, 1.0))))
    ended = roofline("check", "a.json", "b.json")
    assert ended.code == 4
    assert ended.out == ""
    assert "The times of CURRENT cannot be judged, it is flagged contended" in ended.err
    assert roofline("check", "a.json", "b.json", "--counts-only").code == 0


def test_github_escapes_what_a_profile_brings() -> None:
    """As documented for workflow commands: % CR LF in the data, and : and , in a property."""
    assert github._data("50 %\r\n::x") == "50 %25%0D%0A::x"
    assert github._property("a:b,c%") == "a%3Ab%2Cc%25"
    phase = "::error::, title=x:y %0A##[error]z"
    ops = tuple(replace(op, phase=0) for op in handmade.OPS)
    plain = handmade.profile(
        phases=(phase,), ops=ops, blocks=("##[warning]b\n::stop-commands::t", *handmade.BLOCKS[1:])
    )
    more = replace(plain, ops=(*ops, ops[0], ops[1]))
    result = check.check(plain, more, Limits(), counts_only=True)
    assert len(result.failed) == 4
    judged = [Judged("b.json", result)]
    for text in (rendered("check", form, judged) for form in ("github", "text", "junit")):
        lines = text.splitlines()
        commands = [line for line in lines if line.lstrip().startswith("::")]
        assert all(re.match(r"::error title=roofline%3A [^:,]*::[^\r\n]*$", line) for line in commands)
        assert not any("##[" in line for line in lines if line not in commands)
    assert len([line for line in github.render(judged).splitlines() if line.startswith("::error")]) == 4
    assert "##[" not in github.render(judged)


def test_an_unresolved_time_is_a_warning(roofline: Run, tmp_path: Path) -> None:
    put(tmp_path, "a.json", handmade.profile())
    put(tmp_path, "b.json", handmade.profile(wall=Wall(steps=(6e-3, 20e-3, 30e-3))))
    ended = roofline("check", "a.json", "b.json", "--format", "github", "--max-gap", "100%")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(
        "::warning title=roofline%3A time::time +60.0 %25, 95 %25 interval -52.0 %25 to +140.0 %25"
    )
    assert "1 not resolved" in ended.out


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("whatif", "p.json"), "Missing option '--device'; see `roofline whatif --help`."),
        (("whatif", "p.json", "--device", "h1000"), "There is no device called 'h1000'; there are: a10, "),
        (("whatif", "p.json", "--device", "x.toml"), "There is no file x.toml"),
        (("whatif", "absent.json", "--device", "h100-sxm"), "Cannot read absent.json"),
        (
            ("whatif", "p.json", "--device", "h100-sxm", "--format", "xml"),
            "no format called 'xml'; there are: json, text.",
        ),
        (
            ("whatif", "c.json", "--device", "h100-sxm", "--format", "json"),
            "can be shown as text only: leave",
        ),
        (
            ("whatif", "n.json", "--device", "h100-sxm"),
            "holds no profiled step, so its ops have no times: measure",
        ),
        (
            ("whatif", "old.json", "--device", "h100-sxm"),
            "old.json is not a roofline profile: it has no schema number; ",
        ),
        (("check", "p.json"), "Missing argument 'CURRENT...'; see `roofline check --help`."),
        (("check", "p.json", "absent.json"), "Cannot read absent.json"),
        (("check", "trace.json", "p.json"), "trace.json is not a roofline profile"),
        (("check", "p.json", "new.json"), "new.json was made by a newer roofline (schema 99"),
        (
            ("check", "p.json", "zero.json"),
            "zero.json is damaged: it has no times of steps; copy it again, or make it again.",
        ),
        (("check", "p.json", "cut.json"), "cut.json cannot be read as a profile"),
        (("check", "p.json", "other.json"), "model is 'toy' in BASELINE and 'gpt2' in CURRENT"),
        (
            ("check", "p.json", "c.json"),
            "CURRENT was counted and not timed: measure it again without --count-only, or add --counts-only.",
        ),
        (
            ("check", "p.json", "n.json"),
            "CURRENT holds no profiled step, so its ops have no times: measure it again, or add --counts-only.",
        ),
        (("check", "p.json", "p.json", "--format", "xml"), "there are: github, json, junit, text."),
        (("check", "p.json", "p.json", "--max-time", "-5%"), "--max-time '-5%' is no limit: give a percentage"),
        (("check", "p.json", "p.json", "--max-bytes", "nan"), "--max-bytes 'nan' is no limit"),
        (("check", "p.json", "p.json", "--max-kernels", "1.5"), "--max-kernels '1.5' is no limit: give a whole number"),
        (("check", "p.json", "p.json", "--max-gap", "1e400"), "--max-gap '1e400' is no limit"),
        (("check", "p.json", "p.json", "--max-memory", "1000000"), "--max-memory '1000000' is too large"),
    ],
)
def test_what_cannot_be_used_is_said(roofline: Run, tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    put(tmp_path, "p.json", handmade.profile())
    put(tmp_path, "c.json", handmade.profile(profiled=None))
    put(tmp_path, "n.json", handmade.without_steps())
    put(tmp_path, "other.json", handmade.profile(model="gpt2"))
    whole = json.loads((tmp_path / "p.json").read_text())
    (tmp_path / "new.json").write_text(json.dumps(whole | {"schema": 99}))
    (tmp_path / "old.json").write_text(json.dumps(whole | {"schema": 0}))
    (tmp_path / "zero.json").write_text(json.dumps(whole | {"wall": {"steps": []}}))
    (tmp_path / "cut.json").write_text((tmp_path / "p.json").read_text()[:500])
    (tmp_path / "trace.json").write_text('{"traceEvents": []}')
    ended = roofline(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("roofline: ")
    assert ended.err.count("\n") == 1
    assert sentence in ended.err


# ------------------------------------------------------------------------------------- real steps

NET = """
import torch

def make_step():
    torch.manual_seed(0)
    one, two, x = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64), torch.zeros(8, 64)
    return lambda: two(HIDDEN)
"""


def count(measuring: Run, tmp_path: Path, name: str, *words: str) -> str:
    ended = measuring("profile", *words, "--backend", "torch", "--device", "cpu", "--threads", "1", "-o", name)
    assert ended.code == 0, ended.err
    return name


def test_the_same_model_counted_twice_passes(measuring: Run, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        count(measuring, tmp_path, name, "mlp", "--size", "tiny", "--count-only")
    ended = measuring("check", "a.json", "b.json", "--counts-only")
    assert (ended.code, ended.err) == (0, "")
    assert "passed" in ended.out
    # Its times were never measured, so they are not judged.
    assert measuring("check", "a.json", "b.json").code == 2


def test_counts_of_a_timed_profile_are_those_of_a_counted_one(measuring: Run, tmp_path: Path, recorded: Path) -> None:
    count(measuring, tmp_path, "a.json", "mlp", "--size", "tiny", "--batch", "64", "--mode", "train", "--count-only")
    ended = measuring("check", "a.json", str(recorded), "--counts-only", "--max-bytes", "0")
    assert (ended.code, ended.err) == (0, "")


def test_an_extra_op_fails_and_is_named(measuring: Run, tmp_path: Path) -> None:
    step = tmp_path / "net.py"
    step.write_text(NET.replace("HIDDEN", "torch.relu(one(x))"))
    count(measuring, tmp_path, "a.json", "net.py:make_step", "--count-only")
    step.write_text(NET.replace("HIDDEN", "torch.sigmoid(torch.relu(one(x)))"))
    count(measuring, tmp_path, "b.json", "net.py:make_step", "--count-only")
    ended = measuring("check", "a.json", "b.json", "--counts-only")
    assert ended.code == 1
    assert ended.err == "roofline: b.json is worse than a.json: bytes, kernels.\n"
    # 8 x 64 numbers of 4 bytes read and written
    assert "pointwise in (top), forward +4.10 kB, 1 op more, most in aten::sigmoid" in " ".join(ended.out.split())
    assert load(tmp_path / "b.json").model == load(tmp_path / "a.json").model


def test_a_model_of_billions_is_counted_for_a_device_that_is_not_here(measuring: Run, tmp_path: Path) -> None:
    words = ("--mode", "train", "--layers", "1", "--batch", "1", "--seq", "16", "--precision", "bf16", "--count-only")
    count(measuring, tmp_path, "big.json", "gemma", *words)
    saved = load(tmp_path / "big.json")
    # The table of 256,000 x 3072 and a layer; in bf16 all of it stays within 2.2 GB, none of which this process needs.
    assert saved.parameters is not None
    assert saved.parameters > 1e9
    assert (saved.memory.peak, saved.precision) == (None, "bf16")
    ended = measuring("whatif", "big.json", "--device", "a100-40gb")
    assert ended.code == 0, ended.err
    assert "counted and not run; on NVIDIA A100 40 GB at least" in " ".join(ended.out.split())
    refused = measuring("whatif", "big.json", "--device", "a100-40gb", "--format", "json")
    assert (refused.code, refused.err) == (
        2,
        "roofline: A profile made with --count-only can be shown as text only: leave --format json out.\n",
    )


def test_the_baseline_of_several_profiles_is_analysed_once(
    roofline: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five profiles take six analyses."""
    path = str(tmp_path / "step.json")
    save(handmade.profile(), path)
    analysed = []

    def counting(profile: Profile) -> WorkAnalysis:
        analysed.append(profile)
        return analyze(profile)

    monkeypatch.setattr(check, "analyze", counting)
    assert roofline("check", path, *[path] * 5).code == 0
    assert len(analysed) == 1 + 5
