"""Modules and lines of ops, and causes of gaps, in the profile of a trace with calls of Python and recorded waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from roofline import importing
from roofline.analysis.analysis import analyze_timed
from roofline.content import timeline
from roofline.content.json_document import document
from roofline.core.schema import decode, encode
from roofline.renderers.report import report
from roofline.renderers.text import render

X = ([32, 64], "float", [64, 1])
W = ([64, 64], "float", [64, 1])


def profile_of(text, tmp_path, name="trace"):
    file = tmp_path / f"{name}.json"
    file.write_bytes(text)
    (profile,) = importing.read([file])
    return decode(encode(profile))


def product(made, at, start, stream=7, length=20):
    made.op("aten::mm", at, at + 8, X, W)
    made.launch("sm80_gemm", at + 1, start, start + length, stream=stream)


def waiting(make_kineto):
    """Four products: two at once, one that the host comes to 400 µs late, and one 463 µs after a wait for a stream."""
    made = make_kineto.Trace()
    made.frame("/home/me/train.py(3): main", -35, 1000)
    made.frame("/home/me/data.py(10): load", 30, 430)
    product(made, -30, -20, length=25)
    product(made, 0, 10)
    product(made, 430, 440)
    record = made.call("cudaEventRecord", 440, 441)
    call = made.call("cudaStreamWaitEvent", 441, 442)
    made.wait(20, 9, 442, call, record)
    product(made, 443, 923, stream=20)
    return made


def test_one_cause_has_one_name_everywhere(make_kineto, tmp_path):
    profile = profile_of(waiting(make_kineto).write(), tmp_path)
    analysis = analyze_timed(profile)
    shown = document(analysis)
    # Of the gap of 410 µs 5 follow the launch, as with the kernel before; of that of 463 nothing is the host's.
    cause = "waiting, cause not recorded"
    assert shown["gap_causes"][cause] == pytest.approx(463e-6)
    assert [(row["op"], row["cause"], row["of"], round(row["seconds"] * 1e6)) for row in shown["waits"]] == [
        (3, cause, "after a wait for stream 9", 463),
        (2, "host dispatch", "data.py:10 load", 410),
        (1, "host dispatch", "train.py:3 main", 5),
    ]
    assert timeline.timeline(analysis).idle.by_cause() == pytest.approx(
        {cause: 463e-6, "host in Python": 410e-6, "host in the framework": 5e-6}
    )
    assert cause in render(analysis, None)
    assert f"{cause} (after a wait for stream 9)" in " ".join(render(analysis, None, details=True).split())
    page = report([profile])
    assert f"{cause} (after a wait for stream 9)" in page
    assert "the host in data.py:10 load" in page


def test_modules_are_scopes_and_functions_lines(make_kineto, tmp_path):
    made = make_kineto.Trace()
    made.frame("/home/me/train.py(3): main", -5, 400)
    made.frame("nn.Module: Net_0", 0, 200)
    made.frame("/home/me/net.py(7): forward", 1, 199)
    for number, at in enumerate((10, 60)):
        made.frame(f"nn.Module: Linear_{number}", at, at + 20)
        made.frame("torch/nn/modules/linear.py(125): forward", at + 1, at + 19)
        product(made, at + 5, at + 12)
    product(made, 250, 262, length=10)  # a fifth of the time: the model is looked into
    profile = profile_of(made.write(), tmp_path)
    assert profile.imported.modules
    assert [(profile.scopes[op.scope], profile.blocks[op.block], profile.source_line(op)) for op in profile.ops] == [
        ("Net_0/Linear_0", "Net_0/Linear_*", "net.py:7"),
        ("Net_0/Linear_1", "Net_0/Linear_*", "net.py:7"),
        ("", "(top)", "train.py:3"),
    ]


def test_a_backward_op_has_module_and_line_of_its_forward_op(make_kineto, tmp_path):
    made = make_kineto.Trace()
    made.frame("nn.Module: Linear_0", 0, 100)
    made.frame("/home/me/net.py(7): forward", 1, 99)
    made.op("aten::mm", 5, 20, X, W, **{"Sequence number": 3, "Fwd thread id": 0})
    made.launch("sm80_gemm", 6, 12, 32)
    node = {"Sequence number": 3, "Fwd thread id": 1}
    made.op("autograd::engine::evaluate_function: MmBackward0", 110, 140, tid=make_kineto.AUTOGRAD)
    made.op("MmBackward0", 111, 139, X, tid=make_kineto.AUTOGRAD, **node)
    made.op("aten::mm", 112, 130, X, W, tid=make_kineto.AUTOGRAD)
    made.launch("sm80_gemm_back", 113, 120, 150, tid=make_kineto.AUTOGRAD)
    profile = profile_of(made.write(), tmp_path)
    places = {(profile.phases[op.phase], profile.scopes[op.scope], profile.source_line(op)) for op in profile.ops}
    assert places == {("forward", "Linear_0", "net.py:7"), ("backward", "Linear_0", "net.py:7")}


def test_a_replayed_op_has_module_and_line_of_its_capture(make_kineto, tmp_path):
    captured = make_kineto.Trace()
    captured.frame("nn.Module: Linear_0", -5, 100)
    captured.frame("/home/me/net.py(7): forward", -4, 99)
    captured.call("hipStreamBeginCapture", 0, 1)
    captured.op("aten::mm", 5, 20, X, W)
    captured.call("hipLaunchKernel", 6, 10)
    captured.events[-1]["args"]["kernel"] = "Cijk_gemm"
    captured.call("hipStreamEndCapture", 30, 31)
    replayed = make_kineto.Trace()
    replayed.kernel("Cijk_gemm", 20, 40, replayed.call("hipGraphLaunch", 5, 15))
    files = [tmp_path / "replay.json", tmp_path / "capture.json"]
    for file, made in zip(files, (replayed, captured), strict=True):
        file.write_bytes(made.write())
    (profile,) = importing.read([files[0]], capture=files[1])
    (op,) = profile.ops
    assert profile.signatures[op.signature].name == "aten::mm"
    assert (profile.scopes[op.scope], profile.source_line(op)) == ("Linear_0", "net.py:7")


class Net(torch.nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run them."""
        return self.second(torch.relu(self.first(x)))


def test_a_module_in_itself_is_one_range(make_kineto, tmp_path):
    """As PyTorch writes it where a call was open when the profiler began."""
    made = make_kineto.Trace()
    for at in range(3):
        made.frame("nn.Module: Net_0", at, 200 - at)
    made.frame("nn.Module: Linear_0", 5, 100)
    product(made, 10, 30)
    profile = profile_of(made.write(), tmp_path)
    assert [profile.scopes[op.scope] for op in profile.ops] == ["Net_0/Linear_0"]


def test_a_trace_of_torch_with_stacks_has_modules_and_lines(tmp_path: Path) -> None:
    net, x = Net(), torch.ones(2, 8)
    net(x)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True
    ) as profiler:
        net(x)
    file = tmp_path / "torch.json"
    profiler.export_chrome_trace(str(file))
    assert any(event.get("cat") == "python_function" for event in json.loads(file.read_text())["traceEvents"])
    (profile,) = importing.read([file])
    line = f"{Path(__file__).name}:{Net.forward.__code__.co_firstlineno}"
    ops = {profile.signatures[op.signature].name: op for op in profile.ops}
    assert profile.scopes[ops["aten::relu"].scope] == "Net_0"
    linear = [op for op in profile.ops if profile.signatures[op.signature].name == "aten::addmm"]
    assert [profile.scopes[op.scope] for op in linear] == ["Net_0/Linear_0", "Net_0/Linear_1"]
    assert {(profile.source_line(op) or "").rpartition("/")[2] for op in (*linear, ops["aten::relu"])} == {line}
