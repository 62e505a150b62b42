"""Find the matrix products that a step executes, as M, N, K, however the framework wrote its operands.

Shapes are recorded for people, without saying which dimensions are contracted or transposed. They need not: of operands
with B*M*K and B*K*N elements and a product of F = 2*B*M*N*K FLOPs,

    N = (F / 2) / (elements of the first),  M = (F / 2) / (elements of the second),  B*K = both / (F / 2)

and the B*M*N elements of the result tell B. What does not come out whole, or not as a product of the operand's
dimensions, was not understood, and is told by its FLOPs alone.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import pairwise, takewhile
from typing import NamedTuple

from msgspec.structs import replace

from roofline import units
from roofline.analysis.analysis import Analysis, per_analysis
from roofline.comparison.parity.difference import SAME_WORK, Contraction
from roofline.core.schema import Op, Signature
from roofline.core.statistics import ROUNDING
from roofline.core.vocabulary import LINEAR_ALGEBRA, PRODUCTS
from roofline.costs.dtypes import BYTES

#: A shape that people can read: a profile may come from anywhere.
_SHAPE = re.compile(r"\[((?:\d{1,15}+[, ]*+){0,8})\]")
_SIZE = re.compile(r"\d+")
_ADDED_FIRST = re.compile(r"add(mm|bmm|mv)|baddbmm")  # what is added to the product is the first operand


class Product(NamedTuple):
    """A product: see `Contraction`. flops: of one execution [FLOP]."""

    what: str
    batch: int | None
    m: int | None
    n: int | None
    k: int | None
    flops: float


#: How often each product is executed, and how long that takes [s].
Executed = Mapping[Product, tuple[int, float]]


def matrix_work(analysis: Analysis, op: Op) -> list[tuple[str, Signature]]:
    """List the matrix work of an op by phase: that of its constituents where these hold all of it.

    None of linear algebra, of which frameworks ask for the same in other steps (`roofline.costs.linear_algebra`).
    """
    profile = analysis.profile
    signature = profile.signatures[op.signature]
    if signature.kind == LINEAR_ALGEBRA:
        return []
    model_flops = signature.cost.model_flops
    parts = [(part.phase, part.signature) for part in analysis.constituents(op) if part.signature.cost.flops]
    part_flops = sum(part.cost.model_flops or 0.0 for _, part in parts)
    if not parts or model_flops is None or not math.isclose(part_flops, model_flops, rel_tol=SAME_WORK):
        return [(profile.phases[op.phase], signature)]
    (phase, part), *further_parts = parts
    if not part.shapes and not further_parts:  # its operands are those of the op
        return [(phase, replace(part, shapes=signature.shapes))]
    return parts


@per_analysis
def executed(analysis: Analysis) -> Mapping[str, Executed]:
    """Return how often the step executes each product, and how long that takes, by phase.

    The time of a fused kernel is divided over its products by their FLOPs.
    """
    products: dict[str, dict[Product, tuple[int, float]]] = {}
    alike: dict[Hashable, list[tuple[str, Product, int]]] = {}
    for op, share in zip(analysis.profile.ops, analysis.table.share.tolist(), strict=True):
        key = op.signature, op.phase, op.constituents, op.places, op.launches
        if key not in alike:
            alike[key] = [
                (phase, *_product(signature, op.launches))
                for phase, signature in matrix_work(analysis, op)
                if signature.cost.flops and signature.op_class in PRODUCTS
            ]
        flops = sum(product.flops * times for _, product, times in alike[key])
        for phase, product, times in alike[key]:
            counts = products.setdefault(phase, {})
            before, seconds = counts.get(product, (0, 0.0))
            counts[product] = before + times, seconds + share * product.flops * times / flops
    return products


def written_out(analysis: Analysis, phase: str, missing: Counter[Product]) -> Counter[Product]:
    """Return which of the products that a run does not execute it writes as multiplications and sums.

    B*M*N*K multiplications in one op, or one part of a fused one, and B*M*N*(K - 1) additions in another.
    """
    profile = analysis.profile
    parts = Counter[tuple[str, float]](
        (signature.op_class, signature.cost.vector_flops)
        for op in profile.ops
        for signature, place in (
            [(part.signature, part.phase) for part in analysis.constituents(op)]
            or [(profile.signatures[op.signature], profile.phases[op.phase])]
        )
        if place == phase and signature.cost.vector_flops
    )
    written = Counter[Product]()
    for product, times in missing.items():
        if product.m is None or product.n is None:
            continue
        multiplied = "pointwise", product.flops / 2
        added = "reduction", product.flops / 2 - (product.batch or 1) * product.m * product.n
        written[product] = min(times, parts[multiplied], parts[added])
        parts.subtract(dict.fromkeys((multiplied, added), written[product]))
    return +written


def differing(phase: str, a: Counter[Product], b: Counter[Product]) -> tuple[Contraction, ...]:
    """List the products that two runs do not execute equally often, most FLOPs first.

    One that a run tells only by its FLOPs stands for any product of the other with as many.
    """
    surplus_a, surplus_b = a - b, b - a
    for surplus, counterpart in ((surplus_a, surplus_b), (surplus_b, surplus_a)):
        by_flops = sorted(counterpart, key=lambda product: product.flops)
        flops = [product.flops for product in by_flops]
        for product in [product for product in surplus if product.m is None]:
            near = ROUNDING * product.flops
            for twin in by_flops[bisect_left(flops, product.flops - near) : bisect_right(flops, product.flops + near)]:
                matched = min(surplus[product], counterpart[twin])
                surplus[product] -= matched
                counterpart[twin] -= matched
    contractions = [
        Contraction(phase=phase, **product._asdict(), a=surplus_a[product], b=surplus_b[product])
        for product in (+surplus_a) | (+surplus_b)
    ]
    return tuple(sorted(contractions, key=lambda contraction: -abs(contraction.a - contraction.b) * contraction.flops))


def named(product: Product | Contraction, number: int) -> str:
    """Say a product, of which there are `number`."""
    size = units.flop(product.flops) if product.m is None else f"M, N, K = {product.m}, {product.n}, {product.k}"
    batch = f"{product.batch} times " if product.batch is not None and product.batch > 1 else ""
    noun = product.what if number == 1 or product.what == "attention" else f"{product.what}s"
    return f"{noun} of {batch}{size}"


def _product(signature: Signature, launches: int) -> tuple[Product, int]:
    """Return a product and its executions: an instruction in a loop is one op with the work of all its rounds."""
    flops = float(signature.cost.flops or 0.0)
    kind = "attention" if signature.op_class == "attention" else "matmul"
    kind = "convolution" if signature.kind.startswith("convolution") else kind
    for times in (1, max(1, launches)):
        half = flops / 2 / times
        dimensions = _dimensions(signature, int(half)) if kind == "matmul" and half.is_integer() else None
        if dimensions is not None:
            batch, m, n, k = dimensions
            return Product(kind, batch, m, n, k, float(2 * batch * m * n * k)), times
    return Product(kind, None, None, None, None, flops), 1


def _dimensions(signature: Signature, half: int) -> tuple[int, int, int, int] | None:
    """Return (B, M, N, K) of a product of B*M*N*K = `half` multiply-adds, M >= N; None where the shapes do not tell."""
    operands = [tuple(map(int, _SIZE.findall(text))) for text in _SHAPE.findall(signature.shapes)]
    if _ADDED_FIRST.search(signature.name) and len(operands) > 2:
        del operands[0]
    size = BYTES.get((signature.precision.output if signature.precision else None) or signature.dtype or "")
    written = None if size is None or signature.cost.bytes_written is None else signature.cost.bytes_written / size
    matrices = [dims for dims in operands if len(dims) > 1]  # a bias may stand between them
    for first, second in pairwise(matrices if len(matrices) > 1 else operands):
        elements = math.prod(first), math.prod(second)
        if half <= 0 or not all(elements) or half % elements[0] or half % elements[1]:
            continue
        n, m = half // elements[0], half // elements[1]
        if (elements[0] * elements[1]) % half or m not in _divisions(first) or n not in _divisions(second):
            continue
        inner = elements[0] * elements[1] // half
        batch = _batch(first, second, inner, None if written is None else written / (m * n))
        if batch is not None:
            return batch, max(m, n), min(m, n), inner // batch
    return None


def _batch(first: tuple[int, ...], second: tuple[int, ...], inner: int, result_batch: float | None) -> int | None:
    """Return the number of independent products: by the size of the result, else by equal leading dimensions."""
    common = _divisions(first) & _divisions(second)
    equal = takewhile(lambda sizes: sizes[0] == sizes[1], zip(first[:-2], second[:-2], strict=False))
    leading = math.prod(size for size, _ in equal)
    for number in (result_batch, leading, 1):
        batch = int(number or 0)
        if batch == number and batch in common and inner % batch == 0 and inner // batch in common:
            return batch
    return None


def _divisions(dims: tuple[int, ...]) -> frozenset[int]:
    """Return the products of all selections of some dimensions."""
    divisors = {1}
    for size in dims:
        divisors |= {size * divisor for divisor in divisors}
    return frozenset(divisors)
