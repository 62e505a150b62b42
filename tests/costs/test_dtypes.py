"""The type of what an op writes, by bytes, and the type that it computes in."""

from __future__ import annotations

import pytest

from roofline.costs.dtypes import DTYPES, computed, of_most, profiler_name


def test_the_type_of_most_bytes() -> None:
    """Of a thousand fp32 and two hundred fp64 numbers 4000 bytes are fp32 and 1600 fp64."""
    assert of_most([("fp64", 200 * 8.0), ("fp32", 400 * 4.0), ("fp32", 600 * 4.0)]) == "fp32"
    assert of_most([("fp64", 0.0), ("fp32", 0.0)]) == "fp64", "the first of equal ones"
    assert of_most([(None, 8.0), ("int32", 4.0)]) == "int32"
    assert of_most([]) is None


def test_a_type_is_known_in_any_spelling() -> None:
    spelled = {"c10::bfloat16": "bf16", "BFloat16": "bf16", "c10::half": "fp16", "Half": "fp16", "Double": "fp64"}
    assert {name: DTYPES[profiler_name(name)][0] for name in spelled} == spelled
    assert {profiler_name(name) for name in DTYPES} == {*DTYPES}
    assert profiler_name("StringView") == "StringView"


@pytest.mark.parametrize(
    ("inputs", "output", "product", "expected"),
    [
        (["fp32", "fp64"], "fp64", False, "fp64"),  # promoted
        (["fp32", "fp64"], "fp32", False, "fp32"),  # a number of no dimension is not
        (["fp32"], "fp64", False, "fp64"),  # a cast
        (["int64"], "fp32", False, "fp32"),  # a quotient of whole numbers
        (["fp32", "fp64"], "bool", False, "fp64"),  # a comparison
        (["bool", "int32"], "int32", False, "bool"),
        (["fp8", "fp8"], "bf16", True, "fp8"),  # a product multiplies what it is given
        (["int8", "int8"], "int32", True, "int8"),
        ([], "fp32", False, "fp32"),  # what is made of nothing
        ([], None, False, None),
    ],
)
def test_the_type_that_an_op_computes_in(
    inputs: list[str], output: str | None, product: bool, expected: str | None
) -> None:
    assert computed(inputs, output, product) == expected
