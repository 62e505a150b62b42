"""The peak of a step's memory on a GPU, from what the allocator says of its segments."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from roofline.pytorch.recording.memory import of_graphs, of_optimizers


def segment(total: int, allocated: int, pool: tuple[int, int]) -> dict[str, Any]:
    """As `torch.cuda.memory_snapshot` gives it, without what nobody asks for."""
    return {"device": 0, "total_size": total, "allocated_size": allocated, "segment_pool_id": pool, "blocks": []}


def test_what_a_graph_keeps_for_its_replays_is_used() -> None:
    # The default pool's free 60 MiB are free. A graph's pool of 20 + 30 MiB holds a result of 5: a replay uses the
    # other 45, which the allocator counts as free.
    mib = 2**20
    segments = [segment(100 * mib, 40 * mib, (0, 0)), segment(20 * mib, 5 * mib, (0, 1)), segment(30 * mib, 0, (0, 1))]
    assert of_graphs(segments) == 45 * mib


def test_without_graphs_nothing_is_added() -> None:
    assert of_graphs([]) == 0
    assert of_graphs([segment(100, 40, (0, 0))]) == 0
    assert of_graphs([{"total_size": 100, "allocated_size": 40}]) == 0  # a PyTorch that does not tell pools apart


def test_the_state_of_optimizers() -> None:
    layer = torch.nn.Linear(8, 4)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 8)).sum().backward()
    optimizer.step()
    # Two moments of 8 * 4 + 4 numbers, and of both parameters the number of steps.
    assert of_optimizers([optimizer]) == 4 * (2 * (8 * 4 + 4) + 2)
