"""What is asked for of a convolution whose image another op filled up with zeros first.

A framework that pads by a layer of its own (Keras), and a padding that PyTorch's convolutions do not have (of one side
only), come as `constant_pad_nd` before a convolution that pads nothing. Products with these zeros run, but nobody asked
for them, as nobody does where the convolution pads: model FLOPs are of positions inside the image.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeGuard

from roofline.costs import formulas
from roofline.costs.calls import Call, Tensor
from roofline.pytorch.aten.tables import base

#: Elements before and behind an image, in each of its dimensions.
Margins = tuple[tuple[int, int], ...]

#: Ops whose result is their first argument in another place, type or layout.
_COPIES = frozenset(("clone", "_to_copy", "contiguous"))
#: Which argument of a convolution tells its groups, and of its backward which gradients are wanted.
_GROUPS, _GRADIENTS = 8, 10
_FORWARD = frozenset(("convolution", "_convolution", "convolution_overrideable"))


class ZeroPadding:
    """Follows the calls of a step: which storages hold an image with zeros around it."""

    def __init__(self) -> None:
        """No image is padded yet."""
        # By storage: the margins of the dimension that has this stride and this size. A view keeps both.
        self._known: dict[int, dict[tuple[int, int], tuple[int, int]]] = {}

    def follow(self, call: Call, writes: Collection[int]) -> None:
        """Take note of a call. writes: the storages that it writes, whose former contents are gone."""
        name, result = base(call.name), call.outputs[0] if call.outputs else None
        margins = None
        if result is not None and name in _COPIES:
            margins = self._of(call.inputs[0])
        elif result is not None and name == "constant_pad_nd":
            margins = _padding(call)
        for storage in writes:
            self._known.pop(storage, None)
        if margins is None or not _whole(result) or len(result.shape) != len(margins):
            return
        self._known[result.storage] = {
            (stride, size): edges
            for stride, size, edges in zip(result.stride or (), result.shape, margins, strict=True)
            if edges != (0, 0)
        }

    def flops(self, call: Call) -> float | None:
        """The FLOPs of a convolution, or of its gradients, without what pairs with such zeros; None for other calls."""
        name, values = base(call.name), call.inputs
        if name in _FORWARD and call.outputs:
            result, wanted = call.outputs[0], 1
        elif name == "convolution_backward" and len(values) > _GRADIENTS:
            result, wanted = values[0], sum(bool(each) for each in values[_GRADIENTS][:2])
            values = values[1:]
        else:
            return None
        margins = self._of(values[0]) if len(values) > _GROUPS else None
        if margins is None or any(edges != (0, 0) for edges in margins[:2]):
            return None
        image, weight, _, stride, padding, dilation, transposed, _, groups = values[: _GROUPS + 1]
        if transposed:
            return None
        spatial, dimensions = margins[2:], len(weight.shape) - 2
        stride, padding, dilation = (
            each * dimensions if len(each) == 1 else each for each in (stride, padding, dilation)
        )
        work = formulas.convolution(
            batch=image.shape[0],
            channels_in=image.shape[1],
            channels_out=weight.shape[0],
            groups=groups,
            size=[size - sum(edges) for size, edges in zip(image.shape[2:], spatial, strict=True)],
            kernel=weight.shape[2:],
            stride=stride,
            padding=[zeros + before for zeros, (before, _) in zip(padding, spatial, strict=True)],
            dilation=dilation,
            outputs=result.shape[2:],
        )
        return None if work.flops is None else wanted * work.flops

    def _of(self, value: object) -> Margins | None:
        if not _whole(value) or value.storage not in self._known:
            return None
        known = self._known[value.storage]
        margins = tuple(known.get(key, (0, 0)) for key in zip(value.stride or (), value.shape, strict=True))
        return margins if any(edges != (0, 0) for edges in margins) else None


def _padding(call: Call) -> Margins | None:
    """What `constant_pad_nd` puts around each dimension, of which it names the last ones first; None for no zeros."""
    image, edges, value = (*call.inputs, 0)[:3]
    pairs = list(zip(edges[::2], edges[1::2], strict=True))
    if value or not pairs or min(edges) < 0:
        return None
    return (*((0, 0),) * (len(image.shape) - len(pairs)), *reversed(pairs))


def _whole(value: object) -> TypeGuard[Tensor]:
    """Whether it is a tensor that begins where its storage does, of a known layout."""
    return isinstance(value, Tensor) and value.storage >= 0 and value.stride is not None and value.offset == 0
