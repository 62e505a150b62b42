"""The whole path of a GPU's trace without a GPU: read, count, link, time, rows, profile, analysis.

The synthetic step of tests/data/make_kineto.py is three steps of 900 µs, one every 1000 µs. On the device a step ends
with its last event, at 860 µs, and the next begins there: 1000 µs from one to the next, of which 441 are busy.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from roofline import devices
from roofline.analysis.analysis import analyze
from roofline.content import json_document
from roofline.core.schema import Profile, Profiled, Wall, decode, encode
from roofline.costs import counted as counted_ops
from roofline.errors import InputError, MeasurementError
from roofline.importing.rows import lost
from roofline.importing.work.costs import Costs, kernels
from roofline.pytorch import count, time_cpu, time_cuda
from roofline.recording.rows import op_rows
from roofline.traces.kineto import reader, steps
from roofline.traces.kineto.links import link

PREFIX = "roofline:step"
#: Remembers what a call costs, for all traces.
COSTS = Costs()
SWITCHES = {"float32 matmul (cuBLAS)": "ieee", "float32 convolution (cuDNN)": "tf32"}


class Path:
    """Everything on the way from a trace's bytes to its analysis; `number`: the step that is counted."""

    def __init__(self, source, prefix=PREFIX, number=0, device="h100-sxm"):
        self.trace = reader.read(source)
        marks = steps.find(self.trace)
        low, high = int(marks.start[number]), int(marks.end[number])
        events = time_cpu.step_events(self.trace, counted_ops.NOTHING, low, high, "roofline:").events
        COSTS.forget()
        costs = COSTS
        nodes = costs.nodes(self.trace, events)
        self.counted = count.count(nodes, costs, kernels(self.trace, link(self.trace), nodes))
        self.timed = time_cuda.time_cuda(self.trace, self.counted, prefix)
        blocks = [path.partition("/")[0] or "(top)" for path in self.counted.scopes]
        self.rows = op_rows(self.counted, self.timed, blocks, SWITCHES, "cuda")
        timed = self.timed
        self.profile = Profile(
            schema=1,
            model="synthetic",
            backend="torch",
            mode="train",
            size="tiny",
            precision="default",
            command="import",
            date="2026-01-01",
            device=devices.load(device),
            wall=Wall(steps=tuple(timed.walls.tolist()), source="profiled"),
            profiled=Profiled(
                walls=tuple(timed.walls.tolist()),
                corrected=tuple(timed.corrected.tolist()),
                dropped=timed.dropped,
                events=timed.events,
                event_cost=0.0,
                idle=tuple(timed.idle.tolist()),
                idle_causes=timed.causes,
                joined=timed.joined,
            ),
            scopes=self.counted.scopes,
            phases=counted_ops.PHASES,
            blocks=self.rows.blocks,
            signatures=self.rows.signatures,
            ops=self.rows.ops,
            kernels=self.rows.kernels,
        )
        self.analysis = analyze(self.profile)

    def of(self, name, kernel=None):
        """(op, its signature) of the only op of that name, and of that kernel where one is given."""
        found = [
            (op, self.rows.signatures[op.signature])
            for op in self.rows.ops
            if self.rows.signatures[op.signature].name == name
            and (kernel is None or any(kernel in self.rows.kernels[number] for number, _ in op.kernels))
        ]
        assert len(found) == 1, found
        return found[0]


@pytest.fixture(scope="module")
def path(make_kineto):
    return Path(make_kineto.training().write())


def us(value):
    return pytest.approx(value * 1e-6, rel=1e-9)


def hold_identities(analysis):
    """Those of the contract, to 0.1 %."""
    document = json_document.document(analysis)
    classes = document["classes"].values()
    near = {"rel": 1e-3, "abs": 1e-12}
    assert document["wall"]["median"] == pytest.approx(sum(row["seconds"] for row in classes) + document["gap"], **near)
    for table in ("classes", "groups", "phases", "blocks"):
        for row in document[table].values():
            assert row["seconds"] == pytest.approx(
                row["floor"] + row["loss"] + row["uncosted"] - row["overlap"], **near
            )
            assert sum(row["bounds"].values()) == pytest.approx(row["seconds"], **near)
        assert sum(row["seconds"] for row in document[table].values()) == pytest.approx(document["busy"], **near)
    json.dumps(document, allow_nan=False)


# Times


def test_busy_is_the_union_that_the_generator_states(path, make_kineto):
    assert path.analysis.busy == us(make_kineto.EXPECTED["busy"])
    assert path.timed.walls == pytest.approx([1e-3, 1e-3])  # the first step is left out: the queue fills up in it
    assert path.timed.idle == pytest.approx([(1000 - 441) * 1e-6] * 2)
    assert path.analysis.gap == us(1000 - 441)
    assert (path.timed.joined, path.timed.unmatched, path.timed.dropped, path.timed.extra) == (1, {}, 0, ())


def test_the_first_step_begins_on_the_host(make_kineto):
    # Its window on the device begins with the annotation, at 0, and ends with the last event, at 860.
    found = Path(make_kineto.training(1).write()).timed
    assert found.walls == pytest.approx([860e-6])
    assert found.idle == pytest.approx([(860 - 441) * 1e-6])
    # Of three it is left out: 860, 1000, 1000.
    assert Path(make_kineto.training(3).write()).timed.walls == pytest.approx([1e-3, 1e-3])


def test_steps_that_overlap_on_two_streams_fill_their_windows(make_kineto):
    """A step's exchange ends 30 µs after the next one's compute has begun, which it lends them."""
    made = make_kineto.Trace()
    for zero in range(0, 3000, 1000):
        made.annotation(f"{PREFIX}#{zero // 1000}", zero, zero + 900)
        made.launch("compute", zero + 5, zero + 20, zero + 600)
        made.launch("exchange", zero + 10, zero + 500, zero + 1050, stream=make_kineto.COMM)
    found = time_cuda.time_cuda(reader.read(made.write()), counted_ops.NOTHING, PREFIX)
    assert found.extra == ("compute", "exchange")
    # The windows end at 1050, 2050 and 3050; the first is left out, and in the last no step follows.
    assert found.own * 1e6 == pytest.approx(np.asarray([[550 + 30, 550], [550, 550]]))
    assert found.walls == pytest.approx([1e-3, 1e-3])
    assert found.idle == pytest.approx([0, 0])
    assert (found.own.mean(axis=1) - found.overlap).sum() == pytest.approx(found.walls.mean())


def test_own_times_and_shares_of_overlapping_streams(path):
    # The all-reduce runs from 400 to 520 beside the weight gradient (400-470) and the bias gradient (470-480).
    for name, kernel, own, share in [
        ("c10d::allreduce_", None, 120, 70 / 2 + 10 / 2 + 40),
        ("aten::mm", "sm80_gemm_f32f32_nt", 70, 70 / 2),
        ("aten::sum", None, 10, 10 / 2),
        ("aten::mm", "sm80_gemm_f32f32_nn", 70, 70),
        ("aten::native_layer_norm_backward", None, 24, 24),  # two kernels
    ]:
        op, _ = path.of(name, kernel)
        assert op.own_ns == (own * 1000, own * 1000)
        assert op.overlap_ns == (own - share) * 1000
    assert (path.analysis.table.own >= path.analysis.table.share).all()
    assert path.analysis.total.own_seconds == us(441 + 80)
    assert path.analysis.total.overlap == us(80)


def test_an_op_has_its_kernels_with_their_times(path):
    op, _ = path.of("aten::native_layer_norm_backward")
    named = {path.rows.kernels[number]: time for number, time in op.kernels}
    assert named == {
        "void at::native::layer_norm_grad_input_kernel<float>": 14_000,
        "void at::native::GammaBetaBackwardCUDAKernel<float>": 10_000,
    }
    assert op.launches == 2
    assert sum(path.analysis.by("kernel")[name].seconds for name in path.analysis.by("kernel")) == us(441)


def test_ops_start_where_their_first_kernel_does(path):
    # The first kept step begins at 860 of the one before: its copy runs at 110, 250 µs later.
    starts = {path.rows.signatures[op.signature].name: op.start_ns for op in path.rows.ops}
    assert (starts["aten::_to_copy"], starts["aten::addmm"], starts["aten::clamp_"]) == (250_000, 270_000, 990_000)


def test_host_ops_without_a_kernel_are_no_rows(make_kineto):
    made = make_kineto.training(3)
    for zero in (0, 1000, 2000):  # after all that launches anything
        made.op("aten::neg", zero + 880, zero + 890, make_kineto.X)
    found = Path(made.write())
    assert "aten::neg" in found.counted.names_of_ops
    assert "aten::neg" not in {signature.name for signature in found.rows.signatures}


def test_an_outlying_step_is_dropped(make_kineto):
    made = make_kineto.training(4)
    # Step 2 ends 700 µs late: its wall is 1700 of 1000, 1700, 300.
    made.launch("late", 2890, 3550, 3560, stream=9)  # of the same stream it would have run first
    found = Path(made.write()).timed
    assert (found.dropped, len(found.walls)) == (1, 2)


# Idle


def test_idle_time_has_its_causes(path, make_kineto):
    expected = dict(make_kineto.EXPECTED["causes"])
    # In the steady state the 40 µs after the last launch and the 110 before the first copy are one gap of 250 from
    # 860 on, and the copy of a batch ends it, 1 µs after its launch should have reached the device.
    expected["host dispatch"] -= 40
    expected["data input"] = 140 + 109
    causes = {name: seconds * 1e6 for name, seconds in path.timed.causes.items()}
    assert causes == pytest.approx(expected)
    # Wall and profile are of the same steps: the gap is split as its idle time was, in the words of its parts.
    parts = path.analysis.gap_causes
    assert sum(parts.values()) == pytest.approx(sum(path.timed.causes.values()))
    assert parts["waiting for input"] == pytest.approx(path.timed.causes["data input"])
    assert sum(expected.values()) == 1000 - 441


# Classes, phases, precision


def test_classes_of_ops(path):
    classes = {path.rows.signatures[op.signature].name: path.analysis.op_class(op) for op in path.rows.ops}
    assert classes["aten::_to_copy"] == "transfer"  # a movement by name, and a copy from the host by its kernel
    assert classes["aten::_local_scalar_dense"] == "transfer"
    assert classes["aten::copy_"] == "movement"  # on the device
    assert classes["c10d::allreduce_"] == "communication"
    assert classes["aten::addmm"] == "contraction"
    assert classes["aten::_fused_adamw_"] == "optimizer"
    seconds = {name: total.seconds for name, total in path.analysis.by("class").items()}
    assert seconds["transfer"] == us(20 + 2)
    assert seconds["communication"] == us(80)
    assert seconds["optimizer"] == us(40)
    assert seconds["contraction"] == us(70 + 70 + 35)


def test_phases(path):
    seconds = {name: total.seconds for name, total in path.analysis.by("phase").items()}
    assert seconds["optimizer"] == us(40)
    assert seconds["backward"] == us(244)  # with the exchange of gradients, on the engine's thread
    assert seconds["forward"] == us(441 - 40 - 244)


def test_work_of_the_recorded_arguments(path):
    _, addmm = path.of("aten::addmm")
    # [32, 256] x [256, 512] and a bias of 512.
    assert (addmm.cost.flops, addmm.cost.vector_flops) == (2 * 32 * 256 * 512, 32 * 512)
    assert addmm.cost.bytes_read == 4 * (512 + 32 * 256 + 256 * 512)
    assert addmm.shapes == "[512] x [32,256] x [256,512]"
    # Lists record no types and no sizes here, and the layer norm's mean has a shape that does not fit.
    unknown = {signature.name for signature in path.rows.signatures if signature.cost.quality == "unknown"}
    assert unknown == {
        "c10d::allreduce_",
        "aten::_fused_adamw_",
        "aten::_foreach_zero_",
        "aten::native_layer_norm_backward",
    }
    # A copy on the device has no work but bytes, all of them still in the cache, whose bandwidth is known. The copies
    # from and to the host (20 and 2) go over a known link.
    assert path.analysis.total.uncosted == us(120 + 40 + 4 + 24)
    # Of the 120 of the exchange 80 are shared with a kernel that runs beside it: 188 - 40 of 441 busy ones.
    assert path.analysis.coverage["flops"] == pytest.approx(1 - 148 / 441)


def test_a_kernels_name_proves_tf32(make_kineto):
    text = make_kineto.training().write()
    spoken = text.replace(b"sm80_gemm_f32f32_nn", b"sm80_xmma_gemm_f32f32_tf32f32_f32_nn")
    found = Path(spoken)
    _, proven = found.of("aten::mm", "tf32f32")
    _, said = found.of("aten::mm", "sm80_gemm_f32f32_nt")
    assert (proven.precision.arithmetic, proven.precision.evidence.partition(" ")[0]) == ("tf32", "kernel")
    assert (said.precision.arithmetic, said.precision.evidence) == ("fp32", "switch: float32 precision 'ieee'")
    # Each is under its own roof.
    compute = found.analysis.table.compute
    addmm, _ = found.of("aten::addmm")
    assert compute[found.rows.ops.index(addmm)] == pytest.approx(2 * 32 * 256 * 512 / 67e12)
    at = [op.signature for op in found.rows.ops].index(found.rows.signatures.index(proven))
    assert compute[at] == pytest.approx(2 * 32 * 256 * 512 / 494.5e12)


def test_contractions_of_equal_arguments_and_different_kernels_are_two_signatures(make_kineto):
    made = make_kineto.Trace()
    made.annotation(f"{PREFIX}#0", 0, 100)
    for start, kernel in ((0, "sm80_gemm_tf32"), (20, "ampere_sgemm"), (40, "sm80_gemm_tf32")):
        made.op("aten::mm", start, start + 8, make_kineto.X, make_kineto.WT)
        made.launch(kernel, start + 1, start + 5, start + 15)
    found = Path(made.write()).rows
    assert [found.signatures[op.signature].precision.arithmetic for op in found.ops] == ["tf32", "fp32", "tf32"]
    assert len(found.signatures) == 2


# Kernels without an op


def test_a_kernel_without_an_op_stays_in_the_busy_time(make_kineto):
    made = make_kineto.training()
    for number in range(3):  # launched between ops; the device is idle from 520 to 606
        zero = number * make_kineto.PERIOD
        made.launch("apex_adam", zero + 542, zero + 550, zero + 560)
        made.launch("apex_adam", zero + 546, zero + 565, zero + 575)
    found = Path(made.write())
    assert found.timed.extra == ("apex_adam",)
    op, signature = found.of("apex_adam")
    assert op.own_ns == (20_000, 20_000)
    assert op.launches == 2
    assert (signature.kind, signature.cost.quality) == ("kernel", "unknown")
    assert found.profile.blocks[op.block] == "(no op)"
    assert found.analysis.busy == us(441 + 20)
    assert found.analysis.total.uncosted == us(188 + 20)
    hold_identities(found.analysis)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "communication"),
        ("void multimem_all_reduce_kernel<c10::BFloat16>", "communication"),
        ("Memcpy HtoD (Pinned -> Device)", "transfer"),
        ("Memcpy DtoH (Device -> Pageable)", "transfer"),
        ("CopyHostToDevice", "transfer"),
        ("Memcpy DtoD (Device -> Device)", "movement"),
        ("Memset (Device)", "movement"),
        ("sm80_gemm", "contraction"),
        ("flash_fwd_kernel", "attention"),
        ("apex_adam", "other"),
    ],
)
def test_a_kernel_without_an_op_has_the_class_of_its_name(make_kineto, name, expected):
    """Seen live or imported: the same name, the same class, and no work."""
    made = make_kineto.training()
    for number in range(3):
        zero = number * make_kineto.PERIOD
        made.launch(name, zero + 542, zero + 550, zero + 560)
    _, live = Path(made.write()).of(name)
    assert live.op_class == expected == lost(name, "no op").op_class
    assert (live.kind, live.cost.quality) == ("kernel", "unknown")


# The analysis


def test_the_identities_hold(path):
    hold_identities(path.analysis)
    assert path.analysis.above_ceiling == 0


def test_what_no_datasheet_has_the_verdict_says(path):
    """A launch floor is none of a datasheet's figures; that of an H100 was measured."""
    assert "launch.torch-eager" not in path.analysis.missing
    on_another = analyze(path.profile, devices.load("a100-sxm"))
    assert "launch.torch-eager" in on_another.missing
    assert np.isnan(on_another.table.launch).all()
    assert on_another.total.bounds["overhead"] == 0
    # Transcendental rates are on no datasheet either.
    assert "function.erf" in path.analysis.missing


def test_the_profile_survives_its_file(path):
    again = decode(encode(path.profile))
    assert again == path.profile
    assert analyze(again).busy == path.analysis.busy


def test_buffers_that_were_not_recorded_are_all_different(path):
    """A Chrome trace names no storages: nothing may be taken for warm because of that."""
    buffers = [buffer for op in path.rows.ops for buffer in (*op.reads, *op.writes)]
    assert len(set(buffers)) == len(buffers)


def test_a_counted_step_without_times(path):
    rows = op_rows(path.counted, None, ["(top)"] * len(path.counted.scopes), SWITCHES, "cuda")
    assert len(rows.ops) == len(path.counted.ops)
    assert {(op.own_ns, op.overlap_ns, op.launches, op.kernels) for op in rows.ops} == {((), 0, 1, ())}
    assert {rows.blocks[op.block] for op in rows.ops} == {"(top)", "optimizer"}


def test_damaged_traces_are_refused_or_give_a_step_that_adds_up(damaged):
    _, data = damaged
    try:
        found = Path(data)
    except (InputError, MeasurementError):
        return
    timed = found.timed
    assert (timed.own >= 0).all()
    assert (timed.overlap >= -1e-12).all()
    share = timed.own.mean(axis=1) - timed.overlap
    assert share.sum() + timed.idle.mean() == pytest.approx(timed.walls.mean(), rel=1e-6)
    assert (timed.host >= 0).all()
    assert timed.host.sum() <= timed.idle.mean() * (1 + 1e-9) + 1e-12


def test_a_trace_without_anything_of_a_device_is_refused(make_kineto):
    made = make_kineto.Trace()
    made.annotation(f"{PREFIX}#0", 0, 50)
    made.op("aten::relu", 5, 9, make_kineto.H)
    with pytest.raises(MeasurementError, match="recorded no kernel"):
        Path(made.write())


def test_a_step_that_lasts_no_time_is_refused(make_kineto):
    made = make_kineto.Trace()
    made.annotation(f"{PREFIX}#0", 5, 5)
    made.launch("k", 5, 5, 5)
    with pytest.raises(MeasurementError, match="no profiled step took any time"):
        Path(made.write())


# Recorded by others; figures worked out by scripts of their own. Without marks of ours the whole trace is one step.


def shares(path):
    """Share of device time by quality of the cost, and the sum [s]."""
    own = np.array([op.own_ns[0] for op in path.rows.ops]) * 1e-9
    quality = [path.rows.signatures[op.signature].cost.quality for op in path.rows.ops]
    return {name: own[[q == name for q in quality]].sum() / own.sum() for name in set(quality)}, own.sum()


def test_bert_small_on_h100(recorded):
    found = Path(recorded("h100_bert_small_infer.json.gz"), prefix=None)
    quality, time = shares(found)
    assert quality == {"exact": 1.0}
    assert time == pytest.approx(0.3094e-3, rel=1e-3)
    assert found.timed.extra == ()
    assert found.counted.unknown == {}
    # 17 + 1 + 4 + 4 products and 4 attentions, of 141 tokens; two of its ops ask for numbers on the host.
    products = 141 * (17 * 512 * 512 + 512 * 30522 + 2 * 4 * 512 * 2048)
    assert found.analysis.total.flops == 2 * products + 4 * 2 * 2 * 8 * 141 * 141 * 64
    assert found.analysis.by("class")["attention"].ops == 4
    # Launched from Python, one after another: the device is idle 92 % of the time: 3.598 of 3.908 ms.
    assert found.analysis.gap / found.analysis.wall == pytest.approx(0.93, abs=0.01)
    hold_identities(found.analysis)


def test_eager_pytorch_on_b200(recorded):
    found = Path(recorded("b200_eager.json.gz"), prefix=None, device="b200")
    quality, time = shares(found)
    # 11.67 ms of kernels, some of one op beside each other. Attention and experts are ops of vLLM itself that
    # have no formula: 0.56 of the time.
    assert time == pytest.approx(11.60e-3, rel=1e-3)
    assert found.analysis.by("class")["attention"].ops > 0
    assert quality["unknown"] == pytest.approx(0.561, abs=1e-3)
    assert found.analysis.by("class")["communication"].seconds > 0.1 * found.analysis.busy  # 2.14 ms
    hold_identities(found.analysis)


def test_qwen_on_h100_of_which_a_third_was_launched_before_the_trace_began(recorded):
    found = Path(recorded("h100_qwen_0.5b_infer.json.gz"), prefix=None)
    quality, time = shares(found)
    own = {name: total.own_seconds for name, total in found.analysis.by("op").items()}
    lost = sum(own[name] for name in found.timed.extra)
    assert 1 - lost / time == pytest.approx(0.700, abs=0.005)
    # All that was launched is costed.
    assert found.counted.unknown == {}
    assert quality["exact"] == pytest.approx(1 - lost / time)
    hold_identities(found.analysis)
