"""Layers of 8 bit numbers, recorded from torch, by stated arithmetic."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.ao.nn import quantized

from roofline.backends.torchscript import BACKEND as TORCHSCRIPT
from roofline.core.step import Step
from roofline.costs.calls import Call, Tensor
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.count import count
from roofline.pytorch.recording import counting
from roofline.recording.recording import Plan

pytestmark = pytest.mark.filterwarnings("ignore:.*quantiz.*", "ignore:.*deprecated.*")


#: Remembers what a call costs, for all tests.
ENGINE = Engine()


def counted_of(run):
    counted = count(counting.record(Step(run=run)), ENGINE)
    assert not counted.unknown, counted.unknown
    return counted


def products(run):
    """The ops of a step that multiply matrices."""
    return [op.costed for op in counted_of(run).ops if op.costed.cost.flops]


def bytes_of(*shape):
    return torch.quantize_per_tensor(torch.randn(*shape), 0.1, 0, torch.quint8)


def test_functions_of_8_bits():
    """15 numbers back from 8 bits (2), through the function, and to 8 bits (4)."""
    x = bytes_of(3, 5)
    (op,) = [
        op.costed for op in counted_of(lambda: torch.ops.quantized.sigmoid(x, 0.1, 0)).ops if op.costed.cost.functions
    ]
    assert (op.cost.vector_flops, op.cost.functions) == (6 * 15, {"sigmoid": 15})


#: Of 16 places and 3 taps with one of padding: all but one at each end.
INSIDE = 16 * 3 - 2


def test_a_convolution_counts_what_falls_on_the_image():
    """2 images, 4 to 8 channels; each result takes a bias and goes to 8 bits (4), and a ReLU one more."""
    x, layer = bytes_of(2, 4, 16, 16), quantized.Conv2d(4, 8, 3, padding=1)
    (op,) = products(lambda: layer(x))
    assert op.cost.flops == op.cost.model_flops == 2 * 2 * 4 * 8 * INSIDE**2
    assert op.cost.vector_flops == 5 * 2 * 8 * 256
    assert (op.cost.bytes_read, op.cost.bytes_written) == (2 * 4 * 256 + 8 * 4 * 9, 2 * 8 * 256)
    assert (op.kind, op.op_class, op.dtype) == ("convolution", "contraction", "int8")
    fused = torch.ao.nn.intrinsic.quantized.ConvReLU2d(4, 8, 3, padding=1)
    (op,) = products(lambda: fused(x))
    assert op.cost.vector_flops == 6 * 2 * 8 * 256


def test_layers_of_equal_sizes_are_told_apart_by_what_they_hold():
    """3 x 3 taps, one tap, and 3 x 3 of each channel alone, all from 4 to 4 channels."""
    layers = nn.Sequential(
        quantized.Conv2d(4, 4, 3, padding=1), quantized.Conv2d(4, 4, 1), quantized.Conv2d(4, 4, 3, padding=1, groups=4)
    )
    x = bytes_of(1, 4, 16, 16)
    assert [op.cost.flops for op in products(lambda: layers(x))] == [
        2 * 16 * INSIDE**2,
        2 * 16 * 256,
        2 * 4 * INSIDE**2,
    ]


@pytest.mark.parametrize(
    ("layer", "shape", "flops"),
    [
        (lambda: quantized.Conv1d(4, 8, 3, padding=1), (2, 4, 16), 2 * 2 * 4 * 8 * INSIDE),
        (lambda: quantized.Conv3d(4, 8, 3, padding=1), (1, 4, 16, 16, 16), 2 * 4 * 8 * INSIDE**3),
        (lambda: quantized.Conv2d(4, 8, 3, stride=2, dilation=2), (1, 4, 16, 16), 2 * 4 * 8 * 36 * 9),
        (lambda: quantized.ConvTranspose2d(4, 8, 3), (1, 4, 16, 16), 2 * 4 * 8 * 256 * 9),
    ],
)
def test_other_convolutions(layer, shape, flops):
    """Of 16 places a window of 5 starts at 0, 2, ..., 10; a transposed one uses each pair of place and tap."""
    x, made = bytes_of(*shape), layer()
    (op,) = products(lambda: made(x))
    assert op.cost.flops == flops


def test_a_convolution_that_is_packed_in_the_step():
    x, w = bytes_of(1, 4, 16, 16), torch.quantize_per_tensor(torch.randn(8, 4, 3, 3), 0.1, 0, torch.qint8)
    bias = torch.zeros(8)
    (op,) = products(lambda: quantized.functional.conv2d(x, w, bias, padding=1, scale=0.1, zero_point=0))
    assert op.cost.flops == 2 * 4 * 8 * INSIDE**2


def test_a_convolution_that_quantises_what_it_gets():
    """Of each of 2 x 4 x 256 numbers the range (2) and 8 bits (4); of each result 2 back and a bias."""
    layer = torch.ao.nn.quantized.dynamic.Conv2d(4, 8, 3, padding=1)
    x = torch.randn(2, 4, 16, 16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (op,) = products(lambda: layer(x))
    assert (op.cost.flops, op.cost.vector_flops) == (2 * 2 * 4 * 8 * INSIDE**2, 6 * 2 * 4 * 256 + 3 * 2 * 8 * 256)


def test_convolutions_in_a_traced_model():
    """The traced calls are no Python layers: the eager ones tell what they hold."""
    model = nn.Sequential(quantized.Conv2d(4, 4, 1), quantized.Conv2d(4, 4, 3, padding=1)).eval()
    x = bytes_of(1, 4, 16, 16)
    recording = TORCHSCRIPT.recorder.record(
        Step(run=lambda: model(x), model=model), Plan(device="cpu", count_only=True), lambda text: None
    )
    flops = [recording.signatures[op.signature].cost.flops for op in recording.ops]
    assert [each for each in flops if each] == [2 * 16 * 256, 2 * 16 * INSIDE**2]


def flops_of_convolutions(step, **how):
    """FLOPs of each convolution of a step, None where they are not known."""
    ops = count(counting.record(step, **how), ENGINE).ops
    return [op.costed.cost.flops for op in ops if op.costed.kind == "convolution"]


def test_in_a_compiled_step_the_only_layer_of_the_model_that_fits_tells():
    """As no module is seen there: 4 to 6 channels are one layer's, 4 to 4 may be two's."""
    layers = [quantized.Conv2d(4, 6, 3, padding=1), quantized.Conv2d(4, 4, 3, padding=1), quantized.Conv2d(4, 4, 1)]
    back = quantized.ConvTranspose2d(6, 2, 3, stride=2)
    x = bytes_of(1, 4, 16, 16)

    def run():
        back(layers[0](x))
        layers[1](layers[2](x))

    step = Step(run=run, model=nn.ModuleList([*layers, back]))
    assert flops_of_convolutions(step, compiled=True) == [2 * 4 * 6 * INSIDE**2, 2 * 6 * 2 * 256 * 9, None, None]
    # Layers of which the model has none, and two calls of equal sizes, may be anybody's.
    assert flops_of_convolutions(Step(run=run), compiled=True) == [None] * 4
    twice = Step(run=lambda: (layers[0](x), layers[0](x)), model=nn.ModuleList(layers))
    assert flops_of_convolutions(twice, compiled=True) == [None] * 2


def packed_by_hand(groups):
    """Weights of 4 to 4 channels, 3 x 3 taps."""
    weight = torch.quantize_per_tensor(torch.randn(4, 4 // groups, 3, 3), 0.1, 0, torch.qint8)
    return torch.ops.quantized.conv2d_prepack(weight, None, [1, 1], [1, 1], [1, 1], groups)


def test_what_somebody_else_packed_is_no_convolutions_own():
    """A layer of 4 x 4 channels and objects that are no layer's, of one group and of four."""
    convolve = torch.ops.quantized.conv2d
    layer, alone, x = quantized.Conv2d(4, 4, 3, padding=1), packed_by_hand(4), bytes_of(1, 4, 16, 16)
    whole, each = 2 * 16 * INSIDE**2, 2 * 4 * INSIDE**2
    # Neither the layer of the same sizes, which may not even be called, nor a call of it before.
    assert flops_of_convolutions(Step(run=lambda: convolve(x, alone, 0.1, 0))) == [None]
    assert flops_of_convolutions(Step(run=lambda: (layer(x), convolve(x, alone, 0.1, 0)))) == [whole, None]
    # What is packed before a layer is called is not the layer's.
    assert flops_of_convolutions(Step(run=lambda: (packed_by_hand(4), layer(x)))) == [whole]

    def two_packed():
        first, second = packed_by_hand(1), packed_by_hand(4)
        convolve(x, second, 0.1, 0)
        convolve(x, first, 0.1, 0)

    assert flops_of_convolutions(Step(run=two_packed)) == [None, None]
    assert flops_of_convolutions(Step(run=lambda: convolve(x, packed_by_hand(4), 0.1, 0))) == [each]
    # What does not fit was packed for another one.
    pointwise = quantized.Conv2d(4, 2, 1)._packed_params
    assert flops_of_convolutions(Step(run=lambda: (packed_by_hand(4), convolve(x, pointwise, 0.1, 0)))) == [None]


def test_a_product_by_onednn_with_its_activation():
    """16 x 64 x 48: each result back from 8 bits (2) and a ReLU."""
    ops = torch.ops.onednn
    weight = ops.qlinear_prepack(torch.randint(-9, 9, (48, 64), dtype=torch.int8), [16, 64])
    scales, zeros = torch.full((48,), 0.1), torch.zeros(48, dtype=torch.int32)
    x = torch.randint(0, 99, (16, 64), dtype=torch.uint8)
    (op,) = products(
        lambda: ops.qlinear_pointwise(x, 0.1, 0, weight, scales, zeros, None, 1.0, 0, torch.float32, "relu", [], "")
    )
    assert (op.cost.flops, op.cost.vector_flops, op.dtype) == (2 * 16 * 64 * 48, 3 * 16 * 48, "int8")


def test_a_convolution_by_onednn():
    """Its weight lies as oneDNN alone knows; each of 2 x 8 x 256 results goes to 8 bits."""
    ops, window = torch.ops.onednn, [1, 1]
    weight, scales, zeros = torch.randint(-9, 9, (8, 4, 3, 3), dtype=torch.int8), torch.ones(8), torch.zeros(8)
    zeros = zeros.int()
    packed = ops.qconv_prepack(weight, scales, 0.1, 0, window, window, window, 1, [2, 4, 16, 16])
    x = torch.randint(0, 99, (2, 4, 16, 16), dtype=torch.uint8)
    (op,) = products(
        lambda: ops.qconv_pointwise(
            x, 0.1, 0, packed, scales, zeros, None, window, window, window, 1, 0.1, 0, torch.uint8, "none", [], ""
        )
    )
    assert (op.cost.flops, op.cost.vector_flops) == (2 * 2 * 4 * 8 * INSIDE**2, 4 * 2 * 8 * 256)


@pytest.mark.parametrize(
    ("cell", "gates", "weight", "size", "dtype", "quality"),
    [
        (nn.LSTM, 4, torch.qint8, 1, "int8", "exact"),
        (nn.LSTM, 4, torch.float16, 2, "fp32", "exact"),
        (nn.GRU, 3, torch.qint8, 1, "int8", "assumed"),  # its call does not say of which type its weights are
        (nn.GRU, 3, torch.float16, 1, "int8", "assumed"),
    ],
)
def test_recurrent_layers(cell, gates, weight, size, dtype, quality):
    """7 steps of 2 sequences, both directions, 12 then 2 x 20 numbers wide; a weight has 1 or 2 bytes; states of 0."""
    plain = nn.Sequential(cell(12, 20, num_layers=2, bidirectional=True)).eval()
    model = torch.ao.quantization.quantize_dynamic(plain, {cell}, dtype=weight)
    x = torch.randn(7, 2, 12)
    (op,) = products(lambda: model(x))
    weights = 2 * gates * 20 * ((12 + 20) + (40 + 20))
    assert op.cost.flops == op.cost.model_flops == 2 * 14 * weights
    assert op.cost.bytes_read == size * weights + 4 * 7 * 2 * 12 + 4 * 4 * 2 * 20
    assert (op.op_class, op.dtype, op.cost.quality) == ("contraction", dtype, quality)


def test_a_recurrent_cell():
    """3 rows of 12 and 20 numbers to 8 bits (6), 4 gates' products back (2 x 2), and the cell: 16 and its functions."""
    cell = torch.ao.nn.quantized.dynamic.LSTMCell(12, 20)
    x = torch.randn(3, 12)
    (op,) = products(lambda: cell(x))
    assert op.cost.flops == 2 * 3 * 4 * 20 * (12 + 20)
    assert op.cost.vector_flops == 3 * (6 * (12 + 20) + 4 * 4 * 20 + 16 * 20)
    assert op.cost.functions == {"sigmoid": 3 * 3 * 20, "tanh": 2 * 3 * 20}
    assert (op.cost.quality, op.cost.note) == ("assumed", "the weights are taken to be of 8 bits")


def test_what_lies_between_layers():
    """32 numbers: a norm of rows of 8, three activations, each back from 8 bits and to them again; and a pool."""
    norm = quantized.LayerNorm(8, nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8)), 0.1, 0)
    x = bytes_of(4, 8)
    steps = [norm, quantized.Hardswish(0.1, 0), quantized.LeakyReLU(0.1, 0), quantized.ELU(0.1, 0)]
    found = [counted_of(lambda step=step: step(x)).ops[-1].costed for step in steps]
    # mean and variance of 4 rows: two sums, two divisions a row, and two FLOP a number
    assert found[0].cost.vector_flops == 2 * (32 - 4) + 2 * 4 + 2 * 32 + 10 * 32
    assert [each.cost.vector_flops for each in found[1:]] == [9 * 32, 7 * 32, 7 * 32]
    assert [each.op_class for each in found] == ["normalisation", "pointwise", "pointwise", "pointwise"]
    image = bytes_of(1, 2, 8, 8)
    (pool,) = counted_of(lambda: nn.functional.max_pool2d(image, 2)).ops
    assert pool.costed.cost.vector_flops == 3 * 2 * 4 * 4


def test_rows_of_a_table_of_bytes():
    """4 bags of 3 rows of 16 numbers: each back (2) and added; a byte a number, and 8 with each row."""
    bag = quantized.EmbeddingBag(10, 16, mode="sum")
    rows = torch.randint(0, 10, (4, 3))
    (op,) = [op.costed for op in counted_of(lambda: bag(rows)).ops if op.costed.cost.vector_flops]
    assert op.cost.vector_flops == 2 * 12 * 16 + (12 - 4) * 16
    assert op.cost.bytes_read == 12 * (16 + 8) + 8 * 12
    assert op.op_class == "embedding"


def test_what_a_trace_records_of_numbers_brought_to_8_bits_and_back():
    """24 x 18 of them, whose results no trace shows: 6 each, and a byte each that says whether it was within limits."""
    x = Tensor((24, 18), (18, 1), "float")
    scales, points = Tensor((24,), (1,), "float"), Tensor((24,), (1,), "int")
    name = "aten::fake_quantize_per_channel_affine_cachemask"
    cost = Engine().cost(Call(name, None, (x, scales, points, 0, -128, 127))).cost
    assert (cost.quality, cost.vector_flops) == ("exact", 6 * 24 * 18)
    assert (cost.bytes_read, cost.bytes_written) == (4 * 24 * 18 + 4 * 24 + 4 * 24, (4 + 1) * 24 * 18)
    cost = Engine().cost(Call("aten::dequantize", None, (Tensor((24, 18), (18, 1), "c10::quint8"),))).cost
    assert (cost.quality, cost.vector_flops) == ("exact", 2 * 24 * 18)
    assert (cost.bytes_read, cost.bytes_written) == (24 * 18, 4 * 24 * 18)
