"""Traces of 2021, whose `Input dims` are sizes without types and values: real ones, and what is read of such a call."""

from __future__ import annotations

import msgspec
import pytest

pytest.importorskip("torch")

from roofline import importing
from roofline.comparison.ranking import rank
from roofline.core.cost import unknown
from roofline.costs.calls import Tensor
from roofline.costs.dtypes import Unsaid
from roofline.importing import gpu
from roofline.importing.work import arguments
from roofline.importing.work.costs import Costs
from roofline.traces.kineto import reader


def test_sizes_without_types():
    call = arguments.decoded("aten::threshold_", (b"[[32, 64], [], []]", b"[]", b"", b""))
    assert call.inputs == (Tensor((32, 64), None, "", device=""), Unsaid.ANY, Unsaid.ANY)
    assert arguments.decoded("aten::relu", (b"[]", b"[]", b"", b"")).inputs == ()


@pytest.mark.parametrize(("kernel", "size"), [("gemm<float>", 4), ("gemm<c10::Half>", 2)])
def test_types_come_from_kernels(make_kineto, kernel, size):
    """Written by hand: a product of [32, 16] and [16, 8], and a kernel that names its type."""
    made = make_kineto.Trace()
    made.op("aten::mm", 10, 60, **{"Input dims": [[32, 16], [16, 8]], "Input type": []})
    made.launch(kernel, 20, 40, 80)
    found = gpu.read(reader.read(made.write()), Costs())
    (op,) = found.counted.ops
    assert found.shapes
    assert (op.costed.cost.flops, op.costed.cost.quality) == (2 * 32 * 16 * 8, "assumed")
    assert op.costed.cost.bytes == size * (32 * 16 + 16 * 8 + 32 * 8)


@pytest.fixture(scope="module")
def pair(recorded):
    files = [recorded(f"kineto_resnet50_workers{workers}.json.gz") for workers in (0, 4)]
    return [importing.read([file], name="resnet50")[0] for file in files]


def test_the_resnet_has_shapes_and_six_steps(pair):
    for profile in pair:
        assert "no-shapes" not in profile.flags
        assert (profile.imported.steps, profile.imported.rule) == (6, "ProfilerStep#N")
        assert len(profile.wall.steps) == 5
        convolutions = [op for op in profile.ops if profile.signatures[op.signature].name == "aten::cudnn_convolution"]
        assert len(convolutions) == 53
        shapes = {profile.signatures[op.signature].shapes for op in convolutions}
        assert "[32,3,224,224] x [64,3,7,7]" in shapes
        # ResNet-50's last layer: 2 x 32 x 2048 x 1000.
        products = [profile.signatures[op.signature] for op in profile.ops]
        assert [s.cost.flops for s in products if s.name == "aten::addmm"] == [2 * 32 * 2048 * 1000]


def test_the_data_input_is_why_the_one_without_workers_takes_longer(pair):
    (shown,) = rank(pair).pairs
    assert shown.headline.slower == 0
    row = max(shown.account.rows, key=lambda row: abs(row.seconds or 0.0))
    assert (row.kind, row.place) == ("gap", "waiting for input")
    assert shown.comparison.difference < row.seconds < 1.5 * shown.comparison.difference


def test_without_any_known_work_no_flops_differ(pair):
    """The same runs as they would be of traces without sizes."""
    profiles = [
        msgspec.structs.replace(
            profile,
            signatures=tuple(
                msgspec.structs.replace(signature, shapes="", cost=unknown("no shapes"))
                for signature in profile.signatures
            ),
            flags=(*profile.flags, "no-shapes"),
        )
        for profile in pair
    ]
    (shown,) = rank(profiles).pairs
    assert all("0 FLOP" not in str(difference) for difference in shown.comparison.parity.differences)
    row = max(shown.account.rows, key=lambda row: abs(row.seconds or 0.0))
    assert (row.kind, row.place) == ("gap", "waiting for input")
