"""From the words of the command line to a request for a measuring child, checked before anything heavy is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roofline.errors import InputError

if TYPE_CHECKING:
    from roofline.recording.request import Request

MODES = ("infer", "train", "generate")
PRECISIONS = ("default", "fp32", "tf32", "bf16", "fp16", "mixed-bf16", "mixed-fp16")
#: Beyond this a number is a slip of the keyboard, and frameworks fail at it in ways of their own.
_MOST = 10**12
_CHOICES = {
    "mode": MODES,
    "precision": PRECISIONS,
    "input": ("device", "host"),
    "device": ("auto", "cpu", "cuda"),
}


def make_request(model: str, backend: str, **asked: Any) -> Request:
    """The request for `model` on `backend`; `asked`: fields of Request as the user gave them, None for the default.

    Raises InputError for what cannot be, MissingError for a device that is not there.
    """
    from roofline.devices import calibration, cpu
    from roofline.recording.request import Request

    name, options = parse_backend(backend)
    for option, choices in _CHOICES.items():
        if option in asked:
            check_choice(option, asked[option], choices)
    for option in ("batch", "seq", "layers", "threads", "steps"):
        value = asked.get(option)
        if value is not None and value < 1:
            raise InputError(f"--{option} {value} is not possible: give at least 1.")
        if value is not None and value > _MOST:
            raise InputError(f"--{option} {value} is not possible: give at most {_MOST}.")
    file, function, title = _model(model, name)
    asked["device"] = calibration.resolve(asked["device"])
    if asked.get("threads") is None:
        asked["threads"] = cpu.detect().cores  # what the frameworks take by default: one per physical core
    request = Request(backend=name, options=options, model=title, file=file, function=function, **asked)
    if file is None:
        _check_dimensions(request)
    return request


def parse_backend(text: str) -> tuple[str, dict[str, str]]:
    """ "tensorflow-xla:mode=compile" is ("tensorflow-xla", {"mode": "compile"}), checked against the backend."""
    from roofline import plugins

    name, _, rest = text.partition(":")
    module = plugins.load("roofline.backends", name, "backend")
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if option not in module.OPTIONS:
            known = ", ".join(module.OPTIONS) or "none"
            raise InputError(f"The {name} backend has no option {option!r}; there are: {known}.")
        if not equals or value not in module.OPTIONS[option]:
            raise InputError(f"{name}:{option} takes {' or '.join(module.OPTIONS[option])}, not {value!r}.")
        options[option] = value
    return name, options


def _model(model: str, backend: str) -> tuple[str | None, str | None, str]:
    """(file, function, name) of what the user wants to run."""
    from pathlib import Path

    from roofline import plugins

    file, colon, function = model.rpartition(":")
    if colon or model.endswith(".py") or "/" in model:
        if not colon or not file.endswith(".py") or not function.isidentifier():
            raise InputError(f"{model!r} is no model; a step of your own is given as path/to/file.py:function.")
        if not Path(file).is_file():
            raise InputError(f"There is no file {file}.")
        return file, function, f"{Path(file).stem}:{function}"
    module = plugins.load("roofline.backends", backend, "backend")
    plugins.require(module.MODELS, model, "model")
    return None, None, model


def _check_dimensions(request: Request) -> None:
    """Refuse what the model cannot be before a framework is loaded or a ceiling is measured."""
    import msgspec

    from roofline.core.step import Workload
    from roofline.models import dimensions

    fields = msgspec.structs.asdict(request)
    dimensions(Workload(**{name: fields[name] for name in Workload.__slots__}))


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """InputError with the alternatives if `value` is none of `choices`."""
    if value not in choices:
        raise InputError(f"There is no {option} {value!r}; there are: {', '.join(choices)}.")
