"""Make the request that measures a profile's step again; refuse steps that only a foreign profile names."""

from __future__ import annotations

import shlex

import msgspec

from roofline import plugins
from roofline.core.numerals import whole
from roofline.core.schema import Profile, slug
from roofline.core.step import Workload
from roofline.errors import InputError
from roofline.measuring import own_steps
from roofline.recording.backend import check_mode, load
from roofline.recording.request import Request
from roofline.units import plain


def variables_of(profile: Profile) -> dict[str, str]:
    """Return the variable that a measurement on contended cores sets (session.measure), as it was recorded."""
    policy = profile.environment.get("OMP_WAIT_POLICY")
    return {"OMP_WAIT_POLICY": policy} if policy in ("PASSIVE", "ACTIVE") else {}


def request_of(profile: Profile) -> Request:
    """Make the request that measures a profile's step again, from its recorded set-up.

    A profile may come from anywhere, so it can only name our own models, and user's steps that were measured here,
    which get the request of that time. Raises InputError with the reason where the step cannot be run again here.
    """
    if profile.imported is not None or profile.wall.source != "plain":
        raise InputError("It was imported from a trace, which holds no step to run.")
    if "in-process" in map(slug, profile.flags):
        raise InputError("It was profiled inside your own process, which cannot be run again from here.")
    if profile.own_step:
        own_request = msgspec.structs.replace(own_steps.recall(profile), steps=len(profile.wall.steps) or None)
        validate_request(own_request)
        _check_machine(profile)
        return own_request
    try:
        words = shlex.split(profile.command)
    except ValueError:
        words = []
    if any(word == "--python" or word.startswith("--python=") for word in words):
        raise InputError("It was measured in another Python interpreter: run its step from there.")
    threads = profile.environment.get("threads", "")
    asked = {
        "options": dict(profile.options),
        "model": profile.model,
        "mode": profile.mode,
        "batch": profile.batch,
        "seq": profile.seq,
        "new_tokens": profile.new_tokens,
        "size": profile.size,
        "layers": profile.layers,
        "precision": profile.precision,
        "device": profile.device.kind,
        "input": profile.switches.get("input", "device"),
        "optimizer": profile.mode != "train" or "--no-optimizer" not in words,
    }
    try:
        workload = msgspec.convert(asked, Workload)
    except msgspec.ValidationError as error:
        raise InputError(f"Its recorded settings are not valid ({plain(str(error))}).") from None
    request = Request(
        backend=profile.backend,
        workload=workload,
        threads=whole(threads),
        steps=len(profile.wall.steps) or None,
        preset=profile.preset,
    )
    validate_request(request)
    _check_machine(profile)
    return request


def validate_request(request: Request) -> Request:
    """Return a request that the command line would accept. Raises InputError otherwise."""
    from roofline.devices import cpu
    from roofline.models import dimensions

    backend = load(request.backend)
    for option, value in request.workload.options.items():
        if value not in backend.options.get(option, ()):
            raise InputError(f"The {request.backend} backend takes no {plain(option)}={plain(value)}.")
    available = len(cpu.affinity())
    if request.threads is None or not 1 <= request.threads <= available:
        raise InputError(f"It takes {request.threads or 'an unknown number of'} threads; there are {available} here.")
    if request.file is None:
        plugins.require(backend.models, request.workload.model, "model", sorted_by_kind=True)
        dimensions(request.workload)
        check_mode(backend, request.workload.mode)
    return request


def _check_machine(profile: Profile) -> None:
    """Check the device of a profile. Raises InputError unless it is this machine's."""
    from roofline.devices import calibration

    kind = profile.device.kind
    if kind not in ("cpu", "cuda"):
        raise InputError(f"A step on {plain(kind)} cannot be run from here.")
    calibration.resolve(kind)
    machine = calibration.key(kind, 1)["cpu" if kind == "cpu" else "gpu"]
    recorded = profile.device.single_name
    if machine != recorded:
        raise InputError(
            f"It was measured on {plain(recorded)} and this is {machine or 'another device'}: run its step there."
        )
