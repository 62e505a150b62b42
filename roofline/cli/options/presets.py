"""Fill in the options of a published benchmark where the user sets none: `--preset`."""

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
HELP = f"Use the settings of a published benchmark: {', '.join(NAMES)}. Explicit options override it and are reported."
CORE = "With --preset: measure only the bare step, without the fit, predict or Trainer that the benchmark timed."
#: Options that a preset fills in, by the names of the command line.
_FILLS = ("batch", "seq", "new_tokens", "size", "precision", "input", "steps")


def explicit_options(context: typer.Context, names: Collection[str]) -> frozenset[str]:
    """List the options that stand on the command line, equal to the default or not."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return frozenset(name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE")


def check_core(core: bool, preset: str | None) -> None:
    """Check --core. Raises InputError without a preset, where it leaves nothing out."""
    if core and preset is None:
        raise InputError("--core needs --preset: without one, only the bare step is measured anyway.")


def fill(
    preset: str, model: str, backend: str, asked: Mapping[str, Any], explicit: Collection[str], core: bool
) -> tuple[str, dict[str, Any], list[str]]:
    """Fill in a preset; return the backend with its options, the options of the verb, and sentences for the user.

    asked: the options of the verb; explicit: the names in it that the user set, which stay; core: measure the bare step
    alone, without the function of a library that the benchmark timed. Raises InputError where the preset has no such
    model, mode or column.
    """
    from roofline.devices import calibration, cpu
    from roofline.published import presets
    from roofline.recording.backend import load

    loaded = presets.load(preset)
    if ":" in model:
        raise InputError(f"--preset {preset} cannot run a file; it has the models {', '.join(loaded.models)}.")
    name, described, options = parse_backend(backend)
    device = calibration.resolve(asked["device"])
    row = loaded.find(model, asked["mode"] if "mode" in explicit else None, device, asked["batch"])
    column = loaded.of(name)
    loaded.check_column(
        row, column, lambda backend_name: row.model in plugins.names(load(backend_name).models, sorted_by_kind=True)
    )
    wanted = loaded.resolve(row, column, threads=asked["threads"] or cpu.detect().cores, batch=asked["batch"])
    result, filled_in, differing = {**asked, "mode": row.mode}, [f"--mode {row.mode}"], []
    also: dict[str, tuple[Any, ...]] = {"batch": row.batches, "seq": row.seqs}  # further values of the benchmark
    if wanted.size == "base":
        also["size"] = ("published",)  # another name of it
    for option in _FILLS:
        preset_value = getattr(wanted, option)
        if preset_value is None:
            continue
        if option == "precision" and preset_value == "tf32" and device == "cpu" and option not in explicit:
            differing.append("--precision default instead of tf32, which a CPU does not have")
        elif option not in explicit:
            result[option] = preset_value
            filled_in.append(f"{_option_name(option)} {preset_value}")
        elif asked[option] not in (preset_value, *also.get(option, ())):
            differing.append(f"{_option_name(option)} {asked[option]} instead of {preset_value}")
    if wanted.switches.get("optimizer") == "none":
        result["optimizer"] = False
        filled_in.append("--no-optimizer")
    for option, preset_value in wanted.options.items():
        if option not in options:
            options[option] = preset_value
        elif options[option] != preset_value:
            differing.append(f"{option}={options[option]} instead of {preset_value}")
    text = name + (":" + ",".join(f"{option}={value}" for option, value in options.items()) if options else "")
    parse_backend(text)  # a preset's backend is checked like a user's
    where = f"{preset}{f', {row.task}' if row.task else ''}"
    who = f"as {column.name}: {text}" if column else f"which has no column for {name}"
    lines = [f"{where}, {who} {' '.join(filled_in)}."]
    if differing:
        lines.append(f"{name} differs from the preset: {'; '.join(differing)}.")
    api = None if core else wanted.api
    if api in described.apis:
        result |= {"api": api, "cached": bool(wanted.cached)}
        lines.append(f"{api} is timed too, as in the benchmark; --core times only the bare step.")
    elif api is not None:
        lines.append(f"The benchmark timed {api}, which does not run on {name}: only the bare step is measured.")
    return text, result, lines


def _option_name(option: str) -> str:
    return f"--{option.replace('_', '-')}"
