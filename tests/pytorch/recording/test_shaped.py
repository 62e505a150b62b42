"""Modules that are called with made inputs run as inference does, scripted ones, too."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from roofline.pytorch.recording import shaped
from roofline.recording.inputs import Input


class Tokens(torch.nn.Module):
    """A table of three rows and a dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.dropout = torch.nn.Embedding(3, 4), torch.nn.Dropout(0.5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.table(tokens))


@pytest.mark.parametrize("how", ["plain", "scripted", "traced", "frozen"])
def test_a_module_is_in_eval_mode_and_its_tokens_are_in_its_table(how: str) -> None:
    """Of 200 tokens none is beyond the three rows, and each is among them."""
    called = Tokens()
    if how == "scripted":
        called = torch.jit.script(called)
    elif how == "traced":
        called = torch.jit.trace(called.eval(), torch.zeros(1, 200, dtype=torch.int64)).train()
    elif how == "frozen":  # its table is a constant, and no number of rows is known
        called = torch.jit.freeze(torch.jit.script(called.eval()))
    step = shaped.step(called, [Input((1, 200), "int64")], "cpu")
    assert not called.training
    assert step.forward().unique(dim=1).shape == (1, 1 if how == "frozen" else 3, 4)
