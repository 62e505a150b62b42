"""What is drawn at random, and whether that is dropout: only dropout keeps two runs from being compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import handmade
import pytest
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.comparison.parity.parity import parity
from roofline.core.cost import Cost
from roofline.core.device import Device
from roofline.core.schema import Profile, Signature
from roofline.core.step import Step, Workload
from roofline.measuring.session import to_profile
from roofline.recording.recording import Plan
from roofline.recording.request import Request

NOTHING = handmade.profile()


def op(name: str, op_class: str = "pointwise", dtype: str = "fp32", **more: Any) -> Signature:
    return Signature(
        name=name,
        kind=op_class,
        op_class=op_class,  # type: ignore[arg-type]
        shapes="",
        dtype=dtype,
        cost=more.pop("cost", Cost()),
        reads=(4.0,),
        writes=(4.0,),
    )


def chain(*signatures: Signature, parts: Sequence[Signature] = ()) -> Profile:
    """The hand-made step and then these ops, each of which reads what the one before wrote; `parts` of the last."""
    ops, table = list(NOTHING.ops), [*NOTHING.signatures]
    for number, signature in enumerate(signatures):
        ops.append(replace(ops[0], signature=len(table), reads=(90 + number,), writes=(91 + number,), constituents=()))
        table.append(signature)
    ops[-1] = replace(ops[-1], constituents=tuple(range(len(table), len(table) + len(parts))))
    return replace(NOTHING, ops=tuple(ops), signatures=(*table, *parts))


def what(drawn: Profile) -> list[tuple[str, str]]:
    """What parity says of a run that draws, beside the same ops where none of them draws."""

    def undrawn(signature: Signature) -> Signature:
        if signature.op_class != "random":
            return signature
        return replace(signature, op_class="pointwise", cost=Cost())

    plain = replace(drawn, signatures=tuple(undrawn(each) for each in drawn.signatures))
    return [(each.what, each.severity) for each in parity(analyze(plain), analyze(drawn)).differences]


NAMED, REFUSED = [("random numbers", "named")], [("dropout", "refused")]
INTEGERS = op("aten::random_", "random", "int64")
BITS = op("broadcast_add_fusion", "random", "uint32")


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        (chain(INTEGERS), NAMED),  # the host reads a seed
        (chain(op("aten::randperm", "random", "int64"), op("aten::index_select", "embedding")), NAMED),
        (chain(op("aten::randint", "random", "int64"), op("aten::gt", dtype="int64"), op("aten::mul")), REFUSED),
        (chain(op("aten::rand", "random"), op("aten::argsort", "other"), op("aten::index", "embedding")), NAMED),
        (chain(op("aten::bernoulli_", "random", "int64")), REFUSED),  # 0 and 1, in whole numbers too
        # TensorFlow types this draw of fractions by the shape that it is given
        (chain(op("RandomUniform", "random", "int32"), op("GreaterEqual")), REFUSED),
        (chain(op("RandomUniformInt", "random", "int32"), op("ResourceGather", "embedding")), NAMED),
        # XLA draws bits. They are dropped by where a kernel makes fractions of them, whatever it is called,
        (chain(BITS, op("rng_fusion", "random", "uint32"), op("tanh_select_fusion")), REFUSED),
        (
            chain(BITS, op("multiply_fusion"), parts=(op("movement", "movement"), op("pointwise"))),
            REFUSED,
        ),
        # not where they choose rows (what is out of bounds is filled in, by a select), or an order
        (
            chain(BITS, op("select_fusion"), parts=(op("pointwise"), op("embedding", "embedding"))),
            NAMED,
        ),
        (chain(BITS, op("sort", "other", "uint32"), op("select_fusion", "embedding")), NAMED),
        # the generator itself selects: that is how it takes a remainder
        (chain(BITS, op("select_convert_fusion", "random", "uint32")), NAMED),
    ],
)
def test_whole_numbers_are_no_dropout_unless_they_are_compared(drawn: Profile, expected: list[tuple[str, str]]) -> None:
    assert what(drawn) == expected


def test_numbers_bent_by_a_function_are_noise_inside_fused_kernels_too() -> None:
    # The inverse of the normal distribution takes a logarithm; what drops needs the even numbers as they are.
    noise = op("random", "random", cost=Cost(functions={"log1p": 16.0}))
    even = op("random", "random")
    assert what(chain(op("multiply_add_fusion"), parts=(noise, op("pointwise")))) == NAMED
    assert what(chain(op("multiply_add_fusion"), parts=(even, op("pointwise")))) == REFUSED


def test_the_order_and_the_seed_of_a_dataloader_are_work() -> None:
    torch = pytest.importorskip("torch")
    from roofline.backends.torch import BACKEND

    x, layer = torch.ones(8, 4), torch.nn.Linear(4, 4)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=8, shuffle=True)
    dropping = torch.nn.Dropout(0.5)

    def profile(run: Callable[[], object]) -> Profile:
        recording = BACKEND.recorder.record(Step(run=run), Plan(device="cpu", count_only=True), lambda _: None)
        device = Device(name="none", kind="cpu", ceilings={})
        counted = to_profile(recording, Request(backend="torch", workload=Workload(model="m")), device, "")
        ops = tuple(replace(each, own_ns=NOTHING.ops[0].own_ns) for each in counted.ops)  # of times nothing is asked
        return replace(counted, ops=ops, wall=NOTHING.wall, profiled=NOTHING.profiled)

    runs = (lambda: layer(x), lambda: [layer(some) for (some,) in batches], lambda: dropping(layer(x)))
    plain, shuffled, dropped = (analyze(profile(run)) for run in runs)
    assert {"aten::random_", "aten::randperm"} <= {each.name for each in shuffled.profile.signatures}
    assert {each.what for each in parity(plain, shuffled).of("refused")} == set()
    assert "random numbers" in {each.what for each in parity(plain, shuffled).of("named")}
    assert {each.what for each in parity(plain, dropped).of("refused")} == {"dropout"}
