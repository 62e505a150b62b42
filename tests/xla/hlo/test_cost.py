"""Classes, constituents and identity of the costs of HLO units."""

from __future__ import annotations

from collections import Counter

import pytest

from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.classes import names_product, scope_class
from roofline.xla.hlo.cost import cost, op_names, title
from roofline.xla.hlo.schedule import contractions, inside, schedule

jax = pytest.importorskip("jax")
import hlo_oracle
import hlo_programs

#: In one process, which compiles the programs once.
pytestmark = pytest.mark.xdist_group("hlo programs")


def costs(name):
    """(unit, Costed) of every unit that works itself."""
    module = hlo.read(hlo_programs.programs()[name].proto)
    return module, [(unit, cost(module, unit.instruction)[0]) for unit in schedule(module) if not unit.control]


@pytest.mark.slow
def test_reads_and_writes_align_with_buffers():
    for name in hlo_programs.programs():
        module, _ = costs(name)
        for unit in schedule(module):
            found, reads, writes = cost(module, unit.instruction)
            assert len(found.reads) == len(reads) == len(set(reads))
            assert len(found.writes) == len(writes) == len(set(writes))
            if found.cost.quality != "unknown":
                assert found.cost.bytes_read == sum(size for _, _, size in found.reads)
                assert found.cost.bytes_written == sum(size for _, _, size in found.writes)
            assert found.inplace == bool(set(reads) & set(writes))


def test_equal_layers_share_their_costs():
    module, found = costs("transformer train")
    # Of the two equal layers most kernels occur twice, and those are one object.
    assert len({id(costed) for _, costed in found}) < 0.75 * len(found)
    fresh = hlo.read(hlo_programs.programs()["transformer train"].proto)
    for unit in schedule(fresh):
        assert cost(fresh, unit.instruction)[0] is cost(module, module.instructions[unit.instruction.name])[0]


def test_constituents_have_all_of_the_work():
    for name in ("transformer train", "convolutions train", "softmax and norm train", "random"):
        _, found = costs(name)
        for unit, costed in found:
            if not costed.parts:
                continue
            assert len({part.op_class for part in costed.parts}) == len(costed.parts) > 1
            assert costed.op_class in {part.op_class for part in costed.parts}
            whole = sum(part.cost.flops + part.cost.vector_flops + part.cost.int_ops for part in costed.parts)
            mine = costed.cost.flops + costed.cost.vector_flops + costed.cost.int_ops
            assert whole == mine, unit.instruction.name
            # alone each would write what stays on the chip now
            assert sum(part.cost.bytes for part in costed.parts) > 0


def test_constituents_by_hand():
    """A product with bias and softmax: three classes, each with the traffic it would have alone."""
    module = hlo.read(
        hlo_oracle.proto("""HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
f { x = f32[4,6] parameter(0)
  w = f32[6,5] parameter(1)
  v = f32[5] parameter(2)
  d = f32[4,5] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wide = f32[4,5] broadcast(v), dimensions={1}
  y = f32[4,5] add(d, wide)
  e = f32[4,5] exponential(y), metadata={op_name="jit(f)/softmax/exp"}
  zero = f32[] constant(0)
  ROOT r = f32[4] reduce(e, zero), dimensions={1}, to_apply=add, metadata={op_name="jit(f)/softmax/reduce_sum"} }
ENTRY entry {
  p = f32[4,6] parameter(0)
  q = f32[6,5] parameter(1)
  o = f32[5] parameter(2)
  ROOT dot_add_fusion.3 = f32[4] fusion(p, q, o), kind=kCustom, calls=f
}""")
    )
    found, _, _ = cost(module, module.entry.root)
    parts = {part.op_class: part for part in found.parts}
    assert list(parts) == ["contraction", "pointwise", "softmax"]
    assert (found.op_class, found.kind, found.cost.flops) == ("contraction", "matmul", 2 * 4 * 5 * 6)
    assert found.cost.bytes == 4 * (24 + 30 + 5 + 4)
    assert (parts["contraction"].cost.flops, parts["contraction"].cost.bytes) == (240, 4 * (24 + 30 + 20))
    # the addition of two arrays of 20; the broadcast would be a view
    assert (parts["pointwise"].cost.vector_flops, parts["pointwise"].cost.bytes) == (20, 4 * 60)
    # exp reads and writes 20; the sum reads 20 and its start, and writes 4
    assert parts["softmax"].cost.functions == {"exp": 20}
    assert (parts["softmax"].cost.vector_flops, parts["softmax"].cost.bytes) == (16, 4 * (40 + 25))
    assert title(module.entry.root) == "dot_add_fusion"
    # the softmax moved the most alone but for the addition, and the unit has no scope of its own
    assert op_names(module, module.entry.root) == {
        "jit(f)/softmax/exp": 160.0,
        "jit(f)/softmax/reduce_sum": 100.0,
    }


def test_an_update_in_place_moves_what_is_updated():
    """8 numbers are negated and written into 32: read and written alone are these 8, and an index of 4 bytes."""
    module = hlo.read(
        hlo_oracle.proto("""HloModule m
f { a = f32[8,4] parameter(0)
  u = f32[2,4] parameter(1)
  i = s32[] parameter(2)
  v = f32[2,4] negate(u)
  ROOT d = f32[8,4] dynamic-update-slice(a, v, i, i) }
ENTRY e { a = f32[8,4] parameter(0)
  u = f32[2,4] parameter(1)
  i = s32[] parameter(2)
  ROOT r = f32[8,4] fusion(a, u, i), kind=kLoop, calls=f }""")
    )
    found, _, _ = cost(module, module.entry.root)
    moved = {part.op_class: (part.cost.bytes_read, part.cost.bytes_written) for part in found.parts}
    assert moved == {"pointwise": (32, 32), "movement": (32 + 4, 32)}


def test_classes_of_a_transformer():
    _, found = costs("transformer train")
    classes = Counter(costed.op_class for _, costed in found)
    assert classes["contraction"] == 3 * (2 * 6 + 1)
    assert all(bool(costed.cost.flops) == (costed.op_class == "contraction") for _, costed in found)
    assert all((costed.kind == "matmul") == (costed.op_class == "contraction") for _, costed in found)
    for op_class in ("normalisation", "softmax", "embedding", "movement", "pointwise"):
        assert classes[op_class], op_class
    for unit, costed in found:
        opcodes = {each.opcode for each in inside(unit.instruction)}
        if "rsqrt" in opcodes:  # written out, without a scope that names it
            assert "normalisation" in {costed.op_class, *(part.op_class for part in costed.parts)}
        if "exponential" in opcodes and "ffn" not in unit.op_name:  # there it is part of the CPU's erf
            assert "softmax" in {costed.op_class, *(part.op_class for part in costed.parts)}
        if unit.op_name.endswith(("jit(train)/sub", "jit(train)/add")):  # the optimizer; its phase is decided elsewhere
            assert costed.op_class == "pointwise"


@pytest.mark.skipif(jax.__version_info__ < (0, 10, 1), reason="its XLA gives single sums of them to a library")
def test_written_out_norms_and_softmaxes_by_dataflow():
    """No scope names them: only exp(x - max) and 1 / sqrt(mean of squares) do."""

    def program(x):
        mean = x.mean(-1, keepdims=True)
        y = (x - mean) * hlo_programs.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
        e = hlo_programs.jnp.exp(y - y.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    compiled = hlo_programs.compiled(program, hlo_programs._normal(64, 512))
    module = hlo.read(compiled.proto)
    for unit in schedule(module):
        found, _, _ = cost(module, unit.instruction)
        assert found.op_class in ("normalisation", "softmax"), (unit.instruction.name, found.op_class)
    # Adam's root is no norm: nothing is summed.
    root = hlo_programs.compiled(lambda m, v: m * hlo_programs.lax.rsqrt(v + 1e-8), *[hlo_programs._normal(64)] * 2)
    module = hlo.read(root.proto)
    assert {cost(module, unit.instruction)[0].op_class for unit in schedule(module)} == {"pointwise"}


def test_an_outer_product_that_became_a_multiplication_keeps_its_class():
    module, found = costs("outer product")
    opcodes = Counter(each.opcode for unit, _ in found for each in inside(unit.instruction))
    assert "dot" not in opcodes  # XLA turned both into multiplications
    assert opcodes["multiply"] == 2
    assert {costed.op_class for _, costed in found} == {"contraction"}
    assert all(costed.cost.flops == 0 and costed.cost.vector_flops for _, costed in found)
    assert contractions(module, found[0][0].instruction) == []


@pytest.mark.parametrize(
    ("op_name", "op_type", "expected"),
    [
        ("jit(f)/jvp(attn)/jit(softmax)/exp", "", "softmax"),
        ("jit(f)/transpose(jvp(jit(log_softmax)))/neg", "", "softmax"),
        ("model/layer_norm1/moments/mean", "Mean", "normalisation"),
        ("jit(step)/bert/encoder/LayerNorm_0/mul", "", "normalisation"),
        ("bert/embeddings_layer_norm/batchnorm/add", "AddV2", "normalisation"),
        ("jit(f)/h_0/ln_1/mul", "", "normalisation"),
        ("jit(f)/jit(norm)/sqrt", "", None),  # the length of a vector
        ("jit(f)/layer_normalization_3/dense/add", "", "normalisation"),
        ("jit(f)/jit(_bernoulli)/threefry2x32", "", "random"),
        ("jit(f)/mlp/tanh", "", None),
        ("jit(f)/column/linear/add", "", None),
        ("x/y", "SparseSoftmaxCrossEntropyWithLogits", "softmax"),
        ("x/y", "FusedBatchNormV3", "normalisation"),
    ],
)
def test_classes_that_scopes_name(op_name, op_type, expected):
    assert scope_class(op_name, op_type) == expected


@pytest.mark.parametrize(
    ("op_name", "op_type", "expected"),
    [
        ("jit(f)/bhqk,bhkd->bhqd/dot_general", "", True),
        ("jit(f)/conv_general_dilated", "", True),
        ("model/dense/MatMul", "MatMul", True),
        ("gradient_tape/model/dense/MatMul_1", "BatchMatMulV2", True),
        ("model/conv/Conv2D", "Conv2D", True),
        ("x", "Conv2DBackpropFilter", True),
        ("x", "DepthwiseConv2dNative", True),
        ("x", "Einsum", True),
        ("jit(f)/matmul_scale/mul", "", False),
        ("jit(f)/reduce_sum", "", False),
    ],
)
def test_names_of_products(op_name, op_type, expected):
    assert names_product(op_name, op_type) is expected


def test_random_bits():
    _, found = costs("random")
    heaviest = max((costed for _, costed in found), key=lambda costed: costed.cost.int_ops)
    assert heaviest.op_class == "random"
    assert {costed.op_class for _, costed in found} <= {"random", "pointwise", "movement"}


def test_communication_and_transfer():
    module = hlo.read(
        hlo_oracle.proto("""HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  p = f32[8] parameter(0)
  start = f32[8] all-reduce-start(p), to_apply=add, replica_groups={{0,1}}
  done = f32[8] all-reduce-done(start)
  down = (f32[8]{0:S(5)}, f32[8]{0}, u32[]) copy-start(done)
  ROOT there = f32[8]{0:S(5)} copy-done(down)
}""")
    )
    found = {unit.instruction.name: cost(module, unit.instruction)[0] for unit in schedule(module)}
    assert found["start"].op_class == "communication"
    assert (found["start"].kind, found["start"].cost.vector_flops) == ("all-reduce", 8)
    assert found["done"].view
    assert (found["down"].op_class, found["down"].cost.bytes) == ("transfer", 64)
    assert found["there"].view


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("multiply_add_fusion.12", "multiply_add_fusion"),
        ("dot", "dot"),
        ("fusion.3.clone.1", "fusion"),
        ("copy.7", "copy"),
    ],
)
def test_titles(name, expected):
    proto = hlo.HloModuleProto.FromString(hlo_oracle.proto("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }"))
    proto.computations[0].instructions[0].name = name
    module = hlo.read(proto.SerializeToString())
    assert title(module.entry.root) == expected


def test_the_types_of_a_fusion_and_of_its_constituents() -> None:
    """It writes 128 x 512 x 2 bytes of bf16 and 128 x 4 of fp32, and multiplies and adds up in fp32.

    The cast down writes bf16, and the cast up twice as many bytes of fp32; what is added up is fp32.
    """
    proto = hlo_oracle.proto(
        """HloModule jit_f
        add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b) }
        body { p = bf16[128,512] parameter(0)
          up = f32[128,512] convert(p)
          square = f32[128,512] multiply(up, up)
          zero = f32[] constant(0)
          sums = f32[128] reduce(square, zero), dimensions={1}, to_apply=add
          down = bf16[128,512] convert(square)
          ROOT both = (bf16[128,512], f32[128]) tuple(down, sums) }
        ENTRY e { x = bf16[128,512] parameter(0)
          ROOT fused = (bf16[128,512], f32[128]) fusion(x), kind=kLoop, calls=body }"""
    )
    module = hlo.read(proto)
    whole = cost(module, module.instructions["fused"])[0]
    assert (whole.output, whole.dtype) == ("bf16", "fp32")
    assert {part.op_class: part.output for part in whole.parts} == {
        "movement": "fp32",
        "pointwise": "fp32",
        "reduction": "fp32",
    }
