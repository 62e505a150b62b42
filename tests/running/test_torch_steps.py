"""Where the steps of programs on PyTorch end, how many there are, and which are unlike the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).parent))

from steps_found import asides, found, ran

import roofline
from roofline.core.executor import ASLEEP
from roofline.errors import MeasurementError
from roofline.measuring.in_loop import LoopRecording
from roofline.running.boundaries import torch_call, torch_optimizer
from roofline.running.boundaries._outermost import OfThread
from roofline.running.identities import Identities
from roofline.running.measurement import Wanted

SOON = Wanted(first=2, last=47)


def test_an_update_ends_a_step() -> None:
    ended = ran("loop", 30)
    assert found(ended) == ("torch_optimizer", 1, 30)
    assert asides(ended) == {}


def test_updates_are_told_apart_by_their_optimizer_also_where_it_has_the_address_of_one_that_is_gone() -> None:
    """3 x 2 + 2 numbers, then 5 x 2 + 2, then as many as first, made anew; two that live are two."""
    seen: list[object] = []

    class Sees:
        source = staticmethod(Identities().of)

        def ended(self, source: object, label: str, since: float) -> None:
            seen.append(source)

    updates = OfThread(torch_optimizer._Updates)
    update = torch_optimizer._reporting(lambda optimizer: None, updates, Sees())  # type: ignore[arg-type]
    for inputs in (3, 5, 3):
        update(torch.optim.SGD(torch.nn.Linear(inputs, 2).parameters(), lr=0.1))
    optimizers = [torch.optim.SGD(torch.nn.Linear(3, 2).parameters(), lr=0.1) for _ in range(2)]
    for optimizer in (*optimizers, *optimizers):
        update(optimizer)
    small, large, other = (("SGD", 8), 0), (("SGD", 12), 0), (("SGD", 8), 1)
    assert seen == [small, large, small, small, other, small, other]


class _Calls:
    """Keep the sources and labels of reported calls."""

    def __init__(self) -> None:
        self.source = Identities().of
        self.sources: list[object] = []
        self.labels: list[str] = []

    def ended(self, source: object, label: str, **others: object) -> None:
        self.sources.append(source)
        self.labels.append(label)

    def when_imported(self, module: str, function: object) -> None:
        """Compile nothing."""


def test_calls_are_told_apart_by_their_module_also_where_it_has_the_address_of_one_that_is_gone() -> None:
    """As of optimizers; one without a state is its class."""
    calls = _Calls()
    call = torch_call._of_modules(lambda module: None, calls)  # type: ignore[arg-type]
    for inputs in (3, 5, 3):
        call(torch.nn.Linear(inputs, 2))
    first, second, loss = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2), torch.nn.MSELoss()
    for module in (first, first, loss, first, second, first):
        call(module)
    small, large, other = (("Linear", 8), 0), (("Linear", 12), 0), (("Linear", 8), 1)
    assert calls.sources == [small, large, small, small, small, "MSELoss", small, other, small]


class _Odd(torch.nn.Module):
    """A module of a user's whose attribute raises."""

    @property
    def training(self) -> bool:
        raise RuntimeError

    @training.setter
    def training(self, value: bool) -> None:
        """Ignore it, as PyTorch sets it."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs


@pytest.mark.parametrize(
    ("module", "names"),
    [
        pytest.param(torch.jit.script(torch.nn.Linear(3, 2)), ["RecursiveScriptModule"] * 2, id="TorchScript"),
        pytest.param(torch.nn.LazyLinear(2), ["LazyLinear", "Linear"], id="a class that changes in the first call"),
        pytest.param(_Odd(), ["_Odd"] * 2, id="an attribute that raises"),
    ],
)
def test_a_module_is_named_by_its_class_and_no_error_reaches_the_program(
    module: torch.nn.Module, names: list[str]
) -> None:
    calls = _Calls()
    call = torch_call._of_modules(torch.nn.Module._wrapped_call_impl, calls)  # type: ignore[arg-type]
    for _ in names:
        assert call(module, torch.ones(1, 3)) is not None
    assert calls.labels == names


def test_accumulated_batches_are_one_step() -> None:
    """42 batches are 10 updates of 4 and one of 2, in each of 6 epochs; that of 2 is unlike the others."""
    ended = ran("accumulated")
    assert found(ended) == ("torch_optimizer", 1, 6 * 11)
    assert asides(ended) == {"fewer calls of Linear and backward() than usual": 6}


@pytest.mark.parametrize("each", [1, 5])
def test_a_round_of_several_optimizers_is_a_step(each: int) -> None:
    ended = ran("adversarial", each, 20)
    assert found(ended) == ("torch_optimizer", each + 1, 20)
    assert asides(ended) == {}


def test_an_update_that_is_skipped_ends_a_step_that_is_left_out() -> None:
    """Steps 5, 22, ..., 107 of 120."""
    ended = ran("scaled")
    assert found(ended) == ("torch_optimizer", 1, 120)
    assert asides(ended) == {"an update skipped by GradScaler": 7}


def test_evaluations_checkpoints_and_ends_of_epochs_are_left_out() -> None:
    """Of 4 x 41 updates 8 are followed by an evaluation; 4 are of a smaller batch, before a file and a new pass.

    An evaluation, a file and a new pass belong to the step of the next update: the evaluation after update 40 to that
    of the smaller batch, the last file to none.
    """
    ended = ran("evaluated", 20)
    assert found(ended) == ("torch_optimizer", 1, 4 * 41)
    assert asides(ended) == {
        "Linear (eval, no gradients)": 8,
        "other sizes than usual": 3,
        "a checkpoint, a new pass over the data": 3,
    }


def test_steps_that_are_left_out_are_in_no_time() -> None:
    """One of 5 steps has an evaluation of 0.1 s and 5 more forward passes of 2 * 16 * 32 FLOP; a step takes 1 ms."""
    ended = ran("evaluated", 5, wanted=Wanted(first=2, last=47, stop=True))
    recording = ended.measurement.measured[0].recording
    assert recording.profiled is not None
    assert max(*recording.wall.steps, *recording.wall.single, *recording.profiled.walls) < 0.1
    assert recording.conditions[ASLEEP] < 0.01
    forward = [op for op in recording.ops if recording.phases[op.phase] == "forward"]
    assert sum(recording.signatures[op.signature].cost.model_flops or 0 for op in forward) == 2 * 16 * 32


def test_episodes_of_different_lengths_are_alike() -> None:
    ended = ran("episodes")
    assert found(ended) == ("torch_optimizer", 1, 90)
    assert sum(asides(ended).values()) < 10


def test_without_an_optimizer_the_outermost_call_is_a_step() -> None:
    ended = ran("inferred", 30)
    assert found(ended) == ("torch_call", 1, 30)
    assert asides(ended) == {}


@pytest.mark.parametrize("kind", ["script", "compile"])
def test_the_outermost_call_of_a_compiled_function_is_a_step(kind: str) -> None:
    assert found(ran("functions", kind, 30)) == ("torch_call", 1, 30)


@pytest.mark.thorough
def test_updates_by_accelerate_with_a_process_that_reads_data() -> None:
    pytest.importorskip("accelerate")
    ended = ran("accelerated")
    assert found(ended) == ("torch_optimizer", 1, 40)
    assert asides(ended) == {}


def test_a_round_of_several_models_is_a_step() -> None:
    """What it began with, calls of the denoiser alone, turned out to be none."""
    assert found(ran("pipeline")) == ("torch_call", 8, 60)


def test_a_training_whose_updates_are_written_by_hand() -> None:
    """80 steps and 4 evaluations of 3, each a round of model and loss, the last of which no further one ends.

    A step begins with the forward pass, so that the ops of the backward pass have its layers.
    """
    ended = ran("manual", wanted=SOON)
    assert found(ended) == ("torch_call", 2, 80 + 4 * 3)
    assert asides(ended) == {"MSELoss (no gradients), Net (eval, no gradients)": 11}
    (measured,) = ended.measurement.measured
    recording = measured.recording
    assert (measured.model, recording.mode) == ("Net", "train")
    backward = {recording.scopes[op.scope] for op in recording.ops if recording.phases[op.phase] == "backward"}
    assert {"inner", "outer"} <= backward


def test_a_training_without_modules_and_optimizer() -> None:
    """A product forward and one backward, as the input takes no gradient."""
    ended = ran("tensors", 130, wanted=Wanted(first=2))
    assert found(ended) == ("torch_backward", 1, 130)
    (measured,) = ended.measurement.measured
    recording = measured.recording
    products = [
        recording.phases[op.phase] for op in recording.ops if recording.signatures[op.signature].cost.model_flops
    ]
    assert (recording.mode, sorted(products)) == ("train", ["backward", "forward"])


def test_what_the_program_says_goes_first() -> None:
    ended = ran("said", wanted=SOON)
    assert found(ended) == ("said", 1, 70)
    recording = ended.measurement.measured[0].recording
    assert recording.mode == "train"
    updates = [op for op in recording.ops if recording.phases[op.phase] == "optimizer"]
    assert len(updates) % 2 == 0
    assert roofline.step() is None  # and outside of such a run it does nothing


def test_a_named_function_of_the_script() -> None:
    """Its call of itself is part of it."""
    assert found(ran("by_hand", step="by_hand:Work.step"))[1:] == (1, 70)


def test_a_named_function_of_a_module() -> None:
    """`torch.randn` is called once before the loop."""
    ended = ran("by_hand", step="torch:randn")
    assert found(ended)[1:] == (1, 71)


def test_nothing_repeats() -> None:
    ended = ran("inferred", 1)
    with pytest.raises(MeasurementError, match=r"seen were Sequential \(eval, no gradients\) 1x\. Name what is a step"):
        ended.profiles("")


def test_a_program_that_ends_too_early() -> None:
    ended = ran("loop", 20, wanted=Wanted(first=2))
    with pytest.raises(MeasurementError, match="ended after 20 steps"):
        ended.profiles("")
    assert not torch._C._autograd._profiler_enabled()


def test_steps_in_another_thread_are_refused() -> None:
    with pytest.raises(
        MeasurementError, match=r"another thread than its first one \(Linear 40x, backward\(\) 40x, SGD 40x\)"
    ):
        ran("threaded").profiles("")


def test_the_programs_own_profiler_goes_first() -> None:
    """Ours had begun in step 3 and ends when the program's begins in step 16.

    That one marks 5 steps, to 20 updates; when there have been 20 more, the updates end the steps again.
    """
    ended = ran("profiled", "part", wanted=SOON)
    assert found(ended) == ("torch_optimizer", 1, 90)
    (measured,) = ended.measurement.measured
    assert measured.first > 40


def test_a_program_that_runs_a_profiler_all_the_time_is_refused() -> None:
    with pytest.raises(MeasurementError, match=r"runs torch\.profiler itself"):
        ran("profiled", "whole", wanted=SOON).profiles("")


def test_no_hook_stays() -> None:
    replaced = [
        (torch, "save"),
        (torch.utils.data.DataLoader, "__iter__"),
        (torch.amp.GradScaler, "step"),
        (torch.optim.Optimizer, "profile_hook_step"),
        (torch.profiler.profile, "step"),
    ]
    before = [vars(owner)[name] for owner, name in replaced]
    ran("loop", 5)
    assert [vars(owner)[name] for owner, name in replaced] == before
    assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("roofline")]


def test_the_loop_stops_when_all_is_measured() -> None:
    ended = ran("loop", 1000, wanted=Wanted(first=2, last=47, stop=True))
    assert isinstance(ended.error, SystemExit)
    assert found(ended)[2] <= 47


def test_steps_are_measured_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the one coroutine that begins above the program, which is free again for the second measurement."""
    free: list[bool] = []
    start = LoopRecording.start

    def noting(recording: LoopRecording[object]) -> None:
        free.append(recording._coroutine is not None and recording._coroutine.is_free)
        start(recording)

    monkeypatch.setattr(LoopRecording, "start", noting)
    ended = ran("loop", 120, wanted=Wanted(first=10, last=55, every=60))
    measured = ended.measurement.measured
    assert free == [True, True]
    assert [taken.first for taken in measured] == [11, 71]
    assert all(len(taken.recording.wall.steps) >= 3 for taken in measured)


def test_generate_is_one_step() -> None:
    """3 new tokens behind 5 are a pass of prefill and 2 of decode."""
    pytest.importorskip("transformers")
    ended = ran("generated", wanted=SOON)
    assert found(ended) == ("transformers_generate", 1, 60)
    recording = ended.measurement.measured[0].recording
    assert (recording.mode, recording.batch, recording.seq, recording.new_tokens) == ("generate", 2, 5, 3)
    assert {recording.phases[op.phase] for op in recording.ops} >= {"prefill", "decode"}


def test_the_steps_of_a_trainer(tmp_path: Path) -> None:
    """After updates 20 and 40 comes an evaluation, in the next step; that after 60 is in none."""
    pytest.importorskip("accelerate")
    pytest.importorskip("transformers")
    ended = ran("trained", tmp_path)
    assert found(ended) == ("transformers_trainer", 1, 60)
    assert sum(steps for reason, steps in asides(ended).items() if "an evaluation" in reason) == 2
