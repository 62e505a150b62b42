"""Ops that few models use: their work by hand, and that they are known with their gradients."""

from __future__ import annotations

import itertools
from math import log2

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from roofline.core.cost import Cost
from roofline.core.step import Step
from roofline.costs import linear_algebra
from roofline.costs.calls import Call, Tensor
from roofline.costs.rare import antialiased_taps
from roofline.pytorch.aten import linear_algebra as rules
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.aten.tables import LINEAR_ALGEBRA as LINEAR_ALGEBRA_NAMES
from roofline.pytorch.count import count
from roofline.pytorch.recording import counting

ENGINE = Engine()
NEXT = itertools.count(1)


def tensor(*shape, dtype="float"):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(1, size)
    return Tensor(tuple(shape), tuple(reversed(strides)), dtype, next(NEXT))


def costed(name, *inputs, overload="", outputs=None):
    return ENGINE.cost(Call(f"aten::{name}", overload, inputs, outputs))


# 8 rows of 16.
N = 8 * 16


def x(dtype="float"):
    return tensor(8, 16, dtype=dtype)


IMAGE, VOLUME = (2, 3, 8, 8), (2, 3, 4, 4, 4)
GRID = (2, 5, 5, 2)

#: (inputs, overload, results where torch has to be told them, FLOP, functions, bytes read, bytes written).
WORK = {
    # A maximum per step of each of 8 rows; values and indices.
    "cummax": ((x(), 1), "", None, 8 * 15, {}, 4 * N, 12 * N),
    "cummin": ((x(), 0), "", None, 7 * 16, {}, 4 * N, 12 * N),
    # Subtract and add, as in logaddexp.
    "logcumsumexp": ((x(), 1), "", None, 2 * 8 * 15, {"exp": 8 * 15, "log1p": 8 * 15}, 4 * N, 4 * N),
    "median": ((x(), 1, False), "dim", None, 0, {}, 4 * N, 12 * 8),
    "nanmedian": ((x(),), "", None, 0, {}, 4 * N, 4),
    "mode": ((x(), 1, False), "", None, 0, {}, 4 * N, 12 * 8),
    "kthvalue": ((x(), 3, 1, False), "", None, 0, {}, 4 * N, 12 * 8),
    # Windows of 2x2x2: 7 additions and a division, or 7 maxima; 48 results.
    "avg_pool3d": ((tensor(*VOLUME), (2, 2, 2), (), (0, 0, 0), False, True, None), *("", None, 8 * 48, {}), 1536, 192),
    "max_pool3d_with_indices": (
        (tensor(*VOLUME), (2,), (), (0, 0, 0), (1, 1, 1), False),
        *("", None, 7 * 48, {}, 1536, 12 * 48),
    ),
    "_adaptive_avg_pool3d": ((tensor(*VOLUME), (2, 2, 2)), "", None, 8 * 48, {}, 1536, 192),
    "adaptive_max_pool2d": ((tensor(*IMAGE), (4, 4)), "", None, 3 * 96, {}, 4 * 384, 12 * 96),
    "fractional_max_pool2d": (
        (tensor(*IMAGE), (3, 3), (4, 4), tensor(2, 3, 2)),
        *("", None, 8 * 96, {}, 4 * (384 + 12), 12 * 96),
    ),
    # Of the image only the shape is used: each gradient is divided, and added to 8 numbers.
    "avg_pool3d_backward": (
        (tensor(2, 3, 2, 2, 2), tensor(*VOLUME), (2, 2, 2), (), (0, 0, 0), False, True, None),
        *("", None, 9 * 48, {}, 4 * 48, 1536),
    ),
    "_adaptive_avg_pool3d_backward": (
        (tensor(2, 3, 2, 2, 2), tensor(*VOLUME)),
        *("", None, 48 + 384, {}, 4 * 48, 1536),
    ),
    "max_pool3d_with_indices_backward": (
        (tensor(2, 3, 2, 2, 2), tensor(*VOLUME), (2,), (), (0,), (1,), False, tensor(2, 3, 2, 2, 2, dtype="long")),
        *("", None, 48, {}, 12 * 48, 1536),
    ),
    "adaptive_max_pool2d_backward": (
        (tensor(2, 3, 4, 4), tensor(*IMAGE), tensor(2, 3, 4, 4, dtype="long")),
        *("", None, 96, {}, 12 * 96, 4 * 384),
    ),
    "fractional_max_pool2d_backward": (
        (tensor(2, 3, 4, 4), tensor(*IMAGE), (2, 2), (4, 4), tensor(2, 3, 4, 4, dtype="long")),
        *("", None, 96, {}, 12 * 96, 4 * 384),
    ),
    # 150 gradients at 50 places. Place: 4 and 2 per dimension, 4 products of weights; 4 points: times weight, added;
    # value times gradient, twice times a slope and added; in the end to pixels.
    "grid_sampler_2d_backward": (
        (tensor(2, 3, 5, 5), tensor(*IMAGE), tensor(*GRID), 0, 0, False, (True, True)),
        *("", None, 50 * (12 + 4) + 150 * 8 + 150 * 4 * 5 + 50 * 2, {}),
        *(4 * (150 + 384 + 100), 4 * (384 + 100)),
    ),
    "grid_sampler_2d_backward, nearest": (
        (tensor(2, 3, 5, 5), tensor(*IMAGE), tensor(*GRID), 1, 0, False, (True, True)),
        *("", None, 50 * 8 + 150, {}, 4 * (150 + 384 + 100), 4 * (384 + 100)),
    ),
    # 8 points: a sum of 8 products. Place: 3 dimensions, 8 products of three weights.
    "grid_sampler_3d": (
        (tensor(*VOLUME), tensor(2, 1, 1, 5, 3), 0, 0, False),
        *("", None, 30 * 15 + 10 * (18 + 16), {}, 4 * (384 + 30), 4 * 30),
    ),
    "hypot": ((x(), x()), "", None, 3 * N, {"sqrt": N}, 8 * N, 4 * N),
    "nextafter": ((x(), x()), "", None, 0, {}, 8 * N, 4 * N),
    "frexp": ((x(),), "Tensor", None, 0, {}, 4 * N, 8 * N),
    "gcd": ((x("long"), x("long")), "", None, 0, {"gcd": N}, 16 * N, 8 * N),
    "polygamma": ((1, x()), "", None, 0, {"polygamma": N}, 4 * N, 4 * N),
    "i0": ((x(),), "", None, 0, {"bessel_i0": N}, 4 * N, 4 * N),
    "special_i1": ((x(),), "", None, 0, {"bessel_i1": N}, 4 * N, 4 * N),
    "special_bessel_j0": ((x(),), "", None, 0, {"bessel_j0": N}, 4 * N, 4 * N),
    "special_bessel_y1": ((x(),), "", None, 0, {"bessel_y1": N}, 4 * N, 4 * N),
    "special_zeta": ((x(), x()), "", None, 0, {"zeta": N}, 8 * N, 4 * N),
    "special_ndtri": ((x(),), "", None, 0, {"ndtri": N}, 4 * N, 4 * N),
    "special_erfcx": ((x(),), "", None, 0, {"erfcx": N}, 4 * N, 4 * N),
    "igamma": ((x(), x()), "", None, 0, {"igamma": N}, 8 * N, 4 * N),
    # A slope for each number, drawn where it trains, and kept.
    "rrelu_with_noise": ((x(), x(), 0.1, 0.3, True, None), "", None, N, {"random": N}, 4 * N, 8 * N),
    "rrelu_with_noise, off": ((x(), x(), 0.1, 0.3, False, None), "", None, N, {}, 4 * N, 4 * N),
    "softshrink_backward": ((x(), x(), 0.5), "", None, 0, {}, 8 * N, 4 * N),
    "hardshrink_backward": ((x(), x(), 0.5), "", None, 0, {}, 8 * N, 4 * N),
    "diagonal_backward": ((tensor(16), (16, 16), 0, 0, 1), "", None, 0, {}, 4 * 16, 4 * 256),
    # In place: the places that are named.
    "put_": ((x(), tensor(5, dtype="long"), tensor(5), False), "", None, 0, {}, 40 + 20, 20),
    "put_, sums": ((x(), tensor(5, dtype="long"), tensor(5), True), "", None, 5, {}, 40 + 20 + 20, 20),
    "index_reduce_": (
        (x(), 0, tensor(5, dtype="long"), tensor(5, 16), "amax", True),
        *("", None, 80, {}, 40 + 320 + 320, 320),
    ),
    # 16 columns of 8 rows in 3 segments.
    "segment_reduce": (
        (x(), "mean", tensor(3, dtype="long"), None, None, 0, True, None),
        *("", None, (8 - 3) * 16 + 3 * 16, {}, 4 * N + 24, 4 * 48),
    ),
    "_segment_reduce_backward": (
        (tensor(3, 16), tensor(3, 16), x(), "sum", tensor(3, dtype="long"), None, 0, None),
        *("", None, 0, {}, 4 * 48 + 24, 4 * N),
    ),
    "_segment_reduce_backward, product": (
        (tensor(3, 16), tensor(3, 16), x(), "prod", tensor(3, dtype="long"), None, 0, None),
        *("", None, 2 * N, {}, 4 * (48 + 48 + N) + 24, 4 * N),
    ),
    "lu_unpack": ((tensor(4, 4), tensor(4, dtype="int"), True, True), "", None, 0, {}, 4 * 20, 3 * 64),
    "_is_all_true": ((x("bool"),), "", None, 0, {}, N, 1),
    "_linalg_check_errors": ((tensor(7, dtype="int"), "cholesky", False), "", (), 0, {}, 28, 0),
    "poisson": ((x(), None), "", None, 0, {"random": N}, 4 * N, 4 * N),
    "binomial": ((x(), x(), None), "", (x(),), 0, {"random": N}, 8 * N, 4 * N),
    "_standard_gamma": ((x(), None), "", None, 0, {"random": N}, 4 * N, 4 * N),
    "_sample_dirichlet": ((x(), None), "", (x(),), 2 * N, {"random": N}, 4 * N, 4 * N),
    "_dirichlet_grad": ((x(), x(), x()), "", (x(),), 0, {"dirichlet_grad": N}, 12 * N, 4 * N),
    # Numbers of one byte: over the scale, plus the zero point, two limits; minus the zero point, times the scale.
    "quantize_per_tensor": ((x(), 0.1, 0, 12), "", (x("c10::qint8"),), 4 * N, {}, 4 * N, N),
    "dequantize": ((x("c10::qint8"),), "self", (x(),), 2 * N, {}, N, 4 * N),
    "fake_quantize_per_tensor_affine_cachemask": (
        (x(), 0.1, 0, -128, 127),
        *("", (x(), x("bool")), 6 * N, {}, 4 * N, 5 * N),
    ),
    "int_repr": ((x("c10::quint8"),), "", (x("unsigned char"),), 0, {}, N, N),
    "nonzero_static": ((x(), 30, -1), "", None, 0, {}, 4 * N, 8 * 2 * 30),
    # Of what is copied or added up alone: a row of 8, two rows, 8 numbers of the diagonal.
    "select_copy": ((x(), 0, 3), "int", None, 0, {}, 4 * 16, 4 * 16),
    "narrow_copy": ((x(), 0, 1, 2), "", None, 0, {}, 4 * 32, 4 * 32),
    "diagonal_copy": ((x(), 0, 0, 1), "", None, 0, {}, 4 * 8, 4 * 8),
    "trace": ((x(),), "", None, 7, {}, 4 * 8, 4),
    "mkldnn_max_pool3d": (
        (tensor(*VOLUME), (2,), (), (0, 0, 0), (1, 1, 1), False),
        *("", (tensor(2, 3, 2, 2, 2),), 7 * 48, {}, 1536, 4 * 48),
    ),
    "multi_margin_loss_backward": (
        (tensor(), x(), tensor(8, dtype="long"), 1, 1.0, None, 1),
        *("", (x(),), 4 * N, {}, 4 + 4 * N + 64, 4 * N),
    ),
    "multi_margin_loss_backward, squared": (
        (tensor(), x(), tensor(8, dtype="long"), 2, 1.0, None, 1),
        *("", (x(),), 6 * N, {}, 4 + 4 * N + 64, 4 * N),
    ),
    # 28 pairs of 8 rows: 16 differences, squared, 15 sums, a root.
    "_pdist_forward": ((x(), 2.0), "", None, 28 * (16 + 16 + 15), {"sqrt": 28}, 4 * N, 4 * 28),
    "_cdist_forward": ((x(), tensor(5, 16), 1.0, None), "", None, 40 * (16 + 16 + 15), {}, 4 * (N + 80), 4 * 40),
    "_pdist_backward": (
        (tensor(28), x(), 2.0, tensor(28)),
        *("", None, 28 * (16 * 4 + 1), {}, 4 * (56 + N), 4 * N),
    ),
}


@pytest.mark.parametrize("label", WORK)
def test_work(label):
    inputs, overload, outputs, flops, functions, read, written = WORK[label]
    cost = costed(label.partition(",")[0], *inputs, overload=overload, outputs=outputs).cost
    assert cost.quality == "exact", cost.note
    assert (cost.vector_flops, dict(cost.functions)) == (flops, functions)
    assert (cost.flops, cost.int_ops) == (0, 0)
    assert (cost.bytes_read, cost.bytes_written) == (read, written)


def test_a_bilinear_layer_is_two_products():
    # x [6, 3], weight [4, 3, 5], y [6, 5]: x with each of 4 matrices, then with y.
    given = tensor(6, 3), tensor(4, 3, 5), tensor(6, 5)
    found = costed("_trilinear", *given, (1, 3), (0,), (1, 2), (2, 3), 1, outputs=(tensor(6, 4),))
    products = 2 * 6 * 4 * 3 * 5 + 2 * 6 * 4 * 5
    assert (found.cost.model_flops, found.cost.flops, found.op_class) == (products, products, "contraction")
    assert (found.cost.bytes_read, found.cost.bytes_written) == (4 * (18 + 60 + 30), 4 * 24)


def test_a_bilinear_layer_is_the_products_that_run():
    """The op is made of `bmm`, which a profiler of torch's own sees below it."""
    x, y, weight = torch.randn(6, 3), torch.randn(6, 5), torch.randn(4, 3, 5)
    nodes = counting.record(Step(run=lambda: functional.bilinear(x, y, weight)))
    calls = [nodes.call(number) for number in range(len(nodes))]
    whole = sum(ENGINE.cost(call).cost.flops for call in calls if call.name == "aten::_trilinear")
    parts = sum(ENGINE.cost(call).cost.flops for call in calls if call.name == "aten::bmm")
    assert whole == parts > 0


@pytest.mark.parametrize(
    ("given", "flops"),
    [
        # Of x: gradient [6, 4] with the weight, summed over 4, then with y: [6, 3, 5] with [6, 5].
        (((6, 4), (4, 3, 5), (6, 5), (2, 3), (0,), (1, 2), (1, 3)), 2 * 360 + 2 * 90),
        # Of the weight: x [6, 3] by gradient [6, 4], of which nothing is summed, then with y over the 6.
        (((6, 3), (6, 4), (6, 5), (1, 3), (2, 3), (1, 2), (0,)), 2 * 72 + 2 * 360),
        # Of y: x with the weight over 3, then with the gradient over 4.
        (((6, 3), (4, 3, 5), (6, 4), (1, 3), (0,), (2, 3), (1, 2)), 2 * 360 + 2 * 120),
    ],
)
def test_gradients_of_a_bilinear_layer_are_two_products_each(given, flops):
    shapes, rest = given[:3], given[3:]
    assert costed("_trilinear", *[tensor(*shape) for shape in shapes], *rest, 1).cost.flops == flops


@pytest.mark.parametrize(
    ("name", "given", "points", "transforms", "each"),
    [
        ("_fft_c2c", (tensor(6, 16, dtype="c10::complex<float>"), (1,), 0, True), 16, 6, 5),
        ("_fft_c2c", (tensor(6, 16, 16, dtype="c10::complex<float>"), (1, 2), 0, False), 256, 6, 5),
        ("_fft_r2c", (tensor(6, 16), (1,), 0, True), 16, 6, 2.5),
        ("_fft_r2c", (tensor(6, 12, 16), (1, 2), 0, True), 192, 6, 2.5),
        ("_fft_c2r", (tensor(6, 9, dtype="c10::complex<float>"), (1,), 2, 16), 16, 6, 2.5),
    ],
)
def test_fourier_transforms_are_counted_by_convention(name, given, points, transforms, each):
    found = costed(name, *given)
    assert found.cost.vector_flops == pytest.approx(each * points * log2(points) * transforms, rel=1e-12)
    assert (found.cost.quality, found.op_class) == ("assumed", "other")
    assert "convention" in found.cost.note


def test_the_traffic_of_a_real_transform_is_half_a_spectrum():
    cost = costed("_fft_r2c", tensor(6, 16), (1,), 0, True).cost
    assert (cost.bytes_read, cost.bytes_written) == (4 * 96, 8 * 6 * 9)


def test_ctc_is_a_recursion_over_labels_and_frames():
    logs, labels = tensor(20, 2, 10), tensor(2, 5, dtype="long")
    found = costed("_ctc_loss", logs, labels, (20, 16), (5, 3), 0, False).cost
    # 2 l + 1 states, in every frame after the first.
    cells = 11 * 19 + 7 * 15
    assert (found.vector_flops, found.functions, found.quality) == (
        9 * cells,
        {"exp": 3 * cells, "log": cells},
        "assumed",
    )
    gradient = costed(
        *("_ctc_loss_backward", tensor(2), logs, labels, (20, 16), (5, 3), tensor(2), tensor(2, 20, 11), 0, False),
        outputs=(tensor(20, 2, 10),),
    ).cost
    numbers = 36 * 10
    assert gradient.vector_flops == 15 * cells + 4 * numbers
    assert gradient.functions == {"exp": 5 * cells + 2 * numbers, "log": 2 * cells}
    lengths = tensor(2, dtype="long"), tensor(2, dtype="long")
    results = tensor(2), tensor(2, 20, 11)
    data = costed("_ctc_loss", logs, labels, *lengths, 0, False, overload="Tensor", outputs=results).cost
    assert (data.quality, data.note) == ("unknown", "the lengths of its sequences are data")


A, B = (2, 6, 6), (2, 6, 4)
PIVOTS = (2, 6)
#: (arguments, results where torch has to be told them, FLOP of each of 2 matrices).
LINEAR_ALGEBRA = {
    "linalg_cholesky_ex": ((tensor(*A), False, False), None, 6**3 / 3),
    "linalg_ldl_factor_ex": ((tensor(*A), False, False), None, 6**3 / 3),
    "cholesky_inverse": ((tensor(*A), False), None, 2 * 6**3 / 3),
    "linalg_inv_ex": ((tensor(*A), False), None, 2 * 6**3),
    "linalg_lu_factor_ex": ((tensor(*B), True, False), None, 6 * 4**2 - 4**3 / 3),
    "linalg_lu": ((tensor(2, 4, 6), True), None, 6 * 4**2 - 4**3 / 3),
    "_linalg_det": ((tensor(*A),), None, 2 * 6**3 / 3),
    "_linalg_slogdet": ((tensor(*A),), None, 2 * 6**3 / 3),
    "linalg_solve_triangular": ((tensor(*A), tensor(*B), True, True, False), None, 6 * 6 * 4),
    "linalg_lu_solve": ((tensor(*A), tensor(*PIVOTS, dtype="int"), tensor(*B), True, False), None, 2 * 6 * 6 * 4),
    "linalg_ldl_solve": ((tensor(*A), tensor(*PIVOTS, dtype="int"), tensor(*B), False), None, 2 * 6 * 6 * 4),
    "_cholesky_solve_helper": ((tensor(*B), tensor(*A), False), (tensor(*B),), 2 * 6 * 6 * 4),
    "_linalg_solve_ex": ((tensor(*A), tensor(*B), True, False), None, 2 * 6**3 / 3 + 2 * 6 * 6 * 4),
    "linalg_qr": ((tensor(*B), "reduced"), None, 2 * 2 * 4**2 * (6 - 4 / 3)),
    "linalg_qr, no Q": ((tensor(*B), "r"), None, 2 * 4**2 * (6 - 4 / 3)),
    "geqrf": ((tensor(*B),), (tensor(*B), tensor(2, 4)), 2 * 4**2 * (6 - 4 / 3)),
    "linalg_householder_product": ((tensor(*B), tensor(2, 4)), None, 2 * 4**2 * (6 - 4 / 3)),
    # Three reflectors of 6 numbers on 4 columns.
    "ormqr": ((tensor(2, 6, 3), tensor(2, 3), tensor(*B), True, False), None, 4 * 6 * 4 * 3 - 2 * 4 * 3**2),
    "ormqr, from the right": (
        (tensor(2, 4, 3), tensor(2, 3), tensor(*B), False, False),
        *(None, 4 * 6 * 4 * 3 - 2 * 6 * 3**2),
    ),
}


@pytest.mark.parametrize("label", LINEAR_ALGEBRA)
def test_direct_linear_algebra(label):
    inputs, outputs, flops = LINEAR_ALGEBRA[label]
    found = costed(label.partition(",")[0], *inputs, outputs=outputs)
    assert found.cost.flops == pytest.approx(2 * flops, rel=1e-12)
    assert (found.cost.model_flops, found.cost.useful_flops) == (found.cost.flops, found.cost.flops)
    # Matrix work, but no contraction: frameworks are not compared by it.
    assert (found.op_class, found.kind, found.cost.quality) == ("other", linear_algebra.KIND, "assumed")
    assert found.cost.vector_flops == 0
    assert found.cost.bytes_read == 4 * sum(one.numel for one in inputs if isinstance(one, Tensor))


def test_all_direct_solvers_have_a_rule():
    assert set(rules.RULES) == LINEAR_ALGEBRA_NAMES


def recorded(run):
    """What a step is counted as, by op."""
    return count(counting.record(Step(run=run)), Engine())


def test_a_complex_number_is_an_argument_like_any_other():
    spectrum = torch.complex(torch.randn(8, 16), torch.randn(8, 16)).requires_grad_()

    def run():
        torch.polar(spectrum.real.abs(), spectrum.imag).abs().sum().backward()

    counted = recorded(run)
    assert not counted.unknown, counted.unknown
    assert any(op.costed.dtype == "complex64" for op in counted.ops)


SEVERAL = {
    "adaptive_max_pool3d": lambda v: functional.adaptive_max_pool3d(v, 2),
    "fractional_max_pool3d": lambda v: functional.fractional_max_pool3d(v, 2, output_size=2),
    "grid_sample": lambda v: functional.grid_sample(v, torch.rand(2, 3, 3, 3, 3), align_corners=False),
    "lcm": lambda v: torch.lcm(torch.arange(8), torch.arange(8)),
    "multigammaln": lambda v: torch.mvlgamma(v.abs() + 3, 2),
    "log_ndtr": torch.special.log_ndtr,
    "gamma": lambda v: torch.distributions.Gamma(v.abs() + 1, 1.0).rsample(),
    "quantize_per_channel": lambda v: torch.quantize_per_channel(
        v, torch.ones(3), torch.zeros(3), 1, torch.qint8
    ).dequantize(),
    "minkowski": lambda v: torch.cdist(v.flatten(1), v.flatten(1), p=3.0),
    "multi_margin_loss": lambda v: functional.multi_margin_loss(v.flatten(1), torch.tensor([1, 2])),
}


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
@pytest.mark.parametrize("label", SEVERAL)
def test_recorded_from_torch_they_and_their_gradients_are_known(label):
    volume = torch.randn(2, 3, 4, 4, 4, requires_grad=True)

    def run():
        result = SEVERAL[label](volume)
        if result.requires_grad:
            result.sum().backward()

    counted = recorded(run)
    assert not counted.unknown, counted.unknown


def test_what_depends_on_iterations_or_data_stays_unknown():
    for call in (
        Call("aten::_linalg_svd", "", (tensor(4, 4), False, True, None)),
        Call("aten::multilabel_margin_loss_backward", "", (tensor(), x(), x("long"), 1, x()), (x(),)),
    ):
        cost = ENGINE.cost(call).cost
        assert cost.quality == "unknown"
        assert cost != Cost()


def test_a_conjugate_negates_what_is_imaginary():
    cost = costed("_conj_physical", x("c10::complex<float>")).cost
    assert (cost.vector_flops, cost.bytes_read, cost.bytes_written, cost.quality) == (N, 8 * N, 8 * N, "assumed")


def test_rows_that_are_too_long_are_shortened():
    """At most 5 of 8 rows of 16: 16 squares and 15 sums and a root each, a small number more, over the limit; 16."""
    found = costed("embedding_renorm_", x(), tensor(5, dtype="long"), 1.0, 2.0).cost
    assert (found.vector_flops, dict(found.functions)) == (5 * (16 + 15) + 5 * (2 + 16), {"sqrt": 5})
    assert (found.bytes_read, found.bytes_written) == (5 * 64 + 40, 5 * 64)
    assert found.quality == "assumed"
    few = costed("embedding_renorm_", x(), tensor(50, dtype="long"), 1.0, 2.0).cost
    assert (few.vector_flops, few.bytes_written) == (8 * (31 + 18), 8 * 64)


@pytest.mark.parametrize("end", ["", "_fp32_activation"])
def test_an_eight_bit_layer_with_a_packed_weight(end):
    """[3, 16] by [7, 16]: 2 and 4 per input, 2 and 1 per result; the weight counts once, as packed or as it is."""
    weight, packed, sums = tensor(7, 16, dtype="signed char"), tensor(13, dtype="double"), tensor(7, dtype="int")
    given = (tensor(3, 16), weight, packed, sums, 0.1, 0, tensor(7))
    found = costed(f"fbgemm_linear_int8_weight{end}", *given, outputs=(tensor(3, 7),))
    assert (found.cost.model_flops, found.cost.vector_flops) == (2 * 3 * 7 * 16, 6 * 48 + 3 * 21)
    assert (found.kind, found.op_class, found.dtype) == ("matmul", "contraction", "int8")
    assert (found.cost.bytes_read, found.cost.bytes_written) == (4 * 48 + 7 * 16 + 4 * 7 + 4 * 7, 4 * 21)


def test_a_convolution_by_the_name_of_its_library_is_one():
    """8 x 8 pixels, 3 x 3 taps, 1 zero around: 8 + 2 x 7 pairs a side."""
    given = tensor(2, 3, 8, 8), tensor(4, 3, 3, 3), tensor(4), (1, 1), (1, 1), (1, 1), 1
    found = costed("mkldnn_convolution", *given)
    assert (found.cost.flops, found.cost.vector_flops) == (2 * 22**2 * 2 * 3 * 4, 2 * 4 * 64)
    assert (found.kind, found.op_class) == ("convolution", "contraction")


@pytest.mark.filterwarnings("ignore:.*quantiz.*")
@pytest.mark.parametrize("answer", ["q_scale", "q_zero_point", "qscheme"])
def test_questions_about_quantised_numbers_are_no_work(answer):
    quantised = torch.quantize_per_tensor(torch.rand(8, 16), 0.1, 0, torch.quint8)
    counted = recorded(lambda: getattr(quantised, answer)())
    assert not counted.unknown
    assert not counted.ops


def test_what_lies_in_the_layout_of_a_library_is_read_whole():
    volume = torch.rand(*VOLUME).to_mkldnn()
    (op,) = recorded(lambda: torch.mkldnn_max_pool3d(volume, 2)).ops
    assert (op.costed.cost.bytes_read, op.costed.cost.bytes_written) == (1536, 4 * 48)


def test_a_convolution_over_time():
    """7 frames of 2 x 3 to 4 channels, 3 taps, 1 zero around: 7 + 2 x 6 pairs within the image."""
    inputs = (tensor(7, 2, 3), tensor(3, 3, 4), tensor(4), 1)
    found = costed("conv_tbc", *inputs)
    assert (found.cost.flops, found.cost.vector_flops) == (2 * (7 + 2 * 6) * 2 * 3 * 4, 7 * 2 * 4)
    assert (found.kind, found.op_class) == ("convolution", "contraction")


def test_images_resized_without_aliasing():
    """8 x 8 to 4 x 4: a bilinear filter takes in 3 + 4 + 4 + 3 pixels, first of rows of 8 and then of columns of 4."""
    image = tensor(2, 3, 8, 8)
    found = costed("_upsample_bilinear2d_aa", image, (4, 4), False, None, None)
    taps = 3 + 4 + 4 + 3
    assert found.cost.vector_flops == 6 * (2 * taps - 4) * (8 + 4) + 7 * 2 * taps
    assert found.cost.bytes == 4 * (6 * 64 + 6 * 16)
    back = costed("_upsample_bilinear2d_aa_backward", tensor(2, 3, 4, 4), (4, 4), (2, 3, 8, 8), False, None, None)
    assert back.cost.vector_flops == 3 * 6 * taps**2 + 7 * 2 * taps
    # A cubic one reaches 4 pixels to each side, of which the edges cut some off.
    cubic = costed("_upsample_bicubic2d_aa", image, (4, 4), False, None, None)
    taps = 5 + 7 + 7 + 5
    assert cubic.cost.vector_flops == 6 * (2 * taps - 4) * (8 + 4) + 11 * 2 * taps
    # And one of Lanczos 6, with two sines a tap: 7 pixels at the ends, and all 8 between.
    sines = costed("_upsample_lanczos2d_aa", image, (4, 4), False, None, None)
    taps = 7 + 8 + 8 + 7
    assert sines.cost.vector_flops == 6 * (2 * taps - 4) * (8 + 4) + 11 * 2 * taps
    assert (sines.cost.functions, sines.op_class) == ({"sin": 2 * 2 * taps}, "reduction")


@pytest.mark.parametrize("height", [3, 5, 8])
@pytest.mark.parametrize("points", [1, 2, 3])
def test_taps_are_those_that_move_the_result(height, points):
    """Each result of torch's own kernel depends on so many rows of 8; weights at whole distances may be zero."""
    name = ("bilinear", "bicubic", "lanczos")[points - 1]
    rows = torch.eye(8, dtype=torch.float64).reshape(8, 1, 8, 1)
    resized = functional.interpolate(rows, size=(height, 1), mode=name, antialias=True)
    met = int((resized.abs() > 1e-12).sum())
    counted = antialiased_taps(8, height, float(points), 8 / height)
    assert met <= counted <= met + (2 * points + 1) * height


@pytest.mark.parametrize(
    ("name", "given", "results"),
    [("_linalg_svd", (False, True, None), (16, 4, 16)), ("_linalg_eigh", ("L", True), (4, 16))],
)
def test_what_takes_rounds_moves_its_matrices_once(name, given, results):
    cost = costed(name, tensor(4, 4), *given).cost
    assert (cost.flops, cost.quality, cost.bytes_read) == (None, "unknown", 64)
    assert cost.bytes_written == 4 * sum(results)
    assert not cost.is_partly_known


def test_least_squares_read_both_sides_and_have_unknown_flops():
    results = (tensor(6, 2), tensor(0), tensor(0, dtype="long"), tensor(0))
    cost = costed("linalg_lstsq", tensor(6, 6), tensor(6, 2), None, outputs=results).cost
    assert (cost.flops, cost.bytes_read, cost.bytes_written) == (None, 4 * (36 + 12), 4 * 12)


@pytest.mark.parametrize(
    ("function", "forward", "backward"),
    [
        ("softmax", (4, {"exp": 5}), (4, {})),
        # 3 rows hold the 5 numbers, and all 4 are taken to.
        ("log_softmax", (4, {"exp": 5, "log": 4}), (3, {"exp": 5})),
    ],
)
def test_a_sparse_softmax_is_of_what_is_held(function, forward, backward):
    """5 numbers with two places of 8 bytes each; gradients read the result and its gradient."""
    x = torch.zeros(4, 6).index_put((torch.tensor([0, 0, 1, 1, 2]), torch.arange(5)), torch.ones(5)).to_sparse()
    x.requires_grad_()
    counted = recorded(lambda: torch.sparse.sum(getattr(torch.sparse, function)(x, 1)).backward())
    costs = {name: op.costed for name, op in zip(counted.names_of_ops, counted.ops, strict=True)}
    for end, (flops, functions), read in (("", forward, 1), ("_backward_data", backward, 2)):
        found = costs[f"aten::_sparse_{function}{end}"]
        assert (found.cost.vector_flops, dict(found.cost.functions)) == (5 * flops, functions)
        assert (found.cost.bytes_read, found.cost.bytes_written) == (read * 5 * (4 + 16), 5 * (4 + 16))
        assert (found.cost.quality, found.op_class) == ("assumed", "softmax")


def test_least_squares_by_rounds_move_their_matrices_once():
    """Torch has no kernel for their sizes: results tell. 8 x 4 with 2 right sides."""
    a, b = torch.ones(8, 4) + torch.eye(8, 4), torch.ones(8, 2)
    counted = count(counting.record(Step(run=lambda: torch.linalg.lstsq(a, b, driver="gelsd"))), Engine())
    (cost,) = [op.costed.cost for op in counted.ops if op.costed.kind == "linalg_lstsq"]
    assert (cost.flops, cost.quality, cost.bytes_read) == (None, "unknown", 4 * (8 * 4 + 8 * 2))
    # the solution, what is left of both sides, a rank and the singular values
    assert cost.bytes_written == 4 * (4 * 2 + 2 + 4) + 8
