"""The words of a row: what one run takes in it."""

from __future__ import annotations

from roofline.comparison.account.row import Amount, OpChange, Row, Style
from roofline.comparison.account.words import describe_amount

#: 5 ms, of which 3 ms are dispatching: 3 mul and a view in two kernels, in A alone.
ROW = Row(
    kind="only",
    a=Amount(launches=2, seconds=5e-3, dispatch=3e-3, bytes=8e6),
    b=Amount(bytes=0.0),
    ops=(OpChange(name="aten::mul", a=3.0, b=0.0), OpChange(name="aten::view", a=1.0, b=0.0)),
)


def test_kernels_and_dispatching_add_up_to_the_time_of_a_row() -> None:
    on_gpu, on_cpu = (Style(("A", "B"), kernels=kernels) for kernels in (True, False))
    assert (
        describe_amount(0, ROW, on_gpu)
        == "2.00 ms in 4 ops (2 kernels), 3.00 ms GPU idle while dispatching, 8.00 MB moved"
    )
    assert describe_amount(0, ROW, on_cpu) == "2.00 ms in 2 calls, 3.00 ms dispatching, 8.00 MB moved"
    assert describe_amount(1, ROW, on_gpu) == ""
