"""Formulas of ops that few models use, by op kind as in `formulas`: scans, distances, image sampling, CTC, FFT.

Each is counted on the op's definition. Comparing and choosing are no FLOP; max, abs and negate are, as in the table of
docs/counting.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, log2, prod

from roofline.core.cost import Cost
from roofline.costs.formulas import reduction

#: Of a convention, and not of what a library's plan executes.
FFT_NOTE = "5 N log2 N FLOP per transform, a convention and not what a plan executes"
CTC_NOTE = "each cell takes in three others"


def log_add_exp(times: float) -> Cost:
    """log(e^a + e^b), as max + log1p(e^(min - max)), `times`: subtract, add, one exp and one log1p."""
    return Cost(vector_flops=2.0 * times, functions={"exp": float(times), "log1p": float(times)})


def hypotenuse(outputs: float) -> Cost:
    """sqrt(x x + y y)."""
    return Cost(vector_flops=3.0 * outputs, functions={"sqrt": float(outputs)})


def distances(pairs: float, width: float, p: float) -> Cost:
    """The p-norm of the difference of each of `pairs` pairs of rows of `width` numbers."""
    return Cost(vector_flops=float(pairs * width)) + norms(pairs, width, p)


def norms(rows: float, width: float, p: float) -> Cost:
    """The p-norm of each of `rows` rows of `width` numbers."""
    numbers = rows * width
    cost = reduction(numbers, rows)  # their sum or largest
    if p == 0:  # how many are not 0
        return cost
    if p == 2:
        return cost + Cost(vector_flops=float(numbers), functions={"sqrt": float(rows)})
    cost = cost + Cost(vector_flops=float(numbers))  # abs
    return cost if p in (1, inf) else cost + Cost(functions={"pow": numbers + rows})


def distances_backward(pairs: float, width: float, p: float, rows: int) -> Cost:
    """Gradients of `distances`, added into one row of a pair or into both (rows).

    Per number: the difference, what is added, and besides: sign times gradient is a choice (p = 1); difference times
    gradient over distance (p = 2); else also |difference|^(p-2), with distance^(p-1) for each pair.
    """
    numbers = pairs * width
    cost = Cost(vector_flops=(1.0 + rows) * numbers)
    if p in (0, 1, inf):
        return cost
    if p == 2:
        return cost + Cost(vector_flops=float(numbers + pairs))
    return cost + Cost(vector_flops=3.0 * numbers + pairs, functions={"pow": numbers + pairs})


#: Of the ways to sample between points of an image: points met per dimension.
SAMPLED = {"bilinear": 2, "nearest": 1, "bicubic": 4}


def _weights(locations: float, dimensions: int, points: int) -> float:
    """Count the FLOPs of each location's weights.

    From the range -1..1 to pixels (4 per dimension), distances to both sides, their products.
    """
    if points == 1:
        return 4.0 * dimensions * locations
    return (6.0 * dimensions + points * (dimensions - 1)) * locations


def grid_sample(outputs: float, locations: float, dimensions: int, mode: str) -> Cost:
    """An image read at `locations`, each of which has an output per channel: a weighted sum of the points around."""
    points = SAMPLED[mode] ** dimensions
    summed = 0.0 if points == 1 else (2.0 * points - 1) * outputs
    return Cost(vector_flops=summed + _weights(locations, dimensions, points))


def grid_sample_backward(
    gradients: float, locations: float, dimensions: int, mode: str, of_image: bool, of_grid: bool
) -> Cost:
    """Gradients of `grid_sample`. Per gradient and point, of the image: times the weight, and added.

    Of the grid: value times gradient, and for each dimension times the slope of the weight, and added; none for the
    nearest point. In the end each coordinate's gradient is scaled to pixels.
    """
    points = SAMPLED[mode] ** dimensions
    flops = _weights(locations, dimensions, points)
    if of_image:
        flops += (1.0 if points == 1 else 2.0 * points) * gradients
    if of_grid and points > 1:
        flops += (1.0 + 2.0 * dimensions) * points * gradients + dimensions * locations
    return Cost(vector_flops=flops)


def antialiased_taps(size: int, outputs: int, radius: float, scale: float) -> int:
    """Count the pixels of one dimension that all `outputs` take in, each those within its filter around its centre.

    radius: of the filter, in pixels of the larger image; scale: inputs per output.
    """
    support = radius * max(scale, 1.0)
    centres = (scale * (place + 0.5) for place in range(outputs))
    return sum(
        max(0, min(int(centre + support + 0.5), size) - max(int(centre - support + 0.5), 0)) for centre in centres
    )


#: FLOP and functions per tap of making the weights of a filter: its distance to the centre, scaled (3), the filter of
#: that (abs and 1 - x; a cubic polynomial; sin x / x times sin y / y with y = x / 3, both times pi), their sum and the
#: division by it (2).
_FILTERS: dict[str, tuple[float, dict[str, float]]] = {
    "linear": (7.0, {}),
    "cubic": (11.0, {}),
    "lanczos": (11.0, {"sin": 2.0}),
}


def _weights_of(taps: Sequence[int], weights: str) -> Cost:
    flops, functions = _FILTERS[weights]
    number = float(sum(taps))
    return Cost(vector_flops=flops * number, functions={name: count * number for name, count in functions.items()})


def resample(images: float, sizes: Sequence[int], outputs: Sequence[int], taps: Sequence[int], weights: str) -> Cost:
    """Images resized by a filter, dimension by dimension from the last one on: weighted sums of the pixels around.

    taps: of each dimension, of all outputs together (`antialiased_taps`). weights: of `_FILTERS`.
    """
    flops, current = 0.0, list(sizes)
    for dimension in reversed(range(len(current))):
        lines = images * prod(current[:dimension] + current[dimension + 1 :])
        flops += (2.0 * taps[dimension] - outputs[dimension]) * lines
        current[dimension] = outputs[dimension]
    return Cost(vector_flops=flops) + _weights_of(taps, weights)


def resample_backward(images: float, taps: Sequence[int], weights: str) -> Cost:
    """Each gradient times the weights of both dimensions is added to every pixel that it was made of: 3 per pair."""
    return Cost(vector_flops=3.0 * images * prod(taps)) + _weights_of(taps, weights)


def area_taps(size: int, outputs: int) -> int:
    """Count the pixels of one dimension that all `outputs` lie on, each on its part of the whole."""
    scale = size / outputs
    return sum(min(ceil((place + 1) * scale), size) - int(place * scale) for place in range(outputs))


#: FLOP per pixel. From red, green and blue: their largest and least (4) and the difference, it over the largest; 1 / 6
#: over it, times a difference of two colours, plus its place on the circle, and once around. And back: distances on the
#: circle to three places within limits (5 each), 1 - saturation, and for each colour distance times saturation, plus
#: that, times the largest.
TO_HSV, FROM_HSV = 4.0 + 1 + 1 + 2 + 4, 3 * 5.0 + 1 + 3 * 3


def candidates(samples: float, classes: float, ranked: bool, unique: bool) -> Cost:
    """Classes drawn, and how often each of `classes` is expected among `samples`.

    ranked: the higher a class, the rarer: e^(u log n) - 1, with the probability log((c + 2) / (c + 1)) / log n. unique:
    none is drawn twice, so that 1 - (1 - p)^tries is expected, as -expm1(tries log1p(-p)); else p times the samples.
    What is drawn again counts once.
    """
    cost = Cost(functions={"random": float(samples)}, quality="assumed", note="each sample is drawn once")
    if ranked:
        cost += Cost(vector_flops=2.0 * samples, functions={"exp": float(samples)})
        cost += Cost(vector_flops=4.0 * classes, functions={"log": float(classes)})
    if not unique:
        return cost + Cost(vector_flops=float(classes))
    return cost + Cost(vector_flops=3.0 * classes, functions={"expm1": float(classes), "log1p": float(classes)})


def local_response(numbers: float, channels: int, radius: int) -> Cost:
    """x / (bias + alpha sum x^2)^beta over the channels within `radius`: squares and sums, and 3 per number."""
    near = numbers / max(1, channels) * _neighbours(channels, radius)
    return Cost(vector_flops=near + 3.0 * numbers, functions={"pow": float(numbers)})


def local_response_backward(numbers: float, channels: int, radius: int) -> Cost:
    """Per pair of channels -2 alpha beta x y / norm times the gradient, added: 5; the norm and its power as before."""
    near = numbers / max(1, channels) * _neighbours(channels, radius)
    return Cost(vector_flops=near + 2.0 * numbers + 5.0 * near + numbers, functions={"pow": float(numbers)})


def _neighbours(channels: int, radius: int) -> int:
    """Pairs of channels that lie within `radius` of each other."""
    return sum(min(channels, place + radius + 1) - max(0, place - radius) for place in range(channels))


def boxes_backward(gradients: float, points: float) -> Cost:
    """Gradients of the corners of boxes between whose pixels an image was read linearly.

    Per gradient and dimension the slope between four pixels (5), times the gradient, added up; per point and dimension
    the sum goes to both corners of its box, by how near it is to each: 4.
    """
    return Cost(vector_flops=14.0 * gradients + 8.0 * points)


def segments_backward(numbers: float, gradients: float, reduce: str) -> Cost:
    """Gradients of a reduction of segments: copied (sum, and chosen for max and min), divided first (mean); of a
    product the gradient times the result over the number."""
    return Cost(vector_flops={"mean": float(gradients), "prod": 2.0 * numbers}.get(reduce, 0.0))


def margin_backward(numbers: float, p: int, weighted: bool) -> Cost:
    """Cost the gradient of the multi-class margin loss.

    margin - x[target] + x, summed into the target's, times the gradient.
    Its square (p = 2) has the margin as a factor, and 2.
    """
    return Cost(vector_flops=(4.0 + (2.0 if p == 2 else 0.0) + (1.0 if weighted else 0.0)) * numbers)


def ctc(cells: float) -> Cost:
    """The forward variables of CTC: each of `cells` is log(e^a + e^b + e^c) of the frame before, times a probability.

    2 maxima, 3 subtractions, 2 sums, and 2 additions of logarithms. cells: (2 target + 1) x (frames - 1).
    """
    return Cost(
        vector_flops=9.0 * cells,
        functions={"exp": 3.0 * cells, "log": float(cells)},
        quality="assumed",
        note=CTC_NOTE,
    )


def ctc_backward(cells: float, numbers: float) -> Cost:
    """The backward variables, their product with the forward ones summed up by label, and the gradient of each number:
    (e^p - e^(sum + loss - p)) times the gradient of the loss.
    """
    summed = Cost(vector_flops=6.0 * cells, functions={"exp": 2.0 * cells, "log": float(cells)})
    return ctc(cells) + summed + Cost(vector_flops=4.0 * numbers, functions={"exp": 2.0 * numbers})


def fft(points: float, transforms: float, real: bool = False) -> Cost:
    """`transforms` Fourier transforms of `points` numbers each (of all transformed dimensions together).

    5 N log2 N for complex numbers, half of that where one side is real: what FFTW's benchmark divides by time
    (https://www.fftw.org/speed/method.html). It is the radix-2 count, whatever the plan.
    """
    flops = (2.5 if real else 5.0) * points * log2(points) * transforms if points > 1 else 0.0
    return Cost(vector_flops=flops, quality="assumed", note=FFT_NOTE)
