"""Take defaults of options from `[tool.roofline]` of the nearest pyproject.toml, above the current folder or in it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from roofline.errors import InputError

_FILE = "pyproject.toml"
#: A pyproject.toml takes some kilobytes. By choice.
_LARGEST = 1 << 20
#: Options that run a program or steps, write or replace a file, open a browser, or reach another machine: each call
#: asks for these itself, since the folder that a command runs in may be anybody's.
_ASKED = ("python", "output", "force", "ray", "again", "prove", "open")


def nearest() -> Path | None:
    """Find the nearest pyproject.toml from the current folder upwards; None where there is none."""
    try:
        folder = Path.cwd()
    except OSError:  # it is gone, as the command will say
        return None
    return next((file for above in (folder, *folder.parents) if (file := above / _FILE).is_file()), None)


def read(file: Path) -> Mapping[str, Any]:
    """Read the table `[tool.roofline]`; empty where the file has none. Raises InputError for a damaged file."""
    from roofline.core.decoding import UndecodableError, from_toml  # of no use where there is no such file

    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise InputError(f"{_name(file)} is larger than {_LARGEST >> 20} MiB: no defaults are read from it.")
        table = from_toml(data, dict[str, Any]).get("tool", {})
        found = table.get("roofline", {}) if isinstance(table, dict) else {}
    except OSError as error:
        raise InputError(f"Cannot read {_name(file)}: {error.strerror}; make it readable, or move it away.") from None
    except UndecodableError as error:
        raise InputError(f"{_name(file)} is no TOML ({error}): mend it, for [tool.roofline] is read from it.") from None
    if not isinstance(found, dict):
        raise InputError(f"tool.roofline in {_name(file)} is no table: write [tool.roofline] and options below it.")
    return found


def of_verb(
    file: Path, table: Mapping[str, Any], verb: str, command: Any, others: Callable[[], Iterable[Any]]
) -> dict[str, Any]:
    """Return the values of the table that a verb takes, by the names of its options. Its own table goes first.

    command: of the verb. others: makes the commands of all verbs, which is only asked for where this one has no such
    option. Raises InputError for an option that no verb has, or not this one in a table of its own, and for a value
    that an option cannot have.
    """
    own_table, options = table.get(verb, {}), _options(command)
    if not isinstance(own_table, dict):
        raise InputError(f"{verb} in [tool.roofline] of {_name(file)} is no table: write [tool.roofline.{verb}].")
    general = {key: value for key, value in table.items() if not isinstance(value, dict)}
    unknown = [key for key in general if key not in options]
    known = {name for command in others() for name in _options(command)} if unknown else set()
    for key in unknown:
        if key not in known:
            raise InputError(f"{key} in [tool.roofline] of {_name(file)}: {_no_option(key)}.")
    for key in own_table:
        if key not in options:
            raise InputError(f"{key} in [tool.roofline.{verb}] of {_name(file)}: {_no_option(key, verb)}.")
    values = {key: value for key, value in (general | own_table).items() if key in options}
    return {key: _value(file, key, value, options[key]) for key, value in values.items()}


def check_tables(file: Path, table: Mapping[str, Any], verbs: Collection[str]) -> None:
    """Check the names of tables of verbs. Raises InputError for one that there is not."""
    for key, value in table.items():
        if isinstance(value, dict) and key not in verbs:
            raise InputError(f"[tool.roofline.{key}] in {_name(file)}: there is no command {key!r}.")


def parameters(values: Mapping[str, Any], command: Any) -> dict[str, Any]:
    """Return values by the names that the parameters of a command have in Python."""
    options = _options(command)
    return {options[key].name: value for key, value in values.items()}


def told(file: Path, words: Sequence[str]) -> str:
    """Say which defaults a command takes, and from where."""
    return f"Defaults of {_name(file)}: {shlex.join(words)}"


def words_of(values: Mapping[str, Any], verb: str, command: Any, arguments: Sequence[str]) -> list[str]:
    """Write values as the words that would have asked for them, without options that the arguments set.

    command: of the verb, whose parser says which these are. arguments: behind the verb; a program's may follow.
    """
    options = _options(command)
    with command.make_context(verb, list(arguments), resilient_parsing=True) as context:
        typed = {name for name in context.params if _is_typed(context, name)}
    words: list[str] = []
    for key, value in values.items():
        if value is not False and options[key].name not in typed:
            words += [f"--{key}"] if value is True else [f"--{key}", value]
    return words


def _is_typed(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _no_option(key: str, verb: str | None = None) -> str:
    if key in _ASKED:
        return f"--{key} is for the command line, each time"
    return f"no command has an option --{key}" if verb is None else f"{verb} has no option --{key}"


def _options(command: Any) -> dict[str, Any]:
    """Map the options of a command, by their names without dashes; none that is asked for under another name."""
    asked = {f"--{name}" for name in _ASKED}
    long = {
        option.removeprefix("--"): parameter
        for parameter in command.params
        if parameter.param_type_name == "option" and not parameter.multiple and not asked.intersection(parameter.opts)
        for option in parameter.opts
        if option.startswith("--")
    }
    return {name: parameter for name, parameter in long.items() if name != "help"}


def _value(file: Path, key: str, value: object, parameter: Any) -> Any:
    """Check the type of a value; what it says is checked as on the command line. Raises InputError."""
    where = f"{key} in [tool.roofline] of {_name(file)}"
    if parameter.is_flag:
        if not isinstance(value, bool):
            raise InputError(f"{where} is true or false, not {value!r}.")
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{where} is text or a number, not {value!r}.")
    return str(value)


def _name(file: Path) -> str:
    from os.path import relpath

    from roofline.units import printable

    return printable(relpath(file))
