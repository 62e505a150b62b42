"""TensorFlow's ops that few models use, each counted on its definition (`roofline.costs.rare`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod

from roofline.core.cost import Cost
from roofline.costs import formulas, rare
from roofline.tensorflow.graph.contractions import UnknownWork, held, sizes, sparse_factors
from roofline.tensorflow.graph.graph import Node, Tensor
from roofline.tensorflow.graph.neighbours import AXES

#: Radius of the filter by which an image is scaled, in pixels of the larger one, and what its weights are like.
_FILTERS = {
    "lanczos1": (1.0, "cubic"),
    "lanczos3": (3.0, "cubic"),
    "lanczos5": (5.0, "cubic"),
    "gaussian": (1.5, "cubic"),
    "box": (0.5, "linear"),
    "triangle": (1.0, "linear"),
    "keyscubic": (2.0, "cubic"),
    "mitchellcubic": (2.0, "cubic"),
}
_WHOLE = "scaled from the whole image to the whole result"
_TRANSFORM = re.compile(r"(Batch)?(I?)(R?)FFT(2D|3D|ND)?")


def _count(tensor: Tensor, name: str = "an input") -> int:
    return prod(sizes(tensor, name))


def _fourier(node: Node) -> Cost:
    """The side of real numbers has all the points, that of complex ones half of them."""
    match = _TRANSFORM.fullmatch(node.op)
    if match is None:
        raise UnknownWork(f"no rule for {node.op}")
    real = bool(match[3])
    signal = sizes(node.outputs[0] if real and match[2] else node.in_types[0], "the signal")
    if match[4] == "ND":
        axes = node.attrs.get(AXES)
        if not axes:
            raise UnknownWork("its axes are numbers of the run")
        points = prod(signal[axis] for axis in axes)
    else:
        points = prod(signal[-int(match[4][0] if match[4] else 1) :])
    return rare.fft(points, prod(signal) / max(1, points), real)


def _sparse_product(node: Node) -> Cost:
    """Each number of the sparse factor meets the columns of its row."""
    return formulas.matmul(*sparse_factors(node), 1)


def _compressed_softmax(node: Node) -> Cost:
    """As of a sparse tensor; its gradient is the product of each row with its own, subtracted, times the softmax: 4."""
    numbers = float(held(node.in_types[0]))
    if node.op.endswith("Grad"):
        return Cost(vector_flops=4.0 * numbers)
    return Cost(vector_flops=4.0 * numbers, functions={"exp": numbers})


def _sparse_sum(node: Node) -> Cost:
    """Numbers of two sparse tensors that lie at one place are added. Nobody needs to read the sums, or their places."""
    summands = _count(node.in_types[1]) + _count(node.in_types[4])
    places, sums = node.outputs[:2]
    rows = places.shape[0] if places.shape else None
    return Cost(vector_flops=float(summands - (_count(sums, "the sum") if rows is None else rows)))


def _compressed_sum(node: Node) -> Cost:
    """Each number times its factor, and added to what lies at its place."""
    summands = sum(map(held, node.in_types[:2]))
    return Cost(vector_flops=float(2 * summands - held(node.outputs[0])))


def _per_sparse_number(node: Node) -> Cost:
    return Cost(vector_flops=float(_count(node.in_types[1], "the sparse tensor")))


def _sparse_softmax(node: Node) -> Cost:
    """As a dense one, of the numbers that are there: the largest, exp of the difference, and over their sum."""
    numbers = float(_count(node.in_types[1], "the sparse tensor"))
    return Cost(vector_flops=4.0 * numbers, functions={"exp": numbers})


def _image(node: Node) -> tuple[int, int, tuple[int, int], tuple[int, int]]:
    """(images, channels, size of each, size of each result)."""
    batch, *size, channels = sizes(node.in_types[0], "the image")
    _, *outputs, _ = sizes(node.outputs[0], "a result")
    return batch, channels, (size[0], size[1]), (outputs[0], outputs[1])


def _bicubic(node: Node) -> Cost:
    """Four pixels of four rows with their weights, and the four sums with theirs: 7 each."""
    return Cost(vector_flops=35.0 * _count(node.outputs[0], "a result"))


def _area(node: Node) -> Cost:
    """Each pixel that a result lies on, times its parts of both dimensions, added; and over the area."""
    batch, channels, size, outputs = _image(node)
    pixels = prod(rare.area_taps(*pair) for pair in zip(size, outputs, strict=True))
    return Cost(vector_flops=float(batch * channels * (3 * pixels + prod(outputs))))


def _scaled(node: Node) -> Cost:
    """Resizing by a filter of a kind. By how much is the value of an input: taken to be what the sizes say."""
    batch, channels, size, outputs = _image(node)
    cost = rare.resample(batch * channels, size, outputs, *_filter(node, size, outputs))
    return cost + Cost(quality="assumed", note=_WHOLE)


def _scaled_backward(node: Node) -> Cost:
    """The gradient of `_scaled`, whose images are the other way around: input 0 is of the result's size."""
    batch, *outputs, channels = sizes(node.in_types[0], "the gradient")
    _, *size, _ = sizes(node.in_types[1], "the image")
    cost = rare.resample_backward(batch * channels, *_filter(node, size, outputs))
    return cost + Cost(quality="assumed", note=_WHOLE)


def _filter(node: Node, size: Sequence[int], outputs: Sequence[int]) -> tuple[list[int], str]:
    """Count the pixels that each dimension of a result takes in, and name what the filter is made of."""
    radius, weights = _FILTERS[node.attrs.get("kernel_type", "lanczos3")]
    antialias = node.attrs.get("antialias", True)
    pairs = zip(size, outputs, strict=True)
    taps = [
        rare.antialiased_taps(full, out, radius, full / out) if antialias else round(2 * radius) * out
        for full, out in pairs
    ]
    return taps, weights


def _projected(node: Node) -> Cost:
    """Between four pixels, 9 per result; where these are, by a projection: two sums of products over a third, 14."""
    shape = sizes(node.outputs[0], "a result")
    weighed = 0.0 if node.attrs.get("interpolation") == "NEAREST" else 9.0 * prod(shape)
    return Cost(vector_flops=weighed + 14.0 * prod(shape[:-1]))


def _crop_backward(node: Node) -> Cost:
    """Add each gradient to the pixel of the image that it was made of, or, times a weight, to four."""
    flops = 1.0 if node.attrs.get("method") == "nearest" else 8.0
    return Cost(vector_flops=flops * _count(node.in_types[0], "the gradient"))


def _boxes_backward(node: Node) -> Cost:
    shape = sizes(node.in_types[0], "the gradient")
    return rare.boxes_backward(float(prod(shape)), float(prod(shape[:-1])))


def _crop_and_resize(node: Node) -> Cost:
    """Between four pixels: 9 per result, as a bilinear resize."""
    nearest = node.attrs.get("method") == "nearest"
    return Cost() if nearest else Cost(vector_flops=9.0 * _count(node.outputs[0], "a result"))


def _local_response(node: Node) -> Cost:
    shape = sizes(node.in_types[0], "an input")
    formula = rare.local_response_backward if node.op.endswith("Grad") else rare.local_response
    return formula(float(prod(shape)), shape[-1], int(node.attrs.get("depth_radius", 5)))


def _ctc(node: Node) -> Cost:
    """The loss and its gradient, as of sequences that fill all frames: how long each is are numbers of the run."""
    frames, batch, classes = sizes(node.in_types[0], "the logits")
    labels = _count(node.in_types[2], "the labels")
    cells = float(max(0, frames - 1) * (2 * labels + batch))
    cost = rare.ctc(cells) + rare.ctc_backward(cells, float(frames * batch * classes))
    return cost + Cost(quality="assumed", note="all frames are taken for part of a sequence")


def _contrast(node: Node) -> Cost:
    """(x - mean) * factor + mean, with the mean of each channel."""
    shape = sizes(node.in_types[0], "the image")
    number, means = prod(shape), prod(shape) // max(1, shape[-2] * shape[-3])
    return Cost(vector_flops=3.0 * number) + formulas.reduction(number, means, mean=True)


def _per_pixel(flops: float) -> Callable[[Node], Cost]:
    return lambda node: Cost(vector_flops=flops * _count(node.in_types[0], "the image") / 3)


def _candidates(node: Node) -> Cost:
    """Sampled classes: input 0 are the true ones, results 1 and 2 how often both kinds are expected."""
    samples, classes = (_count(node.outputs[0]), _count(node.outputs[1]) + _count(node.outputs[2]))
    ranked, unique = node.op.startswith("Log"), bool(node.attrs.get("unique"))
    return rare.candidates(samples, classes, ranked, unique)


def _cells(node: Node, image: Tensor, results: Tensor) -> int:
    """Pixels of all cells of random sizes that an image is cut into; where they overlap, each reaches into the next."""
    batch, *size, channels = sizes(image, "the image")
    _, *outputs, _ = sizes(results, "a result")
    overlap = [many - 1 if node.attrs.get("overlapping") else 0 for many in outputs]
    return batch * channels * prod(pixels + shared for pixels, shared in zip(size, overlap, strict=True))


def _fractional_pool(node: Node) -> Cost:
    cells = _cells(node, node.in_types[0], node.outputs[0])
    return formulas.reduction(cells, _count(node.outputs[0]), mean="Avg" in node.op)


def _fractional_pool_backward(node: Node) -> Cost:
    """Each gradient is added to the largest of its cell, or divided and added to all of it."""
    if "Max" in node.op:
        return Cost(vector_flops=float(_count(node.in_types[2], "the gradient")))
    gradient = node.in_types[1]
    return Cost(vector_flops=float(_count(gradient) + _cells(node, node.outputs[0], gradient)))


def _limits_backward(node: Node) -> Cost:
    """The gradients beyond each of two limits are added up; those between pass."""
    return formulas.reduction(_count(node.in_types[0]), _count(node.outputs[1])) * 2


def _scan_of_exponentials(node: Node) -> Cost:
    number = _count(node.in_types[0])
    cost = rare.log_add_exp(number)
    return cost + Cost(quality="assumed", note="first elements counted")


def _morphology(node: Node) -> Cost:
    """Each result is the largest of its window, to each of which a number is added."""
    window = prod(sizes(node.in_types[1], "the filter")[:2])
    return Cost(vector_flops=(2.0 * window - 1) * _count(node.outputs[0], "a result"))


def _per_result(flops: float, place: int = 0) -> Callable[[Node], Cost]:
    return lambda node: Cost(vector_flops=flops * _count(node.outputs[place], "a result"))


def _per_input(flops: float) -> Callable[[Node], Cost]:
    return lambda node: Cost(vector_flops=flops * _count(node.in_types[0]))


#: The rule of each op.
RULES: dict[str, Callable[[Node], Cost]] = {
    **{
        f"{batch}{inverse}{real}FFT{dimensions}": _fourier
        for batch in ("", "Batch")
        for inverse in ("", "I")
        for real in ("", "R")
        for dimensions in ("", "2D", "3D", "ND")
        if not (batch and real)
    },
    **dict.fromkeys(("SparseTensorDenseMatMul", "SparseMatrixMatMul"), _sparse_product),
    **dict.fromkeys(("SparseMatrixSoftmax", "SparseMatrixSoftmaxGrad"), _compressed_softmax),
    "SparseMatrixMul": lambda node: Cost(vector_flops=float(held(node.in_types[0]))),
    "SparseMatrixAdd": _compressed_sum,
    "SparseAdd": _sparse_sum,
    **dict.fromkeys(("SparseSparseMaximum", "SparseSparseMinimum"), _per_result(1.0, 1)),
    **dict.fromkeys(("SparseDenseCwiseMul", "SparseDenseCwiseDiv", "SparseDenseCwiseAdd"), _per_sparse_number),
    **dict.fromkeys(
        "SparseReduceSum SparseReduceMax SparseReduceSumSparse SparseReduceMaxSparse SparseTensorDenseAdd".split(),
        _per_sparse_number,
    ),
    "SparseSoftmax": _sparse_softmax,
    "ResizeBicubic": _bicubic,
    "ResizeArea": _area,
    "ScaleAndTranslate": _scaled,
    "ScaleAndTranslateGrad": _scaled_backward,
    **dict.fromkeys(("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"), _projected),
    "CropAndResize": _crop_and_resize,
    "CropAndResizeGradImage": _crop_backward,
    "CropAndResizeGradBoxes": _boxes_backward,
    **dict.fromkeys(("LRN", "LRNGrad"), _local_response),
    **dict.fromkeys(("CTCLoss", "CTCLossV2"), _ctc),
    "AdjustContrastv2": _contrast,
    "RGBToHSV": _per_pixel(rare.TO_HSV),
    "HSVToRGB": _per_pixel(rare.FROM_HSV),
    "AdjustHue": _per_pixel(rare.TO_HSV + 2 + rare.FROM_HSV),  # plus a shift, once around
    "AdjustSaturation": _per_pixel(rare.TO_HSV + 3 + rare.FROM_HSV),  # times a factor, within two limits
    **dict.fromkeys(("UniformCandidateSampler", "LogUniformCandidateSampler"), _candidates),
    "AllCandidateSampler": lambda node: Cost(),  # all of them, each expected once
    **dict.fromkeys(("FractionalAvgPool", "FractionalMaxPool"), _fractional_pool),
    **dict.fromkeys(("FractionalAvgPoolGrad", "FractionalMaxPoolGrad"), _fractional_pool_backward),
    "FakeQuantWithMinMaxArgsGradient": lambda node: Cost(),
    **dict.fromkeys(("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient"), _limits_backward),
    "QuantizedConcat": lambda node: Cost(quality="assumed", note="all numbers are taken to have one range"),
    "CumulativeLogsumexp": _scan_of_exponentials,
    "Dilation2D": _morphology,
    "Cross": _per_result(3.0),  # two products and their difference
    "TridiagonalMatMul": _per_result(5.0),
    "HistogramFixedWidth": _per_input(3.0),  # as histc
    **dict.fromkeys(("QuantizeV2", "QuantizeAndDequantizeV4"), _per_input(4.0)),
    "Dequantize": _per_input(2.0),
    **dict.fromkeys(
        ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"), _per_input(6.0)
    ),
}
