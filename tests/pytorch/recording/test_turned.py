"""Optimizers of a step that is there: which form their update has, and another one with the same result."""

from __future__ import annotations

import pytest
import torch

from roofline.errors import InputError
from roofline.pytorch.recording import turned


def optimizer(kind: type[torch.optim.Optimizer] = torch.optim.AdamW, **arguments: object) -> torch.optim.Optimizer:
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(3)) for _ in range(2)]
    for weight in weights:
        weight.grad = torch.ones(3)
    return kind(weights, lr=0.1, **arguments)


def weights(some: torch.optim.Optimizer) -> torch.Tensor:
    return torch.cat([weight.detach() for group in some.param_groups for weight in group["params"]])


def test_the_form_of_an_update() -> None:
    # Not given, it is a loop on a CPU.
    assert turned.forms([optimizer()]) == {"optimizer foreach": "False", "optimizer fused": "False"}
    assert turned.forms([optimizer(foreach=True)]) == {"optimizer foreach": "True", "optimizer fused": "False"}
    assert turned.forms([optimizer(fused=True)]) == {"optimizer foreach": "False", "optimizer fused": "True"}
    assert turned.forms([optimizer(fused=True), optimizer()])["optimizer fused"] == "False"
    assert turned.forms([optimizer(torch.optim.RMSprop)]) == {"optimizer foreach": "False"}
    assert turned.forms([optimizer(torch.optim.LBFGS)]) == {}
    assert turned.forms([]) == {}


@pytest.mark.parametrize("form", turned.FORMS)
def test_another_form_of_the_same_update(form: str) -> None:
    one, other = optimizer(), optimizer()
    one.step()
    other.step()  # it has a state already, as after a step in what builds it
    turn = turned._Form(form)
    for _ in range(2):
        one.step()
        turn(other)
        other.step()
    assert turned.forms([other])[f"optimizer {form}"] == "True"
    torch.testing.assert_close(weights(other), weights(one))


def test_an_optimizer_without_that_form_says_so() -> None:
    with pytest.raises(InputError, match="RMSprop has no fused form"):
        turned._Form("fused")(optimizer(torch.optim.RMSprop))
