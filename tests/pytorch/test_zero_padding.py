"""Convolutions of images that an op of its own filled up with zeros: what runs, and what was asked for.

Images of 6 x 6 and kernels of 3 x 3. With a zero on either side, 6 outputs have 3 taps each, of which 2 are outside:
(3*6 - 2)^2 pairs of 18^2. With one row and one column behind and stride 2, 3 outputs have 9 taps, one outside:
(9 - 1)^2 pairs of 9^2.
"""

from __future__ import annotations

import inspect
import sys

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from roofline.core.step import Step
from roofline.pytorch import count
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting

BATCH, IN, OUT, SIDE = 2, 3, 5, 6
#: Remembers what a call costs, for all tests.
ENGINE = Engine()
CHANNELS = 2 * BATCH * IN * OUT  # FLOPs of a pair
AROUND, BEHIND = (1, 1, 1, 1), (0, 1, 0, 1)


def convolutions(prepare, stride=1, padding=0, layout=(BATCH, IN, SIDE, SIDE)):
    """(model FLOPs, FLOPs) of a convolution of what `prepare` makes of an image, and of its two gradients."""
    image = torch.randn(layout, requires_grad=True)
    weight = torch.randn(OUT, IN, 3, 3, requires_grad=True)

    def run():
        functional.conv2d(prepare(image), weight, stride=stride, padding=padding).sum().backward()

    counted = count.count(counting.record(Step(run=run)), ENGINE)
    costs = [op.costed.cost for op in counted.ops if op.costed.cost.flops]
    return [(cost.model_flops, cost.flops) for cost in costs]


def twice(model, executed):
    return [(CHANNELS * model, CHANNELS * executed), (2 * CHANNELS * model, 2 * CHANNELS * executed)]


def test_zeros_around_an_image_are_not_asked_for() -> None:
    padded = convolutions(lambda image: functional.pad(image, AROUND))
    assert padded == twice(16**2, 18**2)
    assert convolutions(lambda image: image, padding=1) == twice(16**2, 16**2)


@pytest.mark.parametrize("sides", [((1, 1), (0, 0, 1, 1)), ((1, 0, 1, 0), (0, 1, 0, 1))])
def test_zeros_around_zeros(sides) -> None:
    """Filled up in two steps, by rows and columns or by what is before and behind."""
    first, then = sides
    assert convolutions(lambda image: functional.pad(functional.pad(image, first), then)) == twice(16**2, 18**2)
    # What is filled up with ones has no zeros at its edge.
    ones = convolutions(lambda image: functional.pad(functional.pad(image, AROUND), (1, 1, 1, 1), value=1.0))
    assert ones == twice((3 * 8) ** 2, (3 * 8) ** 2)


@pytest.mark.parametrize(
    "part", [lambda y: y[0], lambda y: y[:, :3], lambda y: y[:1, ..., 1:]], ids=["an image", "channels", "both"]
)
def test_a_part_of_the_images_or_channels_is_asked_for_as_the_whole(part) -> None:
    """10 places of 3 taps, of which the one before and the one behind the image are zeros, wherever these come from.

    Where the first place is cut off again, of the 2 taps that it has on the image nobody asks.
    """
    x, weight = torch.randn(2, 3, 10), torch.randn(5, 3, 3)
    counted = count.count(
        counting.record(Step(run=lambda: part(functional.conv1d(functional.pad(x, (1, 1)), weight)) * 2)), ENGINE
    )
    taps = 28 if part(torch.empty(2, 5, 10)).shape[-1] == 10 else 26
    assert [op.costed.cost.model_flops for op in counted.ops if op.costed.cost.flops] == [2 * 2 * 3 * 5 * taps]


def test_zeros_on_one_side() -> None:
    assert convolutions(lambda image: functional.pad(image, BEHIND), stride=2) == twice(8**2, 9**2)


def test_margins_go_with_copies_into_another_layout() -> None:
    """As Keras does it: padded channels last, turned, and laid out anew."""

    def prepare(image):
        turned = functional.pad(image, (0, 0, *AROUND)).permute(0, 3, 1, 2).contiguous()
        return turned.contiguous(memory_format=torch.channels_last)

    assert convolutions(prepare, layout=(BATCH, SIDE, SIDE, IN)) == twice(16**2, 18**2)


@pytest.mark.parametrize(
    "prepare",
    [
        lambda image: functional.pad(image, AROUND, value=1.0),
        lambda image: functional.pad(image, AROUND) + 1,
        lambda image: functional.pad(image, AROUND).add_(1),
        lambda image: functional.pad(image, (2, 2, 2, 2))[..., 1:-1, 1:-1],
        lambda image: functional.pad(image, (2, 2, 2, 2), mode="reflect")[..., 1:-1, 1:-1],
    ],
    ids=["ones", "a sum", "in place", "a part", "reflected"],
)
def test_what_is_not_known_to_be_zero_is_asked_for(prepare) -> None:
    assert convolutions(prepare) == twice(18**2, 18**2)


CUT = {
    # A causal convolution of 4 to 6 channels, 5 taps 2 apart: it pads both sides by 8, and what is behind the image is
    # cut off. Of the taps of 30 places 30, 28, 26, 24 and 22 are inside.
    "causal": (
        lambda: torch.nn.Conv1d(4, 6, 5, padding=8, dilation=2),
        lambda y: y[:, :, :-8],
        (2, 4, 30),
        2 * 2 * 4 * 6 * (30 + 28 + 26 + 24 + 22),
    ),
    # A transposed one of 3 to 5 channels, stride 2, 3 x 3: each of 7 places meets 3 taps, but the first one only 2.
    "transposed": (
        lambda: torch.nn.ConvTranspose2d(3, 5, 3, stride=2),
        lambda y: y[:, :, 1:, 1:],
        (2, 3, 7, 7),
        2 * 2 * 3 * 5 * (3 * 7 - 1) ** 2,
    ),
    # Rows of 4, of which the last is cut off, and what is left is one dimension: 3 taps for each of 3 rows but one.
    "transposed, flattened": (
        lambda: torch.nn.ConvTranspose2d(3, 1, (3, 1), stride=(2, 1)),
        lambda y: y[:, :, :-1].flatten(2),
        (2, 3, 3, 4),
        2 * 2 * 3 * (3 * 3 - 1) * 4,
    ),
    # The same of a sequence that is cut to 6 and told as 2 rows of 3.
    "transposed, in rows": (
        lambda: torch.nn.ConvTranspose1d(3, 2, 3, stride=2),
        lambda y: y[:, :, :-1].unflatten(2, (2, 3)),
        (2, 3, 3),
        2 * 2 * 3 * 2 * (3 * 3 - 1),
    ),
    # The same of one channel: its images have no stride of their own, nor have those of one row. Of 3 taps for one row
    # 2 are cut off, of 3 for each of 7 places one.
    "transposed, of one channel": (
        lambda: torch.nn.ConvTranspose2d(3, 1, 3, stride=2),
        lambda y: y[:, :, 1:2, 1:],
        (2, 3, 1, 7),
        2 * 2 * 3 * (3 * 7 - 1),
    ),
}


def test_additions_one_after_another_without_end_are_not_followed():
    """More than Python goes into: 2 images of 3 channels to 5, each of 7 places meets 3 taps."""
    net, x, deeper = torch.nn.Conv1d(3, 5, 3), torch.randn(2, 3, 9), 200

    def run():
        y = net(x)
        for _ in range(deeper):
            y = y + 1.0
        return y[:, :, 1:] * 2

    nodes, before = counting.record(Step(run=run)), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + deeper)
    try:
        counted = count.count(nodes, ENGINE)
    finally:
        sys.setrecursionlimit(before)
    assert [op.costed.cost.model_flops for op in counted.ops if op.costed.cost.flops] == [2 * 2 * 3 * 5 * 3 * 7]


@pytest.mark.parametrize(("layer", "cut", "size", "flops"), CUT.values(), ids=CUT)
def test_what_is_cut_off_again_is_not_asked_for(layer, cut, size, flops):
    net, x = layer(), torch.randn(size, requires_grad=True)

    def run():
        torch.relu(cut(net(x))).sum().backward()

    run()
    counted = count.count(counting.record(Step(run=run)), ENGINE)
    products = [op.costed.cost for op in counted.ops if op.costed.cost.flops]
    assert [cost.model_flops for cost in products] == [flops, 2 * flops]
    assert all(cost.flops > cost.model_flops for cost in products)
    # Of what nobody takes, as of a result, the last view tells.
    handed_out = count.count(counting.record(Step(run=lambda: cut(net(x)))), ENGINE)
    assert [op.costed.cost.model_flops for op in handed_out.ops if op.costed.cost.flops] == [flops]
    # The whole where something takes the whole.
    both = count.count(counting.record(Step(run=lambda: (cut(net(x)).relu(), net(x).relu()))), ENGINE)
    first, second = (op.costed.cost for op in both.ops if op.costed.cost.flops)
    assert first.model_flops == flops
    assert second.model_flops == second.flops == first.flops


@pytest.mark.parametrize("turn", [False, True], ids=["channels first", "channels last"])
@pytest.mark.parametrize(
    ("other", "taps"), [((5, 1), 3 * 7 - 1), ((), 3 * 7 - 1), ((5, 15), 3 * 7)], ids=["bias", "number", "sum"]
)
def test_a_bias_may_stand_before_what_is_cut_off(other, taps, turn):
    """3 to 5 channels, each of 7 places meets 3 taps, but the first one only 2. A sum takes all results."""
    net, x = torch.nn.ConvTranspose1d(3, 5, 3, stride=2, bias=False), torch.randn(2, 3, 7, requires_grad=True)
    bias = torch.randn(other)

    def run():
        y = net(x)
        y = (y.transpose(1, 2) + (bias.mT if bias.dim() else bias)).transpose(1, 2) if turn else y + bias
        torch.relu(y[:, :, 1:]).sum().backward()

    counted = count.count(counting.record(Step(run=run)), ENGINE)
    forward, _ = (op.costed.cost for op in counted.ops if op.costed.cost.flops)
    assert (forward.model_flops, forward.flops) == (2 * 2 * 3 * 5 * taps, 2 * 2 * 3 * 5 * 3 * 7)


@pytest.mark.parametrize(("begin", "end"), [(8, 22), (0, 1)])
def test_a_part_of_the_results_is_asked_for_as_the_whole(begin, end):
    """30 places of 3 taps, one of which is outside at either edge: more is cut off than the zeros there added."""
    net, x = torch.nn.Conv1d(4, 6, 3, padding=1), torch.randn(2, 4, 30, requires_grad=True)
    counted = count.count(
        counting.record(Step(run=lambda: torch.relu(net(x)[:, :, begin:end]).sum().backward())), ENGINE
    )
    whole = 2 * 2 * 4 * 6 * (30 * 3 - 2)
    assert [op.costed.cost.model_flops for op in counted.ops if op.costed.cost.flops] == [whole, 2 * whole]


def _returned_with_a_part(y):
    return {"whole": [y], "part": y[..., 1:-1]}


def _returned_where_a_part_is_read(y):
    return y, (y[..., 1:-1] * 2).sum()


def _returned_where_a_part_is_written(y):
    y[..., 1:-1].mul_(2)
    return y


def _returned_in_a_part(y):
    return (y[..., 1:-1],)


@pytest.mark.parametrize(
    ("hand_out", "taps"),
    [
        (_returned_with_a_part, 28),
        (_returned_where_a_part_is_read, 28),
        (_returned_where_a_part_is_written, 28),
        (_returned_in_a_part, 24),
    ],
)
def test_what_the_step_returns_is_taken(hand_out, taps):
    """10 places of 3 taps, of which one is outside at either edge; without the places at the edges 8 of 3."""
    x, weight = torch.randn(2, 3, 10), torch.randn(5, 3, 3)
    counted = count.count(counting.record(Step(run=lambda: hand_out(functional.conv1d(x, weight, padding=1)))), ENGINE)
    assert [op.costed.cost.model_flops for op in counted.ops if op.costed.cost.flops] == [2 * 2 * 3 * 5 * taps]
    # What the recorder does to see it is no call of the step.
    assert "aten::detach" not in counted.names
