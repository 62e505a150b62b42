"""The parity gate: what is refused, what is named and with which share, and that equal runs are comparable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace as replaced
from typing import Any

import handmade
import pytest
import randomly
from hypothesis import given, settings
from msgspec.structs import replace

from roofline.analysis.analysis import analyze
from roofline.analysis.flags import FLAGS, clause
from roofline.comparison.parity.parity import Difference, Parity, parity, refusal
from roofline.core.cost import Cost, matrix, unknown
from roofline.core.device import Device
from roofline.core.executor import CALLS, PROGRAMS, executor_of
from roofline.core.schema import Compilation, Imported, Op, Precision, Profile, Signature, Wall
from roofline.errors import InputError

US = 1e-6
#: The hand-made step in an order that the tests name: two addmm of 200 MFLOP each make the forward pass.
EMBEDDING, ADDMM, GELU, SOFTMAX, MYSTERY, NORM, ADAMW = range(7)


def base(**changes: Any) -> Profile:
    return handmade.profile(**changes)


def judged(a: Profile, b: Profile) -> Parity:
    return parity(analyze(a), analyze(b))


def one(a: Profile, b: Profile, what: str) -> Difference:
    """The difference called `what`, after a look that swapping the runs swaps it."""
    found = judged(a, b)
    assert mirrored(found) == judged(b, a)
    (difference,) = [each for each in found.differences if each.what == what]
    assert difference.a == difference.b or difference.text.count(" in ") >= 2 or difference.text.startswith("Only in ")
    return difference


def mirrored(found: Parity) -> Parity:
    """What the swapped runs must give, without the sentences, which `__eq__` of the two would compare."""
    return _Untold(
        verdict=found.verdict,
        differences=tuple(
            replace(
                each,
                a=each.b,
                b=each.a,
                text="",
                contractions=tuple(replace(item, a=item.b, b=item.a) for item in each.contractions),
            )
            for each in found.differences
        ),
    )


class _Untold(Parity, frozen=True, kw_only=True):
    """Equal to a Parity that differs in its sentences and in the order of equal contractions alone."""

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Parity)

        def key(each: Difference) -> tuple[object, ...]:
            items = sorted(each.contractions, key=repr)
            return each.what, each.a, each.b, each.severity, each.seconds, each.share, items

        return self.verdict == other.verdict and [key(d) for d in self.differences] == [
            key(d) for d in other.differences
        ]


def changed(profile: Profile, number: int, **fields: Any) -> Profile:
    """The profile with one signature changed."""
    signatures = list(profile.signatures)
    signatures[number] = replace(signatures[number], **fields)
    return replace(profile, signatures=tuple(signatures))


def more(profile: Profile, signature: Signature, own: int = 100, phase: int = 0, block: int = 1) -> Profile:
    """The profile with one op more of `own` microseconds, of a signature without buffers."""
    op = Op(
        signature=len(profile.signatures), scope=0, phase=phase, block=block, own_ns=(own * 1000,) * 3, overlap_ns=0,
        start_ns=0, launches=1, reads=(), writes=(),
    )  # fmt: skip
    return replace(profile, signatures=(*profile.signatures, signature), ops=(*profile.ops, op))


def product(shapes: str, flops: float, **changes: Any) -> Signature:
    plain = Signature(
        name="aten::mm", kind="mm", op_class="contraction", shapes=shapes, dtype="fp32", cost=matrix(flops),
        precision=handmade.FP32,
    )  # fmt: skip
    return replace(plain, **changes)


RANDOM = Signature(
    name="aten::bernoulli_", kind="bernoulli", op_class="random", shapes="[100]", dtype="fp32",
    cost=Cost(functions={"random": 100}),
)  # fmt: skip


def whats(found: Iterable[Difference]) -> list[str]:
    return [each.what for each in found]


# ------------------------------------------------------------------------------------------------ equal runs


def test_a_run_is_comparable_with_itself() -> None:
    assert judged(base(), base()) == Parity(verdict="comparable", differences=())


def test_a_second_measurement_of_the_same_is_comparable() -> None:
    again = base(wall=Wall(steps=tuple(step * 1.05 for step in base().wall.steps)), date="2027-01-01T00:00:00Z")
    assert judged(base(), again) == Parity(verdict="comparable", differences=())


def test_warnings_leave_runs_comparable() -> None:
    found = judged(base(), base(flags=("contended: load 3", "throttled: power cap")))
    assert found.verdict == "comparable"
    assert whats(found.of("warning")) == ["contention", "throttling"] == whats(found.differences)
    assert (found.differences[0].a, found.differences[0].b) == ("no", "load 3")
    assert refusal(found) == ""


def test_given_ceilings_are_said() -> None:
    found = one(base(), base(flags=("given-ceilings: Elsewhere",)), "given-ceilings")
    assert (found.a, found.b, found.severity) == ("no", "Elsewhere", "warning")


@settings(max_examples=60)
@given(randomly.profiles())
def test_any_run_is_comparable_with_itself(profile: Profile) -> None:
    assert judged(profile, profile) == Parity(verdict="comparable", differences=())
    profile = replace(profile, flags=())  # what a run doubts of itself is told whatever it is compared with
    again = judged(profile, replace(profile, wall=Wall(steps=tuple(2 * step for step in profile.wall.steps))))
    assert again.verdict != "not comparable"
    # What is left to name is what could not be verified.
    assert all("could not be verified" in each.text for each in again.of("named"))


@settings(max_examples=60)
@given(randomly.profiles(), randomly.profiles())
def test_swapping_the_runs_swaps_the_differences_and_shares_are_shares(a: Profile, b: Profile) -> None:
    first, second = analyze(a), analyze(b)
    found = parity(first, second)
    assert mirrored(found) == parity(second, first)
    assert [each.severity for each in found.differences] == sorted(
        (each.severity for each in found.differences), key=("refused", "named", "warning").index
    )
    for each in found.differences:
        assert each.seconds is None or each.seconds >= 0
        assert each.share is None or 0 <= each.share <= 1


@pytest.mark.parametrize("text", handmade.HOSTILE)
def test_names_from_anywhere_stay_on_one_line(text: str) -> None:
    hostile = handmade.hostile(text)
    found = judged(base(), replace(hostile, switches={text: text}, environment={text: text}, precision=text))
    told = [refusal(found), *(each.text for each in found.differences), *whats(found.differences)]
    assert all(line.isprintable() for line in told)


# ------------------------------------------------------------------------------------------------ refused


def test_another_mode() -> None:
    assert one(base(), base(mode="infer"), "mode").severity == "refused"


def test_doubled_hidden_size() -> None:
    # 2 * 100 * 2000 * 2000 instead of 2 * 100 * 1000 * 1000, twice: 1.6 GFLOP against 400 MFLOP
    wide = changed(base(parameters=4_000_000), ADDMM, shapes="[2000] [100, 2000] [2000, 2000]", cost=matrix(800e6))
    found = one(base(), wide, "model FLOPs forward")
    assert (found.severity, found.a, found.b) == ("refused", "400.00 MFLOP", "1.6000 GFLOP")
    shapes = {(each.m, each.n, each.k): (each.a, each.b) for each in found.contractions}
    assert shapes == {(1000, 100, 1000): (2, 0), (2000, 100, 2000): (0, 2)}
    assert judged(base(), wide).verdict == "not comparable"
    assert one(base(), wide, "parameters").severity == "refused"


def test_half_the_batch() -> None:
    half = changed(base(batch=2, samples=2, tokens=50), ADDMM, cost=matrix(100e6))
    assert {*whats(judged(base(), half).of("refused"))} == {"model FLOPs forward", "batch", "samples", "tokens"}


def test_one_in_a_thousand_of_the_flops() -> None:
    below, above = (changed(base(), ADDMM, cost=matrix(200e6 * factor)) for factor in (1.0009, 1.0012))
    assert "model FLOPs forward" not in whats(judged(base(), below).differences)
    # both in five digits: what is refused must look different
    found = one(base(), above, "model FLOPs forward")
    assert (found.severity, found.a, found.b) == ("refused", "400.00 MFLOP", "400.48 MFLOP")


def test_prefill_and_decode_are_compared_each() -> None:
    # What one asks for less in prefill it asks for more in decode.
    phases = ("prefill", "decode")
    a = more(base(phases=phases, mode="generate"), product("[10,10] x [10,10]", 2000), phase=1)
    b = more(base(phases=phases, mode="generate"), product("[10,20] x [20,10]", 4000), phase=1)
    assert [each.what for each in judged(a, b).of("refused")] == ["model FLOPs decode"]


def test_more_work_is_refused_where_it_can_explain_why_a_run_is_slower() -> None:
    # 2.5 ms of addmm each, of 13.5 ms: 420 instead of 400 MFLOP are 20 / 420 of the step, 643 us.
    wide = changed(base(wall=Wall(steps=(13.5e-3,) * 10)), ADDMM, cost=matrix(210e6))
    for wall, severity in ((10e-3, "named"), (11.5e-3, "refused"), (12.9e-3, "refused"), (16e-3, "named")):
        found = one(wide, base(wall=Wall(steps=(wall,) * 10)), "model FLOPs forward")
        # 13.5 - 11.5 - 0.64 is less than 10 % of both, so it does not say which is faster; 13.5 - 10 - 0.64 does
        assert found.severity == severity
        assert found.seconds == pytest.approx(13.5e-3 / 21)
        assert found.share == pytest.approx(min(1, 13.5 / 21 / abs(13.5 - wall * 1e3)))


def test_a_product_that_takes_more_than_its_share_of_flops() -> None:
    # A hundredth of the FLOPs, but 5 ms.
    slow = more(base(wall=Wall(steps=(17.5e-3,) * 10)), product("[10,10] x [10,10]", 4e6), own=5000)
    found = one(slow, base(), "model FLOPs forward")
    assert found.severity == "refused"
    assert found.seconds == pytest.approx(5e-3 * analyze(slow).scale)


def test_a_product_that_is_written_as_multiplications_and_sums() -> None:
    size = 64 * 256 * 32
    a = more(base(), product("[64,32] x [32,256]", 2.0 * size), own=900)
    times = Signature(
        name="aten::mul", kind="mul", op_class="pointwise", shapes="[64,32,1] x [32,256]", dtype="fp32",
        cost=Cost(model_flops=0.0, flops=0.0, vector_flops=float(size)),
    )  # fmt: skip
    added = replace(
        times, name="aten::sum", op_class="reduction", cost=Cost(model_flops=0.0, vector_flops=size - 64.0 * 256)
    )
    found = one(a, more(more(base(), times), added), "model FLOPs forward")
    assert found.severity == "named"
    assert found.text.startswith(
        "the second run writes 1 matmul of M, N, K = 256, 64, 32 as multiplications and sums: "
    )
    assert [(item.a, item.b) for item in found.contractions] == [(1, 0)]
    # Twice in A and once so in B is one more.
    assert one(more(a, a.signatures[-1]), more(more(base(), times), added), "model FLOPs forward").severity == "refused"
    # Multiplications alone are something else.
    assert one(a, more(base(), times), "model FLOPs forward").severity == "refused"


def test_an_fp64_product_in_one_run_only() -> None:
    # Of runs that do not differ; 100 us of 2 ms are no reason
    double = Precision(inputs="fp64", arithmetic="fp64", accumulate="fp64", output="fp64", evidence="type")
    small = product("[10,10] x [10,10]", 2000)
    a = more(base(), small)
    b = more(base(), replace(small, dtype="fp64", precision=double))
    assert one(a, b, "fp64").severity == "refused"
    slower = one(a, replace(b, wall=Wall(steps=(15.5e-3,) * 10)), "fp64")
    assert slower.severity == "named"
    assert slower.seconds == pytest.approx(100 * US)
    assert judged(b, replace(b, flags=("x",))).verdict == "comparable"


def test_dropout_on_in_one_run_only() -> None:
    # 100 us of random numbers, and the walls are 1 ms apart: at most 10 %
    on = more(base(wall=Wall(steps=(13.5e-3,) * 10)), RANDOM)
    scale = analyze(on).scale
    off = more(base(), replace(RANDOM, op_class="pointwise"))
    found = one(off, on, "dropout")
    assert (found.severity, found.b) == ("refused", "random numbers are drawn")
    assert found.seconds == pytest.approx(100 * US * scale)
    assert found.share == pytest.approx(0.1 * scale)
    # whatever the switches say
    switched = [replace(each, switches={"dropout": "0.1"}) for each in (off, on)]
    assert one(*switched, "dropout").severity == "named"
    switched = [replace(each, switches={"dropout": "off"}) for each in (off, on)]
    assert one(*switched, "dropout").severity == "refused"
    # and what the switch says where nothing is seen
    assert one(base(switches={"dropout": "off"}), base(switches={"dropout": "0.1"}), "dropout").severity == "refused"


def test_noise_is_no_dropout() -> None:
    noisy = more(base(), replace(RANDOM, name="aten::randn_like"))
    found = parity(analyze(noisy), analyze(more(base(), replace(RANDOM, op_class="pointwise"))))
    assert [(each.what, each.severity) for each in found.differences] == [("random numbers", "named")]


@pytest.mark.parametrize(
    ("readers", "what"),
    [
        (("aten::mul", "aten::add"), "random numbers"),  # 0.1 * rand + x
        (("aten::gelu", "aten::leaky_relu"), "random numbers"),  # whose names begin like ge and le
        (("aten::mul", "aten::relu", "aten::tanh"), "random numbers"),
        (("aten::gt",), "dropout"),  # rand > rate
        (("aten::lt_",), "dropout"),
        (("aten::add", "aten::floor"), "dropout"),  # floor(rand + 1 - rate)
        (("Mul", "AddV2", "GreaterEqual"), "dropout"),  # between two limits, as TensorFlow draws
        (("aten::to", "aten::view", "aten::gt"), "dropout"),
        (("triton_poi_fused_gt_mul_0",), "dropout"),  # a kernel of which only the name is known
        (("aten::sub", "aten::sign"), "dropout"),
        ((), "dropout"),  # nobody knows what for
    ],
)
def test_numbers_drawn_evenly_drop_something_where_they_are_compared(readers: tuple[str, ...], what: str) -> None:
    names = ("aten::rand_like", *readers)
    drawn = plain = base()
    for number, name in enumerate(names):
        drawn = reading(more(drawn, replace(RANDOM, name=name, op_class="pointwise" if number else "random")), number)
        plain = reading(more(plain, replace(RANDOM, name=name, op_class="pointwise")), number)
    (found,) = judged(drawn, plain).differences
    assert (found.what, found.severity) == (what, "refused" if what == "dropout" else "named")


def reading(profile: Profile, number: int) -> Profile:
    """The last op reads buffer 90 + `number` and writes the next one."""
    last = replace(profile.ops[-1], reads=(90 + number,), writes=(91 + number,))
    table = (*profile.signatures[:-1], replace(profile.signatures[-1], reads=(4.0,), writes=(4.0,)))
    return replace(profile, ops=(*profile.ops[:-1], last), signatures=table)


def test_dropout_inside_fused_kernels_counts() -> None:
    plain = base()
    fused = replace(
        plain, ops=(*plain.ops[:2], replace(plain.ops[2], constituents=(GELU, len(plain.signatures))), *plain.ops[3:]),
        signatures=(*plain.signatures, RANDOM),
    )  # fmt: skip
    assert one(plain, fused, "dropout").severity == "refused"


def test_random_numbers_of_the_optimizer_are_no_dropout() -> None:
    assert "dropout" not in whats(judged(base(), more(base(), RANDOM, phase=1)).differences)


def test_whether_something_drops_where_work_is_not_seen() -> None:
    hidden = base(compilation=Compilation(compiler="torch.compile", opaque=1))
    assert one(more(base(), RANDOM), hidden, "dropout").severity == "named"


@pytest.mark.parametrize(
    ("a", "b", "severity"),
    [("0.1", "0.2", "named"), ("0.1", "0.10", None), ("off", "0.0", None), ("off", "0.1, attention 0.0", "refused")],
)
def test_dropout_rates(a: str, b: str, severity: str | None) -> None:
    found = judged(base(switches={"dropout": a}), base(switches={"dropout": b})).differences
    assert [each.severity for each in found if each.what == "dropout"] == ([severity] if severity else [])


def test_an_update_in_one_run_only() -> None:
    said = [base(switches={"optimizer": name}) for name in ("AdamW", "none")]
    assert one(*said, "optimizer").severity == "refused"
    assert one(base(), said[1], "optimizer").severity == "refused"  # its ops are seen to update
    # An update written by hand is in no phase of its own, so that none is seen proves nothing.
    without = base(ops=handmade.OPS[:-1], phases=("forward",))
    found = one(base(), without, "optimizer")
    assert (found.severity, found.a, found.b) == ("named", "of its own", None)


def test_other_precisions_asked_for() -> None:
    assert one(base(), base(precision="bf16"), "precision").severity == "refused"
    assert one(base(), base(precision="tf32"), "precision").severity == "named"


def test_models_cast_in_their_own_code() -> None:
    bf16 = Precision(inputs="bf16", arithmetic="bf16", accumulate="fp32", output="bf16", evidence="type")
    cast = changed(base(), ADDMM, precision=bf16)
    assert one(base(), cast, "data types").severity == "refused"
    # under one policy frameworks differ in the layers that they keep in float32
    mixed = [replace(each, precision="mixed-bf16") for each in (base(), cast)]
    assert one(*mixed, "data types").severity == "named"
    # float32 data is not said to be computed in fp32
    tf32 = Precision(inputs="fp32", arithmetic="tf32", accumulate="fp32", output="fp32", evidence="kernel")
    found = one(
        *(replace(each, precision="mixed-bf16") for each in (changed(base(), ADDMM, precision=tf32), cast)),
        "data types",
    )
    assert (found.a, found.b) == ("fp32 (computed in tf32)", "bf16")


def test_models_of_other_names() -> None:
    # With the same work it is a name; what is not verified, or differs, is another model.
    other = base(model="other")
    assert one(base(), other, "model").severity == "named"
    assert one(base(), changed(other, ADDMM, cost=matrix(100e6)), "model").severity == "refused"
    unverified = changed(other, MYSTERY, name="mylib::enigma")
    assert one(base(), unverified, "model").severity == "refused"
    # A user's file and a trace are called anything: where the work is the same there is nothing to say.
    for unnamed in (replace(unverified, model="file:make_step"), replace(unverified, imported=Imported())):
        assert one(base(), unnamed, "model").severity == "named"
    mine = [base(model=f"file:{name}") for name in ("one", "other")]
    assert "model" not in whats(judged(*mine).differences)
    # Nor where nobody knows, of two functions of one file.
    assert "model" not in whats(judged(mine[0], changed(mine[1], MYSTERY, name="mylib::enigma")).differences)
    elsewhere = replace(changed(mine[1], MYSTERY, name="mylib::enigma"), model="elsewhere:other")
    assert "model" in whats(judged(mine[0], elsewhere).differences)
    # Nor where it differs: then that is the reason.
    less = judged(mine[0], changed(mine[1], ADDMM, cost=matrix(100e6)))
    assert less.verdict == "not comparable"
    assert "model" not in whats(less.differences)


# ------------------------------------------------------------------------------------------------ work not known


def test_unknown_work_that_both_do_alike_hides_nothing() -> None:
    # mylib::mystery runs 367 of 10 800 us: 3.4 % of busy
    assert judged(base(), base(date="later")).differences == ()


def test_unknown_work_of_one_run_is_never_passed_silently() -> None:
    other = changed(base(), MYSTERY, name="mylib::enigma")
    found = one(base(), other, "model FLOPs forward")
    assert (found.severity, found.a) == ("named", "400.00 MFLOP known, 3.4 % of busy time unknown")


def test_what_is_known_may_already_be_too_much() -> None:
    # 400 MFLOP and something unknown may be 460 MFLOP; 460 MFLOP can never be 400 MFLOP
    without = replace(base(), ops=(*handmade.OPS[:5], *handmade.OPS[6:]))
    assert one(base(), changed(without, ADDMM, cost=matrix(230e6)), "model FLOPs forward").severity == "named"
    assert one(without, changed(base(), ADDMM, cost=matrix(230e6)), "model FLOPs forward").severity == "refused"


def test_an_op_of_unknown_work_did_no_more_than_its_time_allows() -> None:
    # 367 us at twice 100 GFLOP/s are 73 MFLOP: with 400 known, 470 MFLOP may be the same work and 480 not. Of a type
    # without a ceiling nothing is known.
    without = replace(base(), ops=(*handmade.OPS[:5], *handmade.OPS[6:]))
    for each, severity in ((235e6, "named"), (240e6, "refused")):
        large = changed(without, ADDMM, cost=matrix(each))
        assert one(base(), large, "model FLOPs forward").severity == severity
        assert one(changed(base(), MYSTERY, dtype="fp8"), large, "model FLOPs forward").severity == "named"


def test_an_op_on_text_hides_products_of_the_other_run_alone() -> None:
    # Nothing multiplies texts or indices: 367 us at twice the 100 GFLOP/s of the other run's float32 products.
    without = replace(base(), ops=(*handmade.OPS[:5], *handmade.OPS[6:]))
    for dtype in ("string", "int64", "bool"):
        for each, severity in ((235e6, "named"), (240e6, "refused")):
            large = changed(without, ADDMM, cost=matrix(each))
            assert one(changed(base(), MYSTERY, dtype=dtype), large, "model FLOPs forward").severity == severity


def test_what_one_run_knows_of_a_part_is_named_and_of_nothing_is_refused() -> None:
    # Of 2 x 500 MFLOP, 400 are known of the other run and the rest may be in its unknown op, of a type that the device
    # has no ceiling for.
    some = changed(base(), MYSTERY, dtype="fp8")
    without = changed(replace(base(), ops=(*handmade.OPS[:5], *handmade.OPS[6:])), ADDMM, cost=matrix(500e6))
    assert one(some, without, "model FLOPs forward").severity == "named"
    nothing = changed(some, ADDMM, cost=unknown("no shapes"))
    assert one(nothing, without, "model FLOPs forward").severity == "refused"


def enigma(wall: float, name: str = "mylib::enigma") -> Profile:
    """The hand-made step with an op of unknown work that takes 15 of 25.8 ms, and a wall [s]."""
    ops = tuple(replace(op, own_ns=(15_000_000,) * 3) if op.signature == MYSTERY else op for op in handmade.OPS)
    return changed(replace(base(), ops=ops, wall=Wall(steps=(wall,) * 10)), MYSTERY, name=name)


@pytest.mark.parametrize(
    ("wall", "severity"),
    [
        (12.5e-3, "named"),  # nobody knows which is slower, so there is nothing to explain
        (9e-3, "named"),  # what the faster run does is not why the other one is slower
        (20e-3, "refused"),
        (40e-3, "named"),  # 15 of the 27.5 ms
    ],
)
def test_unknown_work_is_refused_where_it_can_explain_why_a_run_is_slower(wall: float, severity: str) -> None:
    assert one(base(), enigma(wall), "model FLOPs forward").severity == severity


def test_unknown_work_beside_all_that_the_other_run_does_is_named() -> None:
    # As above, and the other run has no op of unknown work: it asks for 400 MFLOP, and so many are known of both. Of
    # 399 known the missing one may be anywhere.
    without = replace(base(), ops=(*handmade.OPS[:5], *handmade.OPS[6:]))
    found = one(enigma(20e-3), without, "model FLOPs forward")
    assert (found.severity, found.b) == ("named", "400.00 MFLOP")
    less = changed(enigma(20e-3), ADDMM, cost=matrix(199e6))
    assert one(less, without, "model FLOPs forward").severity == "refused"


def test_python_that_is_called_back_makes_no_run_incomparable() -> None:
    # As above, but on the host; where the products differ, nothing says what it does.
    called = enigma(20e-3, "xla_ffi_python_cpu_callback")
    assert one(base(), called, "model FLOPs forward").severity == "named"
    assert one(base(), changed(called, ADDMM, cost=matrix(150e6)), "model FLOPs forward").severity == "refused"


def test_without_shapes_equal_names_prove_nothing() -> None:
    bare = changed(base(), ADDMM, cost=unknown("no shapes"), shapes="", reads=(), writes=())
    bare = replace(
        bare, ops=tuple(replace(op, reads=(), writes=()) if op.signature == ADDMM else op for op in bare.ops)
    )
    again = replace(bare, date="later")
    assert one(bare, again, "model FLOPs forward").severity == "named"


def test_forward_and_backward_not_told_apart() -> None:
    # a: 400 forward, 800 backward; b: 1200 MFLOP in all
    backward = product("[100,1000] x [1000,2000]", 400e6)
    a = base(phases=("forward", "optimizer", "backward"))
    a = more(more(a, backward, phase=2), backward, phase=2)
    b = more(more(base(), backward), backward)
    b = replace(b, flags=("phases-unresolved",))
    found = judged(a, b)
    assert found.verdict == "named differences"
    assert "model FLOPs forward" not in whats(found.differences)
    # 1600 MFLOP in all: a forward pass of 533 to 1600, which 400 is not
    assert one(a, more(b, backward), "model FLOPs forward").severity == "refused"
    # 1000 MFLOP in all: 333 to 1000, which may be 400
    small = product("[100,1000] x [1000,1000]", 200e6)
    c = replace(more(more(base(), backward), small), flags=("phases-unresolved",))
    assert one(a, c, "model FLOPs forward").severity == "named"


# ------------------------------------------------------------------------------------------------ named, with a share


def test_backward_is_named_as_contractions() -> None:
    # torch asks for the gradient of the input as well: 2 * 64 * 256 * 32 FLOP more, a third of its backward pass
    phases = ("forward", "optimizer", "backward")
    flops = 2.0 * 64 * 256 * 32
    weight = product("[32,64] x [64,256]", flops)
    a = base(phases=phases)
    for _ in range(2):
        a = more(a, weight, phase=2, own=300)
    b = more(a, replace(weight, shapes="[64,256] x [256,32]"), phase=2, own=300)
    found = one(a, b, "model FLOPs backward")
    assert found.severity == "named"
    (item,) = found.contractions
    assert (item.phase, item.m, item.n, item.k, item.a, item.b) == ("backward", 64, 32, 256, 0, 1)
    assert "1 more matmul of M, N, K = 64, 32, 256 in the second run" in found.text
    # 900 us of products, a third of their FLOPs more
    assert found.seconds == pytest.approx(300 * US * analyze(b).scale)


def tf32() -> Profile:
    tensor = replace(handmade.FP32, arithmetic="tf32", evidence="switch")
    faster = tuple(
        replace(op, own_ns=tuple(ns // 5 for ns in op.own_ns)) if op.signature == ADDMM else op for op in handmade.OPS
    )
    return replace(changed(base(), ADDMM, precision=tensor), ops=faster, wall=Wall(steps=(8.5e-3,) * 10))


def test_tf32_in_one_run_only() -> None:
    found = one(base(), tf32(), "tf32")
    assert (found.severity, found.a, found.b) == ("named", "fp32", "tf32")
    # two addmm: 5000 us against 1000 us, scaled as op times are; the walls are 4000 us apart
    assert found.seconds == pytest.approx((5000 - 1000 * analyze(tf32()).scale) * US)
    assert found.share == 1.0


def test_float32_products_explain_no_more_than_they_take() -> None:
    # The same two addmm in TF32, and beside them products of another type that take a second less there.
    other = replace(handmade.FP32, inputs="bf16", arithmetic="bf16")
    half = product("[32,64] x [64,256]", 2.0 * 64 * 256 * 32)
    a, b = (
        more(run, replace(half, dtype="bf16", precision=other), phase=0, own=own)
        for run, own in ((base(), 3000), (tf32(), 300))
    )
    found = one(a, b, "tf32")
    scales = [analyze(run).scale for run in (a, b)]
    assert found.seconds == pytest.approx((5000 * scales[0] - 1000 * scales[1]) * US)


def test_a_tf32_switch_without_products_that_show_it() -> None:
    found = one(base(), base(switches={"tf32": "on"}), "tf32")
    assert (found.severity, found.a, found.b, found.seconds) == ("named", "off", "on", 0.0)


def test_rates_prove_tf32() -> None:
    # 400 MFLOP in 1000 us are 400 GFLOP/s, four times the fp32 ceiling, whatever the switch says
    lying = changed(tf32(), ADDMM, precision=handmade.FP32)
    found = one(base(), lying, "precision by rate")
    assert (found.severity, found.a, found.b) == ("named", "no proof", "400 GFLOP/s")
    assert found.text.startswith("Matmuls said to be fp32 ran faster than the fp32 ceiling")
    # what is said to be tf32 is not among them, and of what nobody knows nothing is said
    silent = changed(tf32(), ADDMM, precision=replace(handmade.FP32, arithmetic=None))
    found = one(base(), silent, "precision by rate")
    assert found.text.startswith("Matmuls of float32 data whose arithmetic is not known ran faster than the fp32")
    # slower proves nothing, and in both runs it is no difference
    assert "precision by rate" not in whats(judged(base(), tf32()).differences)
    assert "precision by rate" not in whats(judged(lying, replace(lying, date="later")).differences)


def fused_attention() -> Profile:
    kernel = replace(
        handmade.SIGNATURES[SOFTMAX], name="aten::_scaled_dot_product_flash_attention_for_cpu", op_class="attention"
    )
    return replace(base(), signatures=(*handmade.SIGNATURES[:SOFTMAX], kernel, *handmade.SIGNATURES[SOFTMAX + 1 :]))


def test_attention_is_what_ran() -> None:
    found = one(base(), fused_attention(), "attention")
    assert (found.severity, found.a, found.b) == ("named", "written out", "a fused kernel (flash)")
    # what PyTorch calls sdpa and runs as products is written out, as it is elsewhere
    names = [base(switches={"attention": name}) for name in ("sdpa", "written out")]
    assert "attention" not in whats(judged(*names).differences)


def test_attention_share() -> None:
    # the block "attention core" takes 1950 + 317 us in one and 1450 + 317 in the other
    quick = replace(fused_attention().ops[4], own_ns=(1_485_000, 1_500_000, 1_515_000))
    faster = replace(fused_attention(), ops=(*handmade.OPS[:4], quick, *handmade.OPS[5:]))
    faster = replace(faster, wall=Wall(steps=(12.3e-3,) * 10))
    scale = analyze(faster).scale
    found = one(base(), faster, "attention")
    assert found.seconds == pytest.approx((2267 - 1767 * scale) * US)


@pytest.mark.parametrize(
    ("what", "a", "b"),
    [
        ("gelu", "erf", "tanh"),
        ("attention mask", "all ones", "all ones, causal"),
        ("loss", "cross entropy", "mean squared error"),
        ("input", "device", "host"),
        ("kv cache", "on", "off"),
    ],
)
def test_settings_that_are_named(what: str, a: str, b: str) -> None:
    found = one(base(switches={what: a}), base(switches={what: b}), what)
    assert (found.severity, found.a, found.b) == ("named", a, b)


def test_what_one_run_does_not_record() -> None:
    found = one(base(switches={"loss": "cross entropy"}), base(switches={"optimizer": "AdamW"}), "loss")
    assert (found.severity, found.b) == ("named", None)
    # a trace records none of it, which is one difference
    stated = {"loss": "cross entropy", "attention mask": "all ones", "dropout": "off"}
    found = one(base(switches=stated), base(switches={}), "settings")
    assert (found.a, found.b) == ("attention mask, loss", None)


def test_gelu_in_other_words() -> None:
    same = [base(switches={"gelu": name}) for name in ("erf", "none")]
    assert judged(*same).differences == ()
    # by what it evaluates, where no switch says it: the hand-made one evaluates erf
    assert "gelu" not in whats(judged(base(), base(switches={"gelu": "erf"})).differences)
    assert one(base(), base(switches={"gelu": "tanh"}), "gelu").a == "erf"


def test_optimizers() -> None:
    adam = base(switches={"optimizer": "Adam"})
    adamw = base(switches={"optimizer": "AdamW", "optimizer weight_decay": "0.01"})
    assert one(adam, adamw, "optimizer").severity == "named"
    undecayed = base(switches={"optimizer": "AdamW", "optimizer weight_decay": "0"})
    assert judged(adam, undecayed).differences == ()
    loops = base(switches={"optimizer": "Adam", "optimizer fused": "True"})
    fused = base(switches={"optimizer": "Adam", "optimizer fused": "False"})
    assert one(loops, fused, "optimizer kernels").a == "fused True"
    rates = [base(switches={"optimizer": "Adam", "optimizer lr": each}) for each in ("0.1", "0.001")]
    assert judged(*rates).differences == ()


def test_how_the_step_is_run() -> None:
    compiled = base(compilation=Compilation(compiler="torch.compile", mode="max-autotune"))
    assert one(base(), compiled, "jit").b == "compiled by torch.compile, mode max-autotune"
    thunks = replace(base().profiled, mechanism="xla-thunk")
    on, off = (base(backend="keras-jax", switches={"jit": each}, profiled=thunks) for each in ("on", "off"))
    found = one(on, off, "jit")
    assert (found.a, found.b, found.seconds) == ("compiled by XLA", "XLA, op by op", None)
    unknown = replace(on, switches={})
    assert one(unknown, off, "jit").a == "compiled by XLA"
    # a step whose ops are programs of their own
    apart = replace(unknown, conditions={PROGRAMS: float(len(unknown.ops))})
    assert one(unknown, apart, "jit").b == "XLA, op by op"
    part = replace(on, switches={"jit": "in part"})
    assert one(on, part, "jit").b == "a TensorFlow graph, in part compiled by XLA"
    vain = replace(compiled, flags=("nothing-compiled",))
    assert one(compiled, vain, "jit").b == "op by op, as torch.compile compiled nothing"
    assert one(base(), base(flags=("compiled-code",)), "jit").b == "op by op, beside compiled code"


def test_graphs_and_graph_breaks_of_a_compiler() -> None:
    """Reasons are counted by how often a break was made: two for one and one for the other are three."""

    def compiled(graphs: int, compiler: str = "torch.compile", **breaks: int) -> Profile:
        return base(compilation=Compilation(compiler=compiler, graphs=graphs, breaks=breaks))

    found = one(compiled(1), compiled(4, item=2, print=1), "compiled graphs")
    assert (found.severity, found.a, found.b) == ("named", "1 graph", "4 graphs, 3 graph breaks")
    assert one(compiled(2), compiled(2, item=1), "compiled graphs").b == "2 graphs, 1 graph break"
    assert judged(compiled(2, item=1), compiled(2, item=1)).differences == ()
    # graphs of two compilers say nothing of each other, nor do those of one beside a run without
    vain = replace(compiled(0), flags=("nothing-compiled",))
    assert "compiled graphs" not in whats(judged(compiled(1), vain).differences)
    for other in (compiled(3, "TorchScript"), base()):
        assert whats(judged(compiled(1), other).differences) == ["jit"]


def test_graphs_that_a_host_launches() -> None:
    """Of the 8 kernels of the hand-made step a graph launches 7."""
    gpu = Device(name="Round GPU", kind="cuda", ceilings={})
    single = base(device=gpu)
    graphs = base(
        device=gpu,
        profiled=replace(base().profiled, mechanism="cuda-graph"),
        conditions={"graph_launches_per_step": 1.0, "graph_kernels_per_step": 7.0},
    )
    found = one(single, graphs, "host launches")
    assert (found.severity, found.a, found.b) == ("named", "8 kernels", "1 graph of 7 kernels and 1 kernel")
    assert "host launches" not in whats(judged(single, single).differences)
    unknown = one(base(device=gpu, profiled=replace(base().profiled, mechanism="xla-thunk")), graphs, "host launches")
    assert (unknown.severity, unknown.a) == ("named", None)


@pytest.mark.parametrize(("key", "what"), [(PROGRAMS, "compiled programs"), (CALLS, "calls of graphs")])
def test_programs_and_graphs_that_python_calls(key: str, what: str) -> None:
    many, few, none = base(conditions={key: 3.0}), base(conditions={key: 1.0}), base()
    found = one(many, few, what)
    assert (found.severity, found.a, found.b) == ("named", "3 per step", "1 per step")
    assert judged(many, none).differences == judged(few, few).differences == ()
    # as many programs as ops: that is "op by op", and no number beside it says more
    apart = base(conditions={PROGRAMS: float(len(base().ops)), key: 99.0 if key == CALLS else 8.0})
    assert what not in whats(judged(apart, few).differences)


def test_anomaly_mode_is_off_where_it_is_not_recorded() -> None:
    """Also beside another backend of the framework; a trace, which records no switch, says nothing of it."""
    usual = {"oneDNN": "True"}
    watched = base(switches={**usual, "detect_anomaly": "True"})
    for other in (base(switches=usual), base(switches=usual, backend="torch-compile")):
        found = one(watched, other, "switch detect_anomaly")
        assert (found.severity, found.a, found.b) == ("named", "True", "False")
    found = one(watched, base(switches={}), "settings")
    assert (found.a, found.b) == ("switch detect_anomaly, switch oneDNN", None)


@pytest.mark.parametrize("compiler", ["torch.compile", "TorchScript", "a new one"])
def test_the_switches_of_a_compiler_are_judged_with_how_the_step_is_run(compiler: str) -> None:
    traced, whole = (
        base(compilation=Compilation(compiler=compiler, mode=mode), switches={compiler: mode, f"{compiler} f": mode})
        for mode in ("traced", "whole")
    )
    assert whats(judged(traced, whole).differences) == ["jit"]
    unnamed = base(compilation=Compilation(compiler=""), switches={"oneDNN": "True"})
    assert one(unnamed, replace(unnamed, switches={"oneDNN": "False"}), "switch oneDNN").severity == "named"


def test_switches_mean_the_same_within_one_framework_only() -> None:
    found = one(base(switches={"oneDNN": "True"}), base(switches={"oneDNN": "False"}), "switch oneDNN")
    assert found.severity == "named"
    other = base(backend="tensorflow", versions={"tensorflow": "2.21.0"}, switches={"oneDNN": "default"})
    assert "switch oneDNN" not in whats(judged(base(switches={"oneDNN": "True"}), other).differences)
    for name, a, b in (("image layout", "channels last", "channels first"), ("scheduler", "PNDM", "DDIM")):
        found = one(base(switches={name: a}), replace(other, switches={name: b}), f"switch {name}")
        assert (found.severity, found.a, found.b) == ("named", a, b)


def test_two_backends_of_a_framework_that_no_list_names() -> None:
    """Their switches are compared whatever they are called, and their ops have one launch floor."""
    a = base(backend="mlx", framework="mlx", versions={"mlx": "0.30"}, switches={"streams": "1"})
    b = replace(a, backend="mlx-compile", switches={"streams": "2"})
    assert one(a, b, "switch streams").severity == "named"
    assert executor_of(a) == executor_of(b) == "mlx-eager"
    old = [replace(run, framework=None) for run in (a, b)]  # each backend is then taken for a framework
    assert "switch streams" not in whats(judged(*old).differences)


def test_threads() -> None:
    # more threads may also be slower, so no part of the difference is the most that they explain
    slow = base(environment={"threads": "1"}, wall=Wall(steps=(25e-3,) * 10))
    found = one(slow, base(environment={"threads": "2"}), "threads")
    assert (found.severity, found.a, found.b) == ("named", "1", "2")
    assert (found.seconds, found.share) == (None, None)


def test_clocks() -> None:
    slow, fast = base(conditions={"sm_clock": 1.2e9}), base(conditions={"sm_clock": 1.5e9})
    slow = replace(slow, wall=Wall(steps=(20e-3,) * 10))
    found = one(slow, fast, "clocks")
    assert (found.a, found.b) == ("1.20 GHz", "1.50 GHz")
    assert found.seconds == pytest.approx(20e-3 * 0.2)
    near = base(conditions={"sm_clock": 1.48e9})
    assert judged(fast, near).differences == ()


def test_environments() -> None:
    plain = base(environment={"threads": "2", "cpus": "2"})
    blocking = base(environment={"threads": "2", "cpus": "2", "CUDA_LAUNCH_BLOCKING": "1"})
    assert one(plain, blocking, "environment CUDA_LAUNCH_BLOCKING").a == "not set"
    environment = {"threads": "2", "cpus": "2", "NPROC": "2"}
    other = base(backend="jax", versions={"jax": "0.10.2"}, environment=environment)
    assert "environment NPROC" not in whats(judged(plain, other).differences)


def test_one_thread_waits_for_no_other() -> None:
    """A measurement on contended cores sets how threads wait: that is a difference only where there are several."""
    for threads, found in (("1", []), ("2", ["environment OMP_WAIT_POLICY"])):
        plain = base(environment={"threads": threads})
        passive = base(environment={"threads": threads, "OMP_WAIT_POLICY": "PASSIVE"})
        assert whats(judged(plain, passive).differences) == found


def test_protocols() -> None:
    # steady 12.5 ms, single 13.0 ms
    single = base(wall=Wall(steps=(13e-3,) * 10, protocol="single"))
    found = one(base(), single, "protocol")
    assert found.seconds == pytest.approx(0.5e-3)
    assert found.share == pytest.approx(1.0)


def test_a_profiled_wall() -> None:
    found = one(base(), base(wall=replace(base().wall, source="profiled")), "wall")
    assert found.severity == "named"
    assert "overhead" in found.text


def test_versions_and_devices() -> None:
    found = one(base(), base(versions={"torch": "2.14.0", "jax": "0.10"}), "versions")
    assert (found.severity, found.a, found.b, found.share) == ("named", "torch 2.13.0", "torch 2.14.0", None)
    device = replace(handmade.device(), name="Square Device")
    assert one(base(), base(device=device), "device").severity == "named"


def test_what_an_import_could_not_see() -> None:
    imported = base(model="trace", flags=("model-flops-derived", "no-shapes"), imported=Imported(files=("trace.json",)))
    found = judged(base(), imported)
    assert found.verdict == "named differences"
    assert {"model-flops-derived", "no-shapes"} <= {*whats(found.of("named"))}
    unknown_sizes = base(batch=None, parameters=None, seq=None)
    assert {*whats(judged(base(), unknown_sizes).of("named"))} == {"batch", "sequence length", "parameters"}


def test_what_is_in_doubt_of_both_alike_is_no_difference() -> None:
    derived = base(flags=("model-flops-derived",))
    found = judged(derived, replace(derived, date="later"))
    (doubt,) = found.of("warning")
    assert (found.verdict, found.of("named")) == ("comparable", ())
    assert doubt.text == f"{clause(FLAGS['model-flops-derived'])}, in both runs."
    # of other extents it is one
    some, others = (base(flags=(f"replays-unattributed: {number} kernels",)) for number in (3, 4))
    assert whats(judged(some, others).of("named")) == ["replays-unattributed"]
    assert judged(some, replace(some, date="later")).of("warning")[0].text.endswith("in both runs (3 kernels).")


# ------------------------------------------------------------------------------------------------ sentences


def test_the_refusal_is_one_sentence() -> None:
    found = judged(base(), base(batch=8, mode="infer"))
    assert refusal(found) == (
        "The runs are not comparable, they differ in mode (train against infer), batch (4 against 8): measure the same "
        "work in both, or go on with --allow, which keeps this warning in every output."
    )


def test_sentences_name_the_backends() -> None:
    found = one(base(), base(backend="jax", batch=8), "batch")
    assert found.text == "The batches differ: 4 in torch and 8 in jax."


def test_runs_that_were_not_timed() -> None:
    counted = base(
        profiled=None, wall=Wall(steps=(), first=0.1), ops=tuple(replace(op, own_ns=()) for op in handmade.OPS)
    )
    with pytest.raises(InputError, match=r"second profile was counted and not timed.*without --count-only"):
        judged(base(), counted)
    analysis = analyze(base())
    empty = replace(base(), wall=Wall(steps=()))
    with pytest.raises(InputError, match="first profile holds no timed steps"):
        parity(replaced(analysis, profile=empty), analysis)


# ------------------------------------------------------------------------------------------------ generating text


def test_the_same_tokens_may_take_other_products() -> None:
    a = base(mode="generate", new_tokens=8)
    b = changed(a, ADDMM, cost=matrix(250e6))  # two of 200 MFLOP, and two of 250 with room for tokens to come
    difference = one(a, b, "model FLOPs forward")
    assert difference.severity != "refused"
    assert [(item.a, item.b) for item in difference.contractions if item.a != item.b]
    assert "The same tokens are generated by different matmuls in the forward pass" in difference.text
    assert judged(a, b).verdict != "not comparable"


@pytest.mark.parametrize("other", [{"new_tokens": 9}, {"new_tokens": None}, {"seq": 26}, {"mode": "infer"}])
def test_other_tokens_are_other_work(other: dict[str, Any]) -> None:
    a = base(mode="generate", new_tokens=8)
    b = changed(replace(a, **other), ADDMM, cost=matrix(250e6))
    assert one(a, b, "model FLOPs forward").severity == "refused"
