"""Load a user's own step: `path/to/file.py:function`."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Container
from contextlib import suppress
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

from roofline.core.step import Step, Workload
from roofline.core.vocabulary import FRAMEWORKS
from roofline.errors import InputError, MeasurementError
from roofline.recording.backend import CallWithInputs
from roofline.recording.request import Request
from roofline.recording.source_lines import INSTALLED

#: Arguments that a user's function may take, besides `options`.
_OFFERED = ("batch", "seq", "mode", "device", "precision", "size", "layers", "new_tokens")

#: How the user asks for arrays.
_SHAPES = "--shapes, as in --shapes 8x128:int64"

#: Name for the modules that a file imports from its folder: their own names are not published.
MODULES = "modules of its folder"


def sources(file: Path, before: Container[str]) -> dict[str, str]:
    """Compute the SHA-256 of the user's file, by its name, and one of all modules that it imported from its folder.

    Of installed libraries the versions are recorded instead.

    before: names of the modules that were imported before the file.
    """
    digests = {file.name: digest(file)}
    folder = file.resolve().parent
    imported = [module for name, module in tuple(sys.modules.items()) if name not in before]
    paths = {Path(path).resolve() for module in imported if (path := getattr(module, "__file__", None))}
    local_files = sorted(
        path
        for path in paths - {file.resolve()}
        if path.is_relative_to(folder) and not INSTALLED.intersection(path.parts)
    )
    if local_files:
        listing = "".join(f"{path.relative_to(folder)} {digest(path)}\n" for path in local_files)
        digests[MODULES] = hashlib.sha256(listing.encode()).hexdigest()
    return digests


def digest(file: Path) -> str:
    """Compute the SHA-256 of a file; "gone" where it cannot be read any more."""
    with suppress(OSError):
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return "gone"


class LoadedStep(NamedTuple):
    """Hold the user's step. has_run: it ran once already, since only that shows that the function is the step."""

    step: Step
    has_run: bool = False


def load_step(request: Request, call_with_inputs: CallWithInputs | None) -> LoadedStep:
    """Import the file and make the step of its function: what that returns (a Step, a callable), or else the function.

    The function may take any of batch, seq, mode, device, precision, and gets those the user gave. With `shapes` it is
    called with inputs of these shapes; so is a module, or the module of a class without arguments.
    Raises InputError where there is no such file or function, or it needs other arguments, MeasurementError where
    either ends the process; its own exceptions pass through.
    """
    function, name = _function(request)
    if request.shapes is not None:
        _refuse_unused(request.workload, {}, name)
        if call_with_inputs is None:
            raise InputError(f"The {request.backend} backend makes no inputs: leave --shapes out.")
        called: Any = function() if inspect.isclass(function) else function
        return LoadedStep(call_with_inputs(called, request.shapes, request.workload.device))
    wanted = _chosen_arguments(function, request.workload)
    itself = _step_of(partial(function, **wanted), request.workload)
    if request.is_step:
        return LoadedStep(itself)
    try:
        returned = function(**wanted)
    except SystemExit as error:
        raise MeasurementError(
            f"{request.function} called {exit_of(error)} before it returned a step, which ends the measurement: "
            "let it return one."
        ) from None
    refuse_unrun(returned, name)
    if isinstance(returned, Step):
        return LoadedStep(returned)
    if callable(returned):
        _refuse_arguments(returned, name)
        return LoadedStep(_step_of(returned, request.workload))
    return LoadedStep(itself, has_run=True)


def _function(request: Request) -> tuple[Any, str]:
    """Import the file; return the object that the request names, and its name for errors."""
    file, name = Path(str(request.file)), str(request.function)
    if not file.is_file():
        raise InputError(f"There is no file {file}: give the path of one, as in path/to/file.py:function.")
    spec = spec_from_file_location(f"_roofline_user_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file} is not a Python file: give path/to/file.py:function.")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except SystemExit as error:
        raise MeasurementError(
            f"{file.name} called {exit_of(error)} when it was imported: put what a script does under "
            '`if __name__ == "__main__":`.'
        ) from None
    function = getattr(module, name, None)
    if not callable(function):
        defined = sorted(
            key
            for key, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == spec.name and not key.startswith("_")
        )
        hint = f"; it defines {', '.join(defined)}" if defined else ": define it there, or name another"
        raise InputError(f"{file} has no function {name!r}{hint}.")
    return function, f"{file.name}:{name}"


def refuse_other_frameworks(request: Request, framework: str, before: Container[str]) -> None:
    """Refuse a backend that was chosen by the imports of the file where these brought another framework.

    before: names of the modules that were imported before the file. Raises InputError.
    """
    others = [name for name in FRAMEWORKS if name != framework and name in sys.modules and name not in before]
    if others:
        raise InputError(
            f"{Path(str(request.file)).name} imports {framework}, and what it imports brings {' and '.join(others)}: "
            "give --backend."
        )


def exit_of(error: SystemExit) -> str:
    """Write the call that would end the process: "sys.exit(1)"."""
    return f"sys.exit({'' if error.code is None else repr(error.code)})"


def _chosen_arguments(function: Any, workload: Workload) -> dict[str, Any]:
    """Choose the arguments that the function names. Raises InputError for a required one that is not offered."""
    offered = {name: getattr(workload, name) for name in _OFFERED} | {"options": dict(workload.options) or None}
    wanted = {}
    name = getattr(function, "__name__", type(function).__name__)
    for parameter in _parameters(function):
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        required = parameter.default is parameter.empty
        if parameter.name in offered:
            value = offered[parameter.name]
            if value is not None:
                wanted[parameter.name] = value
            elif required:
                option = parameter.name.replace("_", "-")
                raise InputError(f"{name} needs {parameter.name}: give --{option}.")
        elif required:
            raise InputError(
                f"{name} needs the argument {parameter.name!r}; it can be given {', '.join(offered)}, or arrays by "
                f"{_SHAPES}."
            )
    _refuse_unused(workload, wanted, name)
    return wanted


def _parameters(called: Any) -> list[inspect.Parameter]:
    """List what a callable takes, a module of PyTorch what its `forward` takes; nothing where Python cannot tell."""
    forward = None if inspect.isclass(called) else getattr(called, "forward", None)
    try:
        return list(inspect.signature(forward if callable(forward) else called).parameters.values())
    except (TypeError, ValueError):
        return []


def _refuse_arguments(returned: Any, name: str) -> None:
    """Refuse a module or a function that cannot be called without arguments. Raises InputError.

    Of other callables, as of a method that a framework has wrapped, Python may not know the arguments.
    """
    is_plain = inspect.isfunction(returned) and not hasattr(returned, "__wrapped__")
    if not is_plain and not hasattr(returned, "forward"):
        return
    for parameter in _parameters(returned):
        is_variadic = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if parameter.default is parameter.empty and not is_variadic:
            raise InputError(
                f"{name} gives {type(returned).__name__}, which needs the argument {parameter.name!r}, and a step is "
                f"called without any: return a function that calls it, or name it itself and give {_SHAPES}."
            )


def _refuse_unused(workload: Workload, wanted: dict[str, Any], name: str) -> None:
    """Refuse options that the function does not take: they must not be recorded as if they held. Raises InputError."""
    unasked = Workload(model=workload.model)
    if workload.options and "options" not in wanted:
        options = ", ".join(workload.options)
        raise InputError(f"{name} takes no argument 'options': leave out {options}, or let {name} take it.")
    for asked in ("batch", "seq", "new_tokens", "layers", "size", "precision"):
        if getattr(workload, asked) != getattr(unasked, asked) and asked not in wanted:
            option = asked.replace("_", "-")
            raise InputError(f"{name} takes no argument {asked!r}: leave --{option} out, or let {name} take it.")
    if not workload.optimizer or workload.input != unasked.input:
        option = "--input host" if workload.optimizer else "--no-optimizer"
        raise InputError(f"{option} is for the models of roofline: a step of your own decides that itself.")


def refuse_unrun(value: object, name: str) -> None:
    """Refuse a generator or a coroutine, none of whose lines has run when it is returned. Raises InputError."""
    for is_kind, kind, cure in (
        (inspect.isgenerator, "a generator", "leave out `yield`"),
        (inspect.isasyncgen, "an asynchronous generator", "leave out `async` and `yield`"),
        (inspect.iscoroutine, "a coroutine", "leave out `async`, or run it with asyncio.run"),
    ):
        if is_kind(value):
            if inspect.iscoroutine(value):
                value.close()  # or Python warns that nobody waited for it
            raise InputError(f"{name} returned {kind}, which has not run: {cure}.")


def _step_of(run: Callable[[], object], workload: Workload) -> Step:
    return Step(
        run=run,
        mode=workload.mode,
        batch=workload.batch,
        seq=workload.seq,
        new_tokens=workload.new_tokens,
        samples=workload.batch,
    )
