"""The cost engine of imports: which calls are counted, what is no op of torch's, the second import without torch."""

from __future__ import annotations

import ast
import csv
import subprocess
import sys
from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from roofline.core.cost import Cost
from roofline.costs import custom
from roofline.costs.calls import Call, Tensor
from roofline.importing.work import costs as import_costs
from roofline.importing.work import list_arguments
from roofline.pytorch import count
from roofline.pytorch.inductor import triton_source
from roofline.traces import nesting
from roofline.traces.kineto import reader
from roofline.traces.kineto.links import link

X = ([32, 256], "float", [256, 1])
S = 4 * 32 * 256
LIST = ([], "TensorList", [], "")


class Read:
    """A trace with its counted calls; the whole of it is one step."""

    def __init__(self, source, costs=None):
        self.trace = reader.read(source if isinstance(source, bytes | Path) else source.write())
        self.links = link(self.trace)
        self.costs = costs or import_costs.Costs()
        self.nodes = self.costs.nodes(self.trace, self.trace.ops, self.links)
        self.given = import_costs.kernels(self.trace, self.links, self.nodes, sources=self.costs.sources)

    def counted(self):
        return count.count(self.nodes, self.costs, self.given)

    def names(self):
        return self.counted().names_of_ops

    def owners(self):
        """For each device event its cost, None where it has none."""
        is_op = self.nodes.is_op.copy()
        is_op[list(self.given)] = True
        unit = np.append(nesting.outermost(self.nodes.parent, is_op), -1)[self.links.op]
        for row, node in enumerate(unit.tolist()):
            if node < 0:
                yield row, import_costs.lone(self.trace, row)
            elif node in self.given:
                yield row, self.given[node].costed
            else:
                yield row, self.costs.cost(self.nodes.call(node))

    def shares(self):
        """Shares of the summed device time whose FLOPs and bytes are known, whose payload is, and that has no cost."""
        sums = Counter()
        for row, costed in self.owners():
            if costed is None or costed.cost.quality == "unknown":
                what = "unknown"
            elif costed.op_class == "communication":
                what = "communication"
            else:
                what = "known" if costed.cost.flops_known and costed.cost.bytes is not None else "bytes"
            sums[what] += int(self.trace.device.duration[row])
        total = self.trace.device.duration.sum()
        return {name: time / total for name, time in sums.items()}


#: Of the recorded traces, which tests do not change.
read_once = cache(Read)


# Which calls are counted


def test_the_topmost_op_that_is_no_wrapper(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::linear", 0, 30, X)
    made.op("aten::addmm", 5, 25, make_kineto.B, X, make_kineto.WT, "1", "1")
    made.op("aten::copy_", 8, 20, X, X, "False")
    made.launch("gemm", 10, 40, 50)
    assert Read(made).names() == ("aten::addmm",)


def test_an_op_of_unknown_cost_gives_way_to_the_ops_inside(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::zeros", 0, 30, ([], "", [], ""), "6", "", "", "")  # the size was not recorded
    made.op("aten::zero_", 5, 25, X)
    made.launch("fill", 10, 40, 50)
    read = Read(made)
    assert read.names() == ("aten::zero_",)
    (op,) = read.counted().ops
    assert (op.costed.cost.bytes_read, op.costed.cost.bytes_written) == (0, S)


def test_unless_it_launches_kernels_itself(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::index", 0, 30, X, LIST)
    made.op("aten::fill_", 5, 15, X, "1")
    made.launch("fill", 8, 40, 50)
    made.launch("index_elementwise_kernel", 20, 50, 60)
    read = Read(made)
    assert read.names() == ("aten::index",)
    assert read.counted().unknown == {"aten::index": "the value of indices was not recorded"}


def without_values(made):
    """The trace as profilers of 2022 and 2023 wrote it: no strides and no values."""
    for event in made.events:
        for key in ("Input Strides", "Concrete Inputs"):
            event.get("args", {}).pop(key, None)
    return made


GIVEN, NOTHING = ([], "Scalar", []), ([], "", [])


def test_a_cast_to_an_unrecorded_type_gives_way_to_the_copy_inside(make_kineto):
    made = make_kineto.Trace()
    longs, ints = ([1000], "long", [1]), ([1000], "int", [1])
    made.op("aten::_to_copy", 0, 30, longs, GIVEN, *[NOTHING] * 3, GIVEN, NOTHING)
    made.op("aten::empty_strided", 1, 4, NOTHING, NOTHING, GIVEN, GIVEN, NOTHING, NOTHING)
    made.op("aten::copy_", 5, 25, ints, longs, GIVEN)
    made.launch("copy", 10, 40, 50)
    made.op("aten::zeros_like", 60, 90, longs, GIVEN, GIVEN, *[NOTHING] * 3)
    made.op("aten::empty_like", 61, 64, longs, GIVEN, GIVEN, *[NOTHING] * 3)
    made.op("aten::zero_", 65, 85, ints)
    made.launch("Memset", 70, 90, 95)
    made.op("aten::zeros_like", 100, 130, longs, *[NOTHING] * 5)  # of the same type
    made.launch("fill", 110, 140, 150)
    counted = Read(without_values(made)).counted()
    assert counted.names_of_ops == ("aten::copy_", "aten::zero_", "aten::zeros_like")
    costs = [op.costed.cost for op in counted.ops]
    assert [(cost.bytes_read, cost.bytes_written, cost.quality) for cost in costs] == [
        (8000, 4000, "exact"),
        (0, 4000, "exact"),
        (0, 8000, "exact"),
    ]


def test_formulas_and_collectives_see_nothing_where_a_value_is_missing(make_kineto):
    made = make_kineto.Trace()
    made.op("mylib::f", 0, 20, X, GIVEN, NOTHING)
    made.launch("f", 5, 30, 40)
    made.op("c10d::allreduce_", 30, 50, NOTHING, X)  # what follows a list without sizes is not the message
    made.launch("ncclKernel_AllReduce", 35, 60, 80)
    seen = []
    custom.formula("mylib::f")(lambda *inputs: seen.extend(inputs[1:]) or Cost())
    try:
        ops = Read(without_values(made)).counted().ops
    finally:
        custom._FORMULAS.pop("mylib::f", None)
    assert seen == [None, None]
    assert ops[1].costed.cost.quality == "unknown"


@pytest.mark.parametrize(
    ("name", "tensors", "flops"),
    [
        ("aten::linear", (X, ([64, 256], "float", [256, 1]), ([64], "float", [1])), 2 * 32 * 256 * 64),
        ("aten::linear", (X, ([64, 256], "float", [256, 1]), ""), 2 * 32 * 256 * 64),
        ("aten::matmul", (X, ([256, 64], "float", [64, 1])), 2 * 32 * 256 * 64),
    ],
)
def test_a_product_whose_wrapper_launches_it_is_counted(make_kineto, name, tensors, flops):
    made = make_kineto.Trace()
    made.op(name, 0, 30, *tensors)
    made.launch("some_kernel", 10, 40, 50)
    read = Read(made)
    assert read.names() == (name,)
    (op,) = read.counted().ops
    assert (op.costed.cost.flops, op.costed.op_class) == (flops, "contraction")


def test_a_fused_adam_without_amsgrad_is_known(make_kineto):
    made = make_kineto.Trace()
    many = ([[100, 10], [50]], "TensorList", [[10, 1], [1]])
    steps = ([[], []], "TensorList", [[], []])
    made.op(
        "aten::_fused_adamw_", 0, 30, *[many] * 4, LIST, steps, "0.001", "0.9", "0.999", "0.01", "1e-8", *["False"] * 2
    )
    functor = "FusedAdamMathFunctor<float, 4, (ADAM_MODE)1, false>"
    name = f"multi_tensor_apply_kernel<Metadata<4>, {functor}, float const*, double>"
    made.launch(name, 10, 40, 50)
    (op,) = Read(made).counted().ops
    # 1050 parameters: they and both averages are read and written, the gradients read, and two steps.
    assert (op.costed.cost.bytes_read, op.costed.cost.bytes_written) == (4 * (4 * 1050 + 2), 4 * 3 * 1050)
    assert (op.costed.op_class, op.costed.dtype, op.costed.cost.quality) == ("optimizer", "fp32", "exact")


def test_a_wrapper_that_launches_a_kernel_itself_is_counted(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::rms_norm", 0, 30, X, ([], "ScalarList", [], "[256]"), ([256], "float", [1]), "1e-5")
    made.launch("rms_norm_kernel", 10, 40, 50)
    read = Read(made)
    assert read.names() == ("aten::rms_norm",)
    (op,) = read.counted().ops
    assert op.costed.cost.bytes == 2 * S + 4 * 256


def test_calls_inside_an_opaque_one_stand_beside_it(make_kineto):
    made = make_kineto.Trace()
    made.op("mine::experts", 0, 90, X)
    made.op("aten::relu", 5, 25, X)
    made.launch("relu_kernel", 10, 30, 40)
    made.launch("_matmul_ogs_1", 40, 45, 85)
    made.launch("some_topk", 50, 86, 90)
    read = Read(made)
    assert sorted(read.names()) == ["aten::relu", "mine::experts"]
    found = {name: op.costed for name, op in zip(read.names(), read.counted().ops, strict=True)}
    assert found["aten::relu"].cost.quality == "exact"
    opaque = found["mine::experts"]
    # Most of its own time is a product's; of its work nothing is known.
    assert (opaque.op_class, opaque.cost.quality, opaque.cost.bytes) == ("contraction", "unknown", None)
    assert "a library's own" in opaque.cost.note
    # Its kernels are its own, and that of relu is not.
    kinds = [costed.kind for _, costed in read.owners()]
    assert kinds == ["relu", "experts", "experts"]


def test_calls_of_compiled_code_and_of_autograd_are_no_ops(make_kineto):
    made = make_kineto.Trace()
    made.op("CompiledFunction", 0, 20)
    made.launch("volta_sgemm_128x32_nt", 5, 30, 40)
    made.op("torch::autograd::CppNode<Mine>", 50, 70, X)
    made.launch("kernel", 55, 80, 90)
    assert Read(made).given == {}


# Formulas


def test_a_users_formula_goes_before_torchs_rules(make_kineto):
    made = make_kineto.Trace()
    made.op("mylib::rotary", 0, 20, X)
    made.launch("rotary_kernel", 5, 30, 40)
    custom.formula("mylib::rotary", "pointwise")(lambda x: Cost(vector_flops=3.0 * x.numel))
    try:
        (op,) = Read(made).counted().ops
    finally:
        custom._FORMULAS.pop("mylib::rotary", None)
    assert (op.costed.cost.vector_flops, op.costed.op_class) == (3 * 32 * 256, "pointwise")


def test_a_node_of_the_backward_pass_gets_the_arguments_of_its_forward_op(make_kineto):
    made = make_kineto.Trace()
    for start, rows in ((0, 8), (20, 4)):
        made.op("mylib::f", start, start + 10, ([rows], "float", [1]))
        made.launch("f", start + 1, start + 20, start + 21)
    for start, number, grad in ((50, 8, 40), (70, 7, 80)):  # the later one of the forward pass first
        args = {"Sequence number": number}
        made.op("torch::autograd::CppNode<F>", start, start + 10, ([grad], "float", [1]), **args)
        made.launch("b", start + 1, start + 20, start + 21)
    custom.formula("mylib::f")(lambda x: Cost(vector_flops=float(x.numel)))
    custom.formula("torch::autograd::CppNode<F>", forward="mylib::f")(
        lambda grad, x: Cost(vector_flops=float(1000 * grad.numel + x.numel))
    )
    try:
        ops = Read(made).counted().ops
        assert [op.costed.cost.vector_flops for op in ops] == [8, 4, 40_004, 80_008]
        # One of the forward pass more, as in a window cut short: nothing is paired.
        made.op("mylib::f", 200, 210, ([9], "float", [1]))
        made.launch("f", 201, 220, 221)
        qualities = [op.costed.cost.quality for op in Read(made).counted().ops]
        assert sorted(qualities) == ["exact"] * 3 + ["unknown"] * 2
    finally:
        custom._FORMULAS.pop("mylib::f", None)
        custom._FORMULAS.pop("torch::autograd::CppNode<F>", None)


# Triton, communication, lists, copies


def test_a_triton_kernel(make_kineto):
    made = make_kineto.Trace()
    made.op("triton_poi_fused_add_relu_0", 0, 20, X, X, "8192", kernel_backend="triton")
    made.launch("triton_poi_fused_add_relu_0", 5, 30, 40)
    (op,) = Read(made).counted().ops
    assert (op.costed.cost.bytes_read, op.costed.cost.bytes_written, op.costed.cost.quality) == (S, S, "assumed")
    assert (op.costed.op_class, [part.kind for part in op.costed.parts]) == ("pointwise", ["add", "relu"])
    assert (op.reads, op.writes) == ((-1,), (-1,))


def test_a_triton_kernel_with_its_source(make_kineto, tmp_path):
    """Of the first tensor a quarter is read and written over; nothing but the source says so."""
    source = """
@triton.jit
def triton_poi_fused_add_relu_0(in_out_ptr0, in_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 2048
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex % 256
    x1 = xindex
    tmp0 = tl.load(in_out_ptr0 + (x1), xmask)
    tmp1 = tl.load(in_ptr0 + (x0), xmask, eviction_policy='evict_last')
    tl.store(in_out_ptr0 + (x1), tmp0 + tmp1, xmask)
"""
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "cabc.py").write_text(source, encoding="utf-8")
    made = make_kineto.Trace()
    said = {"kernel_backend": "triton", "kernel_hash": "cabc", "kernel_kwargs": "XBLOCK=256"}
    made.op("triton_poi_fused_add_relu_0", 0, 20, X, X, "2048", **said)
    made.launch("triton_poi_fused_add_relu_0", 5, 30, 40)
    made.op("triton_poi_fused_add_relu_1", 40, 60, X, X, "8192", **said | {"kernel_hash": "cabd"})
    made.launch("triton_poi_fused_add_relu_1", 45, 70, 80)
    sources = triton_source.Sources(tmp_path)
    with_source, without = Read(made, import_costs.Costs(sources=sources)).counted().ops
    assert (with_source.costed.cost.bytes_read, with_source.costed.cost.bytes_written) == (4 * (2048 + 256), 4 * 2048)
    assert (without.costed.cost.bytes_read, without.costed.cost.bytes_written) == (S, S)
    assert sources.missing == {"cabd"}


def test_kernels_of_a_recorded_trace_write_over_what_products_made(recorded):
    """Llama's MLP, 8 x 4096 tokens in bf16: silu(gate) * up where the gate was, the sums where a projection was."""
    read = read_once(recorded("mi300x_torch_compile_triton.json.gz"))
    moved = {
        name: (op.costed.cost.bytes_read, op.costed.cost.bytes_written)
        for name, op in zip(read.names(), read.counted().ops, strict=True)
    }
    hidden, width = 2 * 8 * 4096 * 2048, 2 * 8 * 4096 * 8192
    assert moved["triton_poi_fused__unsafe_view_mul_silu_2"] == (2 * width, width)
    assert moved["triton_poi_fused__unsafe_view_add_3"] == (3 * hidden, hidden)
    assert moved["triton_red_fused__unsafe_view_add_mean_mul_pow_rsqrt_1"] == (2 * hidden + 2 * 2048, hidden)


def test_a_message_is_one_op_with_its_payload(make_kineto):
    made = make_kineto.Trace()
    made.op("vllm::all_reduce", 0, 90, X)
    made.op("aten::copy_", 2, 8, X, X, "False")
    made.launch("Memcpy", 3, 20, 22)
    said = {"Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, "dtype": "Half", "Group size": 4}
    made.op("c10d::allreduce_", 10, 60, LIST, "", "")
    made.op("record_param_comms", 15, 50, **said)
    made.launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL", 20, 70, 90)
    read = Read(made)
    # Not the library's call around them: what lies in it is more than a message.
    assert read.names() == ("aten::copy_", "c10d::allreduce_")
    cost = read.counted().ops[1].costed
    assert (cost.op_class, cost.cost.bytes_read, cost.cost.bytes_written) == ("communication", 16, 16)


def test_a_bucket_holds_the_gradients_that_came_since_the_one_before(make_kineto):
    made = make_kineto.Trace()
    for start, shape, is_last in ((0, [100], False), (100, [20], True), (200, [3], True)):
        name = "torch::autograd::AccumulateGrad"
        made.op(f"autograd::engine::evaluate_function: {name}", start, start + 60, tid=make_kineto.AUTOGRAD)
        made.op(name, start + 5, start + 20, (shape, "float", [1]), tid=make_kineto.AUTOGRAD)
        if is_last:
            made.op("c10d::allreduce_", start + 30, start + 50, LIST, "", tid=make_kineto.AUTOGRAD)
            made.launch("ncclKernel_AllReduce", start + 35, start + 60, start + 80, tid=make_kineto.AUTOGRAD)
    ops = Read(made).counted().ops
    assert [op.costed.cost.bytes_read for op in ops] == [480, 12]
    assert {op.costed.cost.quality for op in ops} == {"assumed"}
    # Elsewhere nothing is known of a list without sizes.
    other = make_kineto.Trace()
    other.op("c10d::allreduce_", 30, 50, LIST, "")
    other.launch("ncclKernel_AllReduce", 35, 60, 80)
    assert [op.costed.cost.quality for op in Read(other).counted().ops] == ["unknown"]


def test_a_list_with_the_type_of_its_kernel_is_exact_and_one_with_found_sizes_assumed(make_kineto):
    made = make_kineto.Trace()
    sized = ([[4, 8], [4, 2]], "TensorList", [[8, 1], [2, 1]], "")
    made.op("aten::cat", 0, 20, sized, "1")
    made.launch("CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>", 5, 30, 40)
    made.op("aten::cat", 50, 70, LIST, "1", **{"Sequence number": 7})
    made.launch("CatArrayBatchedCopy<float>", 55, 80, 90)
    made.op("CatBackward0", 100, 110, ([4, 10], "float", []), **{"Sequence number": 7})
    first, second = (op.costed for op in Read(made).counted().ops)
    assert (first.cost.bytes_read, first.cost.bytes_written, first.cost.quality) == (80, 80, "exact")
    assert (second.cost.bytes_read, second.cost.bytes_written, second.cost.quality) == (160, 160, "assumed")
    assert "sequence number" in second.cost.note


def test_sizes_that_were_found_are_assumed_where_a_sparse_tensor_is_asked_for_inside(make_kineto):
    made = make_kineto.Trace()
    made.op("aten::cat", 50, 70, LIST, "1", **{"Sequence number": 7})
    made.op("aten::_nnz", 51, 53, ([8, 6], "float", []))
    made.launch("CatArrayBatchedCopy<float>", 55, 80, 90)
    made.op("CatBackward0", 100, 110, ([4, 10], "float", []), **{"Sequence number": 7})
    (joined,) = Read(made).counted().ops
    assert (joined.costed.cost.bytes_written, joined.costed.cost.quality) == (4 * 4 * 10, "assumed")
    assert "sequence number" in joined.costed.cost.note


@pytest.mark.parametrize(
    ("name", "read", "written", "op_class"),
    [
        ("Memcpy DtoD (Device -> Device)", 100, 100, "movement"),
        ("Memcpy HtoD (Pageable -> Device)", 0, 100, "transfer"),
        ("Memcpy DtoH (Device -> Pinned)", 100, 0, "transfer"),
        ("CopyHostToDevice", 0, 100, "transfer"),
        ("CopyDeviceToHost", 100, 0, "transfer"),
        ("CopyDeviceToDevice", 100, 100, "movement"),
    ],
)
def test_a_copy_without_an_op_has_its_bytes(make_kineto, name, read, written, op_class):
    made = make_kineto.Trace()
    made.copy(name, 0, 10, made.call("cudaMemcpyAsync", 0, 1), 100)
    found = import_costs.lone(reader.read(made.write()), 0)
    assert (found.cost.bytes_read, found.cost.bytes_written, found.op_class) == (read, written, op_class)


def test_a_kernel_without_an_op_has_no_cost_but_a_collective_may(make_kineto):
    made = make_kineto.Trace()
    made.kernel("apex_adam", 0, 10, 1)
    said = {"In msg nelems": 8, "Out msg nelems": 8, "dtype": "Float"}
    made.kernel("ncclDevKernel_AllReduce", 20, 30, 2, **said)
    made.kernel("ncclDevKernel_AllReduce", 40, 50, 3)
    made.copy("Memcpy DtoD", 60, 61, 4, -5)
    trace = reader.read(made.write())
    assert import_costs.lone(trace, 0) is None
    assert import_costs.lone(trace, 1).cost.bytes_read == 32
    assert import_costs.lone(trace, 2).cost.quality == "unknown"
    assert import_costs.lone(trace, 3) is None


# Without torch


def test_without_torch_what_is_missing_is_named(make_kineto):
    costs = import_costs.Costs(torch=False)
    read = Read(make_kineto.training(1), costs)
    unknown = read.counted().unknown
    assert "aten::addmm" in costs.missing
    assert "torch is not installed" in unknown["aten::addmm"]
    # Collectives never need it.
    assert not any("c10d" in name for name in costs.missing)


def test_a_second_import_asks_torch_nothing(make_kineto, tmp_path):
    source = tmp_path / "trace.json"
    source.write_bytes(make_kineto.training(2).write())
    cache = tmp_path / "costs.msgpack"
    first = import_costs.Costs(cache)
    read = Read(source, first)
    read.counted()
    first.save()
    again = import_costs.Costs(cache, torch=False)
    second = Read(source, again)
    assert again.missing == set()
    assert second.nodes.is_op.tolist() == read.nodes.is_op.tolist()
    assert second.counted().ops == read.counted().ops
    program = f"""
import sys
from pathlib import Path
from roofline.importing.work import costs as import_costs
from roofline.traces import nesting
from roofline.traces.kineto import reader as kineto
trace = kineto.read({str(source)!r})
costs = import_costs.Costs(Path({str(cache)!r}))
nodes = costs.nodes(trace, trace.ops)
unit = set(nesting.outermost(nodes.parent, nodes.is_op).tolist()) - {{-1}}
known = [costs.cost(nodes.call(row)).cost.quality for row in unit]
assert "exact" in known, known
assert "torch" not in sys.modules, "torch was imported"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_cost_from_the_cache_is_written_like_the_one_that_went_in(tmp_path):
    """A fill reads nothing, which is 0.0 bytes both times: the bytes of a saved import hang on no earlier one."""
    cache = tmp_path / "costs.msgpack"
    call = Call("aten::zero_", None, (Tensor((4, 8), (8, 1), "float"),))
    first = import_costs.Costs(cache)
    made = first.cost(call)
    first.save()
    assert repr((made.cost.bytes_read, made.cost.bytes_written)) == "(0.0, 128.0)"
    assert repr(import_costs.Costs(cache, torch=False).cost(call)) == repr(made)


def test_costs_are_those_of_the_engine_of_live_runs(make_kineto):
    from roofline.pytorch.aten.engine import Engine

    call = Call("aten::addmm", None, (Tensor((8,), (1,), "float"), *[Tensor((8, 8), (8, 1), "float")] * 2, 1, 1))
    assert import_costs.Costs().cost(call) == Engine().cost(call)


def test_an_rms_norm_of_a_library_does_the_work_of_torchs():
    from roofline.pytorch.aten.engine import Engine

    x, weight = Tensor((10, 6), (6, 1), "float"), Tensor((6,), (1,), "float")
    costs, given = import_costs.Costs(), (x, x, weight, 1e-5)
    torchs = Engine().cost(Call("aten::rms_norm", None, (x, (6,), weight, 1e-5)))
    for name in ("_C::rms_norm", "sgl_kernel::rmsnorm", "aiter::rmsnorm"):
        assert costs.cost(Call(name, None, given)).cost == torchs.cost


def test_damaged_traces_never_raise(damaged):
    from roofline.errors import InputError

    try:
        read = Read(damaged[1])
    except InputError:
        return
    read.counted()
    list(read.owners())


# Recorded by others


def test_every_op_of_bert_on_h100_is_known(recorded):
    read = read_once(recorded("h100_bert_small_infer.json.gz"))
    assert read.shares() == {"known": 1.0}
    assert {op.costed.cost.quality for op in read.counted().ops} == {"exact"}


@pytest.mark.parametrize(
    ("name", "known", "communication"),
    # At least what a script of its own found; of the recommenders far more is known than there: fbgemm.
    [
        ("h100_qwen_0.5b_infer.json.gz", 0.700, 0.0),
        ("b200_eager.json.gz", 0.180, 0.18),
        ("mi300x_torch_compile_triton.json.gz", 1.0, 0.0),
        ("mi300x_bert_small_infer.json.gz", 0.9999, 0.0),
        ("mi300x_vllm_decode_graph.json.gz", 0.030, 0.0),
        ("a100_recsys_train.json.gz", 0.65, 0.205),
        pytest.param("v100_recsys_train.json.gz", 0.40, 0.190, marks=pytest.mark.thorough),
    ],
)
def test_coverage_of_recorded_traces(recorded, name, known, communication):
    shares = read_once(recorded(name)).shares()
    assert shares["known"] >= known
    assert shares.get("communication", 0.0) >= communication


def test_all_reduces_of_a_step_exchange_every_gradient(recorded):
    read = read_once(recorded("a100_recsys_train.json.gz"))
    parameters = list_arguments.gradients(read.trace, read.nodes.events).numel.sum()
    sent = sum(
        op.costed.cost.bytes_read
        for op, name in zip(read.counted().ops, read.names(), strict=True)
        if name == "c10d::allreduce_" and op.costed.cost.bytes_read
    )
    assert 0.95 * 4 * parameters <= sent <= 4 * parameters


def test_contractions_are_those_of_the_other_tool(recorded):
    """Its table: addmm adds M N for the bias, which is vector work here; attention is equal."""
    read = read_once(recorded("h100_bert_small_infer.json.gz"))
    table = csv.DictReader(recorded("expected/h100_bert_small_unified_perf_summary.csv").read_text().splitlines())
    ours = {}
    for row in range(len(read.nodes)):
        dims = read.nodes.events.arguments(row).get("Input Dims")
        ours[read.nodes.names[row], str(dims)] = read.nodes.call(row)
    compared = Counter()
    for line in table:
        if line["name"] not in ("aten::addmm", "aten::_scaled_dot_product_flash_attention", "aten::add", "aten::add_"):
            continue
        dims = [list(one) for one in ast.literal_eval(line["Input Dims"])]
        cost = read.costs.cost(ours[line["name"], str(dims)]).cost
        bias = cost.vector_flops if line["name"] in ("aten::addmm", "aten::add", "aten::add_") else 0.0
        assert cost.flops + bias == pytest.approx(float(line["GFLOPS"]) * 1e9, rel=1e-9)
        written = 1.01 if "attention" in line["name"] else 1.0 + 1e-9  # it leaves the log-sum-exp out
        assert 1.0 <= cost.bytes / 2**20 / float(line["Data Moved (MB)"]) <= written
        compared[line["name"]] += 1
    assert compared["aten::addmm"] == 4
    assert len(compared) == 4


def work(read):
    """(FLOPs, vector FLOPs, bytes) of the calls of a recorded trace by their name and the shapes that a profile has."""
    costs = {}
    for name, op in zip(read.names(), read.counted().ops, strict=True):
        cost = op.costed.cost
        costs.setdefault((name, op.costed.shapes), set()).add((cost.flops, cost.vector_flops, cost.bytes))
    return costs


def test_normalisation_of_a_recorded_trace_by_closed_forms(recorded):
    """fp32 [8,16,32,32]: TraceLens' table (53a13fd) has these bytes within 0.1 %, but for what a comment says."""
    n = 8 * 16 * 32 * 32
    calls = work(Read(recorded("mi300x_norms.json.gz")))
    moved = {call: {moved for _, _, moved in costs} for call, costs in calls.items()}
    x = "[8,16,32,32]"
    layer, weights = 16 * 32 * 32, 16
    # x, weight and bias; out, mean and 1 / deviation of 8 samples. There 22 % more: four tensors of the weight's.
    assert moved["aten::native_layer_norm", f"{x} x [16,32,32] x [16,32,32]"] == {4 * (2 * n + 2 * layer + 2 * 8)}
    assert moved["aten::native_layer_norm", x] == {4 * (2 * n + 2 * 8)}
    # dy, x, both statistics and the weight; three gradients. The bias is given and not used; there it is read.
    assert moved["aten::native_layer_norm_backward", f"{x} x {x} x [8,1,1,1] +3"] == {4 * (3 * n + 2 * 8 + 3 * layer)}
    assert moved["aten::native_layer_norm_backward", f"{x} x {x} x [8,1,1,1] +1"] == {4 * (3 * n + 2 * 8)}
    # dy and x, the weight and both saved statistics, not the running ones; three gradients. There one of x's size less.
    assert moved["aten::miopen_batch_norm_backward", f"{x} x {x} x [16] +4"] == {4 * (3 * n + 5 * weights)}
    assert moved["aten::native_group_norm", f"{x} x [16] x [16]"] == {4 * (2 * n + 2 * weights + 2 * 8 * 4)}
    # Square and add, times 1 / rms and the weight; eps once for each of 128 rows.
    norms = calls["aten::_fused_rms_norm", f"{x} x [32,32]"]
    assert norms == {(0, 4 * n + 128, 4 * (2 * n + 32 * 32 + 128))}


def test_matmuls_and_attention_of_a_recorded_trace_by_closed_forms(recorded):
    """Qwen 0.5B in bf16. TraceLens' tables (061493f) are equal, but add the bias to FLOPs and halve the attention."""
    calls = work(Read(recorded("mi300x_qwen_0.5b_infer.json.gz")))
    rows, hidden, width = 16 * 559, 1024, 2816
    for inner, columns in ((hidden, width), (width, hidden), (hidden, hidden)):
        moved = 2 * (rows * inner + inner * columns + rows * columns)
        assert calls["aten::mm", f"[{rows},{inner}] x [{inner},{columns}]"] == {(2 * rows * inner * columns, 0, moved)}
    moved = 2 * (2 * rows * hidden + hidden**2 + hidden)
    assert calls["aten::addmm", f"[{hidden}] x [{rows},{hidden}] x [{hidden},{hidden}]"] == {
        (2 * rows * hidden**2, rows * hidden, moved)
    }
    heads, length = "[16,16,559,64]", 559
    ((flops, _, moved),) = calls["aten::_scaled_dot_product_flash_attention", f"{heads} x {heads} x {heads}"]
    assert flops == 4 * 16 * 16 * length**2 * 64
    # And a log-sum-exp per row and head, and three integers of the random generator, none of which the table has.
    assert moved == 2 * 4 * rows * hidden + 4 * rows * 16 + 3 * 8


@pytest.mark.parametrize("name", ["a100_recsys_train.json.gz", "v100_recsys_train.json.gz"])
def test_of_2022_only_ops_whose_type_is_known_are_counted(recorded, name):
    """The types of casts and of new tensors were not recorded; what the copies and fills inside them write was."""
    read = read_once(recorded(name))
    unit = set(nesting.outermost(read.nodes.parent, read.nodes.is_op).tolist()) - {-1}
    makers = {"aten::_to_copy", "aten::zeros_like", "aten::ones_like", "aten::full", "aten::scalar_tensor"}
    found = Counter()
    for row in unit:
        if read.nodes.names[row] in makers:
            types = read.nodes.events.arguments(row)["Input type"]
            found[read.nodes.names[row], types[2 if read.nodes.names[row].endswith("full") else 1]] += 1
    assert not {key: number for key, number in found.items() if key[1] == "Scalar"}
    if name.startswith("v100"):  # zeros of int32 like 15 million of int64
        written = {
            read.costs.cost(read.nodes.call(row)).cost.bytes_written
            for row in unit
            if read.nodes.names[row] == "aten::zero_" and read.nodes.call(row).inputs[0].shape == (15367496,)
        }
        assert written == {4 * 15367496}


@pytest.mark.parametrize(
    ("name", "share"),
    # [of the summed device time] Reference figures of the traces: 0.59 and 0.74 hundredths stay unknown.
    [("a100_recsys_train.json.gz", 0.0065), ("v100_recsys_train.json.gz", 0.0080)],
)
def test_concatenations_of_2022(recorded, name, share):
    read = read_once(recorded(name))
    unit = np.append(nesting.outermost(read.nodes.parent, read.nodes.is_op), -1)[read.links.op]
    lost = 0
    for row, node in enumerate(unit.tolist()):
        if (
            node >= 0
            and read.nodes.names[node] == "aten::cat"
            and read.costs.cost(read.nodes.call(node)).cost.bytes is None
        ):
            lost += int(read.trace.device.duration[row])
    assert 0 < lost / read.trace.device.duration.sum() < share


def nested(make_kineto, depth):
    """Ops of unknown cost that lie in each other, all of the same times; the innermost launches a kernel."""
    made = make_kineto.Trace()
    for _ in range(depth):
        made.op("aten::fold", 0, 30, X)
    made.launch("fold", 10, 40, 50)
    return made


def test_ops_of_equal_times_are_looked_at_once_each(make_kineto, monkeypatch):
    """However deep they lie in each other, without torch, which might know them: linear work."""
    rounds = Counter()

    def counting(name, function, *arguments):
        rounds[name] += 1
        return function(*arguments)

    for name in ("outermost", "nearest", "depths"):
        monkeypatch.setattr(nesting, name, partial(counting, name, getattr(nesting, name)))
    taken = []
    for depth in (10, 200):
        rounds.clear()
        costs = import_costs.Costs(torch=False)
        read = Read(nested(make_kineto, depth), costs)
        assert read.nodes.is_op.sum() == 1, "the innermost one"
        assert len(costs._by_call) < depth
        taken.append(dict(rounds))
    assert taken[0] == taken[1]


def test_calls_lie_in_each_other_deeper_than_python_calls_functions(make_kineto):
    """On a CPU an op of unknown cost is asked for the work of those inside it."""
    made, deep = make_kineto.Trace(), sys.getrecursionlimit() + 1
    for _ in range(deep):
        made.op("aten::fold", 0, 30, X)
    read = Read(made, import_costs.Costs(torch=False))
    assert len(read.nodes) == deep
    assert read.names() == ("aten::fold",)
    assert set(read.counted().unknown) == {"aten::fold"}
