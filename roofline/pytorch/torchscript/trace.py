"""A model's forward pass replaced by its trace, made when the step first calls it and with what it calls it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.profiler import record_function
from torch.utils import _pytree

from roofline.core.step import Step
from roofline.errors import InputError, text_of
from roofline.pytorch.recording import compile_time

#: Annotation around each run of a graph while counting.
GRAPH = "roofline:graph"

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Graph:
    """A traced call: from its tensors to the tensors of its output. rebuild: from these to what the model returns."""

    module: Any
    call: Callable[..., Any]
    rebuild: Callable[[Any], Any]


class Traced:
    """A model's forward pass that is traced when it is first called, as the step calls it, and runs as traced since.

    Arguments of other shapes or values are traced on their own: what a trace makes of them holds for its own only.
    eager: while True, calls go to the model as it was. marked: while True, an annotation is around each run of a graph.
    """

    def __init__(self, model: nn.Module, frozen: bool) -> None:
        """frozen: weights become constants of the graph."""
        self.frozen = frozen
        self.eager = self.marked = False
        self.seconds = 0.0
        self.graphs: dict[object, Graph] = {}
        self._model = model
        self._forward = model.forward
        self._baked: dict[str, int] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The model's output for these arguments."""
        # torch.jit does not list it in __all__, nor annotate it.
        if self.eager or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            return self._forward(*args, **kwargs)
        values = [*args, *kwargs.values()]
        names: object = (len(args), *kwargs)
        if not all(isinstance(value, Tensor) for value in values):
            leaves, names = _pytree.tree_flatten((args, kwargs))
            _refuse_objects(leaves, f"{type(self._model).__name__} is called with")
            values = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
            names = (names, tuple("" if isinstance(leaf, Tensor) else repr(leaf) for leaf in leaves))
        key = (names, self._model.training, tuple((value.shape, value.dtype) for value in values))
        graph = self.graphs.get(key)
        if graph is None:
            begin = time.perf_counter()
            with record_function(compile_time.MARK):
                graph = self.graphs[key] = self._trace((args, kwargs), values)
            self.seconds += time.perf_counter() - begin
        with record_function(GRAPH) if self.marked else nullcontext():
            result = graph.call(*values)
        return graph.rebuild(result)

    def notes(self) -> tuple[str, ...]:
        """List what tracing made constant that may depend on data."""
        if not self._baked:
            return ()
        places = list(self._baked)
        shown = ", ".join(places[:4]) + (f" and {len(places) - 4} more" if len(places) > 4 else "")
        return (f"Tracing made constants of Python values that it took from tensors (TracerWarning), at {shown}.",)

    def _trace(self, arguments: _Arguments, values: list[Tensor]) -> Graph:
        program = _Program(self._model, arguments)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                # Dropout draws other numbers in each run, so that torch's own comparison of two runs would fail.
                module = torch.jit.trace(program, tuple(values), check_trace=False)
                if self.frozen:
                    module = torch.jit.freeze(module)
            except InputError:
                raise
            except Exception as error:
                if _out_of_memory(error):
                    raise
                module, why = None, _first_line(error)
        if module is None:
            args, kwargs = arguments
            self._forward(*args, **kwargs)  # an error of the model's own shows here as what it is
            raise InputError(
                f"torch.jit.trace cannot trace {type(self._model).__name__} ({why}): "
                "give a step whose model is your own torch.jit.script of it, or use --backend torch."
            )
        for warning in caught:
            if issubclass(warning.category, torch.jit.TracerWarning):  # type: ignore[attr-defined]  # as above
                place = f"{'/'.join(warning.filename.split('/')[-2:])}:{warning.lineno}"
                self._baked[place] = self._baked.get(place, 0) + 1
        # Not the module itself: calling that runs module hooks, which the model's own call has run already.
        return Graph(module, module.forward, program.rebuild)


class _Program(nn.Module):
    """Calls what is traced: the model between flat tensors, since a graph has no other inputs and outputs."""

    def __init__(self, model: nn.Module, arguments: _Arguments) -> None:
        super().__init__()
        self.model = model
        self.training = model.training  # as `freeze` asks; not `train()`, which would change the model's parts
        leaves, self._inputs = _pytree.tree_flatten(arguments)
        self._constants = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self._varying = [isinstance(leaf, Tensor) for leaf in leaves]
        self._outputs: tuple[Any, list[Any], list[bool]] | None = None

    def forward(self, *values: Tensor) -> Any:
        """The tensors of the model's output."""
        tensors = iter(values)
        varying = zip(self._constants, self._varying, strict=True)
        args, kwargs = _pytree.tree_unflatten(
            [next(tensors) if is_given else constant for constant, is_given in varying], self._inputs
        )
        leaves, shape = _pytree.tree_flatten(self.model(*args, **kwargs))
        _refuse_objects(leaves, f"{type(self.model).__name__} returns")
        is_tensor = [isinstance(leaf, Tensor) for leaf in leaves]
        self._outputs = (
            shape,
            [None if is_array else leaf for leaf, is_array in zip(leaves, is_tensor, strict=True)],
            is_tensor,
        )
        return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))

    def rebuild(self, result: tuple[Tensor, ...]) -> Any:
        """Return what the model returns, from what the graph does."""
        assert self._outputs is not None  # it was traced
        shape, constants, is_tensor = self._outputs
        if len(constants) == 1 and isinstance(shape, _pytree.LeafSpec):
            return result[0] if is_tensor[0] else constants[0]
        tensors = iter(result)
        return _pytree.tree_unflatten(
            [next(tensors) if is_given else constant for constant, is_given in zip(constants, is_tensor, strict=True)],
            shape,
        )


#: Values that a graph may hold as they were when it was traced.
_CONSTANTS = (type(None), bool, int, float, complex, str, torch.dtype, torch.device)


def _refuse_objects(leaves: Iterable[Any], holder: str) -> None:
    """InputError for values that are neither tensors, nor plain, nor lists, tuples or dicts of these."""
    for leaf in leaves:
        if not isinstance(leaf, (Tensor, *_CONSTANTS)):
            raise InputError(
                f"{holder} a {type(leaf).__name__}, which torch.jit.trace cannot record: "
                "use tensors, in tuples, lists or dicts."
            )


@contextmanager
def traced(step: Step, freeze: str | None) -> Iterator[Traced]:
    """While active, the forward pass of `step.model` is TorchScript. freeze: "on", "off", or None for what fits.

    In training a frozen graph would hold the weights of its first step, so it is not frozen. Raises InputError where
    that is asked for.
    """
    model = step.model
    learns = step.mode == "train" or model.training
    if freeze == "on" and learns:
        raise InputError("A frozen graph cannot train: its weights are constants; leave freeze out, or use freeze=off.")
    run = Traced(model, freeze != "off" and not learns)
    before = vars(model).get("forward")
    model.forward = run
    try:
        yield run
    finally:
        if before is None:
            del model.forward
        else:
            model.forward = before


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "allocate memory" in str(error)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in text_of(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".:")
