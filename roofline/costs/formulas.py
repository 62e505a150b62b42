"""Count work by op kind: the only place where 2·M·N·K stands (docs/counting.md).

Formulas are keyed by our op kinds, never by a framework's op names, so that two frameworks cannot disagree about a
matmul. One multiply-add is 2 FLOP.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from roofline.core.cost import Cost, matrix

# ---------------------------------------------------------------------------------------------- contractions


def matmul(m: int, n: int, k: int, batch: int = 1) -> Cost:
    """[batch, m, k] x [batch, k, n]: each of the batch·m·n results is k multiply-adds."""
    return matrix(2.0 * batch * m * n * k)


#: Of recurrent layers, per unit and step: FLOP beside the products, biases among them, and functions.
#: LSTM  c = s(f) c + s(i) tanh(g), h = s(o) tanh(c), each of the 4 gates is a sum of 2 products and 2 biases
#: GRU   r and z are 2 such gates; n = tanh(x + b + r (h + b)), h = n + z (h - n)
RECURRENT: dict[str, tuple[float, float, dict[str, float]]] = {
    "lstm": (8.0, 8.0, {"sigmoid": 3.0, "tanh": 2.0}),
    "gru": (7.0, 6.0, {"sigmoid": 2.0, "tanh": 1.0}),
    "tanh": (1.0, 2.0, {"tanh": 1.0}),
    "relu": (2.0, 2.0, {}),
}


def recurrent(cell: str, steps: float, weights: float, units: float, biased: bool) -> Cost:
    """Layers of cells: each step of each sequence is multiplied with all `weights` (elements of matrices) once.

    steps: of all sequences together; units: of all layers and directions together. KeyError for an unknown cell.
    """
    flops, biases, functions = RECURRENT[cell]
    cells = steps * units
    return matrix(2.0 * steps * weights) + Cost(
        vector_flops=(flops + (biases if biased else 0.0)) * cells,
        functions={name: count * cells for name, count in functions.items()},
    )


#: Of their gradients, per unit and step: FLOP beside the products, sums of the biases' gradients, and functions.
#: LSTM  do 4, dc 5, di 4, df 4, dg 4, dc of the step before 1, dh from above and from the step behind 1; tanh(c) again
#: GRU   dn 4, dz 5, dr 4, d(h U) 1, dh of the step before 2, dh from above and from the step behind 1
RECURRENT_BACKWARD: dict[str, tuple[float, float, dict[str, float]]] = {
    "lstm": (23.0, 4.0, {"tanh": 1.0}),
    "gru": (17.0, 4.0, {}),
    "tanh": (4.0, 1.0, {}),
    "relu": (1.0, 1.0, {}),
}


def recurrent_backward(cell: str, steps: float, asked: float, executed: float, units: float, biased: bool) -> Cost:
    """The gradients of `recurrent`, which are of both factors of each product.

    asked, executed: elements of the matrices of a cell, those of which two gradients are taken twice: the weights'
    own, of what comes from the step before, and of what comes from below where anybody asks for it.
    """
    flops, biases, functions = RECURRENT_BACKWARD[cell]
    cells = steps * units
    return matrix(2.0 * steps * asked, 2.0 * steps * executed) + Cost(
        vector_flops=(flops + (biases if biased else 0.0)) * cells,
        functions={name: count * cells for name, count in functions.items()},
    )


#: A kernel longer than this in one dimension is damage in a trace, not a convolution.
MAX_KERNEL = 100_000


def valid_taps(size: int, kernel: int, stride: int, padding: int, dilation: int, outputs: int) -> int:
    """Count the (output position, kernel tap) pairs of one dimension that fall inside the input of `size`.

    Padded positions multiply by zeros that nobody asked for; XLA leaves them out, and so do we.
    """
    if kernel > MAX_KERNEL:
        raise ValueError(f"a convolution kernel of {kernel} taps")
    inside = 0
    for tap in range(kernel):
        # 0 <= o*stride - padding + tap*dilation < size, for o in [0, outputs)
        offset = tap * dilation - padding
        first = max(0, -(offset // stride)) if offset < 0 else 0
        last = min(outputs - 1, (size - 1 - offset) // stride)
        inside += max(0, last - first + 1)
    return inside


def convolution(
    batch: int,
    channels_in: int,
    channels_out: int,
    groups: int,
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    outputs: Sequence[int],
) -> Cost:
    """A convolution (or either of its two gradients, which pair the same elements): valid positions only.

    `channels_in` is the whole input's; each output channel sees channels_in / groups of them.
    """
    pairs = prod(
        valid_taps(*dimension) for dimension in zip(size, kernel, stride, padding, dilation, outputs, strict=True)
    )
    return matrix(2.0 * batch * channels_out * (channels_in // groups) * pairs)


def dilated_taps(
    size: int, kernel: int, stride: int, padding: int, dilation: int, outputs: int, base_dilation: int
) -> int:
    """`valid_taps` for an input that is spread out first, `base_dilation - 1` holes behind each element.

    That is how a compiler writes the gradient of a strided convolution. A tap that meets a hole is no multiplication.
    padding may be negative (the input is cropped). Outputs and taps enter alike, so the fewer of them are walked.
    """
    if min(stride, dilation, base_dilation) < 1:
        raise ValueError(f"a convolution of stride {stride}, dilations {dilation} and {base_dilation}")
    if kernel > outputs:
        kernel, outputs, stride, dilation = outputs, kernel, dilation, stride
    if kernel > MAX_KERNEL:
        raise ValueError(f"a convolution kernel of {kernel} taps")
    common = gcd(stride, base_dilation)
    period = base_dilation // common  # of the outputs that meet elements
    inverse = pow(stride // common, -1, period) if period > 1 else 0
    inside = 0
    for tap in range(kernel):
        # 0 <= o*stride + offset <= (size-1)*base_dilation, a multiple of base_dilation, for o in [0, outputs)
        offset = tap * dilation - padding
        if offset % common:
            continue
        first = max(0, -(offset // stride))
        last = min(outputs - 1, ((size - 1) * base_dilation - offset) // stride)
        meets = (-offset // common * inverse) % period  # the least o >= 0 that meets an element
        first += (meets - first) % period
        inside += max(0, (last - first) // period + 1)
    return inside


def dilated_convolution(
    batch: int,
    channels_in: int,
    channels_out: int,
    groups: int,
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    outputs: Sequence[int],
    base_dilation: Sequence[int],
) -> Cost:
    """`convolution` over an input that is spread out by `base_dilation` first: pairs of elements only."""
    pairs = prod(
        dilated_taps(*dimension)
        for dimension in zip(size, kernel, stride, padding, dilation, outputs, base_dilation, strict=True)
    )
    return matrix(2.0 * batch * channels_out * (channels_in // groups) * pairs)


def causal_pairs(queries: int, keys: int) -> int:
    """(query, key) pairs that a top-left aligned causal mask leaves: query i sees keys 0..i."""
    full = min(queries, keys)
    return full * (full + 1) // 2 + max(0, queries - keys) * keys


def attention(batch: int, heads: int, queries: int, keys: int, width: int, width_v: int, causal: bool = False) -> Cost:
    """softmax(Q K^T) V in one kernel: 2 products, and the softmax's vector work on each score.

    heads: query heads (grouped-query attention multiplies as many scores as there are query heads).
    Vector work per score: scale, subtract the maximum, divide, and the two reductions; one exp.
    """
    rows = batch * heads
    full = 2.0 * rows * queries * keys * (width + width_v)
    pairs = causal_pairs(queries, keys) if causal else queries * keys
    useful = 2.0 * rows * pairs * (width + width_v)
    scores = float(rows * pairs)
    return matrix(full, full, useful) + Cost(vector_flops=5.0 * scores, functions={"exp": scores})


def attention_backward(
    batch: int, heads: int, queries: int, keys: int, width: int, width_v: int, causal: bool = False, products: int = 5
) -> Cost:
    """The gradients of fused attention.

    Asked for: dV = P^T dO and dP = dO V^T over width_v, dQ = dS K and dK = dS^T Q over width: 4 products.
    Executed: the scores Q K^T are computed again (5 products); where dQ and dK/dV come from separate kernels, both
    recompute the scores and dP (7 products).
    """
    rows = batch * heads
    pairs = causal_pairs(queries, keys) if causal else queries * keys
    asked = 2.0 * (2 * width + 2 * width_v)
    ran = asked + 2.0 * width + (2.0 * (width + width_v) if products == 7 else 0.0)
    full = float(rows * queries * keys)
    scores = float(rows * pairs)
    # per score: P = exp(scale * s - lse) is 2 and one exp; dS = P * (dP - delta) * scale is 3; delta is summed from
    # O * dO per query row, which is 2 per output element.
    vector = 5.0 * scores + 2.0 * rows * queries * width_v
    return matrix(full * asked, full * ran, scores * ran) + Cost(vector_flops=vector, functions={"exp": scores})


# ---------------------------------------------------------------------------------------------- vector work

#: FLOP per output element of a primitive. Compare, select, copy and cast are 0.
ARITHMETIC: dict[str, float] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "neg", "abs", "minimum", "maximum", "remainder"), 1.0),
    **dict.fromkeys(("addcmul", "addcdiv", "clamp"), 2.0),
    "lerp": 3.0,
}
#: Functions of which a probe measures no rate: Bessel's and Airy's, of probability, of number theory, and polynomials.
SPECIAL = frozenset(
    (
        "bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 "
        "modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
        "spherical_bessel_j0 airy_ai erfcx ndtri zeta polygamma igamma igammac gcd standard_gamma_grad dirichlet_grad "
        "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
        "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
        "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
        "legendre_polynomial_p"
    ).split()
)
#: Counted by evaluations, in a column by function.
FUNCTIONS = SPECIAL | frozenset(
    [
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "erf",
        "erfc",
        "erfinv",
        "tanh",
        "sigmoid",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
        "pow",
        "sqrt",
        "rsqrt",
        "lgamma",
        "digamma",
    ]
)
#: No floating work at all: data moves, is chosen or is compared.
WORKLESS = frozenset(
    [
        "copy",
        "clone",
        "where",
        "select",
        "fill",
        "compare",
        "cast",
        "logical",
        "cat",
        "gather",
        "scatter",
        "index",
        "pad",
        "repeat",
        "flip",
        "sort",
        "topk",
        "bit",
        "round",
        "alloc",
    ]
)


def elementwise(kind: str, outputs: float) -> Cost:
    """A primitive applied once per output element. KeyError for a kind that is no primitive."""
    if kind in FUNCTIONS:
        return Cost(functions={kind: float(outputs)})
    if kind in WORKLESS:
        return Cost()
    return Cost(vector_flops=ARITHMETIC[kind] * outputs)


def reduction(inputs: float, outputs: float, mean: bool = False) -> Cost:
    """inputs - outputs applications of the body (summing n numbers takes n - 1 additions); a mean divides too."""
    return Cost(vector_flops=max(0.0, inputs - outputs) + (outputs if mean else 0.0))


def random(numbers: float) -> Cost:
    """Numbers drawn. The generator's integer work differs by algorithm and is counted as draws."""
    return Cost(functions={"random": float(numbers)})


def variance(inputs: float, outputs: float) -> Cost:
    """Mean and variance in two passes: sum, subtract, square, sum, and two divisions per result."""
    return (
        reduction(inputs, outputs, mean=True) + Cost(vector_flops=2.0 * inputs) + reduction(inputs, outputs, mean=True)
    )


def norm(inputs: float, outputs: float) -> Cost:
    """The 2-norm: square, sum, one square root per result."""
    return Cost(vector_flops=float(inputs), functions={"sqrt": float(outputs)}) + reduction(inputs, outputs)


def embedding_bag(elements: float, outputs: float, mode: str, weighted: bool = False) -> Cost:
    """Rows of a table looked up and reduced bag by bag: `elements` read, `outputs` left. mode: "sum", "mean" or "max".

    weighted: each row is multiplied by a weight of its own first. No bag is taken to be empty.
    """
    return reduction(elements, outputs, mean=mode == "mean") + Cost(vector_flops=float(elements) if weighted else 0.0)


def embedding_bag_backward(elements: float, gradients: float, mode: str, weighted: bool, dense: bool) -> Cost:
    """The gradient of the table. elements: of all rows that were looked up; gradients: of all bags.

    A mean divides each gradient once, a weight multiplies it once for each of its rows. Adding it into the rows of a
    dense table is one addition each; a maximum has one row per gradient. A sparse one lists its rows and adds none.
    """
    added = (gradients if mode == "max" else elements) if dense else 0.0
    return Cost(
        vector_flops=float(added) + (gradients if mode == "mean" else 0.0) + (elements if weighted else 0.0),
    )


def histogram(elements: float, range_known: bool = True) -> Cost:
    """Bins of equal width: subtract the least, multiply by bins per range, and add to the bin.

    Where the range is not given the least and the largest element are looked for: two reductions.
    """
    binning = Cost(vector_flops=3.0 * elements)
    return binning if range_known else binning + 2 * reduction(elements, 1.0)


# ---------------------------------------------------------------------------------------------- optimizers

#: FLOP per element of an RMS norm: square and add, times 1 / rms, times the weight.
RMS_NORM = 4.0
#: (FLOP, square roots) per parameter element of a fused update, counted on the update rule:
#: Adam   m = b1 m + (1-b1) g (3); v = b2 v + (1-b2) g g (4); denom = sqrt(v) / c2 + eps (2 + sqrt);
#:        p = p - step * m / denom (3)                                                        = 12, 1 sqrt
#: AdamW  the same and p = p (1 - lr wd) (1)                                                  = 13, 1 sqrt
#: L2 decay adds g = g + wd p (2); SGD p = p - lr g (2), momentum buf = mu buf + g (2).
OPTIMIZER_UPDATE: dict[str, tuple[float, float]] = {
    "adam": (12.0, 1.0),
    "adamw": (13.0, 1.0),
    "sgd": (2.0, 0.0),
    "sgd-momentum": (4.0, 0.0),
    "adagrad": (5.0, 1.0),
}


def optimizer_update(kind: str, elements: float) -> Cost:
    """A fused update of `elements` parameters. KeyError for an unknown rule."""
    flops, roots = OPTIMIZER_UPDATE[kind]
    functions = {"sqrt": roots * elements} if roots else {}
    return Cost(vector_flops=flops * elements, functions=functions)
