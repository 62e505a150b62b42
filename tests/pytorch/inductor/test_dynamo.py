"""What torch.compile did, watched on real modules compiled without a C++ compiler, and where PyTorch tells less.

Expected counts were derived from the modules: one record per traced frame and per backward graph, a break where Python
cannot be traced. The first forward of `Plain` is one graph of two ops.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo import utils

from roofline.core.schema import Compilation
from roofline.pytorch.inductor import dynamo

# Dynamo looks at .grad of what crosses a break, and PyTorch warns of that.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")

X = torch.ones(2, 4)


class Plain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(x).relu()


class Prints(Plain):
    def forward(self, x: Any) -> Any:
        x = self.layer(x)
        print("")
        x = x.relu()
        print("")
        return x * 2


def prints(x: Any) -> Any:
    print("")
    return x.relu()


class Reads(Plain):
    def forward(self, x: Any) -> Any:
        x = self.layer(x)
        return x * x.sum().item()


class Branches(Plain):
    def forward(self, x: Any) -> Any:
        x = self.layer(x)
        if x.sum() > 0:
            return x * 2
        return x


class Loops(Plain):
    def forward(self, x: Any) -> Any:
        for _ in range(3):
            x = self.layer(x)
            torch._dynamo.graph_break()
        return x.relu()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it warns of breaks, which are what is tested
    yield
    logger.setLevel(level)
    torch._dynamo.reset()


def seen(*calls: Callable[[], object]) -> Compilation:
    with dynamo.watch() as watched:
        for call in calls:
            call()
    return dynamo.compilation(watched)


def compiled(module: Any, backend: str = "eager") -> Any:
    return torch.compile(module, backend=backend)


def guards() -> int:
    """Of all that is compiled now, as PyTorch counts them; no earlier records, since their queue is emptied first."""
    return sum(record.guard_count or 0 for record in utils.get_compilation_metrics())


@pytest.fixture
def _no_records() -> None:
    utils.clear_compilation_metrics()


@pytest.mark.usefixtures("_no_records")
def test_one_graph_without_a_break() -> None:
    module = compiled(Plain(), "aot_eager")
    found = seen(lambda: module(X).sum().backward())
    assert found == Compilation(compiler="torch.compile", seconds=found.seconds, guards=guards())
    assert found.guards is not None
    assert found.guards > 0


def test_compile_time_is_part_of_the_first_call() -> None:
    module = compiled(Prints(), "aot_eager")
    start = time.perf_counter()
    found = seen(lambda: module(X).sum().backward())
    whole = time.perf_counter() - start
    # Three frames and three backward graphs one after the other: an order of events, no bound on how long they take.
    assert found.seconds is not None
    assert 0 < found.seconds <= whole


def test_a_second_call_compiles_nothing_more() -> None:
    module = compiled(Plain())
    seen(lambda: module(X))
    found = seen(lambda: module(X))
    assert found.seconds is None
    assert found.guards is None
    assert found.notes[0].startswith("nothing was compiled: no frame was traced")


@pytest.mark.usefixtures("_no_records")
def test_what_a_recorder_compiles_for_itself_is_left_out() -> None:
    """The same function compiled again, with another backend, has breaks and a recompilation of its own."""
    module = Prints()
    first, again = module.forward, torch.compile(module.forward, backend="eager")
    with dynamo.watch() as watched:
        theirs = torch.compile(first, backend="aot_eager")
        theirs(X)
        alone, guarded = dynamo.compilation(dynamo.Watched(tuple(utils.get_compilation_metrics()), {})), guards()
        with dynamo.watch() as ours:
            again(X)
    assert any("BACKEND_MATCH" in reason for reason in dynamo.compilation(watched).recompilations)
    assert sum(dynamo.compilation(watched).breaks.values()) == 4
    found = dynamo.compilation(dynamo.without(watched, ours))
    assert found.recompilations == ()
    assert list(found.breaks.values()) == [2], "a break for each print, once"
    assert (found.seconds, found.guards) == (alone.seconds, guarded)


def test_of_a_pytorch_that_tells_nothing_nothing_is_left() -> None:
    nothing = dynamo.Watched()
    assert dynamo.without(nothing, nothing) == nothing


def test_two_prints_are_two_breaks_of_one_reason() -> None:
    module = compiled(Prints())
    found = seen(lambda: module(X).sum().backward())
    ((reason, number),) = found.breaks.items()
    assert number == 2
    assert reason.startswith(
        "Failed to trace builtin operator: Dynamo does not know how to trace builtin operator `print`"
    )
    # The second break ended the trace of what follows the first.
    lines = [Prints.forward.__code__.co_firstlineno + n for n in (0, 2)]
    assert reason.endswith(
        f"(in forward at test_dynamo.py:{lines[0]}, the rest of forward at test_dynamo.py:{lines[1]})"
    )
    assert len(reason) <= 200
    assert found.recompilations == found.notes == ()


def test_reading_a_value_breaks_once() -> None:
    module = compiled(Reads())
    ((reason, number),) = seen(lambda: module(X)).breaks.items()
    assert number == 1
    assert reason.startswith("Unsupported Tensor.item() call")


def test_a_branch_on_data_is_a_break_that_pytorch_counts_elsewhere() -> None:
    module = compiled(Branches())
    with dynamo.watch() as watched:
        module(X)
    assert watched.breaks == {}
    ((reason, number),) = dynamo.compilation(watched).breaks.items()
    assert number == 1
    assert reason.startswith("Data-dependent branching: Detected data-dependent branching")


def test_a_break_in_a_loop_leaves_the_whole_frame_to_python() -> None:
    module = compiled(Loops())
    found = seen(lambda: module(X))
    ((reason, number),) = found.breaks.items()
    assert number == 1  # PyTorch counts the reason, and again as the cause of giving up the loop
    assert reason.startswith("Call to `torch._dynamo.graph_break()`: User-inserted graph break")
    assert found.notes[0].startswith("nothing was compiled: no frame could be traced whole")
    assert found.notes[1].startswith("forward at test_dynamo.py:")
    assert "was not compiled and runs as without compiling: Call to `torch._dynamo.graph_break()`" in found.notes[1]
    assert found.guards is None
    assert found.seconds is not None  # it was tried


def test_another_type_compiles_again() -> None:
    def sine(x: Any) -> Any:
        return x.sin()

    function = compiled(sine)
    found = seen(lambda: function(X), lambda: function(X.double()))
    line = sine.__code__.co_firstlineno
    assert found.recompilations == (
        f"sine at test_dynamo.py:{line}: tensor 'x' dtype mismatch. expected Float, actual Double",
    )


def test_another_length_compiles_again_once() -> None:
    module = compiled(Plain())
    found = seen(*(lambda n=n: module(torch.ones(n, 4)) for n in (2, 3, 5, 7)))  # from the second on for any length
    ((reason,),) = (found.recompilations,)
    assert reason.endswith("tensor 'x' size mismatch at index 0. expected 2, actual 3")


@pytest.mark.usefixtures("_no_records")
def test_the_recompile_limit_is_a_note() -> None:
    def sine(x: Any) -> Any:
        return x.sin()

    function = torch.compile(sine, backend="eager", dynamic=False)
    with torch._dynamo.config.patch(recompile_limit=3):
        found = seen(*(lambda n=n: function(torch.ones(n)) for n in range(2, 7)))
    assert len(found.recompilations) == 2  # three times in all
    assert found.notes == (
        f"sine at test_dynamo.py:{sine.__code__.co_firstlineno} reached the recompile limit and runs as without "
        "compiling: tensor 'x' size mismatch at index 0. expected 4, actual 5",
    )
    assert found.breaks == {}
    assert found.guards == guards()


def test_compile_of_a_sequential_compiles_nothing() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    module.compile(backend="aot_eager")
    (note,) = seen(lambda: module(X)).notes
    assert note.startswith("nothing was compiled: no frame was traced")
    whole = compiled(module)
    found = seen(lambda: whole(X), lambda: whole(torch.ones(3, 4)))
    assert found.notes == ()
    assert found.recompilations == ("the module: tensor 'args[0]' size mismatch at index 0. expected 2, actual 3",)


def test_python_without_an_op_is_nothing() -> None:
    function = compiled(lambda x: len((1, 2)))
    assert seen(lambda: function(X)).notes == ("nothing was compiled: the frames that were traced hold no op",)


def test_what_a_step_raises_passes_and_what_was_seen_stays() -> None:
    module = compiled(Plain())

    def fails() -> None:
        module(X)
        raise KeyError("the user's")

    with pytest.raises(KeyError, match="the user's"), dynamo.watch() as watched:
        fails()
    assert dynamo.compilation(watched).guards is not None


def test_more_than_the_queue_holds_is_seen_and_its_length_is_given_back() -> None:
    functions = [torch.compile(eval(f"lambda x: x + {n}"), backend="eager") for n in range(3)]
    length = utils._compilation_metrics.maxlen
    try:
        utils.set_compilation_metrics_limit(2)
        with dynamo.watch() as watched:
            for function in functions:
                function(X)
        assert len(watched.records or ()) == 3
        assert utils._compilation_metrics.maxlen == 2
    finally:
        utils.set_compilation_metrics_limit(length)


def record(**values: object) -> SimpleNamespace:
    return SimpleNamespace(**values)


def test_time_inside_other_time_counts_once() -> None:
    # A forward of 0 to 10 s with a backward graph at 4 to 6 s in it, and another from 12 to 15 s: 13 s.
    times = ((0, 10), (4, 6), (12, 15))
    records = tuple(record(start_time_us=low * 1e6, end_time_us=high * 1e6) for low, high in times)
    assert dynamo.compilation(dynamo.Watched(records=records, breaks={})).seconds == pytest.approx(13)


@pytest.mark.parametrize(
    ("gone", "note"),
    [
        ("get_compilation_metrics", "this PyTorch does not tell what it compiled"),
        ("counters", "this PyTorch does not tell graph breaks"),
        ("set_compilation_metrics_limit", None),
        ("_compilation_metrics", None),
    ],
)
def test_an_interface_that_is_gone_is_a_note(gone: str, note: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {
        "get_compilation_metrics": utils.get_compilation_metrics,
        "set_compilation_metrics_limit": lambda length: None,
        "_compilation_metrics": utils._compilation_metrics,
        "counters": utils.counters,
    }
    del offered[gone]
    monkeypatch.setattr(dynamo, "import_module", lambda name: SimpleNamespace(**offered))
    function = compiled(prints)
    found = seen(lambda: function(X))
    assert [text.startswith(note) for text in found.notes] == [True] if note else found.notes == ()
    assert sum(found.breaks.values()) == (0 if gone == "counters" else 1)
    assert (found.guards is None) == (found.seconds is None) == (gone == "get_compilation_metrics")


def test_a_pytorch_without_dynamo_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(dynamo, "import_module", missing)
    found = seen(lambda: None)
    assert len(found.notes) == 2
    assert (found.seconds, found.guards, found.breaks) == (None, None, {})


def test_records_with_fewer_fields_leave_their_facts_unknown() -> None:
    records = (record(), record(is_runtime=True, guard_count=9))
    found = dynamo.compilation(dynamo.Watched(records=records, breaks={}))
    assert (found.seconds, found.guards, found.recompilations, found.breaks) == (None, None, (), {})
    assert found.notes[-1] == "this PyTorch does not tell when it compiled, so the time is not known"


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        ("skipped: forward (/home/somebody/work/net.py line 32)", "skipped: forward (net.py line 32)"),
        ("C:\\Users\\somebody\\net.py:3", "net.py:3"),
        ("see https://pytorch.org/docs 3/4 a/b", "see https://pytorch.org/docs 3/4 a/b"),
        ("<function f at 0x7fc88d798860>", "<function f>"),
        ("a\n  b", "a b"),
    ],
)
def test_reasons_keep_no_folder_and_no_address(raw: str, short: str) -> None:
    assert dynamo._short(raw) == short
