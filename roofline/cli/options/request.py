"""Make a request for a measuring child of the words of the command line, checked before anything heavy is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roofline.core.numerals import whole
from roofline.core.step import INPUTS, MODES, PRECISIONS, Workload
from roofline.core.vocabulary import FRAMEWORKS
from roofline.errors import InputError, MissingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roofline.recording.backend import Backend
    from roofline.recording.inputs import Input
    from roofline.recording.request import Request

#: The defaults of the verbs.
DEFAULTS = Workload(model="")
#: Other names of backends.
_ALIASES = {"pytorch": "torch", "tf": "tensorflow"}
#: Largest number that is accepted: more is a slip of the keyboard, at which each framework fails in its own way.
_MOST = 10**12
_CHOICES = {
    "mode": MODES,
    "precision": PRECISIONS,
    "input": INPUTS,
    "device": ("auto", "cpu", "cuda"),
}


def make_request(
    model: str,
    backend: str,
    *,
    device: str = "auto",
    threads: int | None = None,
    steps: int | None = None,
    count_only: bool = False,
    python: str | None = None,
    preset: str | None = None,
    api: str | None = None,
    cached: bool = False,
    shapes: str | None = None,
    framework_by_import: bool = False,
    timeout: float | None = None,
    **asked: Any,
) -> Request:
    """Make the request for `model` on `backend`; asked: further fields of the `Workload` as the user gave them.

    Raises InputError for impossible options, MissingError for a missing device.
    """
    from roofline.core.validate import LONGEST
    from roofline.devices import calibration, cpu
    from roofline.recording.backend import check_mode
    from roofline.recording.request import Request

    name, described, options = parse_backend(backend)
    words = {**asked, "device": device}
    for option, choices in _CHOICES.items():
        if option in words:
            check_choice(option, words[option], choices)
    numbers = {name: asked.get(name) for name in ("batch", "seq", "new_tokens", "layers")}
    _check_numbers(numbers | {"threads": threads, "steps": steps})
    longest = LONGEST / 10**9  # [s] of a step that a profile holds
    if timeout is not None and not 0 < timeout <= longest:
        raise InputError(f"--timeout {timeout:g} is not possible: give seconds, more than 0 and at most {longest:g}.")
    if asked.get("new_tokens") is not None and asked.get("mode") != "generate":
        raise InputError("--new-tokens is for steps that generate: add --mode generate, or leave it out.")
    file, function, title = _model(model, name, described)
    workload = Workload(model=title, device=calibration.resolve(device), options=options, **asked)
    if threads is None:
        threads = cpu.detect().cores  # what the frameworks take by default: one per physical core
    if file is None:
        # Impossible dimensions are refused before a framework is loaded or a ceiling is measured.
        from roofline.models import dimensions

        dimensions(workload)
        check_mode(described, workload.mode)
    return Request(
        backend=name,
        workload=workload,
        file=file,
        function=function,
        shapes=None if shapes is None else parse_shapes(shapes, file is not None, asked.get("mode")),
        framework_by_import=framework_by_import,
        threads=threads,
        steps=steps,
        count_only=count_only,
        without_data=count_only and file is None and described.without_data is not None,
        python=python,
        preset=preset,
        api=api,
        cached=cached,
        timeout=timeout,
    )


def _check_numbers(numbers: Mapping[str, int | None]) -> None:
    """Check numbers by the names of their options. Raises InputError for one below 1, or too large."""
    for name, value in numbers.items():
        option = name.replace("_", "-")
        if value is not None and value < 1:
            raise InputError(f"--{option} {value} is not possible: give at least 1.")
        if value is not None and value > _MOST:
            raise InputError(f"--{option} {value} is not possible: give at most {_MOST}.")


def parse_shapes(text: str, of_file: bool = True, mode: str | None = "infer") -> tuple[Input, ...]:
    """Parse "8x128:int64,8x3" into inputs, float32 where no type is given.

    Raises InputError, also where they are not for something in a file of the user's, or it is not called as it is.
    """
    from roofline.recording.inputs import DTYPES, Input

    if not of_file:
        raise InputError("--shapes is for a module or a function in a file of your own: leave it out.")
    if mode != "infer":
        raise InputError(f"--shapes calls a module or a function as it is: leave --mode {mode} out, or write a step.")
    inputs = []
    for part in text.split(","):
        lengths, _, dtype = part.strip().partition(":")
        numbers = lengths.split("x")
        if not all(1 <= (whole(number) or 0) <= _MOST for number in numbers):
            raise InputError(f"--shapes {part!r} is no shape: give lengths and a type, as in 8x128:int64.")
        check_choice("type of an array", dtype or "float32", DTYPES)
        inputs.append(Input(tuple(map(int, numbers)), dtype or "float32"))
    return tuple(inputs)


def backend_of_file(model: str) -> str | None:
    """Return the backend of the only framework that a user's file imports itself; None where it does not tell.

    A file that imports Keras and no framework runs on what KERAS_BACKEND names.
    """
    import ast
    import os
    from pathlib import Path

    file = Path(model.rpartition(":")[0])
    if file.suffix != ".py" or not file.is_file():
        return None
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # its own process says what is wrong
        return None
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    imported = {module.partition(".")[0] for module in modules}
    frameworks = imported.intersection(FRAMEWORKS)
    if "keras" in imported and not frameworks:
        frameworks = {os.environ.get("KERAS_BACKEND", "")}.intersection(FRAMEWORKS)
    if len(frameworks) != 1:
        return None
    return f"keras-{frameworks.pop()}" if "keras" in imported else frameworks.pop()


def chosen_backend(model: str, backend: str | None, python: str | None) -> tuple[str, bool]:
    """Return the backend that was asked for, else that of the user's file or of the only framework that is installed.

    Also return whether the file's imports decided. python: see `default_backend`, whose errors are raised.
    """
    if backend is not None:
        return backend, False
    by_import = backend_of_file(model)
    return by_import or default_backend(python), by_import is not None


def default_backend(python: str | None) -> str:
    """Return the backend of the only framework that is installed. python: another interpreter, of which it is unknown.

    Raises InputError where there are several, and MissingError where there is none.
    """
    from roofline import plugins

    installed = [name for name in FRAMEWORKS if plugins.importable(name)]
    if not installed and python is None:
        raise MissingError("No framework is installed: see `roofline backends`.")
    if len(installed) == 1 and python is None:
        return installed[0]
    alternatives = ", ".join(plugins.names("roofline.backends"))
    raise InputError(f"No backend is given: add one, as in --backend torch; there are: {alternatives}.")


def parse_backend(text: str) -> tuple[str, Backend, dict[str, str]]:
    """Parse "keras-jax:jit=off" into ("keras-jax", its description, {"jit": "off"}). Raises InputError."""
    from roofline.recording.backend import load

    name, _, option_text = text.partition(":")
    name = _ALIASES.get(name, name)
    backend = load(name)
    options: dict[str, str] = {}
    for part in filter(None, option_text.split(",")):
        option, equals, value = part.partition("=")
        if option not in backend.options:
            alternatives = ", ".join(backend.options) or "none"
            raise InputError(f"The {name} backend has no option {option!r}; there are: {alternatives}.")
        if not equals or value not in backend.options[option]:
            raise InputError(f"{name}:{option} takes {' or '.join(backend.options[option])}, not {value!r}.")
        options[option] = value
    return name, backend, options


def _model(model: str, asked: str, backend: Backend) -> tuple[str | None, str | None, str]:
    """Resolve a model into (file, function, name), the first two None for ours; asked: the backend's name."""
    from pathlib import Path

    from roofline import plugins

    file, colon, function = model.rpartition(":")
    if colon or model.endswith(".py") or "/" in model:
        if not colon or not file.endswith(".py") or not function.isidentifier():
            raise InputError(f"{model!r} is no model; a step of your own is given as path/to/file.py:function.")
        if not Path(file).is_file():
            raise InputError(f"There is no file {file}: give the path of one, as in path/to/file.py:function.")
        return file, function, f"{Path(file).stem}:{function}"
    alternatives = plugins.names(backend.models, sorted_by_kind=True)
    if model not in alternatives and model in plugins.names("roofline.models._geometry", ".toml", sorted_by_kind=True):
        raise InputError(f"{asked} has no model called {model!r}; it has: {', '.join(alternatives)}.")
    plugins.require(backend.models, model, "model", sorted_by_kind=True)
    return None, None, model


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Check a choice. Raises InputError with the alternatives if `value` is none of `choices`."""
    if value not in choices:
        raise InputError(f"There is no {option} {value!r}; there are: {', '.join(choices)}.")
