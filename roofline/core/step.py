"""A step: what is run once per iteration, and what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Mode = Literal["infer", "train", "generate"]
Input = Literal["device", "host"]
#: Names of `--precision`; what each means is in models/_precision.py.
PrecisionName = Literal["default", "fp32", "tf32", "bf16", "fp16", "mixed-bf16", "mixed-fp16"]

MODES: tuple[Mode, ...] = get_args(Mode)
INPUTS: tuple[Input, ...] = get_args(Input)
PRECISIONS: tuple[PrecisionName, ...] = get_args(PrecisionName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The settings that the user asked for. None: the model's or the framework's own default, to be resolved.

    batch: samples per step; seq: tokens of each; new_tokens: that each sample gets in mode generate.

    >>> roofline.Workload(model="bert", mode="train", batch=8, seq=128)
    """

    model: str
    mode: Mode = "infer"
    batch: int | None = None
    seq: int | None = None
    size: str = "base"
    layers: int | None = None
    new_tokens: int | None = None
    precision: str = "default"
    device: str = "cpu"  # resolved: "cpu" or "cuda"
    input: Input = "device"
    optimizer: bool = True
    options: Mapping[str, str] = field(default_factory=dict)  # of the backend, as in `--backend keras-jax:jit=off`


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something a backend can run once per iteration.

    run: one step; its return value is ignored.
    model: the framework's own object (an nn.Module), for memory and verification, or None.
    forward: the forward pass alone, for `verify`, or None.
    parameters, trainable: numbers of elements, or None where there is no telling.
    samples, tokens: per step, or None.
    blocks: (scope pattern, block) pairs, first match wins; empty: found by descending the scopes.
    batch, seq: what the step really uses, or None where the model has no such dimension.
    new_tokens: that each sample gets in mode generate, behind `seq` tokens of its prompt.
    switches: what the model decided that changes its work (attention form, GELU variant, dropout, optimizer).
    batches: what the model's library is fed in its own loops (Keras's `fit`), one batch on the host; None: not known.
    irregular: tells after a run whether that was no step like the others, and is to be left out: a loop may evaluate
    or save in some of its steps. None: all runs are alike.
    seconds: tells how long the last run took without what watches a loop that runs anyway [s]. None: nothing does.

    >>> step = roofline.Step(run=lambda: model(x), model=model, samples=32)
    """

    run: Callable[[], object]
    mode: Mode = "infer"
    model: Any = None
    forward: Callable[[], object] | None = None
    parameters: int | None = None
    trainable: int | None = None
    samples: int | None = None
    tokens: int | None = None
    blocks: Sequence[tuple[str, str]] = ()
    batch: int | None = None
    seq: int | None = None
    new_tokens: int | None = None
    switches: dict[str, str] = field(default_factory=dict)
    batches: Any = None
    irregular: Callable[[], bool] | None = None
    seconds: Callable[[], float] | None = None


class _ScopeHook:
    """The context that `scope` enters. A backend that is counting sets it; otherwise a scope costs nothing."""

    enter: Callable[[str], AbstractContextManager[object]] | None = None


def scope(name: str) -> AbstractContextManager[object]:
    """Name the part of a step that runs inside it: `with roofline.scope("loss"): ...`.

    Scopes nest like layers do. Outside a counting run this does nothing. What runs in the scopes `prefill` and `decode`
    of a step that generates is in the phase of that name, and its scope begins below.

    >>> with roofline.scope("loss"):
    ...     model(x).sum()
    """
    return nullcontext() if _ScopeHook.enter is None else _ScopeHook.enter(name)


@contextmanager
def scopes_through(enter: Callable[[str], AbstractContextManager[object]]) -> Iterator[None]:
    """While active, `scope(name)` enters `enter(name)`."""
    before = _ScopeHook.enter
    _ScopeHook.enter = enter
    try:
        yield
    finally:
        _ScopeHook.enter = before


class _StepHook:
    """What `step` calls. `roofline run` sets it; otherwise marking a step costs nothing."""

    end: Callable[[tuple[object, ...]], None] | None = None


def step(*results: object) -> None:
    """Mark the end of a step of a program that runs under `roofline run`: it is then measured from mark to mark.

    results: of the step, for frameworks that compute asynchronously (JAX, TensorFlow). Outside of `roofline run` and of
    `%%roofline --loop` this does nothing.

    >>> for batch in loader:
    ...     train(batch)
    ...     roofline.step()
    """
    if _StepHook.end is not None:
        _StepHook.end(results)
