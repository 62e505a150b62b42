"""Reading modules, damaged ones too; loops, schedules and scopes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import InputError
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo import schedule as hlo_schedule
from roofline.xla.hlo.cost import cost
from roofline.xla.hlo.flops import work
from roofline.xla.hlo.loops import trips
from roofline.xla.hlo.proto import HloModuleProto, HloProto
from roofline.xla.hlo.schedule import joined, schedule

pytest.importorskip("jax")
import hlo_oracle
import hlo_programs

#: In one process, which compiles the programs once.
pytestmark = pytest.mark.xdist_group("hlo programs")

SMALL = """HloModule small
ENTRY e {
  p = f32[2,3]{1,0} parameter(0)
  q = (bf16[3,4], s4[7], token[]) parameter(1)
  w = bf16[3,4] get-tuple-element(q), index=0
  c = f32[3,4] convert(w)
  ROOT d = f32[2,4] dot(p, c), lhs_contracting_dims={1}, rhs_contracting_dims={0},
    metadata={op_name="jit(f)/dot" op_type="MatMul"}
}"""


@pytest.fixture(scope="module")
def small() -> bytes:
    return hlo_oracle.proto(SMALL)


def message(data):
    return HloModuleProto.FromString(data)


def test_a_bare_module_and_one_with_buffers_read_the_same(small):
    whole = HloProto()
    whole.hlo_module.ParseFromString(small)
    for data in (small, whole.SerializeToString()):
        module = hlo.read(data)
        assert module.name == "small"
        assert [i.opcode for i in module.entry.instructions] == [
            *("parameter", "parameter", "get-tuple-element", "convert", "dot")
        ]
        root = module.entry.root
        assert (root.op_name, root.op_type) == ("jit(f)/dot", "MatMul")
        assert root.operands == (module.instructions["p"], module.instructions["c"])
        assert module.slots == {}


def test_shapes(small):
    module = hlo.read(small)
    state = module.entry.parameters[1].shape
    assert [(index, s.dtype, s.dims, s.elements, s.bytes) for index, s in state.leaves()] == [
        ((0,), "bf16", (3, 4), 12, 24),
        ((1,), "int4", (7,), 7, 4),
        ((2,), "token", (), 0, 0),
    ]
    assert (state.dtype, state.bytes, state.at((0,)).floating, state.at((1,)).floating) == ("tuple", 28, True, False)
    assert module.entry.parameters[0].shape == hlo.Shape("fp32", (2, 3), (), 32)


def test_a_type_that_is_newer_than_this_reader_has_a_name_and_no_size(small):
    proto = message(small)
    proto.computations[0].instructions[0].shape.element_type = 99
    shape = hlo.read(proto.SerializeToString()).entry.parameters[0].shape
    assert (shape.dtype, shape.bytes) == ("type 99", 0)


@pytest.mark.parametrize("data", [b"", b"\0", b"no protobuf at all", b"\x0a\x03abc", b'{"traceEvents": []}'])
def test_what_is_no_module(data):
    with pytest.raises(InputError, match=r"f\.pb is no HLO module"):
        hlo.read(data, "f.pb")


def test_a_module_cut_anywhere_is_refused_or_whole(small):
    """protobuf finds most cuts; a cut between messages leaves a module without its end."""
    for end in range(0, len(small), 3):
        try:
            module = hlo.read(small[:end])
        except InputError:
            continue
        assert module.entry.root.name == "d"  # cut behind what is read


def spoil(small, how):
    proto = message(small)
    computation = proto.computations[0]
    by_name = {i.name: i for i in computation.instructions}
    match how:
        case "dangling operand":
            by_name["d"].operand_ids[0] = 12345
        case "dangling computation":
            by_name["d"].called_computation_ids.append(12345)
        case "cycle":
            by_name["c"].operand_ids[0] = by_name["d"].id
        case "own computation":
            by_name["d"].called_computation_ids.append(computation.id)
        case "no root":
            computation.root_id = 12345
        case "no entry":
            proto.entry_computation_id, proto.entry_computation_name = 12345, "gone"
        case "negative size":
            by_name["p"].shape.dimensions[0] = -1
        case "huge":
            by_name["p"].shape.dimensions[:] = [2**62, 2**62]
        case "deep":
            for level in range(1, 150):
                other = proto.computations.add(name=f"c{level}", id=1000 + level, root_id=1)
                inner = other.instructions.add(name=f"i{level}", opcode="fusion", id=1)
                if level < 149:
                    inner.called_computation_ids.append(1001 + level)
    return proto.SerializeToString()


@pytest.mark.parametrize(
    "how",
    [
        *("dangling operand", "dangling computation", "cycle", "own computation", "no root", "no entry"),
        *("negative size", "huge", "deep"),
    ],
)
def test_damage_is_one_sentence(small, how):
    with pytest.raises(InputError) as caught:
        hlo.read(spoil(small, how), "m.hlo.pb")
    assert str(caught.value).startswith("m.hlo.pb is a damaged HLO module, ")
    assert str(caught.value).count(".") == 3  # the name's two and the sentence's


FORMS = """HloModule forms
ENTRY e {
  p = f32[2,3]{1,0} parameter(0)
  k = f32[3,3,1,4] parameter(1)
  image = f32[1,8,8,1] parameter(2)
  zero = f32[] constant(0)
  padded = f32[4,6] pad(p, zero), padding=1_1x1_2
  part = f32[2,3] slice(padded), slice={[1:3], [1:4]}
  turned = f32[3,2] transpose(part), dimensions={1,0}
  two = f32[6,2] concatenate(turned, turned), dimensions={0}
  at = s32[6,2] iota(), iota_dimension=1
  one = s32[] constant(1)
  ones = s32[6,2] broadcast(one), dimensions={}
  is_one = pred[6,2] compare(at, ones), direction=EQ
  chosen = f32[6,2] select(is_one, two, two)
  sum = f32[6,2] add(chosen, two)
  product = f32[6,3] dot(sum, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  filtered = f32[1,6,6,4] convolution(image, k), window={size=3x3}, dim_labels=b01f_01io->b01f
  ROOT r = (f32[6,3], f32[1,6,6,4]) tuple(product, filtered)
}"""


def misfit(name, how):
    """The module above with one instruction changed to a form that XLA's verifier refuses."""
    proto = message(hlo_oracle.proto(FORMS))
    by_name = {instruction.name: instruction for instruction in proto.computations[0].instructions}
    how(by_name[name])
    return hlo.read(proto.SerializeToString())


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("padded", lambda pad: pad.padding_config.dimensions.pop()),
        ("part", lambda part: part.slice_dimensions.pop()),
        ("turned", lambda turned: turned.dimensions.__setitem__(0, 0)),
        ("at", lambda at: at.dimensions.pop()),
        ("ones", lambda ones: ones.dimensions.append(0)),
        ("is_one", lambda compare: compare.operand_ids.append(compare.operand_ids[0])),
        ("chosen", lambda select: select.operand_ids.pop()),
        ("sum", lambda add: add.operand_ids.append(add.operand_ids[0])),
        ("product", lambda dot: dot.dot_dimension_numbers.lhs_contracting_dimensions.__setitem__(0, 5)),
        ("product", lambda dot: dot.dot_dimension_numbers.rhs_contracting_dimensions.pop()),
        ("filtered", lambda made: made.window.dimensions.pop()),
        ("filtered", lambda made: setattr(made.convolution_dimension_numbers, "kernel_output_feature_dimension", -1)),
    ],
)
def test_an_instruction_whose_attributes_do_not_fit_its_arrays_is_unknown(name, how):
    """It alone: the product is one of 6 x 2 by 2 x 3 all the same."""
    module = misfit(name, how)
    instruction = module.instructions[name]
    assert work(module, instruction).quality == "unknown"
    assert all(cost(module, unit.instruction) for unit in schedule(module))
    assert work(module, module.instructions["product"]).flops == (None if name == "product" else 2 * 6 * 2 * 3)
    assert {other for other, one in module.instructions.items() if work(module, one).quality == "unknown"} == {name}


@settings(max_examples=100)
@given(st.data())
def test_flipped_bytes_are_refused_or_costed(data):
    """Whatever a byte becomes: an error that is told, or a module whose units have costs, known or not."""
    original = bytearray(hlo_oracle.proto(data.draw(st.sampled_from((SMALL, FORMS)))))
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    try:
        module = hlo.read(bytes(original))
        units = schedule(module)
    except InputError:
        return
    for unit in units:
        assert cost(module, unit.instruction)[0].cost.quality in ("exact", "assumed", "unknown")


def test_a_chain_of_many_instructions_is_no_recursion():
    proto = HloModuleProto(name="long", entry_computation_id=1)
    computation = proto.computations.add(name="e", id=1, root_id=20_000)
    for number in range(1, 20_001):
        each = computation.instructions.add(
            name=f"i{number}", id=number, opcode="bitcast" if number > 1 else "parameter"
        )
        each.shape.element_type = 11
        if number > 1:
            each.operand_ids.append(number - 1)
    module = hlo.read(proto.SerializeToString())
    assert len(module.entry.instructions) == 20_000
    assert schedule(module) == ()


def test_calls_that_multiply_are_bounded(monkeypatch):
    monkeypatch.setattr(hlo_schedule, "MAX_UNITS", 1000)
    proto = HloModuleProto(name="many", entry_computation_id=30)
    for level in range(1, 31):
        computation = proto.computations.add(name=f"c{level}", id=level, root_id=1)
        for number in (1, 2):
            opcode = "call" if level > 1 else "rng"
            each = computation.instructions.add(name=f"c{level}.{number}", id=number, opcode=opcode)
            each.shape.element_type = 11
            if level > 1:
                each.called_computation_ids.append(level - 1)
    with pytest.raises(InputError, match="more than 1000 instructions"):
        schedule(hlo.read(proto.SerializeToString()))


# ------------------------------------------------------------------------------------------ loops


LOOP = """HloModule loop
body {{ s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  step = s32[] constant({step})
  next = s32[] {update}
  y = f32[8] add(x, x)
  ROOT t = (s32[], f32[8]) tuple(next, y) }}
condition {{ u = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  limit = s32[] constant({limit})
  ROOT r = pred[] compare({compared}), direction={direction} }}
ENTRY e {{
  start = s32[] constant({start})
  p = f32[8] parameter(0)
  z = (s32[], f32[8]) tuple(start, p)
  ROOT w = (s32[], f32[8]) while(z), condition=condition, body=body
}}"""


@pytest.mark.parametrize("start", [-3, 0, 7])
@pytest.mark.parametrize("limit", [-2, 0, 20])
@pytest.mark.parametrize("step", [-3, 1, 2, 3])
@pytest.mark.parametrize("direction", ["LT", "LE", "GT", "GE", "NE"])
@pytest.mark.parametrize("swapped", [False, True])
def test_trips_against_running_the_loop(start, limit, step, direction, swapped):
    text = LOOP.format(
        start=start, limit=limit, step=step, direction=direction, update="add(i, step)",
        compared="limit, j" if swapped else "j, limit",
    )  # fmt: skip
    module = hlo.read(hlo_oracle.proto(text))
    holds = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__}[direction]
    counter, number = start, 0
    while (holds(limit, counter) if swapped else holds(counter, limit)) and number < 100:
        counter, number = counter + step, number + 1
    expected = number if number < 100 else None  # a loop that runs until it overflows is none that we know
    assert trips(module, module.entry.root) == expected
    if expected is not None:
        assert work(module, module.entry.root).vector_flops == 8 * expected
        assert work(module, module.entry.root).int_ops == expected


def test_trips_of_a_loop_that_counts_down():
    text = LOOP.format(start=20, limit=2, step=3, direction="GT", update="subtract(i, step)", compared="j, limit")
    module = hlo.read(hlo_oracle.proto(text))
    assert trips(module, module.entry.root) == 6  # 20 17 14 11 8 5


#: As TensorFlow writes a loop of at most so many trips: two counters, a limit that is handed on, and calls around both.
SEVERAL = """HloModule loop
asked {{ s = (s32[], s32[], s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  j = s32[] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  limit = s32[] constant(19)
  one = pred[] compare(i, limit), direction=LT
  other = pred[] compare(j, n), direction=LT
  both = pred[] {both}
  ROOT out = (pred[]) tuple(both) }}
condition {{ t = (s32[], s32[], s32[], f32[8]) parameter(0)
  c = (pred[]) call(t), to_apply=asked
  ROOT r = pred[] get-tuple-element(c), index=0 }}
body {{ u = (s32[], s32[], s32[], f32[8]) parameter(0)
  k = s32[] get-tuple-element(u), index=0
  l = s32[] get-tuple-element(u), index=1
  m = s32[] get-tuple-element(u), index=2
  x = f32[8] get-tuple-element(u), index=3
  step = s32[] constant(1)
  k2 = s32[] add(step, k)
  l2 = s32[] add(l, step)
  y = f32[8] add(x, x)
  ROOT v = (s32[], s32[], s32[], f32[8]) tuple(k2, l2, {handed_on}, y) }}
run {{ a = (s32[], s32[], s32[], f32[8]) parameter(0)
  ROOT w = (s32[], s32[], s32[], f32[8]) while(a), condition=condition, body=body }}
ENTRY e {{
  zero = s32[] constant(0)
  given = s32[] {given}
  p = f32[8] parameter(0)
  z = (s32[], s32[], s32[], f32[8]) tuple(zero, zero, given, p)
  ROOT q = (s32[], s32[], s32[], f32[8]) call(z), to_apply=run
}}"""


@pytest.mark.parametrize(
    ("both", "handed_on", "given", "expected"),
    [
        ("and(one, other)", "m", "constant(7)", 7),
        ("and(one, other)", "m", "constant(30)", 19),
        ("and(one, one)", "m", "constant(7)", 19),
        ("and(one, other)", "k2", "constant(7)", None),  # a limit that moves
        ("or(one, other)", "m", "constant(7)", None),
        ("and(one, other)", "m", "parameter(1)", None),  # whichever ends first is data
    ],
)
def test_trips_of_a_loop_that_asks_for_several_things_at_once(both, handed_on, given, expected):
    module = hlo.read(hlo_oracle.proto(SEVERAL.format(both=both, handed_on=handed_on, given=given)))
    (loop,) = [each for each in module.instructions.values() if each.opcode == "while"]
    assert trips(module, loop) == expected
    assert work(module, module.entry.root).vector_flops == (None if expected is None else 8 * expected)


def test_trips_that_depend_on_data_are_unknown():
    text = LOOP.format(start=0, limit=9, step=1, direction="LT", update="multiply(i, i)", compared="j, limit")
    module = hlo.read(hlo_oracle.proto(text))
    assert trips(module, module.entry.root) is None


@pytest.mark.parametrize(("name", "expected"), [("scan", 10), ("dynamic loop", None)])
def test_trips_of_compiled_loops(name, expected):
    module = hlo.read(hlo_programs.programs()[name].proto)
    (loop,) = [unit.instruction for unit in schedule(module) if unit.instruction.opcode == "while"]
    assert trips(module, loop) == expected


# ------------------------------------------------------------------------------------------ schedule


def test_units_of_a_loop_follow_it_and_name_it():
    text = LOOP.format(start=0, limit=9, step=1, direction="LT", update="add(i, step)", compared="j, limit")
    module = hlo.read(hlo_oracle.proto(text))
    loop = module.entry.root
    assert [(u.instruction.name, u.path, u.branches, u.control) for u in schedule(module)] == [
        ("w", (), (), True),
        ("next", (loop,), (0,), False),
        ("y", (loop,), (0,), False),
        ("r", (loop,), (1,), False),
    ]


def test_a_loop_as_one_kernel_reads_and_writes_its_state_once():
    text = LOOP.format(start=0, limit=9, step=1, direction="LT", update="add(i, step)", compared="j, limit")
    module = hlo.read(hlo_oracle.proto(text))
    found, _, _ = cost(module, module.entry.root)
    assert found.cost.vector_flops == 9 * 8
    # the counter, the array, and the constants of step and limit
    assert found.cost.bytes_read == 4 + 32 + 4 + 4


def test_scopes_of_called_functions():
    assert joined("jit(f)/jvp(jit(relu))", "max") == "jit(f)/jvp(jit(relu))/max"
    assert joined("jit(f)/while", "jit(f)/while/body/add") == "jit(f)/while/body/add"
    assert joined("jit(f)/call", "") == "jit(f)/call"
    assert joined("", "jit(f)/add") == "jit(f)/add"
    # TensorFlow's names are whole
    assert joined("model/dense/MatMul", "gradient_tape/model/dense/MatMul") == "gradient_tape/model/dense/MatMul"
    arguments = (hlo_programs.transformer_parameters(), *[hlo_programs._ids(2, 12)] * 2)
    module = hlo.read(hlo_programs.lowered_proto(hlo_programs.transformer_loss, *arguments))
    called = [unit.op_name for unit in schedule(module) if unit.path]
    assert called
    assert all(name.startswith("jit(transformer_loss)/") for name in called)
    assert any(name.endswith("jit(log_softmax)/reduce_max") for name in called)


def test_instructions_are_found_by_name():
    module = hlo.read(hlo_programs.programs()["transformer train"].proto)
    assert all(module.instructions[unit.instruction.name] is unit.instruction for unit in schedule(module))


def test_a_trace_of_a_gpu(recorded):
    """The modules in the metadata plane of a trace recorded on an MI300X, whose convolution is a library call."""
    xplane = pytest.importorskip("roofline.traces.xplane.reader")
    trace = xplane.read(recorded("mi300x_jax_conv.xplane.pb"))
    (data,) = [data for name, data in trace.modules.values() if name == "jit_forward_3d_conv"]
    module = hlo.read(data)
    (call,) = [u.instruction for u in schedule(module) if u.instruction.custom_call_target]
    # [1,16,32,60,104] by [5120,16,1,2,2], strides 1 2 2, padding 1: 32, 60 and 104 pairs along each dimension
    assert work(module, call).flops == 2 * 16 * 5120 * 32 * 60 * 104
    assert cost(module, call)[0].cost.bytes_written == 2 * 5120 * 34 * 31 * 53  # bf16, without the workspace
    assert all(cost(module, unit.instruction)[0].cost.quality == "exact" for unit in schedule(module))
