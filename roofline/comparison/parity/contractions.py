"""Which matrix products a step executes, as M, N, K, however the framework wrote its operands.

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
from itertools import pairwise
from typing import NamedTuple

from roofline import units
from roofline.analysis.analysis import Analysis
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
    """One product: see `Contraction`. flops: of one execution [FLOP]."""

    what: str
    batch: int | None
    m: int | None
    n: int | None
    k: int | None
    flops: float

    @property
    def known(self) -> bool:
        """Whether its dimensions are."""
        return self.m is not None


class MatrixWork(NamedTuple):
    """Matrix work of an op, or of one of those fused into it. shapes: where to look for its operands."""

    phase: str
    signature: Signature
    shapes: str
    model: float | None
    executed: float | None


def matrix_work(analysis: Analysis, op: Op) -> tuple[MatrixWork, ...]:
    """The matrix work of an op: that of its constituents where these hold all of it, each in its own phase.

    None of linear algebra, of which frameworks ask for the same in other steps (`roofline.costs.linear_algebra`).
    """
    profile = analysis.profile
    signature = profile.signatures[op.signature]
    if signature.kind == LINEAR_ALGEBRA:
        return ()
    whole = signature.cost.model_flops
    parts = [part for part in analysis.constituents(op) if part.signature.cost.flops]
    known = sum(part.signature.cost.model_flops or 0.0 for part in parts)
    if not parts or whole is None or not math.isclose(known, whole, rel_tol=SAME_WORK):
        phase = profile.phases[op.phase]
        return (MatrixWork(phase, signature, signature.shapes, whole, signature.cost.flops),)
    return tuple(
        MatrixWork(
            part.phase,
            part.signature,
            part.signature.shapes or (signature.shapes if len(parts) == 1 else ""),
            part.signature.cost.model_flops,
            part.signature.cost.flops,
        )
        for part in parts
    )


def products(analysis: Analysis) -> dict[str, Counter[Product]]:
    """Count how often the step executes each product, by phase."""
    return {
        phase: Counter({product: times for product, (times, _) in some.items()})
        for phase, some in executed(analysis).items()
    }


def executed(analysis: Analysis) -> dict[str, dict[Product, tuple[int, float]]]:
    """Return how often the step executes each product, and how long that takes [s], by phase.

    The time of a fused kernel is divided over its products by their FLOPs.
    """
    found: dict[str, dict[Product, tuple[int, float]]] = {}
    read: dict[tuple[int, tuple[int, ...], int], list[tuple[int, Product, int]]] = {}
    for row, op in enumerate(analysis.profile.ops):
        # What is fused is told by the op's signature, the constituents and how often it ran.
        key = (op.signature, op.constituents, op.launches)
        parts = matrix_work(analysis, op)
        if key not in read:
            read[key] = [
                (place, *_product(part, op.launches))
                for place, part in enumerate(parts)
                if part.executed and part.signature.op_class in PRODUCTS
            ]
        whole = sum(product.flops * times for _, product, times in read[key])
        for place, product, times in read[key]:
            counts = found.setdefault(parts[place].phase, {})
            before, seconds = counts.get(product, (0, 0.0))
            share = float(analysis.table.share[row]) * product.flops * times / whole if whole else 0.0
            counts[product] = before + times, seconds + share
    return found


def written_out(analysis: Analysis, phase: str, missing: Counter[Product]) -> Counter[Product]:
    """Return which of the products that a run does not execute it writes as multiplications and sums.

    B*M*N*K multiplications in one op, or one part of a fused one, and B*M*N*(K - 1) additions in another.
    """
    parts = Counter[tuple[str, float]](
        (part.op_class, part.cost.vector_flops)
        for op in analysis.profile.ops
        for part in _parts_in(analysis, op, phase)
        if part.cost.vector_flops
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


def _parts_in(analysis: Analysis, op: Op, phase: str) -> list[Signature]:
    """List the signatures of what an op does in a phase, of a fused op those of its parts."""
    parts = analysis.constituents(op)
    if parts:
        return [part.signature for part in parts if part.phase == phase]
    return [analysis.profile.signatures[op.signature]] if analysis.profile.phases[op.phase] == phase else []


def differing(phase: str, a: Counter[Product], b: Counter[Product]) -> tuple[Contraction, ...]:
    """What two runs do not execute equally often, most FLOPs first.

    What one of them tells only by its FLOPs stands for any product of the other with as many.
    """
    more, less = a - b, b - a
    for left, right in ((more, less), (less, more)):
        by_flops = sorted(right, key=lambda product: product.flops)
        flops = [product.flops for product in by_flops]
        for product in [product for product in left if not product.known]:
            near = ROUNDING * abs(product.flops)
            for twin in by_flops[bisect_left(flops, product.flops - near) : bisect_right(flops, product.flops + near)]:
                matched = min(left[product], right[twin])
                left[product] -= matched
                right[twin] -= matched
    apart = [
        Contraction(phase=phase, **product._asdict(), a=more[product], b=less[product]) for product in (+more) | (+less)
    ]
    return tuple(sorted(apart, key=lambda each: -abs(each.a - each.b) * each.flops))


def most_apart(names: tuple[str, str], apart: tuple[Contraction, ...]) -> str:
    """Say the contraction that makes most of a difference: ", most by 2 more matmuls of M, N, K = ... in torch"."""
    if not apart:
        return ""
    most = apart[0]
    number = abs(most.a - most.b)
    return f", most by {number} more {named(most, number)} in {names[most.a < most.b]}"


def named(product: Product | Contraction, number: int) -> str:
    """Say a product, of which there are `number`."""
    size = units.flop(product.flops) if product.m is None else f"M, N, K = {product.m}, {product.n}, {product.k}"
    batch = f"{product.batch} times " if product.batch is not None and product.batch > 1 else ""
    what = product.what if number == 1 or product.what == "attention" else f"{product.what}s"
    return f"{what} of {batch}{size}"


def _product(part: MatrixWork, launches: int) -> tuple[Product, int]:
    """(a product, how often it is executed): an instruction in a loop is one op with the work of all its rounds."""
    signature, flops = part.signature, float(part.executed or 0.0)
    what = "attention" if signature.op_class == "attention" else "matmul"
    what = "convolution" if signature.kind.startswith("convolution") else what
    if what == "matmul" and math.isfinite(flops):
        for times in dict.fromkeys((1, max(1, launches))):
            half = flops / 2 / times
            if half != int(half):
                continue
            dimensions = _dimensions(signature, part.shapes, int(half))
            if dimensions is not None:
                batch, m, n, k = dimensions
                return Product(what, batch, m, n, k, float(2 * batch * m * n * k)), times
    return Product(what, None, None, None, None, flops), 1


def _dimensions(signature: Signature, shapes: str, half: int) -> tuple[int, int, int, int] | None:
    """(B, M, N, K) of a product of B*M*N*K = `half` multiply-adds, M >= N; None where the shapes do not tell."""
    operands = [tuple(map(int, _SIZE.findall(text))) for text in _SHAPE.findall(shapes)]
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


def _batch(first: tuple[int, ...], second: tuple[int, ...], inner: int, told: float | None) -> int | None:
    """The number of independent products: as the size of the result tells it, else by equal leading dimensions."""
    common = _divisions(first) & _divisions(second)
    leading = 1
    if len(first) > 2 and len(second) > 2:
        for left, right in zip(first[:-2], second[:-2], strict=False):
            if left != right:
                break
            leading *= left
    for batch in (told, leading, 1):
        if batch is not None and batch >= 1 and batch == int(batch):
            whole = int(batch)
            if inner % whole == 0 and whole in common and inner // whole in common:
                return whole
    return None


def _divisions(dims: tuple[int, ...]) -> frozenset[int]:
    """The products of all selections of some dimensions."""
    found = {1}
    for size in dims:
        found |= {size * each for each in found}
    return frozenset(found)
