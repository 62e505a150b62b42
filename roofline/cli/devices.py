"""List the devices and show their ceilings: `roofline devices`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roofline.cli.options.completion import devices as device_names
from roofline.errors import InputError

if TYPE_CHECKING:
    from roofline.core.device import Ceiling, Device


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=device_names,
            help="A name of the list, a TOML or JSON file of a device, or the start of a calibration's name.",
        ),
    ] = None,
    format: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
) -> None:
    """List the known devices, or show the ceilings of one.

    Without a name, list every device with a datasheet with its memory, bf16 peak and bandwidth (* marks those in this
    machine), then the calibrations measured on this machine. With a name, show every ceiling with its value, spread
    and source.
    """
    if format not in ("text", "json"):
        raise InputError(f"There is no format called {format!r}; there are: text, json.")
    if name is None:
        typer.echo(_list_json() if format == "json" else _list_text())
        return
    device = _find(name)
    typer.echo(as_json(device) if format == "json" else as_text(device))


def as_text(device: Device) -> str:
    """Write a device with all its ceilings, caches and ridge points; sources as numbered notes."""
    import msgspec

    from roofline import units
    from roofline.content.facts.ceilings import waited
    from roofline.content.terminal import columns
    from roofline.content.wording import plain

    notes: list[str] = []

    def note(source: str) -> str:
        if source not in notes:
            notes.append(source)
        return f"[{notes.index(source) + 1}]"

    lines = [f"{plain(device.name)} ({plain(device.kind)}), memory {units.byte(device.memory)}"]
    lines += [f"Ceilings given by --ceilings: those of {plain(device.ceilings_of)}."] if device.ceilings_of else []
    lines.append("")
    rows = [("ceiling", "value", "spread", "date", "")]
    for name, ceiling in sorted(device.ceilings.items(), key=lambda item: _order(item[0])):
        spread = units.percent(ceiling.spread) if ceiling.spread is not None else ""
        remark = note(ceiling.source) + (" !" if ceiling.flag or ceiling.contended else "")
        if ceiling.reached is not None:
            reached = _value(name, msgspec.structs.replace(ceiling, value=ceiling.reached))
            remark += f"  reached: {reached} {note(ceiling.reached_by)}"
        rows.append((plain(name), _value(name, ceiling), spread, plain(ceiling.date or ""), remark))
    for cache in device.caches:
        size = units.UNKNOWN if cache.size is None else f"{cache.size / 2**20:.3g} MiB"
        rows.append((f"size of {plain(cache.level)}", size, "", "", note(cache.source)))
    lines += columns(rows, left_aligned=(0, 3, 4))
    ridges = {name: device.ridge_point(name) for name in device.family("matrix")}
    if any(ridge is not None for ridge in ridges.values()):
        lines += ["", "Ridge points: " + ", ".join(f"{plain(n)} {units.intensity(r)}" for n, r in ridges.items()) + "."]
    lasting = [_sustained(name, ceiling) for name, ceiling in device.ceilings.items() if ceiling.sustained is not None]
    lines += ["", "Sustained without a pause: " + ", ".join(lasting) + "."] if lasting else []
    flags = [
        f"! {plain(name)}: {plain(ceiling.flag, None)}" for name, ceiling in device.ceilings.items() if ceiling.flag
    ]
    flags += [f"! {plain(name)}: {waited(device.ceilings[name], device.kind)}." for name in device.contended]
    lines += ["", *flags] if flags else []
    if device.conditions:
        lines += ["", "Conditions: " + ", ".join(f"{plain(k)} {plain(v)}" for k, v in device.conditions.items()) + "."]
    lines += ["", *(f"[{index}] {plain(source, None)}" for index, source in enumerate(notes, 1))]
    return "\n".join(lines)


def as_json(device: Device) -> str:
    """Write a device as JSON, with its ridge points [FLOP/byte]; unknown fields are absent or null."""
    import msgspec

    content = msgspec.to_builtins(device)
    content["ridge_points"] = {name: device.ridge_point(name) for name in device.family("matrix")}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def _find(name: str) -> Device:
    from roofline import devices
    from roofline.devices import calibration

    try:
        return devices.load(name)
    except InputError as unknown:
        matches = [content.device for path, content in calibration.stored() if path.stem.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise InputError(
                f"{len(matches)} calibrations begin with {name!r}; give more of the name to choose one."
            ) from unknown
        raise


def _gpus_here() -> dict[str, str]:
    """Map the datasheets of the GPUs in this machine: datasheet's name -> driver's name."""
    from roofline import devices
    from roofline.devices import nvidia

    present = {}
    for gpu in nvidia.snapshots():
        device = devices.datasheet(gpu.name, gpu.memory)
        if device is not None:
            present[device.name] = gpu.name
    return present


def _list_text() -> str:
    from roofline import devices, units
    from roofline.content.terminal import columns
    from roofline.devices import calibration, cpu, nvidia

    present = _gpus_here()
    rows = [("", "name", "device", "memory", "bf16", "bandwidth")]
    for name in devices.names():
        device = devices.load(name)
        star = "*" if device.name in present else ""
        bf16, bandwidth = units.flop_rate(device.rate("matrix.bf16")), units.byte_rate(device.bandwidth)
        rows.append((star, name, device.name, units.byte(device.memory), bf16, bandwidth))
    lines = columns(rows, left_aligned=(0, 1, 2))
    processor = cpu.detect()
    lines += ["", f"This machine: {processor.name}, {processor.cores} cores in use."]
    gpus = nvidia.snapshots()
    lines += [f"This machine: {gpu.name}." for gpu in gpus] or [nvidia.unavailable() or ""]
    calibrations = calibration.stored()
    if not calibrations:
        return "\n".join([*lines, "", "Nothing is calibrated yet. Next: roofline calibrate"])
    rows = [("calibrated", "device", "threads", "date", "bf16", "bandwidth")]
    for path, content in calibrations:
        device = content.device
        bf16, bandwidth = units.flop_rate(device.rate("matrix.bf16")), units.byte_rate(device.bandwidth)
        date = device.conditions.get("date", units.UNKNOWN) + (", busy" if device.contended else "")
        rows.append((path.stem, device.name, content.key.get("threads", ""), date, bf16, bandwidth))
    return "\n".join([*lines, "", *columns(rows, left_aligned=(0, 1, 3)), "", f"Saved in {calibration.folder()}."])


def _list_json() -> str:
    import msgspec

    from roofline import devices
    from roofline.devices import calibration

    present = _gpus_here()

    def entry(device: Device) -> dict[str, Any]:
        return {
            "device": device.name,
            "kind": device.kind,
            "memory": device.memory,
            "bf16": device.rate("matrix.bf16"),
            "bandwidth": device.bandwidth,
        }

    sheets = {name: devices.load(name) for name in devices.names()}
    content = {
        "devices": [{"name": n, **entry(d), "here": d.name in present} for n, d in sheets.items()],
        "calibrations": [
            {
                "name": path.stem,
                **entry(saved.device),
                "conditions": dict(saved.device.conditions),
                "full": saved.full,
            }
            for path, saved in calibration.stored()
        ],
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def _order(name: str) -> tuple[int, str]:
    families = ("matrix", "vector", "dram", "cache", "function", "launch", "latency", "link")
    family = name.partition(".")[0]
    return (families.index(family) if family in families else len(families)), name


def _sustained(name: str, ceiling: Ceiling) -> str:
    import msgspec

    from roofline.content.wording import plain

    clock = f" at {ceiling.clock / 1e6:.0f} MHz" if ceiling.clock is not None else ""
    return f"{plain(name)} {_value(name, msgspec.structs.replace(ceiling, value=ceiling.sustained))}{clock}"


def _value(name: str, ceiling: Ceiling) -> str:
    from roofline import units

    family, _, variant = name.partition(".")
    if family in ("launch", "latency"):
        return units.seconds(ceiling.value)
    if family in ("matrix", "vector"):
        return units.scaled(ceiling.value, "OP/s" if variant.startswith("int") else "FLOP/s")
    return units.scaled(ceiling.value, "/s") if family == "function" else units.byte_rate(ceiling.value)
