"""Load a user's own step: `path/to/file.py:make_step`."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Container
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from roofline.core.step import Step, Workload
from roofline.errors import InputError, MeasurementError
from roofline.recording.request import Request

#: Arguments that a user's function may take, besides `options`.
_OFFERED = ("batch", "seq", "mode", "device", "precision", "size", "layers", "new_tokens")

#: Name for the modules that a file imports from its folder: their own names are not published.
MODULES = "modules of its folder"
#: Folders of installed libraries, whose versions are recorded instead.
_INSTALLED = frozenset(("site-packages", "dist-packages"))


def sources(file: Path, before: Container[str]) -> dict[str, str]:
    """Compute the SHA-256 of the user's file, by its name, and one of all modules that it imported from its folder.

    before: names of the modules that were imported before the file.
    """
    digests = {file.name: digest(file)}
    folder = file.resolve().parent
    imported = [module for name, module in tuple(sys.modules.items()) if name not in before]
    paths = {Path(path).resolve() for module in imported if (path := getattr(module, "__file__", None))}
    local_files = sorted(
        path
        for path in paths - {file.resolve()}
        if path.is_relative_to(folder) and not _INSTALLED.intersection(path.parts)
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


def load_step(request: Request) -> Step:
    """Import the file, call its function and take what it returns: a Step, or a callable to run once per step.

    The function may take any of batch, seq, mode, device, precision, and gets those the user gave. Raises InputError
    where there is no such file or function, or where it returns something else, MeasurementError where either ends the
    process; its own exceptions pass through.
    """
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
    wanted = _chosen_arguments(function, request.workload)
    try:
        returned = function(**wanted)
    except SystemExit as error:
        raise MeasurementError(
            f"{name} called {exit_of(error)} before it returned a step, which ends the measurement: let it return one."
        ) from None
    return _as_step(returned, request.workload, f"{file.name}:{name}")


def exit_of(error: SystemExit) -> str:
    """Write the call that would end the process: "sys.exit(1)"."""
    return f"sys.exit({'' if error.code is None else repr(error.code)})"


def _chosen_arguments(function: Any, workload: Workload) -> dict[str, Any]:
    """Choose the arguments that the function names. Raises InputError for a required one that is not offered."""
    offered = {name: getattr(workload, name) for name in _OFFERED} | {"options": dict(workload.options) or None}
    wanted = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        required = parameter.default is parameter.empty
        if parameter.name in offered:
            value = offered[parameter.name]
            if value is not None:
                wanted[parameter.name] = value
            elif required:
                option = parameter.name.replace("_", "-")
                raise InputError(f"{function.__name__} needs {parameter.name}: give --{option}.")
        elif required:
            raise InputError(
                f"{function.__name__} needs the argument {parameter.name!r}; it can be given {', '.join(offered)}."
            )
    _refuse_unused(workload, wanted, function.__name__)
    return wanted


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


def _as_step(value: Any, workload: Workload, name: str) -> Step:
    refuse_unrun(value, name)
    if isinstance(value, Step):
        return value
    if callable(value):
        return Step(
            run=value,
            mode=workload.mode,
            batch=workload.batch,
            seq=workload.seq,
            new_tokens=workload.new_tokens,
            samples=workload.batch,
        )
    raise InputError(
        f"{name} returned {type(value).__name__}; it must return a roofline.Step, or a callable that runs one step."
    )
