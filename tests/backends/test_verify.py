"""`verify`: our counts beside FlopCounterMode's and fvcore's, and that a wrong count does not pass."""

from __future__ import annotations

import pytest
import torch
from shared_cases import case
from torch import nn

from roofline import plugins
from roofline.backends.torch import BACKEND
from roofline.core.cost import Cost, matrix
from roofline.core.step import Step, Workload
from roofline.costs import formulas
from roofline.models import geometry

#: All but two that have the ops of gpt2 and bert.
MODELS = sorted({*plugins.names("roofline.models.torch", sorted_by_kind=True)} - {"distilgpt2", "roberta"})


#: Verified by `make test-all` alone: what takes longest, and what has the ops of Gemma.
THOROUGH = {"stable-diffusion", "mistral"}


def checks_of(model: str, mode: str, **asked: int) -> dict[tuple[str, str], tuple[float | None, float | None, str]]:
    if model == "stable-diffusion":
        pytest.importorskip("diffusers")
    module = plugins.load("roofline.models.torch", model, "model", sorted_by_kind=True)
    step = module.build(Workload(model=model, mode=mode, size="tiny", **asked))  # type: ignore[arg-type]
    found = BACKEND.recorder.verify(step)
    return {(check.reference_name, check.what): (check.ours, check.reference, check.verdict) for check in found}


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize(
    "model",
    [pytest.param(name, marks=pytest.mark.thorough) if name in THOROUGH else name for name in MODELS],
)
def test_no_count_differs(model: str, mode: str) -> None:
    small = {"batch": 2, "seq": 16}
    checks = checks_of(model, mode, **{name: small[name] for name in geometry(model).takes if name in small})
    assert [key for key, (_, _, verdict) in checks.items() if verdict == "differs"] == []
    # and something was checked: every model has products that FlopCounterMode counts
    assert [key for key, (_, _, verdict) in checks.items() if key[0] == "FlopCounterMode" and verdict == "agrees"]


def test_what_fvcore_leaves_out_is_named_and_not_passed_over() -> None:
    checks = checks_of("bert", "infer")
    ours, reference, verdict = checks["fvcore", "scaled_dot_product_attention"]
    # tiny: 2 layers, batch 1, 128 tokens, hidden 64; two products of 128 x 128 x 64 each: 2 * 2 * 2 * 128^2 * 64
    assert (ours, reference, verdict) == (2 * 2 * 2 * 128 * 128 * 64, None, "not checked")


def padded_step() -> Step:
    layer = nn.Conv2d(8, 8, 3, padding=1)
    x = torch.randn(1, 8, 16, 16)
    return Step(run=lambda: layer(x), forward=lambda: layer(x), model=layer)


def test_padded_positions_are_reconciled() -> None:
    with torch.no_grad():
        checks = BACKEND.recorder.verify(padded_step())
    found = {check.what: check for check in checks if check.reference_name == "FlopCounterMode"}
    check = found["convolution"]
    # with padding: 16 * 16 positions * 8 outputs * 8 * 9 taps * 2 = 294,912; without: 46^2 pairs * 8 * 8 * 2 = 270,848
    assert (check.ours, check.reference, check.verdict) == (294_912, 294_912, "agrees")
    assert "270848" in check.note


class Einsums(nn.Module):
    """A transposition and a product, both written as einsum."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.einsum("abc,cd->abd", torch.einsum("bac->abc", x), weight)


def test_an_einsum_is_compared_to_the_four_digits_that_fvcore_has() -> None:
    model, x, weight = Einsums(), torch.randn(17, 13, 19), torch.randn(19, 23)
    checks = BACKEND.recorder.verify(Step(run=lambda: model(x, weight), forward=lambda: model(x, weight), model=model))
    (check,) = [check for check in checks if check.reference_name == "fvcore"]
    # 2 * 13 * 17 * 19 * 23 = 193,154, in four digits 1.932e5: 46 more, where 5e-4 of it, 97, are allowed.
    # The transposition of 13 * 17 * 19 = 4,199 numbers is no product; fvcore would take it for so many FLOPs.
    assert (check.ours, check.reference, check.verdict) == (193_154, 193_200, "agrees")
    assert "einsum to four digits" in check.note


def test_a_model_that_is_not_called_cannot_be_traced() -> None:
    layer, other, x = nn.Linear(4, 4), nn.Linear(4, 4), torch.randn(2, 4)
    checks = BACKEND.recorder.verify(Step(run=lambda: layer(x), forward=lambda: layer(x), model=other))
    (check,) = [check for check in checks if check.reference_name == "fvcore"]
    assert (check.reference, check.verdict) == (None, "not checked")
    assert "does not call the model" in check.note


class Attends(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize(
    ("layer", "shape", "name", "flops"),
    [
        # 5 steps of a batch of 3, from 10 and from 20 numbers to 4 gates of 20: 2 * 15 * 80 * 30
        (nn.LSTM(10, 20), (5, 3, 10), "lstm", 72_000),
        # the same with 3 gates, each way
        (nn.GRU(10, 20, bidirectional=True), (5, 3, 10), "gru", 2 * 54_000),
        (nn.RNN(10, 20), (5, 3, 10), "rnn_tanh", 18_000),
        # two products of 16 x 16 x 8, in each of 6
        (Attends(), (2, 3, 16, 8), "scaled_dot_product_attention", 6 * 2 * 2 * 16 * 16 * 8),
    ],
    ids=["lstm", "gru", "rnn", "attention"],
)
def test_products_inside_an_op_that_no_reference_has_are_named_and_differ_from_nothing(
    layer: nn.Module, shape: tuple[int, ...], name: str, flops: float
) -> None:
    x = torch.randn(shape)
    with torch.no_grad():
        checks = BACKEND.recorder.verify(Step(run=lambda: layer(x), forward=lambda: layer(x), model=layer))
    assert "differs" not in {check.verdict for check in checks}
    by_fvcore = {check.what: check for check in checks if check.reference_name == "fvcore"}
    assert (by_fvcore[name].ours, by_fvcore[name].verdict) == (flops, "not checked")
    assert by_fvcore["forward"].ours == 0
    ours = [check.ours or 0.0 for check in checks if check.reference_name == "FlopCounterMode"]
    assert sum(ours) == flops


def test_a_step_in_which_nothing_is_counted_says_so() -> None:
    x = torch.randn(8, 8)
    checks = BACKEND.recorder.verify(Step(run=lambda: torch.relu(x)))
    assert [(check.what, check.verdict) for check in checks if check.reference_name == "FlopCounterMode"] == [
        ("products", "not checked")
    ]


def test_a_reported_lstm() -> None:
    checks = BACKEND.recorder.verify(Step(run=case("03_lstm.py", "make_step")))
    assert sum(check.ours or 0.0 for check in checks if check.reference_name == "FlopCounterMode") == 72_000


def test_convolutions_are_checked_by_fvcore_too() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=2, dilation=2))
    x = torch.randn(2, 3, 15, 17)
    with torch.no_grad():
        checks = BACKEND.recorder.verify(Step(run=lambda: net(x), forward=lambda: net(x), model=net))
    (check,) = [check for check in checks if check.reference_name == "fvcore"]
    # Every tap of every output: 2 * 2 * 8 * 9 * (8 * 9 positions of 27 taps + 8 * 9 of 72)
    assert (check.ours, check.reference, check.verdict) == (2 * 2 * 8 * 8 * 9 * (27 + 72),) * 2 + ("agrees",)
    assert "conv" in check.note


def test_weights_of_groups_are_reconciled() -> None:
    """4 groups of 1 to 2 channels, 9 positions of 3 taps, batch 2. FlopCounterMode's weights' gradient is of 4 to 8."""
    layer, x = nn.Conv1d(4, 8, 3, groups=4, padding=1), torch.randn(2, 4, 9, requires_grad=True)
    checks = BACKEND.recorder.verify(Step(run=lambda: layer(x).sum().backward()))
    (check,) = [check for check in checks if check.what == "convolution_backward"]
    once = 2 * 2 * 9 * 3 * 8
    assert (check.ours, check.reference, check.verdict) == (once + 4 * once, once + 4 * once, "agrees")


def test_what_the_references_cannot_know_differs_from_nothing() -> None:
    """A factor of which 6 of 36 numbers are held, a product of no elements, and a layer that is traced another way."""
    sparse, dense = torch.eye(6).to_sparse(), torch.randn(6, 3, requires_grad=True)
    encoder, x = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(2, 4, 8)

    def multiplied() -> None:
        torch.sparse.mm(sparse, dense).sum().backward()
        torch.addmm(torch.ones(0), torch.ones(3, 4), torch.ones(4, 0))

    checks = BACKEND.recorder.verify(Step(run=multiplied))
    assert {(check.what, check.verdict) for check in checks if check.reference_name == "FlopCounterMode"} == {
        ("_sparse_addmm", "not checked"),
        ("mm", "not checked"),
        ("addmm", "agrees"),
    }
    with torch.no_grad():
        checks = BACKEND.recorder.verify(Step(run=lambda: encoder(x), forward=lambda: encoder(x), model=encoder))
    assert {check.verdict for check in checks} == {"not checked"}


def test_convolutions_that_fvcore_has_no_rule_for_are_left_out_whole() -> None:
    layer, x = nn.Conv2d(2, 3, 3, padding="same", dilation=2), torch.randn(1, 2, 6, 6)
    with torch.no_grad():
        checks = BACKEND.recorder.verify(Step(run=lambda: layer(x), forward=lambda: layer(x), model=layer))
    by_fvcore = {check.what: (check.ours, check.verdict) for check in checks if check.reference_name == "fvcore"}
    # every tap of every output: 2 * 36 * 3 * 2 * 9
    assert by_fvcore == {"forward": (0, "agrees"), "_convolution_mode": (2 * 36 * 3 * 2 * 9, "not checked")}


def test_a_wrong_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(m: int, n: int, k: int, batch: int = 1) -> Cost:
        return matrix(3.0 * batch * m * n * k)

    monkeypatch.setattr(formulas, "matmul", wrong)
    checks = checks_of("mlp", "infer")
    assert checks["FlopCounterMode", "addmm"][2] == "differs"
    assert checks["fvcore", "forward"][2] == "differs"
