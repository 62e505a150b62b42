"""The outermost call of a module or a compiled function: the step of a program that infers, and what others contain.

`Module.__call__` is replaced, where PyTorch's own hooks of all modules would slow every call down, warn in compiled
models and be seen by the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from functools import cache, partial, wraps
from time import perf_counter
from typing import Any

from roofline.running.boundaries._compiled import leave_uncompiled
from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundaries._shapes import shapes_of
from roofline.running.boundary import Boundary, Watcher
from roofline.running.identities import kind_of, nothing, reference

#: [in evaluation][without gradients]
_Labels = tuple[tuple[str, str], tuple[str, str]]


def watch(watcher: Watcher) -> None:
    """Have the outermost calls of modules report, and those of functions that TorchScript or torch.compile made."""
    import torch
    from torch.nn import Module

    def compiling(original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
            made = original(model, *args, **kwargs)
            if model is None:  # a decorator, which compiles what it is given
                return lambda function: _of_function(made(function), watcher)
            return _of_function(made, watcher)

        return compile

    watcher.wrap(torch, "compile", compiling)
    watcher.wrap(torch.jit.ScriptFunction, "__call__", lambda call: _of_script(call, watcher))
    original: Any = Module.__call__
    call = wraps(original)(_of_modules(original, watcher))
    knows_original = "torch._dynamo" in sys.modules

    def remove() -> None:
        # From its import on, Dynamo knows this function as that of modules, and any other one as the user's own.
        if knows_original or "torch._dynamo" not in sys.modules:
            setattr(Module, "__call__", original)  # noqa: B010

    setattr(Module, "__call__", call)  # noqa: B010
    watcher.remove_by(remove)
    watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, call))


def _of_modules(original: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    from torch import is_grad_enabled
    from torch.nn import Module

    main = OUTERMOST.main
    # The module with a state that was called last, its class, labels and source: mostly it is the next one, too.
    last: tuple[Callable[[], Any], type[Any] | None, _Labels, Hashable] = (nothing, None, _labels(""), None)

    def call_outermost(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal last
        since = perf_counter()
        outermost = OUTERMOST.own
        if outermost.inside:
            return original(self, *args, **kwargs)
        outermost.inside = True
        try:
            module, kind, labels, source = last
            try:
                if module() is not self or kind is not type(self):
                    # The module that torch.compile puts around another one has that one's name.
                    name = source = type(_held(self)).__name__
                    labels = _labels(name)
                    # One that holds nothing, as a loss, may be made anew for each call.
                    if self._parameters or self._modules or self._buffers:
                        source = watcher.source(self, kind_of_module)
                        last = reference(self), type(self), labels, source
                # A frozen TorchScript has no `training`.
                label = labels[not getattr(self, "training", True)][not is_grad_enabled()]
            except Exception:  # of a class of the program's
                label = source = type(self).__name__
            watcher.ended(source, label, model=self, detail=shapes_of(args, kwargs), since=since)
            return original(self, *args, **kwargs)
        finally:
            outermost.inside = False

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if main.inside or (not OUTERMOST.is_alone and OUTERMOST.elsewhere.inside):
            return original(self, *args, **kwargs)
        return call_outermost(self, args, kwargs)

    def call_as_torch(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Do what PyTorch's own method does: one more frame is a third of what each call inside of another costs."""
        if main.inside or (not OUTERMOST.is_alone and OUTERMOST.elsewhere.inside):
            if self._compiled_call_impl is not None:
                return self._compiled_call_impl(*args, **kwargs)
            return self._call_impl(*args, **kwargs)
        return call_outermost(self, args, kwargs)

    watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, call_outermost))
    return call_as_torch if original is Module._wrapped_call_impl else call


def _of_script(original: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    return _reporting(original, watcher, lambda args: (args[0], args[0].name))


def _of_function(made: Any, watcher: Watcher) -> Any:
    """Wrap what torch.compile made of a function; a module's calls are reported as those of all modules."""
    import torch

    if isinstance(made, torch.nn.Module):
        return made
    call = wraps(made)(_reporting(made, watcher, lambda args: (made, getattr(made, "__name__", "function"))))
    watcher.when_imported("torch._dynamo.eval_frame", partial(leave_uncompiled, call))
    return call


def _reporting(
    original: Callable[..., Any], watcher: Watcher, called: Callable[[tuple[Any, ...]], tuple[Any, str]]
) -> Callable[..., Any]:
    """Have outermost calls report. called: says by the arguments which function is called, and its name."""
    import torch

    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not watcher.wanted:
            return original(*args, **kwargs)
        outermost = OUTERMOST.own
        if outermost.inside:
            return original(*args, **kwargs)
        function, name = called(args)
        label = _labels(name)[False][not torch.is_grad_enabled()]
        watcher.ended(watcher.source(function, lambda _: name), label, detail=shapes_of(args, kwargs))
        outermost.inside = True
        try:
            return original(*args, **kwargs)
        finally:
            outermost.inside = False

    return call


def parameters_of(module: Any) -> Iterator[int]:
    """Yield how many numbers each parameter of a module has."""
    return (parameter.numel() for parameter in module.parameters())


def kind_of_module(module: Any) -> Hashable:
    """Tell a module by its class and by how many numbers its parameters have; a compiled one by what it holds."""
    return kind_of(parameters_of, _held(module))


def _held(module: Any) -> Any:
    """Return the module that torch.compile put this one around, or this one."""
    modules = module._modules
    return modules["_orig_mod"] if "_orig_mod" in modules else module  # noqa: SIM401 (TorchScript's have no `get`)


@cache
def _labels(name: str) -> _Labels:
    """Make those of what is called, by whether it is in evaluation and by whether gradients are off."""
    return (name, f"{name} (no gradients)"), (f"{name} (eval)", f"{name} (eval, no gradients)")


BOUNDARY = Boundary(
    name="call of {label}",
    module="torch",
    watch=watch,
    backend="torch",
    mode="infer",
    at_begin=True,
    parameters=lambda module: sum(parameters_of(module)),
)
