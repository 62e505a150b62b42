"""Read tables and settings: limits, counters, publications, presets, annotations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import mutation
import raw_counters
import seeds
from msgspec.structs import replace
from target import Target, scratch, written

from roofline import plugins
from roofline.comparison.account.annotate import read_annotation
from roofline.core.schema import Profile, encode
from roofline.counters import joining, nsight_compute
from roofline.published import publication
from roofline.published.presets import preset
from roofline.regression import limits_file

_BETWEEN = b"\n#### the table ####\n"
_KERNELS = ("void gather<float>(int)", "gemm", "gelu(float)")
_ROW = '"0","1","app","host","{name}","1","7","(1, 1, 1)","(1, 1, 1)","0","8.0","Command line profiler metrics",'


def limits(data: bytes) -> None:
    """Read limits of `roofline check`."""
    limits_file.read(written("limits.toml", data))


@cache
def _counted_step() -> Profile:
    step = seeds.small()
    ops = tuple(replace(op, kernels=((number, 1000),)) for number, op in enumerate(step.ops))
    return replace(step, ops=ops, kernels=_KERNELS, device=replace(step.device, kind="cuda"))


def counters(data: bytes) -> None:
    """Read a table of ncu, join it to a step, and save that."""
    kernels = nsight_compute.read(written("ncu.csv", data))
    step = _counted_step()
    joined = joining.join(step, kernels)
    joining.most_frequent(joined.without)
    encode(joining.count(step, joined, "ncu.csv"))


def published(data: bytes) -> None:
    """Read a publication, its text and its table; that both fit together is tested of those that ship."""
    setup, _, table = data.partition(_BETWEEN)
    written("fuzzed.toml", setup)
    written("fuzzed.csv", table)
    publication.read(scratch("."), "fuzzed", ("fuzzed",))


def presets(data: bytes) -> None:
    """Read a preset; that it fits its publication is tested of those that ship."""
    written("fuzzed.toml", data)
    preset.read(scratch("."), "fuzzed", ("fuzzed",))


def annotation(data: bytes) -> None:
    """Read an annotation."""
    read_annotation(written("annotation.toml", data))


def _limits() -> Iterator[bytes]:
    yield b'time = "5%"\nbytes = 0.02\nkernels = 0\ngap = "3%"\nmemory = 0.5\n'


def _counters() -> Iterator[bytes]:
    # Of kernels that the step has: the first is its embedding's.
    lines = raw_counters.table("infer")
    heading = next(number for number, line in enumerate(lines) if line.startswith('"ID"'))
    yield "".join(lines[: heading + 5]).encode()
    yield "".join(lines[heading : heading + 3]).encode()
    columns = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    columns += '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    rows = [
        _ROW.format(name="gemm") + f'"{metric}","{unit}","1,024"\n'
        for metric, unit in zip(nsight_compute.METRICS, ("byte", "Kbyte", "byte", "nsecond"), strict=True)
    ]
    yield (columns + "".join(rows)).encode()
    every = [
        row.replace("gemm", name).replace('"0"', f'"{number}"') for number, name in enumerate(_KERNELS) for row in rows
    ]
    yield (columns + "".join(every)).encode()


def _publications() -> Iterator[bytes]:
    folder = plugins.folder("roofline.published")
    for name in ("simplechains", "hf2019"):
        lines = (folder / f"{name}.csv").read_bytes().splitlines(keepends=True)
        yield (folder / f"{name}.toml").read_bytes() + _BETWEEN + b"".join(lines[:4])


def _mutated_publication(data: bytes, draw: Any) -> bytes | None:
    setup, between, table = data.partition(_BETWEEN)
    if draw.random() < 0.5:
        return setup + between + (mutation.of_csv(table, draw) or table)
    return (mutation.of_toml(setup, draw) or setup) + between + table


def _presets() -> Iterator[bytes]:
    folder = plugins.folder("roofline.published.presets")
    sizes = sorted((file.stat().st_size, file) for file in folder.glob("*.toml"))
    for _, file in sizes[:2]:
        yield file.read_bytes()


def _annotations() -> Iterator[bytes]:
    folder = plugins.folder("roofline.comparison") / "annotations"
    for file in sorted(folder.glob("*.toml"))[:6]:
        yield file.read_bytes()


TARGETS = {
    "limits": Target(limits, _limits, mutation.of_toml),
    "counters": Target(counters, _counters, mutation.of_csv),
    "publication": Target(published, _publications, _mutated_publication),
    "preset": Target(presets, _presets, mutation.of_toml),
    "annotation": Target(annotation, _annotations, mutation.of_toml),
}
