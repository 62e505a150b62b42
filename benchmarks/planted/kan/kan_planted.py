"""Kolmogorov-Arnold layers with one thing done as one should not."""

import kan
import numpy as np
import torch
from kan import KAN, ORDER, PARTS, make_compiled, make_step


class OfNumPy(KAN):
    """The grid comes from NumPy, so in float64, and makes the splines wide; they are narrowed for the product."""

    def __init__(self, size, outputs):
        super().__init__(size, outputs)
        self.grid = torch.from_numpy(np.arange(-ORDER, PARTS + ORDER + 1) * (2.0 / PARTS) - 1.0)

    def mixed(self, bases):
        return super().mixed(bases.to(self.coefficients.dtype))


def grid_of_numpy():
    return make_step(OfNumPy)


class EdgeByEdge(KAN):
    """Each edge's spline for each sample first, then the scales, then the sum."""

    def mixed(self, bases):
        splines = torch.einsum("big,oig->iob", bases, self.coefficients)
        return torch.einsum("iob,oi->bo", splines, self.scales)


def edge_by_edge():
    return make_step(EdgeByEdge)


def watched():
    """Anomaly detection was left on after a search for a NaN."""
    step = kan.make_train()

    def watched_step():
        with torch.autograd.detect_anomaly(check_nan=True):
            return step()

    return watched_step


class LeftOut(KAN):
    """The splines once failed to compile, so they were left out."""

    @torch.compiler.disable
    def bases(self, x):
        return super().bases(x)


def left_out():
    return make_compiled(LeftOut)
