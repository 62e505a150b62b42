"""Transformer-XL's own parts against what they are defined as, and its size in closed form."""

from __future__ import annotations

from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")

from roofline.core.step import Workload
from roofline.errors import InputError
from roofline.models import dimensions
from roofline.models.torch import _step
from roofline.models.torch.decoders import transformer_xl

ASKED = Workload(model="transformer-xl", size="tiny", batch=2, seq=16)


def test_the_published_size_in_closed_form() -> None:
    """Tables and their matrices, 18 layers, and what the head does not share (arithmetic of the class's docstring)."""
    ends = [0, 20_000, 40_000, 200_000, 267_735]
    embedding = sum((end - start + 1024) * (1024 // 4**n) for n, (start, end) in enumerate(pairwise(ends)))
    layer = 5 * 1024**2 + 2 * 1024 + (1024 * 4096 + 4096) + (4096 * 1024 + 1024) + 2 * 2 * 1024
    assert embedding + 18 * layer == 283_885_936
    with torch.device("meta"):
        model = transformer_xl.network(dimensions(Workload(model="transformer-xl")))
    whole = sum(parameter.numel() for parameter in model.parameters())
    assert whole == 283_885_936 + 1024**2 + 267_735 + 3 * (1024 + 1) == 285_205_322


def test_scores_by_distance_come_to_their_keys() -> None:
    """Column j of the unshifted scores is distance keys - 1 - j; query i stands at key keys - seq + i."""
    seq, keys = 3, 7
    by_distance = torch.arange(keys - 1, -1, -1).float().expand(1, 1, seq, keys)
    found = transformer_xl.shifted(by_distance)[0, 0]
    for query in range(seq):
        for key in range(keys - seq + query + 1):  # later ones are masked
            assert found[query, key] == keys - seq + query - key


def test_a_token_sees_as_many_as_the_memory_holds() -> None:
    hidden = transformer_xl.Mask()(4, torch.zeros(1, 3, 8))
    seen = [[key for key in range(7) if not hidden[query, key]] for query in range(3)]
    assert seen == [[1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]


def test_the_probability_of_a_label_is_that_of_the_whole_distribution() -> None:
    with _step.user_state_kept():
        step = transformer_xl.build(ASKED)
    dims = dimensions(ASKED)
    drawn = transformer_xl.words(dims)
    labels = torch.arange(0, 400, 400 // 32)[:32].view(2, 16)  # of every cluster
    memory = torch.randn(2, 2, dims["memory"], dims["hidden"])
    with torch.no_grad():
        whole, _ = step.model(drawn[:, :-1], memory)
        of_labels, after = step.model(drawn[:, :-1], memory, labels)
    assert torch.allclose(whole.exp().sum(1), torch.ones(32), atol=1e-5)
    assert torch.allclose(whole.gather(1, labels.view(32, 1)).squeeze(1), of_labels, atol=1e-5)
    assert torch.equal(after[:, :, :-16], memory[:, :, 16:]), "the oldest states go"


def test_memory_and_segment_are_one_sequence() -> None:
    """One layer over a segment gives what it gives over the segment's second half with the first as its memory."""
    dims = {**dimensions(ASKED), "layers": 1, "dropout": 0.0}
    torch.manual_seed(0)
    model = transformer_xl.network(dims).eval()
    drawn = transformer_xl.words({**dims, "batch": 1, "seq": 31})
    memory = torch.randn(1, 1, 16, dims["hidden"])
    with torch.no_grad():
        _, after = model(drawn[:, :16], memory)
        half, _ = model(drawn[:, 16:], after)
        long_memory = torch.cat((torch.randn(1, 1, 16, dims["hidden"]), memory), 2)
        whole, _ = model(drawn, long_memory)
    # With 32 keys each the last 16 tokens of the whole see more than those of the half, but for what both mask alike.
    assert half.shape == (16, dims["vocabulary"])
    assert not torch.allclose(half, whole[16:], atol=1e-4)
    with torch.no_grad():
        model.mask = _Sees16()
        whole, _ = model(drawn, long_memory)
    assert torch.allclose(half, whole[16:], atol=1e-5)


class _Sees16(torch.nn.Module):
    """The mask of a memory of 16, whatever the memory."""

    def forward(self, memory: int, like: torch.Tensor) -> torch.Tensor:
        seq = like.shape[1]
        query, key = torch.arange(seq)[:, None] + memory, torch.arange(memory + seq)[None]
        return (key > query) | (key <= query - 16)


def test_a_fused_attention_is_refused() -> None:
    with pytest.raises(InputError, match="use attention=eager"):
        transformer_xl.build(Workload(model="transformer-xl", size="tiny", options={"attention": "sdpa"}))
