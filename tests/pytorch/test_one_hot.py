"""Products with a one-hot matrix: they run, and stand for rows picked by their index.

12 indices of 11 rows of 4: one product of 2 * 12 * 11 * 4 = 1,056 FLOP forward, and one for the gradient of the table.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from roofline.core.cost import BY_INDEX
from roofline.core.step import Step
from roofline.pytorch import count
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.recording import counting

#: Remembers what a call costs, for all tests.
ENGINE = Engine()
PRODUCT = 2 * 12 * 11 * 4
INDICES = torch.tensor([[1, 10, 3, 0, 3, 7], [2, 2, 9, 4, 5, 6]])
TABLE = torch.randn(11, 4, requires_grad=True)


def products(make):
    """(model FLOPs, FLOPs, note) of the product of what `make` gives with a table, and of the gradient of the table."""
    counted = count.count(counting.record(Step(run=lambda: make().sum().backward())), ENGINE)
    costs = [op.costed.cost for op in counted.ops if op.costed.cost.flops]
    return [(cost.model_flops, cost.flops, cost.note) for cost in costs]


def one_hot():
    return functional.one_hot(INDICES, 11).float()


PICKS = {
    "one_hot": lambda: one_hot() @ TABLE,
    "linear": lambda: functional.linear(one_hot().to(torch.float32), TABLE.t()),
    "einsum": lambda: torch.einsum("bsv,vh->bsh", one_hot(), TABLE),
    "bias": lambda: torch.addmm(torch.zeros(4), one_hot().reshape(12, 11), TABLE),
    "compared": lambda: (INDICES[..., None] == torch.arange(11)).float() @ TABLE,
    "compared the other way": lambda: (torch.arange(11) == INDICES[..., None]).float() @ TABLE,
    "compared with numbers of another type": lambda: (
        (INDICES[..., None] == torch.arange(0, 11, dtype=torch.int32)).float() @ TABLE
    ),
    "compared with each": lambda: (INDICES[..., None] == torch.arange(0, 11, 1, dtype=torch.int64)).float() @ TABLE,
    "scattered": lambda: torch.zeros(2, 6, 11).scatter_(2, INDICES[..., None], 1.0) @ TABLE,
    "none where there is no index": lambda: (
        torch.where(INDICES[..., None] >= 0, functional.one_hot(INDICES, 11), 0).float() @ TABLE
    ),
    "none where there is no index, of zeros": lambda: (
        torch.where(INDICES[..., None] >= 0, one_hot(), torch.zeros(())) @ TABLE
    ),
    "none where there is no index, filled": lambda: (
        torch.where(INDICES[..., None] >= 0, one_hot(), torch.full((), 0.0)) @ TABLE
    ),
    "none where there is no index, of a number": lambda: (
        torch.where(INDICES[..., None] >= 0, one_hot(), torch.tensor(0.0)) @ TABLE
    ),
    "none where there is no index, of a number of another type": lambda: (
        torch.where(
            INDICES[..., None] >= 0, functional.one_hot(INDICES, 11), torch.as_tensor(0, dtype=torch.int64)
        ).float()
        @ TABLE
    ),
    "identity": lambda: torch.eye(11)[INDICES] @ TABLE,
    "all of a matrix with a 1 in each row": lambda: torch.eye(12, 11) @ TABLE,
}
ASKS = {
    "any other": lambda: torch.rand(2, 6, 11) @ TABLE,
    "scaled": lambda: (one_hot() * 2) @ TABLE,
    "scaled in place": lambda: one_hot().mul_(2) @ TABLE,
    "smoothed": lambda: torch.full((2, 6, 11), 0.1).scatter_(2, INDICES[..., None], 1.0) @ TABLE,
    "twos": lambda: torch.zeros(2, 6, 11).scatter_(2, INDICES[..., None], 2.0) @ TABLE,
    "replaced by others": lambda: torch.where(INDICES[..., None] >= 5, one_hot(), torch.rand(2, 6, 11)) @ TABLE,
    "replaced by a half": lambda: torch.where(INDICES[..., None] >= 5, one_hot(), 0.5) @ TABLE,
    "replaced by the number of a half": lambda: (
        torch.where(INDICES[..., None] >= 5, one_hot(), torch.tensor(0.5)) @ TABLE
    ),
    "replaced by a full half": lambda: torch.where(INDICES[..., None] >= 5, one_hot(), torch.full((), 0.5)) @ TABLE,
    "several per row": lambda: torch.zeros(2, 6, 11).scatter_(2, INDICES[:, None].expand(2, 6, 6), 1.0) @ TABLE,
    "even numbers": lambda: (INDICES[..., None] == torch.arange(0, 22, 2)).float() @ TABLE,
    "indices against indices": lambda: (
        (torch.arange(12).view(2, 6, 1) == torch.arange(132).view(2, 6, 11)).float() @ TABLE
    ),
}


@pytest.mark.parametrize("make", PICKS.values(), ids=PICKS)
def test_rows_picked_by_a_product_are_not_asked_for(make) -> None:
    assert products(make) == [(0, PRODUCT, BY_INDEX)] * 2


@pytest.mark.parametrize("make", ASKS.values(), ids=ASKS)
def test_what_is_not_one_hot_is_a_product(make) -> None:
    assert products(make) == [(PRODUCT, PRODUCT, "")] * 2


def test_what_is_added_may_be_one_hot() -> None:
    asked = torch.rand(12, 11)

    def added():
        return torch.addmm(functional.one_hot(INDICES.view(12) % 4, 4).float(), asked, TABLE)

    assert products(added) == [(PRODUCT, PRODUCT, "")] * 2


def test_patches_that_a_convolution_picks_are_not_asked_for() -> None:
    """12 numbers of each of 5 x 4 patches with an identity of 12 x 12; 4 sums of 3 channels are no patches."""
    image = torch.ones(2, 3, 6, 5, requires_grad=True)

    def patches():
        return functional.conv2d(image, torch.eye(12).reshape(12, 3, 2, 2))

    def sums():
        return functional.conv2d(image, torch.eye(4, 12).reshape(4, 3, 2, 2))

    assert products(patches) == [(0, 2 * 2 * 20 * 12 * 12, BY_INDEX)] * 2
    assert products(sums) == [(2 * 2 * 20 * 12 * 4, 2 * 2 * 20 * 12 * 4, "")] * 2
