"""The kernels that differ where two devices run the same ops."""

from __future__ import annotations

from msgspec.structs import replace
from synthetic import ADD, LINEAR, step

from roofline.comparison.account.account import account
from roofline.comparison.account.row import KernelChange
from roofline.comparison.terms import compare
from roofline.content.comparison.account_rows import meaning
from roofline.core.schema import Profile

ALIGNED, ODD = (
    "void cutlass::Kernel2<cutlass_80_gemm_tn_align8>(P)",
    "void cutlass::Kernel2<cutlass_80_gemm_tn_align1>(P)",
)
REDUCE = "splitKreduce_kernel"


def run_by(profile: Profile, *kernels: tuple[str, ...]) -> Profile:
    """The profile whose ops run these kernels, of equal time."""
    names = tuple(dict.fromkeys(name for of in kernels for name in of))
    ops = tuple(
        replace(op, kernels=tuple((names.index(name), 1000) for name in of))
        for op, of in zip(profile.ops, kernels, strict=True)
    )
    return replace(profile, ops=ops, kernels=names)


def test_the_kernels_of_one_run_that_the_other_lacks_are_named() -> None:
    a = run_by(step((LINEAR, LINEAR, LINEAR, ADD)), (ODD, REDUCE), (ODD, REDUCE), (ALIGNED,), ("add_1",))
    b = run_by(step((LINEAR, LINEAR, LINEAR, ADD)), (ALIGNED, REDUCE), (ALIGNED, REDUCE), (ALIGNED,), ("add_2",))
    rows = {row.op_class: row for row in account(compare(a, b)).rows if row.kind == "rate"}
    (change,) = rows["contraction"].kernels
    seconds = change.seconds[0]
    # A compiler numbers its kernels: add_1 and add_2 are one. The reduction and the third product are the same.
    assert change == KernelChange(kernels=((ODD,), (ALIGNED,)), ops=2, seconds=(seconds, seconds))
    assert all(not row.kernels for op_class, row in rows.items() if op_class != "contraction")
    assert "2 ops by cutlass_80_gemm_tn_align1 in A" in meaning(rows["contraction"])
    assert "cutlass_80_gemm_tn_align8 in B" in meaning(rows["contraction"])


def test_ops_without_recorded_kernels_run_no_other_ones() -> None:
    a, b = step((LINEAR, ADD)), run_by(step((LINEAR, ADD)), (ODD,), ("add",))
    assert all(not row.kernels for row in account(compare(a, b)).rows)
