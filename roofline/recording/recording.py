"""Define the request to a recorder and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from roofline.core.device import Ceiling
from roofline.core.schema import Api, Compilation, Energy, Memory, Op, Profiled, Signature, Storages, Waits, Wall
from roofline.core.step import Step

Say = Callable[[str], None]
#: Runs a step and the given number of steps after it in a function of a library, and times the latter.
RunApi = Callable[[Step, int], Api]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan how much is run.

    steps None: the default of the device, within `budget` [s] of plain steps. profiled_steps None: 5, or 10 short ones
    (`protocol`). count_only: the C run alone; plain_only: the T run alone (a further round). in_process: in the user's
    process, not in a child of ours. others_profile: the step belongs to a program that may start profilers of its own,
    and the caller ends the recording when one starts; else such a step is refused. options: of the backend, as the user
    gave them. api: name and runner of a library's function that is timed, too, if any. expect: is told before each run
    of steps how long it is to take [s]; infinite: what comes next is no step.
    """

    device: str
    threads: int | None = None
    steps: int | None = None
    profiled_steps: int | None = None
    budget: float = 60.0
    count_only: bool = False
    plain_only: bool = False
    in_process: bool = False
    others_profile: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    api: tuple[str, RunApi] | None = None
    expect: Callable[[float], None] = lambda seconds: None


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Hold the measurement of a backend: a profile without the device, the command and the date.

    ceilings: of the device, measured again around the steps. sources, addresses, devices, storages, energy, lines,
    waits: see `schema.Profile`.
    """

    wall: Wall
    profiled: Profiled | None
    scopes: tuple[str, ...]
    phases: tuple[str, ...]
    blocks: tuple[str, ...]
    signatures: tuple[Signature, ...]
    ops: tuple[Op, ...]
    kernels: tuple[str, ...]
    memory: Memory
    parameters: int | None
    trainable: int | None
    samples: int | None
    tokens: int | None
    new_tokens: int | None
    mode: str
    batch: int | None
    seq: int | None
    versions: Mapping[str, str]
    switches: Mapping[str, str]
    environment: Mapping[str, str]
    conditions: Mapping[str, float]
    flags: tuple[str, ...]
    ceilings: Mapping[str, Ceiling] = {}
    notes: tuple[str, ...] = ()
    compilation: Compilation | None = None
    sources: Mapping[str, str] = {}
    api: Api | None = None
    addresses: tuple[int | None, ...] = ()
    devices: int = 1
    storages: Storages | None = None
    lines: tuple[str, ...] = ()
    energy: Energy | None = None
    waits: Waits | None = None


class Check(NamedTuple):
    """Hold our count and an independent reference's [FLOP]; None: that side has none.

    what: the subject of the count. verdict: "agrees", "differs" or "not checked"; note: the reconciliation, or why it
    could not be checked.
    """

    reference_name: str
    what: str
    ours: float | None
    reference: float | None
    verdict: str
    note: str
