"""Ops that few models use, on nodes made by hand: FLOPs and bytes by stated arithmetic."""

from __future__ import annotations

from math import log2

import pytest

from roofline.costs import linear_algebra
from roofline.costs.rare import antialiased_taps, area_taps
from roofline.tensorflow.graph import tables
from roofline.tensorflow.graph.cost import cost
from roofline.tensorflow.graph.graph import Node, Tensor
from roofline.tensorflow.graph.neighbours import completed


def tensor(*shape: int | None, dtype: str = "fp32") -> Tensor:
    return Tensor(dtype, shape)


def node(op: str, inputs: list[Tensor], outputs: list[Tensor], **attrs: object) -> Node:
    sources = tuple((f"in{place}", 0) for place in range(len(inputs)))
    return Node("n", op, sources, tuple(inputs), tuple(outputs), attrs)


SIZE = tensor(2, dtype="int32")

#: op, inputs, outputs, attributes, FLOP
SOLVERS = [
    ("Cholesky", [tensor(2, 4, 4)], [tensor(2, 4, 4)], {}, 2 * 4**3 / 3),
    ("MatrixInverse", [tensor(2, 4, 4)], [tensor(2, 4, 4)], {}, 2 * 2 * 4**3),
    ("MatrixDeterminant", [tensor(2, 4, 4)], [tensor(2)], {}, 2 * 2 * 4**3 / 3),
    ("LogMatrixDeterminant", [tensor(2, 4, 4)], [tensor(2), tensor(2)], {}, 2 * 2 * 4**3 / 3),
    ("Lu", [tensor(2, 4, 4)], [tensor(2, 4, 4), tensor(2, 4, dtype="int32")], {}, 2 * 2 * 4**3 / 3),
    # Factors, and two triangular solves of 3 columns.
    ("MatrixSolve", [tensor(2, 4, 4), tensor(2, 4, 3)], [tensor(2, 4, 3)], {}, 2 * (2 * 4**3 / 3 + 2 * 4 * 4 * 3)),
    ("MatrixTriangularSolve", [tensor(2, 4, 4), tensor(2, 4, 3)], [tensor(2, 4, 3)], {}, 2 * 4 * 4 * 3),
    # R of 6 x 3, and 3 columns of Q.
    (
        *("Qr", [tensor(6, 3)], [tensor(6, 3), tensor(3, 3)], {}),
        2 * 3**2 * (6 - 1) + 4 * 6 * 3 * 3 - 2 * 9 * 9 + 4 * 3**3 / 3,
    ),
    # A^T A, A^T B of 2 columns, the factor, two solves.
    (
        *("MatrixSolveLs", [tensor(6, 3), tensor(6, 2), tensor()], [tensor(3, 2)], {"fast": True}),
        6 * 9 + 2 * 6 * 3 * 2 + 3**3 / 3 + 2 * 3 * 3 * 2,
    ),
    ("TridiagonalSolve", [tensor(3, 5), tensor(5, 2)], [tensor(5, 2)], {}, 5 * (3 + 5 * 2)),
    # 3 diagonals: two multiply-adds and a division per number of the right sides.
    ("BandedTriangularSolve", [tensor(3, 5), tensor(5, 2)], [tensor(5, 2)], {}, 5 * 5 * 2),
]


@pytest.mark.parametrize("case", SOLVERS, ids=[case[0] for case in SOLVERS])
def test_direct_linear_algebra_counts_as_in_other_frameworks(case):
    op, inputs, outputs, attrs, flops = case
    found = cost(node(op, inputs, outputs, **attrs))
    assert found.cost.flops == found.cost.model_flops == pytest.approx(flops, rel=1e-12)
    assert (found.kind, found.op_class, found.cost.quality) == (linear_algebra.KIND, "other", "assumed")
    assert found.cost.bytes_read == sum(one.bytes for one in inputs)


@pytest.mark.parametrize("op", ["Svd", "SelfAdjointEigV2", "MatrixSolveLs", "NonMaxSuppressionV3"])
def test_of_what_takes_rounds_the_traffic_is_known(op: str):
    found = cost(node(op, [tensor(4, 4)], [tensor(4), tensor(4, 4)], fast=False))
    assert (found.cost.quality, found.cost.flops, found.cost.flops_known) == ("unknown", None, False)
    assert (found.cost.bytes_read, found.cost.bytes_written) == (64, 16 + 64)
    assert not found.cost.is_partly_known
    assert set(tables.ITERATIVE) >= {op}


@pytest.mark.parametrize(
    ("op", "signal", "spectrum", "points", "each"),
    [
        ("FFT", tensor(3, 8, dtype="complex64"), tensor(3, 8, dtype="complex64"), 8, 5.0),
        ("IFFT2D", tensor(3, 8, 4, dtype="complex64"), tensor(3, 8, 4, dtype="complex64"), 32, 5.0),
        ("RFFT", tensor(3, 8), tensor(3, 5, dtype="complex64"), 8, 2.5),
        ("IRFFT", tensor(3, 5, dtype="complex64"), tensor(3, 8), 8, 2.5),
    ],
)
def test_fourier_transforms_of_three_signals(op: str, signal: Tensor, spectrum: Tensor, points: int, each: float):
    found = cost(node(op, [signal, SIZE], [spectrum]))
    assert found.cost.vector_flops == each * points * log2(points) * 3
    assert found.cost.quality == "assumed"


@pytest.mark.parametrize(("axes", "points"), [((1,), 8), ((1, 2), 32), ((-1,), 4), ((0, 1, 2), 96)])
def test_a_transform_goes_along_the_axes_of_a_constant(axes: tuple[int, ...], points: int):
    signal = tensor(3, 8, 4, dtype="complex64")
    length = Node("axes", "Const", outputs=(tensor(len(axes), dtype="int32"),), attrs={"value": axes})
    transform = Node("n", "FFTND", (("x", 0), ("length", 0), ("axes", 0)), (signal, SIZE, SIZE), (signal,))
    found = cost(completed((length, transform))[1])
    assert found.cost.vector_flops == pytest.approx(5 * log2(points) * 96, rel=1e-12)
    assert found.cost.bytes_read == signal.bytes
    assert cost(transform).cost.quality == "unknown", "without the constant"


def test_a_sparse_factor_multiplies_what_it_holds():
    """5 numbers of a 10 x 20 matrix meet 4 columns each; as many rows of the dense one are touched."""
    inputs = [tensor(5, 2, dtype="int64"), tensor(5), tensor(2, dtype="int64"), tensor(20, 4)]
    found = cost(node("SparseTensorDenseMatMul", inputs, [tensor(10, 4)]))
    assert found.cost.flops == found.cost.model_flops == 2 * 5 * 4
    assert (found.kind, found.op_class) == ("matmul", "contraction")
    assert found.cost.bytes_read == 5 * 2 * 8 + 5 * 4 + 5 * 4 * 4
    assert found.cost.bytes_written == 10 * 4 * 4


@pytest.mark.parametrize("turned", [False, True])
def test_a_compressed_factor_holds_what_it_was_made_of(turned: bool):
    """5 numbers of a 10 x 20 matrix meet 4 columns each. A number is 4 bytes, and so is each of its two indices."""
    variant = Tensor(None, ())
    given = (tensor(5, 2, dtype="int64"), tensor(5), tensor(2, dtype="int64"))
    made = Node("csr", "SparseTensorToCSRSparseMatrix", (("i", 0), ("v", 0), ("s", 0)), given, (variant,))
    attrs = {"transpose_b": turned, "transpose_a": True}
    factors = (variant, tensor(4, 10) if turned else tensor(10, 4))
    product = Node("n", "SparseMatrixMatMul", (("csr", 0), ("b", 0)), factors, (tensor(20, 4),), attrs)
    making, found = map(cost, completed((made, product)))
    assert making.cost.bytes_written == 5 * (4 + 2 * 4)
    assert found.cost.flops == found.cost.model_flops == 2 * 5 * 4
    assert (found.kind, found.op_class) == ("matmul", "contraction")
    assert found.cost.bytes_read == 5 * (4 + 2 * 4) + 5 * 4 * 4
    assert cost(product).cost.quality == "unknown", "of a matrix that another function made"


def test_a_sum_of_compressed_matrices_holds_what_is_taken_out_of_it():
    """5 and 4 numbers, times their factors, make 7: two pairs are added."""
    variant, one = Tensor(None, ()), tensor()
    made = [
        Node(name, "DenseToCSRSparseMatrix", (("d", 0), ("i", 0)), (tensor(3, 4), tensor(rows, 2)), (variant,))
        for name, rows in (("a", 5), ("b", 4))
    ]
    inputs = (("a", 0), ("b", 0), ("alpha", 0), ("beta", 0))
    added = Node("sum", "SparseMatrixAdd", inputs, (variant, variant, one, one), (variant,))
    given = Node("t", "CSRSparseMatrixToSparseTensor", (("sum", 0),), (variant,), (tensor(7, 2), tensor(7), tensor(2)))
    *_, found, taken = map(cost, completed((*made, added, given)))
    assert found.cost.vector_flops == 5 + 4 + 2
    assert found.cost.bytes_written == taken.cost.bytes_read == 7 * (4 + 2 * 4)


def test_sparse_tensors_are_added_where_both_have_a_number():
    """5 and 4 numbers at 7 places; a maximum is taken at each of these."""
    one, other = ([tensor(rows, 2), tensor(rows), tensor(2)] for rows in (5, 4))
    sums = [tensor(7, 2), tensor(7), tensor(2)]
    assert cost(node("SparseAdd", [*one, *other, tensor()], sums)).cost.vector_flops == 5 + 4 - 7
    assert cost(node("SparseSparseMaximum", [*one, *other], sums[:2])).cost.vector_flops == 7


def test_what_nobody_reads_of_results_without_a_size_is_left_out():
    """A lookup's filled up rows: 4 ids, and their places and the empty rows, which nothing reads."""
    results = (tensor(None, 2, dtype="int64"), tensor(4, dtype="int64"), tensor(None, dtype="bool"))
    filled = Node("n", "SparseFillEmptyRows", (("x", 0),), (tensor(4, 2),), results)
    read = Node("m", "Identity", (("n", 1),), (results[1],), (results[1],))
    found = cost(completed((filled, read))[0])
    assert (found.cost.bytes_written, found.cost.quality, found.cost.flops_known) == (4 * 8, "assumed", True)
    also = Node("m", "Identity", (("n", 0),), (results[0],), (results[0],))
    assert cost(completed((filled, also))[0]).cost.quality == "unknown", "a node reads what has no size"


IMAGE, HALF, TWICE = tensor(1, 4, 6, 2), tensor(1, 2, 3, 2), tensor(1, 8, 12, 2)


def test_enlarging_by_cubics_weighs_sixteen_pixels():
    """Four rows of four: 7 each, and 7 for the four sums."""
    assert cost(node("ResizeBicubic", [IMAGE, SIZE], [TWICE])).cost.vector_flops == 35 * 8 * 12 * 2


def test_an_area_is_the_pixels_that_it_lies_on():
    """Half of each size: every result lies on 2 x 2 pixels of 2 channels, 3 each and a division."""
    assert cost(node("ResizeArea", [IMAGE, SIZE], [HALF])).cost.vector_flops == 2 * (3 * 24 + 6)
    assert area_taps(4, 3) == 2 + 2 + 2  # thirds of four pixels lie on two each


def test_a_filter_takes_in_the_pixels_within_its_radius():
    """To half a size a filter of radius 1 reaches 2 pixels to each side: 4 of them but for the edges, where it is 3."""
    assert antialiased_taps(8, 4, 1.0, 2.0) == 3 + 4 + 4 + 3
    # 2 results of 4 rows take in 3 each, 3 of 6 columns 3, 4 and 3. Columns first, over 4 rows of 2 channels.
    columns, rows = (2 * 10 - 3) * 4 * 2, (2 * 6 - 2) * 3 * 2
    found = cost(node("ScaleAndTranslate", [IMAGE, SIZE, SIZE, SIZE], [HALF], kernel_type="triangle", antialias=True))
    assert found.cost.vector_flops == columns + rows + 7 * (10 + 6)


def test_gradients_of_images_that_were_scaled_and_cropped():
    """Per gradient: 8 for four weights and sums; 14 for the slopes along a box, and 8 per point for its corners."""
    boxes, which = tensor(3, 4), tensor(3, dtype="int32")
    gradients = tensor(3, 5, 5, 2)
    image = cost(node("CropAndResizeGradImage", [gradients, boxes, which, SIZE], [IMAGE], method="bilinear"))
    assert image.cost.vector_flops == 8 * 3 * 25 * 2
    assert image.cost.bytes_read == gradients.bytes + boxes.bytes + which.bytes
    corners = cost(node("CropAndResizeGradBoxes", [gradients, IMAGE, boxes, which], [boxes]))
    assert corners.cost.vector_flops == 14 * 3 * 25 * 2 + 8 * 3 * 25
    # 2 rows of 4 take in 3 each, 3 columns of 6 3, 4 and 3: each pair 3 per channel, each tap 7 for its weight.
    filtered = cost(
        node("ScaleAndTranslateGrad", [HALF, IMAGE, SIZE, SIZE], [IMAGE], kernel_type="triangle", antialias=True)
    )
    assert filtered.cost.vector_flops == 3 * 2 * 6 * 10 + 7 * (6 + 10)
    assert filtered.cost.bytes_read == HALF.bytes


@pytest.mark.parametrize(("interpolation", "per_result"), [("BILINEAR", 9), ("NEAREST", 0)])
def test_a_projection_says_where_each_result_lies(interpolation: str, per_result: int):
    found = cost(node("ImageProjectiveTransformV3", [IMAGE, SIZE, SIZE, SIZE], [HALF], interpolation=interpolation))
    assert found.cost.vector_flops == per_result * 2 * 3 * 2 + 14 * 2 * 3


def test_responses_are_normalised_over_their_neighbours():
    """Of 4 channels within 1: 2 + 3 + 3 + 2 neighbours. Squares and sums, and 3 and a power per number."""
    found = cost(node("LRN", [tensor(2, 3, 4)], [tensor(2, 3, 4)], depth_radius=1))
    assert found.cost.vector_flops == 6 * 10 + 3 * 24
    assert found.cost.functions == {"pow": 24}


def test_ctc_fills_all_frames():
    """5 labels of 2 sequences, 7 frames: 6 x (2 x 5 + 2) cells."""
    inputs = [tensor(7, 2, 4), tensor(5, 2, dtype="int64"), tensor(5, dtype="int32"), tensor(2, dtype="int32")]
    found = cost(node("CTCLoss", inputs, [tensor(2), tensor(7, 2, 4)]))
    cells = 6 * 12
    assert found.cost.vector_flops == 9 * cells + 15 * cells + 4 * 7 * 2 * 4
    assert found.cost.quality == "assumed"


PIXELS = 2 * 8 * 8
PHOTO = tensor(2, 8, 8, 3)
#: op, FLOP per pixel: 12 to the circle of colours (4 for the largest and least, 1, 1, 2, 4), 25 back (3 x 5, 1, 3 x 3).
COLOURS = [("RGBToHSV", 12), ("HSVToRGB", 25), ("AdjustHue", 12 + 2 + 25), ("AdjustSaturation", 12 + 3 + 25)]


@pytest.mark.parametrize(("op", "flops"), COLOURS)
def test_colours_are_counted_per_pixel(op: str, flops: int):
    found = cost(node(op, [PHOTO] if "To" in op else [PHOTO, tensor()], [PHOTO]))
    assert (found.cost.vector_flops, found.op_class) == (flops * PIXELS, "pointwise")
    assert found.cost.bytes_written == 4 * 3 * PIXELS


@pytest.mark.parametrize(("unique", "flops"), [(True, 4 + 3), (False, 4 + 1)])
def test_sampled_classes_and_how_often_they_are_expected(unique: bool, flops: int):
    """5 samples, and 4 x 2 true classes: the probability of 13 classes takes 4 FLOP and a logarithm each."""
    results = [tensor(5, dtype="int64"), tensor(4, 2), tensor(5)]
    found = cost(node("LogUniformCandidateSampler", [tensor(4, 2, dtype="int64")], results, unique=unique))
    assert found.cost.vector_flops == 2 * 5 + flops * 13
    rarer = {"expm1": 13, "log1p": 13} if unique else {}
    assert found.cost.functions == {"random": 5, "exp": 5, "log": 13, **rarer}
    assert (found.cost.quality, found.op_class, found.cost.bytes_read) == ("assumed", "random", 8 * 8)


@pytest.mark.parametrize(("overlapping", "cells"), [(False, 8 * 8), (True, (8 + 4) * (8 + 4))])
@pytest.mark.parametrize("kind", ["Avg", "Max"])
def test_pools_of_random_cells(kind: str, overlapping: bool, cells: int):
    """8 x 8 to 5 x 5 pixels: each is in one cell, or those at 4 borders a side in two."""
    image, result, cuts = tensor(2, 8, 8, 3), tensor(2, 5, 5, 3), tensor(6, dtype="int64")
    found = cost(node(f"Fractional{kind}Pool", [image], [result, cuts, cuts], overlapping=overlapping))
    divided = 25 if kind == "Avg" else 0
    assert (found.cost.vector_flops, found.op_class) == (6 * (cells - 25 + divided), "reduction")
    given = [tensor(4, dtype="int64"), result, cuts, cuts] if kind == "Avg" else [image, result, result, cuts, cuts]
    back = cost(node(f"Fractional{kind}PoolGrad", given, [image], overlapping=overlapping))
    assert back.cost.vector_flops == 6 * (25 + cells if kind == "Avg" else 25)


def test_gradients_beyond_limits_are_added_up():
    limits = node("FakeQuantWithMinMaxVarsGradient", [PHOTO, PHOTO, tensor(), tensor()], [PHOTO, tensor(), tensor()])
    assert cost(limits).cost.vector_flops == 2 * (3 * PIXELS - 1)
    channels = [PHOTO, tensor(3), tensor(3)]
    each = node("FakeQuantWithMinMaxVarsPerChannelGradient", [PHOTO, PHOTO, tensor(3), tensor(3)], channels)
    assert cost(each).cost.vector_flops == 2 * (3 * PIXELS - 3)


@pytest.mark.parametrize("op", ["ApproxTopK", "ComputeAccidentalHits", "UnicodeScript", "AllCandidateSampler"])
def test_what_compares_alone_computes_nothing_and_moves_its_numbers(op: str):
    found = cost(node(op, [tensor(4, 6)], [tensor(4, 3)]))
    assert (found.cost.vector_flops, found.cost.int_ops, dict(found.cost.functions)) == (0, 0, {})
    assert (found.cost.bytes_read, found.cost.bytes_written) == (96, 48)


def test_a_conjugate_negates_what_is_imaginary():
    complex_numbers = tensor(4, 6, dtype="complex64")
    found = cost(node("Conj", [complex_numbers], [complex_numbers]))
    assert (found.cost.vector_flops, found.op_class) == (24, "pointwise")


@pytest.mark.parametrize(
    ("op", "given", "shape", "why"),
    [
        ("StringLower", None, (), "no rule for StringLower, which takes or gives what is no array of numbers"),
        ("DecodeJpeg", None, (), "no rule for DecodeJpeg, which takes or gives what is no array of numbers"),
        ("NoSuchOp", None, None, "no rule for NoSuchOp"),  # nothing is known of what it takes
        ("NoSuchOp", "int4", (8,), "no rule for NoSuchOp"),
    ],
)
def test_an_op_without_a_rule_is_unknown_and_says_what_it_takes(
    op: str, given: str | None, shape: tuple[int, ...] | None, why: str
):
    found = cost(node(op, [Tensor(given, shape)], [Tensor("uint8", (8, 8, 3))]))
    assert (found.cost.quality, found.cost.note) == ("unknown", f"{op}: {why}")
