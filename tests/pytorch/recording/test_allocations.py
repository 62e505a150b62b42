"""The memory of a step held against PyTorch's profiler of allocations: a run of its own, read from its own sums."""

from __future__ import annotations

import handmade
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msgspec.structs import replace
from torch import nn
from torch.autograd.profiler import profile

from roofline.core.step import Step
from roofline.core.vocabulary import STORAGE_KINDS
from roofline.pytorch.recording import record
from roofline.recording.backend import load
from roofline.recording.recording import Plan

THREADS = 1


def held_before(tensors):
    return sum(tensor.untyped_storage().nbytes() for tensor in {id(t): t for t in tensors}.values())


def peak_by_profiler(run, held):
    """Bytes that are held before the step, and the most that the allocator says it added since [byte]."""
    recorder = profile(use_kineto=True, profile_memory=True)
    recorder.__enter__()
    run()
    recorder.__exit__(None, None, None)
    waiting, events = list(recorder.kineto_results.experimental_event_tree()), []
    while waiting:
        event = waiting.pop()
        waiting += event.children
        if event.tag.name == "Allocation":
            events.append((event.start_time_ns, event.typed[1].alloc_size, event.typed[1].total_allocated))
    # Its sum goes on from recording to recording.
    _, first, total = min(events)
    return held + max(0, *(after - (total - first) for _, _, after in events))


def live(counted):
    columns = counted.storages
    sums = np.zeros((len(STORAGE_KINDS), len(counted.ops)))
    for kind, size, first, last in zip(columns.kind, columns.bytes, columns.first, columns.last, strict=True):
        sums[kind, first : last + 1] += size
    return sums


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3)
        )
        self.head = nn.Linear(32 * 14 * 14, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def perceptron():
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 10))


def encoder():
    return nn.Sequential(nn.TransformerEncoderLayer(64, 4, 256, batch_first=True))


INPUTS = {"perceptron": (64, 256), "classifier": (16, 3, 32, 32), "encoder": (8, 48, 64)}
MODELS = {"perceptron": perceptron, "classifier": Classifier, "encoder": encoder}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(before)


def training(name, zero_first=True):
    torch.manual_seed(0)
    model, x = MODELS[name](), torch.randn(INPUTS[name])
    optimizer = torch.optim.AdamW(model.parameters())

    def run():
        if zero_first:
            optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if not zero_first:
            optimizer.zero_grad()

    run()
    states = [value for state in optimizer.state.values() for value in state.values()]
    return model, run, [x, *model.parameters(), *model.buffers(), *states]


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("zero_first", [True, False])
def test_the_peak_of_a_training_step_is_that_of_the_allocator(name, zero_first):
    model, run, tensors = training(name, zero_first)
    counted = record.eager(Step(run=run, model=model))
    # Gradients of the step before are released unseen before its first op: with a step in between none are there.
    model.zero_grad()
    reference = peak_by_profiler(run, held_before(tensors))
    assert live(counted).sum(axis=0).max() == pytest.approx(reference, rel=0.05)
    assert counted.storages.source == "allocator"


@pytest.mark.parametrize("name", list(MODELS))
def test_the_peak_of_inference_is_that_of_the_allocator(name):
    torch.manual_seed(0)
    model, x = MODELS[name]().eval(), torch.randn(INPUTS[name])

    def run():
        with torch.no_grad():
            return model(x)

    run()
    counted = record.eager(Step(run=run, model=model))
    reference = peak_by_profiler(run, held_before([x, *model.parameters(), *model.buffers()]))
    assert live(counted).sum(axis=0).max() == pytest.approx(reference, rel=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the tracer
@pytest.mark.parametrize("backend", ["torchscript", pytest.param("torch-compile", marks=pytest.mark.thorough)])
def test_so_is_that_of_compiled_code(backend):
    def built():
        torch.manual_seed(0)
        model, x = Classifier(), torch.randn(INPUTS["classifier"])
        optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)

        def run():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        return model, x, run

    model, _, run = built()
    plan = Plan(device="cpu", threads=THREADS, count_only=True)
    recording = load(backend).recorder.record(Step(run=run, model=model), plan, lambda text: None)
    model, x, run = built()
    model.forward = (
        torch.jit.trace(model, x, check_trace=False).forward
        if backend == "torchscript"
        else torch.compile(model.forward)
    )
    for _ in range(3):  # the profiling executor optimises at the second
        run()
    model.zero_grad()
    reference = peak_by_profiler(run, held_before([x, *model.parameters(), *model.buffers()]))
    assert live(recording).sum(axis=0).max() == pytest.approx(reference, rel=0.05)


def test_storages_are_told_apart_by_what_they_are_for():
    model, run, _ = training("perceptron")
    counted = record.eager(Step(run=run, model=model))
    sums = dict(zip(STORAGE_KINDS, live(counted), strict=True))
    size = 4 * sum(parameter.numel() for parameter in model.parameters())
    assert (sums["parameters"] == size).all()
    assert (sums["optimizer"] == 2 * size + 4 * 6).all()  # two moments, and for each of 6 parameters a count of steps
    assert sums["gradients"][0] == 0
    assert sums["gradients"][-1] == size
    # Between the passes: both hidden layers before and after GELU, the output, its square and the loss are kept.
    last_forward = int(np.flatnonzero(counted.phase == 0)[-1])
    assert sums["activations"][last_forward] == 4 * (64 * 512 * 4 + 64 * 10 * 2 + 1)
    assert (sums["inputs"] == 4 * 64 * 256).all()


def test_gradients_of_the_step_before_stay_until_they_are_given_up():
    model, x = perceptron(), torch.randn(64, 256)

    def run():
        loss = model(x).square().mean()
        model.zero_grad()
        loss.backward()

    run()
    counted = record.eager(Step(run=run, model=model))
    size = 4 * sum(parameter.numel() for parameter in model.parameters())
    gradients = live(counted)[STORAGE_KINDS.index("gradients")]
    in_forward = counted.phase == 0
    assert (gradients[in_forward] == size).all()
    assert gradients[np.flatnonzero(~in_forward)[0]] == 0
    assert gradients[-1] == size


def test_a_profile_holds_the_storages_of_its_ops():
    from roofline.recording.rows import op_rows

    model, run, _ = training("perceptron")
    counted = record.eager(Step(run=run, model=model))
    rows = op_rows(counted, None, [""] * len(counted.scopes), {}, "cpu")
    assert rows.storages.fits(len(rows.ops))
    assert rows.storages == counted.storages
    handmade.profile(ops=rows.ops, signatures=rows.signatures, storages=rows.storages)


def profile_of(step, batch=None, **memory):
    """The profile of a counted step, as far as its memory goes."""
    from roofline.core.schema import Memory
    from roofline.costs.counted import PHASES
    from roofline.recording.rows import op_rows

    counted = record.eager(step)
    rows = op_rows(counted, None, [""] * len(counted.scopes), {}, "cpu")
    tables = {"scopes": counted.scopes, "phases": PHASES, "blocks": rows.blocks, "signatures": rows.signatures}
    sums = Memory(parameters=float(sum(4 * parameter.numel() for parameter in step.model.parameters())), **memory)
    return handmade.profile(**tables, ops=rows.ops, storages=rows.storages, batch=batch, memory=sums)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_largest_batch_is_that_which_would_fill_the_memory(name):
    from roofline.memory.fit import fit
    from roofline.memory.use import memory_use

    def of(batch):
        torch.manual_seed(0)
        model, x = MODELS[name](), torch.randn(batch, *INPUTS[name][1:])
        optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)

        def run():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        run()
        return profile_of(Step(run=run, model=model), batch, optimizer=0.0)

    memory = memory_use(of(96)).peak
    device = replace(handmade.device(), memory=memory)
    assert fit(of(16), device).largest_batch == pytest.approx(96, rel=0.05)


@pytest.mark.parametrize("name", list(MODELS))
def test_a_step_without_data_holds_at_least_what_one_with_data_does_not_exceed(name):
    from roofline.memory.use import memory_use
    from roofline.pytorch.recording.shapes import without_data

    def built():
        model, x = MODELS[name](), torch.randn(INPUTS[name])
        optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=False)

        def run():
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        run()
        return Step(run=run, model=model)

    real = memory_use(profile_of(built()))
    with without_data():
        counted = memory_use(profile_of(built()))
    assert (counted.at_least, real.at_least) == (True, False)
    assert 0.95 * real.peak <= counted.peak <= real.peak
