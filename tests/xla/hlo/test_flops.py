"""FLOPs and functions of every instruction against XLA's own analysis of it, and against counting on the fingers."""

from __future__ import annotations

import itertools
from math import ceil, log2, prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.costs import formulas
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.flops import computation_work, updates, work
from roofline.xla.hlo.opcodes import CHOICES
from roofline.xla.hlo.schedule import contractions, schedule

jax = pytest.importorskip("jax")
import hlo_oracle
import hlo_programs

#: In one process, which compiles the programs once.
pytestmark = pytest.mark.xdist_group("hlo programs")

PROGRAMS = [
    *("mlp", "mlp train", "mlp train, donated", "transformer", "transformer train", "convolutions"),
    *("convolutions train", "scan", "scan train", "dynamic loop", "conditional", "sort, gather, scatter"),
    *("softmax and norm", "softmax and norm train", "outer product", "cache update", "cache update, donated"),
    *("functions", "integers", "random"),
]


def test_all_programs_are_tested():
    assert set(PROGRAMS) == set(hlo_programs.programs())


def read(name):
    return hlo.read(hlo_programs.programs()[name].proto, name)


def units(module):
    """Distinct units that work themselves."""
    return list(dict.fromkeys(unit.instruction for unit in schedule(module) if not unit.control))


def uncounted(instruction) -> float:
    """What XLA counts as FLOPs and we do not: compares, selects, casts, clamps, roundings and sorts."""
    outputs = sum(shape.elements for _, shape in instruction.shape.leaves()[:1])
    bodies = [sum(map(uncounted, computation.instructions)) for computation in instruction.called]
    window = prod(dimension.size for dimension in instruction.message.window.dimensions)
    match instruction.opcode:
        case opcode if opcode in CHOICES or opcode == "bitcast-convert":
            return outputs
        case "sort":
            elements = instruction.operands[0].shape.elements
            return elements * ceil(log2(elements))
        case "fusion" | "async-start":
            return bodies[0]
        case "map":
            return bodies[0] * outputs
        case "reduce":
            return bodies[0] * (instruction.operands[0].shape.elements - outputs)
        case "reduce-window":
            return bodies[0] * (window - 1) * outputs
        case "select-and-scatter":
            return instruction.operands[1].shape.elements * (bodies[0] * (window - 1) + bodies[1])
        case "scatter":
            return bodies[0] * updates(instruction)[0].shape.elements
    return 0.0


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_instruction_against_xla(name):
    module = read(name)
    homes = {i.name: computation.name for computation in module.computations for i in computation.instructions}
    instructions = units(module)
    theirs = hlo_oracle.analyses(hlo_programs.programs()[name].module, {homes[i.name] for i in instructions})
    for instruction in instructions:
        ours, xla = work(module, instruction), theirs[instruction.name]
        if instruction.opcode == "custom-call":
            assert ours.quality != "unknown", instruction.custom_call_target  # XLA knows nothing of these
            continue
        assert ours.quality == "exact", (instruction.name, ours.note)
        figure = xla.get("flops", 0.0) - uncounted(instruction)
        assert ours.flops + ours.vector_flops + ours.int_ops == figure, instruction.name
        drawn = ours.functions.get("random", 0.0)
        assert sum(ours.functions.values()) - drawn == xla.get("transcendentals", 0.0) - drawn, instruction.name
        # XLA has one figure for matrix and vector work: a product alone is all of it.
        if instruction.opcode in ("dot", "convolution"):
            assert ours.flops == xla["flops"], instruction.name
    assert theirs.keys() >= {i.name for i in instructions}


def total(name):
    """Of a program without loops: matrix FLOPs of all units."""
    module = read(name)
    return sum(work(module, instruction).flops for instruction in units(module))


def test_products_of_a_transformer_in_closed_form():
    forward = hlo_programs.transformer_flops(2, 12)
    assert total("transformer") == forward
    assert total("transformer train") == 3 * forward
    # MLP: 4x16 by 16x32, and by 32x8; backward has the weights' products, and that for the hidden layer's input
    first, second = 2 * 4 * 16 * 32, 2 * 4 * 32 * 8
    assert total("mlp") == first + second
    assert total("mlp train") == (first + second) + (first + second) + second


def test_before_optimisation_the_products_are_the_same():
    arguments = (hlo_programs.transformer_parameters(), *[hlo_programs._ids(2, 12)] * 2)
    module = hlo.read(hlo_programs.lowered_proto(hlo_programs.jax.grad(hlo_programs.transformer_loss), *arguments))
    found = [each for unit in schedule(module) if not unit.control for each in contractions(module, unit.instruction)]
    assert sum(flops for _, flops in found) == 3 * hlo_programs.transformer_flops(2, 12)
    assert len(found) == 2 * 6 * 3 + 3  # 6 products per layer and the head, with two gradients each
    assert sum("transpose(jvp(attention))" in name for name, _ in found) == 2 * 4 * 2
    assert computation_work(module, module.entry).flops == sum(flops for _, flops in found)


def test_a_loop_counts_every_trip():
    module = read("scan")
    (loop,) = [unit.instruction for unit in schedule(module) if unit.control]
    products = [flops for unit in schedule(module) for _, flops in contractions(module, unit.instruction) if unit.path]
    assert products == [2 * 16 * 16 * 16]  # the body, once
    if loop.opcode == "while":
        assert work(module, loop).flops == 10 * 2 * 16 * 16 * 16


def test_a_dynamic_loop_is_unknown_before_it_runs():
    module = read("dynamic loop")
    loops = [unit.instruction for unit in schedule(module) if unit.instruction.opcode == "while"]
    assert loops
    for loop in loops:
        cost = work(module, loop)
        assert cost.flops is None
        assert "trips" in cost.note


def test_branches_that_differ_are_unknown_until_one_ran():
    module = read("conditional")
    (branching,) = [unit.instruction for unit in schedule(module) if unit.instruction.opcode == "conditional"]
    assert work(module, branching).flops is None
    inside = {unit.branches: 0.0 for unit in schedule(module) if unit.path}
    for unit in schedule(module):
        if unit.path:
            inside[unit.branches] += work(module, unit.instruction).flops
    assert sorted(inside.values()) == [0.0, 2 * 2 * 16**3]


# ---------------------------------------------------------------------------------- against brute force

sizes = st.integers(1, 6)


@settings(max_examples=60)
@given(st.data())
def test_a_convolution_against_counting(data):
    """Every (output, tap) pair that meets an element of the input, walked one by one."""
    spatial = data.draw(st.integers(1, 2))
    groups = data.draw(st.integers(1, 3))
    kind = data.draw(st.sampled_from(["feature", "batch"]))
    dims = [
        {name: data.draw(st.integers(low, high)) for name, low, high in
         (("size", 1, 6), ("kernel", 1, 4), ("stride", 1, 3), ("low", -1, 3), ("high", -1, 3), ("dilation", 1, 3),
          ("base", 1, 3))}
        for _ in range(spatial)
    ]  # fmt: skip
    for d in dims:
        spread = (d["size"] - 1) * d["base"] + 1 + d["low"] + d["high"]
        d["out"] = (spread - ((d["kernel"] - 1) * d["dilation"] + 1)) // d["stride"] + 1
        if spread < 1 or d["out"] < 1:
            return
    batch, per_group, out_per_group = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    letters = "01"[:spatial]
    in_dims = [batch * (groups if kind == "batch" else 1), per_group * (groups if kind == "feature" else 1)]
    out_dims = [batch, out_per_group * groups]

    def array(first):
        return ",".join(map(str, first))

    def window(name, *keys):
        return f"{name}=" + "x".join("_".join(str(d[key]) for key in keys) for d in dims)

    text = f"""HloModule m
ENTRY e {{
  x = f32[{array([*in_dims, *(d["size"] for d in dims)])}] parameter(0)
  w = f32[{array([out_dims[1], per_group, *(d["kernel"] for d in dims)])}] parameter(1)
  ROOT c = f32[{array([*out_dims, *(d["out"] for d in dims)])}] convolution(x, w), window={{{
        " ".join(
            (
                window("size", "kernel"),
                window("stride", "stride"),
                window("pad", "low", "high"),
                window("rhs_dilate", "dilation"),
                window("lhs_dilate", "base"),
            )
        )
    }}}, dim_labels=bf{letters}_oi{letters}->bf{letters}, {kind}_group_count={groups}
}}"""
    module = hlo.read(hlo_oracle.proto(text))
    pairs = 1
    for d in dims:
        places = (o * d["stride"] - d["low"] + k * d["dilation"] for o in range(d["out"]) for k in range(d["kernel"]))
        pairs *= sum(p % d["base"] == 0 and 0 <= p // d["base"] < d["size"] for p in places)
    assert work(module, module.entry.root).flops == 2 * batch * per_group * out_dims[1] * pairs


@settings(max_examples=60)
@given(st.data())
def test_a_dot_against_counting(data):
    """Every index of the sum: one multiply-add per (batch, left free, right free, contracted) tuple."""
    names = {name: data.draw(st.lists(sizes, max_size=2)) for name in ("batch", "left", "right", "sum")}
    left_order = data.draw(st.permutations([*[("batch", i) for i in range(len(names["batch"]))],
                                            *[("left", i) for i in range(len(names["left"]))],
                                            *[("sum", i) for i in range(len(names["sum"]))]]))  # fmt: skip
    right_order = data.draw(st.permutations([*[("batch", i) for i in range(len(names["batch"]))],
                                             *[("right", i) for i in range(len(names["right"]))],
                                             *[("sum", i) for i in range(len(names["sum"]))]]))  # fmt: skip

    def dims(order):
        return ",".join(str(names[name][i]) for name, i in order)

    def places(order, name):
        return ",".join(str(order.index((name, i))) for i in range(len(names[name])))

    free = [("left", i) for _, i in sorted((left_order.index(("left", i)), i) for i in range(len(names["left"])))]
    other = [("right", i) for _, i in sorted((right_order.index(("right", i)), i) for i in range(len(names["right"])))]
    result = [*[("batch", i) for i in range(len(names["batch"]))], *free, *other]
    text = f"""HloModule m
ENTRY e {{
  x = bf16[{dims(left_order)}] parameter(0)
  y = bf16[{dims(right_order)}] parameter(1)
  ROOT d = f32[{dims(result)}] dot(x, y), lhs_batch_dims={{{places(left_order, "batch")}}},
    rhs_batch_dims={{{places(right_order, "batch")}}}, lhs_contracting_dims={{{places(left_order, "sum")}}},
    rhs_contracting_dims={{{places(right_order, "sum")}}}
}}"""
    module = hlo.read(hlo_oracle.proto(text))
    indices = itertools.product(*[range(size) for sizes_ in names.values() for size in sizes_])
    assert work(module, module.entry.root).flops == 2 * sum(1 for _ in indices)


@settings(max_examples=300)
@given(*[st.integers(low, high) for low, high in ((1, 9), (1, 6), (1, 6), (-4, 7), (1, 5), (1, 9), (1, 6))])
def test_taps_of_a_spread_out_input(size, kernel, stride, padding, dilation, outputs, base):
    places = [o * stride - padding + tap * dilation for o in range(outputs) for tap in range(kernel)]
    brute = sum(place % base == 0 and 0 <= place // base < size for place in places)
    assert formulas.dilated_taps(size, kernel, stride, padding, dilation, outputs, base) == brute


# ---------------------------------------------------------------------------------- single rules


def cost_of(body, *parameters, computations=""):
    """The work of one instruction, given as text."""
    lines = "\n".join(f"  p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters))
    module = hlo.read(hlo_oracle.proto(f"HloModule m\n{computations}\nENTRY e {{\n{lines}\n  ROOT r = {body}\n}}"))
    return work(module, module.entry.root)


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }"


@pytest.mark.parametrize(
    ("body", "parameters", "expected"),
    [
        ("f32[8,4] add(p0, p1)", ["f32[8,4]"] * 2, {"vector_flops": 32}),
        ("s32[8,4] add(p0, p1)", ["s32[8,4]"] * 2, {"int_ops": 32}),
        pytest.param(
            *("s32[8,4] mulhi(p0, p1)", ["s32[8,4]"] * 2, {"int_ops": 32}),
            marks=pytest.mark.skipif(jax.__version_info__ < (0, 10, 1), reason="jaxlib 0.10.0 has no such opcode"),
        ),
        ("pred[8] and(p0, p1)", ["pred[8]"] * 2, {"int_ops": 8}),
        ("f32[8] clamp(p0, p1, p2)", ["f32[8]"] * 3, {}),
        ("pred[8] compare(p0, p1), direction=LT", ["f32[8]"] * 2, {}),
        ("bf16[8] convert(p0)", ["f32[8]"], {}),
        ("f32[8] floor(p0)", ["f32[8]"], {}),
        ("f32[8] exponential(p0)", ["f32[8]"], {"functions": {"exp": 8}}),
        ("f32[8] logistic(p0)", ["f32[8]"], {"functions": {"sigmoid": 8}}),
        ("f32[8] log-plus-one(p0)", ["f32[8]"], {"functions": {"log1p": 8}}),
        ("f32[8] erf(p0)", ["f32[8]"], {"functions": {"erf": 8}}),
        ("f32[8] power(p0, p1)", ["f32[8]"] * 2, {"functions": {"pow": 8}}),
        ("f32[8] rng(p0, p1), distribution=rng_uniform", ["f32[]"] * 2, {"functions": {"random": 8}}),
        (
            "(u64[2], u32[3,5]) rng-bit-generator(p0), algorithm=rng_default",
            ["u64[2]"],
            {"functions": {"random": 15}},
        ),
        # summing 8 rows of 4 takes 3 additions each
        ("f32[8] reduce(p0, p1), dimensions={1}, to_apply=add", ["f32[8,4]", "f32[]"], {"vector_flops": 24}),
        # int8 products are matrix work as well
        ("s32[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", ["s8[4,6]", "s8[6,5]"],
         {"flops": 240}),
        # each device keeps 8 sums
        ("f32[8] all-reduce(p0), to_apply=add, replica_groups={{0,1}}", ["f32[8]"], {"vector_flops": 8}),
        ("f32[16] all-gather(p0), dimensions={0}, replica_groups={{0,1}}", ["f32[8]"], {}),
    ],
)  # fmt: skip
def test_single_instructions(body, parameters, expected):
    cost = cost_of(body, *parameters, computations=ADD if "to_apply" in body else "")
    assert cost.quality == "exact"
    for name in ("flops", "vector_flops", "int_ops", "functions"):
        assert getattr(cost, name) == expected.get(name, {} if name == "functions" else 0), name


def test_a_complex_product_counts_as_one_and_says_so():
    body = "c64[4,5] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    cost = cost_of(body, "c64[4,6]", "c64[6,5]")
    assert cost.flops == 240
    assert cost.quality == "assumed"


@pytest.mark.parametrize(
    ("body", "parameters", "named"),
    [
        ('f32[4] custom-call(p0), custom_call_target="lapack_ssyevd_ffi"', ["f32[4,4]"], "lapack_ssyevd_ffi"),
        ('f32[8] custom-call(p0), custom_call_target="my_kernel"', ["f32[8]"], "my_kernel"),
    ],
)
def test_what_has_no_rule_is_unknown_and_named(body, parameters, named):
    cost = cost_of(body, *parameters)
    assert cost.quality == "unknown"
    assert cost.flops is None
    assert cost.vector_flops is None
    assert named in cost.note


def test_a_fusion_with_something_unknown_is_unknown():
    call = 'custom-call(a), custom_call_target="my_kernel"'
    computation = f"f {{ a = f32[4,4] parameter(0)\n b = f32[4,4] {call}\n ROOT c = f32[4,4] add(b, b) }}"
    cost = cost_of("f32[4,4] fusion(p0), kind=kLoop, calls=f", "f32[4,4]", computations=computation)
    assert cost.flops is None
    assert "my_kernel" in cost.note


@pytest.mark.parametrize(
    ("body", "parameter", "flops"),
    [
        # 5 N log2 N for each of 6 transforms of 16 points, of 256 in two dimensions; half of that for real ones.
        ("c64[6,16] fft(p0), fft_type=FFT, fft_length={16}", "c64[6,16]", 5 * 16 * 4 * 6),
        ("c64[6,16,16] fft(p0), fft_type=IFFT, fft_length={16,16}", "c64[6,16,16]", 5 * 256 * 8 * 6),
        ("c64[6,9] fft(p0), fft_type=RFFT, fft_length={16}", "f32[6,16]", 2.5 * 16 * 4 * 6),
        ("f32[6,16] fft(p0), fft_type=IRFFT, fft_length={16}", "c64[6,9]", 2.5 * 16 * 4 * 6),
    ],
)
def test_fourier_transforms_are_counted_by_convention(body, parameter, flops):
    cost = cost_of(body, parameter)
    assert (cost.vector_flops, cost.flops, cost.quality) == (flops, 0, "assumed")
    assert "convention" in cost.note
