"""Traffic of every instruction against XLA's own figure, with the reasons where it differs, and by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.buffers import buffer, entry_buffers
from roofline.xla.hlo.bytes import accesses, updates_in_place
from roofline.xla.hlo.schedule import inside, schedule

pytest.importorskip("jax")
import hlo_oracle
import hlo_programs

#: In one process, which compiles the programs once.
pytestmark = pytest.mark.xdist_group("hlo programs")

#: Why a figure of ours may differ from XLA's, and how many instructions of the test programs each is about at most.
REASONS = {
    # HloCostAnalysis says -1 for custom calls.
    "XLA has no figure": 5,
    # Updates in place move their rows; of a scatter XLA counts the whole operand where it is fused.
    "in place": 20,
    # A slice or gather of a parameter, or of what is computed from it: XLA looks at a parameter's direct users, and at
    # gathers not at all.
    "only some elements": 40,
    # A parameter that several broadcasts use is counted once per broadcast.
    "read once": 10,
}


def read(name):
    return hlo.read(hlo_programs.programs()[name].proto, name)


def moved(module, instruction):
    """(bytes read, bytes written)."""
    found = accesses(module, instruction)
    return sum(size for _, size in found.reads), sum(size for _, size in found.writes)


def reason(module, instruction, ours, xla):
    opcodes = Counter(each.opcode for each in inside(instruction))
    if instruction.opcode == "custom-call":
        return "XLA has no figure"
    assert ours < xla, (instruction.name, ours, xla)  # never more than XLA counts
    if updates_in_place(module, instruction):
        return "in place"
    if opcodes.keys() & {"slice", "dynamic-slice", "gather", "pad"}:
        return "only some elements"
    if opcodes["broadcast"]:
        return "read once"
    raise AssertionError(f"{instruction.name}: {ours} bytes, XLA says {xla}")


@pytest.mark.slow
def test_traffic_is_xlas_or_differs_for_a_reason():
    reasons = Counter()
    equal = 0
    for name, program in hlo_programs.programs().items():
        module = read(name)
        homes = {i.name: computation.name for computation in module.computations for i in computation.instructions}
        instructions = dict.fromkeys(unit.instruction for unit in schedule(module) if not unit.control)
        theirs = hlo_oracle.analyses(program.module, {homes[i.name] for i in instructions})
        for instruction in instructions:
            ours, xla = sum(moved(module, instruction)), theirs[instruction.name].get("bytes accessed", 0.0)
            if ours == xla:
                equal += 1
            else:
                reasons[reason(module, instruction, ours, xla)] += 1
    assert reasons.keys() == REASONS.keys()
    assert all(number <= REASONS[name] for name, number in reasons.items()), reasons
    assert equal > 10 * sum(reasons.values()), (equal, reasons)


# ------------------------------------------------------------------------------------------ by hand


def text(body, *parameters, computations=""):
    lines = "\n".join(f"  p{number} = {shape} parameter({number})" for number, shape in enumerate(parameters))
    return hlo_oracle.proto(f"HloModule m\n{computations}\nENTRY e {{\n{lines}\n  ROOT r = {body}\n}}")


def traffic(body, *parameters, computations=""):
    module = hlo.read(text(body, *parameters, computations=computations))
    return moved(module, module.entry.root)


ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }"
SET = "set { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }"
SCATTER = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
GATHER = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"


@pytest.mark.parametrize(
    ("body", "parameters", "computations", "expected"),
    [
        ("f32[8,4] add(p0, p1)", ["f32[8,4]"] * 2, "", (256, 128)),
        ("f32[8,4] multiply(p0, p0)", ["f32[8,4]"], "", (128, 128)),  # a duplicate argument once
        ("f32[8,4] broadcast(p0), dimensions={1}", ["f32[4]"], "", (16, 128)),
        ("f32[8] iota(), iota_dimension=0", [], "", (0, 32)),
        ("f32[8,4] bitcast(p0)", ["f32[32]"], "", (0, 0)),
        ("f32[2,4] slice(p0), slice={[0:2],[0:4]}", ["f32[8,4]"], "", (32, 32)),
        ("f32[2,4] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,4}", ["f32[8,4]", "s32[]", "s32[]"], "",
         (32 + 8, 32)),
        # the operand stays where it is: only the rows are written, and nothing of it is read
        ("f32[8,4] dynamic-update-slice(p0, p1, p2, p3)", ["f32[8,4]", "f32[2,4]", "s32[]", "s32[]"], "",
         (32 + 8, 32)),
        # 3 rows of 8, 3 indices
        (f"f32[3,8] gather(p0, p1), {GATHER}", ["f32[20,8]", "s32[3,1]"], "", (96 + 12, 96)),
        # no more of a table than there is
        (f"f32[50,8] gather(p0, p1), {GATHER}", ["f32[20,8]", "s32[50,1]"], "", (640 + 200, 1600)),
        # what is added to is read, what is replaced is not
        (f"f32[20,8] scatter(p0, p1, p2), {SCATTER}, to_apply=add", ["f32[20,8]", "s32[3,1]", "f32[3,8]"], ADD,
         (96 + 12 + 96, 96)),
        (f"f32[20,8] scatter(p0, p1, p2), {SCATTER}, to_apply=set", ["f32[20,8]", "s32[3,1]", "f32[3,8]"], SET,
         (12 + 96, 96)),
        # a projection of which a third is used, through a reshape and a cast: 64 of 192 elements, in bf16
        ("f32[4,16] fusion(p0), kind=kLoop, calls=f", ["bf16[192]"],
         "f { a = bf16[192] parameter(0)\n b = bf16[4,48] bitcast(a)\n c = f32[4,48] convert(b)\n"
         " ROOT d = f32[4,16] slice(c), slice={[0:4],[16:32]} }", (128, 256)),
        # two equal slices are the same elements; two different ones are not
        ("f32[4] fusion(p0), kind=kLoop, calls=f", ["f32[8]"],
         "f { a = f32[8] parameter(0)\n b = f32[4] slice(a), slice={[0:4]}\n c = f32[4] slice(a), slice={[0:4]}\n"
         " ROOT d = f32[4] add(b, c) }", (16, 16)),
        ("f32[7] fusion(p0), kind=kLoop, calls=f", ["f32[8]"],
         "f { a = f32[8] parameter(0)\n b = f32[7] slice(a), slice={[0:7]}\n c = f32[7] slice(a), slice={[1:8]}\n"
         " ROOT d = f32[7] subtract(b, c) }", (32, 28)),
        # a constant inside a fusion and what is computed but not needed: nothing
        ("f32[8] fusion(p0), kind=kLoop, calls=f", ["f32[8]"],
         "f { a = f32[8] parameter(0)\n k = f32[] constant(2)\n b = f32[8] broadcast(k), dimensions={}\n"
         " ROOT d = f32[8] multiply(a, b) }", (32, 32)),
        # rows of a table that is scaled first
        ("f32[3,8] fusion(p0, p1), kind=kLoop, calls=f", ["f32[20,8]", "s32[3,1]"],
         "f { a = f32[20,8] parameter(0)\n i = s32[3,1] parameter(1)\n b = f32[20,8] negate(a)\n"
         f" ROOT d = f32[3,8] gather(b, i), {GATHER} }}", (96 + 12, 96)),
        # both results of one kernel
        ("(f32[8], f32[]) fusion(p0), kind=kInput, calls=f", ["f32[8]"],
         ADD + "\nf { c = f32[8] parameter(0)\n d = f32[8] exponential(c)\n z = f32[] constant(0)\n"
         " u = f32[] reduce(d, z), dimensions={0}, to_apply=add\n ROOT t = (f32[8], f32[]) tuple(d, u) }",
         (32, 36)),
        # an update in place inside a fusion, and one of a cast copy, which writes all
        ("f32[8,4] fusion(p0, p1, p2), kind=kLoop, calls=f", ["f32[8,4]", "f32[2,4]", "s32[]"],
         "f { a = f32[8,4] parameter(0)\n u = f32[2,4] parameter(1)\n i = s32[] parameter(2)\n"
         " v = f32[2,4] negate(u)\n ROOT d = f32[8,4] dynamic-update-slice(a, v, i, i) }", (32 + 4, 32)),
        ("f32[8,4] fusion(p0, p1, p2), kind=kLoop, calls=f", ["bf16[8,4]", "f32[2,4]", "s32[]"],
         "f { a = bf16[8,4] parameter(0)\n u = f32[2,4] parameter(1)\n i = s32[] parameter(2)\n"
         " c = f32[8,4] convert(a)\n ROOT d = f32[8,4] dynamic-update-slice(c, u, i, i) }", (48 + 32 + 4, 128)),
        # packed integers of 4 bits
        ("s8[64] convert(p0)", ["s4[64]"], "", (32, 64)),
    ],
)  # fmt: skip
def test_traffic_by_hand(body, parameters, computations, expected):
    assert traffic(body, *parameters, computations=computations) == expected


def test_a_cropping_pad_reads_what_it_keeps():
    assert traffic("f32[6] pad(p0, p1), padding=-1_-1", "f32[8]", "f32[]") == (24 + 4, 24)


def test_halves_of_an_asynchronous_pair():
    module = hlo.read(
        hlo_oracle.proto(f"""HloModule m
{ADD}
ENTRY e {{
  p = f32[8] parameter(0)
  start = f32[8] all-reduce-start(p), to_apply=add, replica_groups={{{{0,1}}}}
  d = f32[8] all-reduce-done(start)
  g = (f32[8], f32[16]) all-gather-start(d), dimensions={{0}}, replica_groups={{{{0,1}}}}
  ROOT h = f32[16] all-gather-done(g)
}}""")
    )
    by_name = module.instructions
    assert moved(module, by_name["start"]) == (32, 32)
    assert moved(module, by_name["d"]) == (0, 0)
    assert moved(module, by_name["g"]) == (32, 64)  # of its result the operand is no result
    assert moved(module, by_name["h"]) == (0, 0)
    # what the first wrote is what the second reads
    assert accesses(module, by_name["g"]).reads[0][0] == accesses(module, by_name["start"]).writes[0][0]


# ------------------------------------------------------------------------------------------ buffers


@pytest.mark.slow
def test_a_donated_argument_and_the_result_in_its_place_are_one_buffer():
    kept, donated = read("cache update"), read("cache update, donated")
    for module, same in ((kept, False), (donated, True)):
        parameters, outputs = entry_buffers(module)
        assert [size for _, size, _ in parameters] == [2 * 64 * 8 * 4, 2 * 8 * 4, 4]
        assert [shape.dims for _, _, shape in outputs] == [(2, 64, 8)]
        assert (outputs[0][0] == parameters[0][0]) is same
    # in place only the new row moves (and its index); else the cache is copied first
    units = [unit.instruction for unit in schedule(donated)]
    assert sum(sum(moved(donated, unit)) for unit in units) == 2 * 64 + 4
    units = [unit.instruction for unit in schedule(kept)]
    assert sum(sum(moved(kept, unit)) for unit in units) == 2 * 4096 + 2 * 64 + 4


def test_the_state_of_a_loop_is_one_buffer():
    module = read("scan")
    body = [unit.instruction for unit in schedule(module) if unit.branches == (0,)]
    tanh = next(i for i in body if "tanh" in i.name)
    (loop,) = [unit.instruction for unit in schedule(module) if unit.control]
    (written,) = [number for number, _ in accesses(module, tanh).writes]
    # the carry: what the body writes, what the loop returns, and what the next trip reads
    places = [i for i, (_, shape) in enumerate(loop.shape.leaves()) if shape.dims == (16, 16)]
    assert written in {buffer(module, loop, (place,)) for place in places}
    assert written in {number for i in body for number, _ in accesses(module, i).reads}
    assert written in {number for number, _, _ in entry_buffers(module)[1]}


def test_an_update_that_is_not_in_place_moves_everything():
    """The same fusion with a slot of its own for the result."""
    body = (
        "f { a = f32[8,4] parameter(0)\n u = f32[2,4] parameter(1)\n i = s32[] parameter(2)\n"
        " ROOT d = f32[8,4] dynamic-update-slice(a, u, i, i) }"
    )
    data = text("f32[8,4] fusion(p0, p1, p2), kind=kLoop, calls=f", "f32[8,4]", "f32[2,4]", "s32[]", computations=body)
    for offset, expected in ((0, (36, 32)), (128, (24 * 4 + 36, 128))):
        whole = hlo_programs.HloProto()
        whole.hlo_module.ParseFromString(data)
        bare = hlo.read(data)
        allocation = whole.buffer_assignment.buffer_allocations.add(index=0, size=512)
        for number, (name, place) in enumerate((("p0", 0), ("r", offset), ("p1", 256), ("p2", 320))):
            logical = whole.buffer_assignment.logical_buffers.add(id=number)
            logical.defined_at.instruction_id = bare.instructions[name].id
            allocation.assigned.add(logical_buffer_id=number, offset=place)
        module = hlo.read(whole.SerializeToString())
        assert moved(module, module.entry.root) == expected


def test_parts_of_a_tuple_are_buffers_of_their_own():
    module = hlo.read(
        hlo_oracle.proto(f"""HloModule m
f {{ a = f32[8] parameter(0)
  b = f32[8] exponential(a)
  ROOT t = (f32[8], f32[8]) tuple(a, b) }}
{ADD}
ENTRY e {{
  p = f32[8] parameter(0)
  two = (f32[8], f32[8]) fusion(p), kind=kLoop, calls=f
  first = f32[8] get-tuple-element(two), index=0
  second = f32[8] get-tuple-element(two), index=1
  again = f32[2,4] bitcast(second)
  ROOT n = f32[2,4] negate(again)
}}""")
    )
    by_name = module.instructions
    writes = [number for number, _ in accesses(module, by_name["two"]).writes]
    assert len(set(writes)) == 2
    assert accesses(module, by_name["n"]).reads == ((writes[1], 32.0),)
    assert buffer(module, by_name["first"]) == writes[0]


def test_values_pass_through_loops_calls_and_branches():
    module = hlo.read(
        hlo_oracle.proto("""HloModule m
body { s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  next = s32[] negate(i)
  y = f32[8] add(x, x)
  ROOT t = (s32[], f32[8]) tuple(next, y) }
condition { u = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(u), index=0
  ROOT r = pred[] compare(j, j), direction=LT }
left { l = f32[8] parameter(0)
  ROOT m = f32[8] negate(l) }
right { v = f32[8] parameter(0)
  ROOT n = f32[8] abs(v) }
function { w = f32[8] parameter(0)
  ROOT o = f32[8] sqrt(w) }
ENTRY e {
  start = s32[] parameter(0)
  p = f32[8] parameter(1)
  z = (s32[], f32[8]) tuple(start, p)
  loop = (s32[], f32[8]) while(z), condition=condition, body=body
  after = f32[8] get-tuple-element(loop), index=1
  which = pred[] parameter(2)
  branch = f32[8] conditional(which, after, p), true_computation=left, false_computation=right
  ROOT called = f32[8] call(branch), to_apply=function
}""")
    )
    by_name = module.instructions
    p = buffer(module, by_name["p"])
    # the state stays where it began, inside the loop and behind it
    assert buffer(module, by_name["x"]) == buffer(module, by_name["after"]) == p
    assert buffer(module, by_name["l"]) == buffer(module, by_name["v"]) == p
    assert buffer(module, by_name["branch"]) == buffer(module, by_name["m"]) == buffer(module, by_name["w"])
    assert entry_buffers(module)[1] == [(buffer(module, by_name["o"]), 32, by_name["o"].shape)]
    assert accesses(module, by_name["y"]).reads == ((p, 32.0),)
