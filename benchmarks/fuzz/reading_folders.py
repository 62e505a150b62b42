"""Read folders of profiles and what describes them: the ranks of a job, the points of a sweep."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import mutation
import seeds
import typed
from target import Target, scratch

from roofline import ranks
from roofline.core.schema import Profile, decode
from roofline.errors import InputError
from roofline.renderers.ranks import json as ranks_json
from roofline.renderers.ranks import text as ranks_text
from roofline.renderers.sweep import json as sweep_json
from roofline.renderers.sweep import text as sweep_text
from roofline.sweeping import folder as folder_of_sweep
from roofline.sweeping import grid
from roofline.sweeping.folder import Attempt, Failure
from roofline.sweeping.plan import Point
from roofline.sweeping.plan import decode as decode_plan
from roofline.sweeping.plan import encode as encode_plan

POINT = Point(
    model="bert", backend="torch", mode="infer", precision="fp32", size="base", device="cpu", batch=1, seq=128
)


def ranks_of_job(data: bytes) -> None:
    """Describe and render a job of two ranks: a profile, and the same with the work of its seed."""
    first, second = decode(data), decode(next(iter(seeds.profiles())))
    job = ranks.describe([first, second])
    ranks_text.render(job, every=True)
    ranks_json.render(job)


def plan(data: bytes) -> None:
    """Read a plan; the points of one that can be read have keys and can be written."""
    points = decode_plan(data, "plan.jsonl")
    if decode_plan(encode_plan(points), "plan.jsonl") != points:
        raise AssertionError("another plan is read from what was written")


def failure(data: bytes) -> None:
    """Read the record of a failed point, and the sweep around it."""
    folder = _sweep([POINT])
    (folder / "points" / f"{POINT.key}.failed.json").write_bytes(data)
    folder_of_sweep.failure(folder, POINT)
    _show(folder)


def attempts(data: bytes) -> None:
    """Read the record of attempts, of which damaged lines are left out."""
    folder = _sweep([POINT])
    (folder / "attempts.jsonl").write_bytes(data)
    folder_of_sweep.attempts(folder)


def sweep(data: bytes) -> None:
    """Read and render a sweep by its plan, whose points have no profile, a failure, or none."""
    folder = _sweep([])
    (folder / folder_of_sweep.PLAN).write_bytes(data)
    with suppress(InputError):
        for number, point in enumerate(folder_of_sweep.read_plan(folder)[:6]):
            if number % 3 == 0:
                folder_of_sweep.fail(folder, point, "failed", "no memory")
    _show(folder)
    shutil.rmtree(folder / "points")


def _show(folder: Path) -> None:
    read = grid.read(folder)
    sweep_text.render(read)
    sweep_json.render(read)


def _folder(name: str) -> Path:
    folder = scratch(name)
    folder.mkdir(exist_ok=True)
    return folder


def _sweep(points: list[Point]) -> Path:
    folder = _folder("sweep")
    (folder / "points").mkdir(exist_ok=True)
    (folder / folder_of_sweep.PLAN).write_bytes(encode_plan(points))
    return folder


def _plans() -> Iterator[bytes]:
    other = msgspec.structs.replace(POINT, backend="jax", batch=4)
    yield encode_plan([POINT])
    yield encode_plan([POINT, other, msgspec.structs.replace(other, batch=8, seq=None)])


def _attempts() -> Iterator[bytes]:
    attempt = Attempt(point="k", number=1, end="measured", node="n", date="d", device="x", versions={"a": "1"})
    yield (msgspec.json.encode(attempt) + b"\n") * 2


TARGETS = {
    "ranks": Target(ranks_of_job, seeds.profiles, typed.json_of(Profile)),
    "sweep-plan": Target(plan, _plans, mutation.of_json_lines),
    "sweep-failure": Target(failure, lambda: [b'{"kind":"refused","text":"no","attempts":2}'], typed.json_of(Failure)),
    "sweep-attempts": Target(attempts, _attempts, mutation.of_json_lines),
    "sweep": Target(sweep, _plans, mutation.of_json_lines),
}
