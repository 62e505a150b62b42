"""`--preset`: what a published benchmark asked for, filled in where the user says nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import typer

from roofline import plugins
from roofline.cli.options.request import parse_backend
from roofline.errors import InputError

# Not by `plugins.names`: to find a package inside of another one, Python imports that, and the help needs only names.
_FILES = (plugins.folder("roofline.published") / "presets").glob("*.toml")
NAMES = tuple(sorted(file.stem.replace("_", "-") for file in _FILES))
HELP = f"Run what a published benchmark ran: {', '.join(NAMES)}. What else is given wins, and is said."
CORE = "With --preset: the bare step alone, without Keras's fit or predict or the Trainer that the benchmark timed."
#: What a preset fills, by the names of the command line.
_FILLS = ("batch", "seq", "new_tokens", "size", "precision", "input", "steps")


def given(context: typer.Context, names: Collection[str]) -> frozenset[str]:
    """The options that stand on the command line, equal to the default or not."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE")


def check_core(core: bool, preset: str | None) -> None:
    """Raises InputError for --core where there is nothing that it leaves out."""
    if core and preset is None:
        raise InputError("--core is for --preset: without one the bare step alone is measured anyway.")


def filled(
    preset: str, model: str, backend: str, asked: Mapping[str, Any], given: Collection[str], core: bool
) -> tuple[str, dict[str, Any], list[str]]:
    """The backend with its options, what is asked for, and sentences for the user.

    asked: as the verb has it; given: the names in it that the user gave, which stay; core: whether the bare step is
    measured alone, without the function of a library that the benchmark timed. Raises InputError where the preset has
    no such model, mode or column.
    """
    from roofline.devices import calibration, cpu
    from roofline.published import presets
    from roofline.recording.backend import load

    loaded = presets.load(preset)
    if ":" in model:
        raise InputError(f"--preset {preset} is for its models, not for a file: {', '.join(loaded.models)}.")
    name, described, options = parse_backend(backend)
    device = calibration.resolve(asked["device"])
    row = loaded.find(model, asked["mode"] if "mode" in given else None, device, asked["batch"])
    column = loaded.of(name)
    loaded.check_column(row, column, lambda other: row.model in plugins.names(load(other).models, sorted_by_kind=True))
    wanted = loaded.resolve(row, column, threads=asked["threads"] or cpu.detect().cores, batch=asked["batch"])
    result, said, apart = {**asked, "mode": row.mode}, [f"--mode {row.mode}"], []
    also: dict[str, tuple[Any, ...]] = {"batch": row.batches, "seq": row.seqs}  # what the benchmark ran besides
    if wanted.size == "base":
        also["size"] = ("published",)  # another name of it
    for option in _FILLS:
        there = getattr(wanted, option)
        if there is None:
            continue
        if option == "precision" and there == "tf32" and device == "cpu" and option not in given:
            apart.append("--precision default instead of tf32, which a CPU does not have")
        elif option not in given:
            result[option] = there
            said.append(f"{_typed(option)} {there}")
        elif asked[option] not in (there, *also.get(option, ())):
            apart.append(f"{_typed(option)} {asked[option]} instead of {there}")
    if wanted.switches.get("optimizer") == "none":
        result["optimizer"] = False
        said.append("--no-optimizer")
    for option, there in wanted.options.items():
        if option not in options:
            options[option] = there
        elif options[option] != there:
            apart.append(f"{option}={options[option]} instead of {there}")
    text = name + (":" + ",".join(f"{option}={value}" for option, value in options.items()) if options else "")
    parse_backend(text)  # what a preset holds is checked as what a user types
    where = f"{preset}{f', {row.task}' if row.task else ''}"
    who = f"as {column.name}: {text}" if column else f"which has no column for {name}"
    lines = [f"{where}, {who} {' '.join(said)}."]
    if apart:
        lines.append(f"{name} differs from the preset: {'; '.join(apart)}.")
    api = None if core else wanted.api
    if api in described.apis:
        result |= {"api": api, "cached": bool(wanted.cached)}
        lines.append(f"Beside the bare step {api} is timed, as the benchmark timed it; --core leaves it out.")
    elif api is not None:
        lines.append(f"The benchmark timed {api}, which is not run on {name}: the bare step alone is measured.")
    return text, result, lines


def _typed(option: str) -> str:
    return f"--{option.replace('_', '-')}"
