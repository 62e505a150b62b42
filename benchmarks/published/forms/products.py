"""The products that a step consists of, by shape: what a closed form of its work is a list of.

Only contractions count, by the rules of docs/counting.md: one multiply-add is 2 FLOP, convolutions at valid positions,
attention with the full mask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roofline.costs import formulas

#: The gradients of a product: with respect to both factors, to one, to none.
BOTH, ONE, NONE = 2, 1, 0


@dataclass(frozen=True, slots=True)
class Product:
    """`times` products of (rows x inner) and (inner x columns).

    gradients: how many of the two a training step computes; each is a product of the same size. Weights that are frozen
    need none, and neither does the input of the first layer.
    """

    rows: int
    inner: int
    columns: int
    times: int = 1
    gradients: int = BOTH

    @property
    def flops(self) -> float:
        """Work of the forward product [FLOP]."""
        return formulas.matmul(self.rows, self.columns, self.inner, self.times).flops or 0.0


@dataclass(frozen=True, slots=True)
class Convolution:
    """`times` convolutions of a square image of `side` and `channels` to `filters` channels.

    padding: zeros before each row and column; `outputs` positions a side are computed, whatever is padded behind.
    """

    side: int
    channels: int
    filters: int
    kernel: int
    outputs: int
    stride: int = 1
    padding: int = 0
    times: int = 1
    gradients: int = BOTH

    @property
    def flops(self) -> float:
        """Work of the forward convolution [FLOP], products with padding left out."""
        cost = formulas.convolution(
            batch=self.times,
            channels_in=self.channels,
            channels_out=self.filters,
            groups=1,
            size=(self.side, self.side),
            kernel=(self.kernel, self.kernel),
            stride=(self.stride, self.stride),
            padding=(self.padding, self.padding),
            dilation=(1, 1),
            outputs=(self.outputs, self.outputs),
        )
        return cost.flops or 0.0


Products = tuple[Product | Convolution, ...]


def same(side: int, channels: int, filters: int, kernel: int = 3, times: int = 1, gradients: int = BOTH) -> Convolution:
    """Return a convolution that keeps the size of the image: padded by half a kernel."""
    return Convolution(
        side, channels, filters, kernel, outputs=side, padding=kernel // 2, times=times, gradients=gradients
    )


def attention(
    queries: int, keys: int, heads: int, width: int, times: int = 1, gradients: tuple[int, int] = (BOTH, BOTH)
) -> Products:
    """QK^T and PV of `heads` heads of `width`; gradients: of each of the two."""
    first, second = gradients
    return (
        Product(queries, width, keys, times * heads, first),
        Product(queries, keys, width, times * heads, second),
    )


def forward(products: Iterable[Product | Convolution]) -> float:
    """Work of a forward pass [FLOP]."""
    return sum(product.flops for product in products)


def training(products: Iterable[Product | Convolution]) -> float:
    """Work of forward and backward pass [FLOP]; updating the weights has no products."""
    return sum(product.flops * (1 + product.gradients) for product in products)
