"""What is asked of a recorder and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from roofline.core.device import Ceiling
from roofline.core.schema import Api, Compilation, Memory, Op, Profiled, Signature, Wall
from roofline.core.step import Step

Say = Callable[[str], None]
#: Runs a step and the given number of others behind it in a function of a library, and times the others.
RunApi = Callable[[Step, int], Api]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is run.

    steps None: the default of the device, within `budget` [s] of plain steps. profiled_steps None: 5, or 10 short ones
    (`protocol`). count_only: the C run alone; plain_only: the T run alone (a further round). in_process: the user's
    process, not a child of ours. options: of the backend, as the user gave them. api: its name, and how it is run,
    where a function of a library is to be timed besides.
    """

    device: str
    threads: int | None = None
    steps: int | None = None
    profiled_steps: int | None = None
    budget: float = 60.0
    count_only: bool = False
    plain_only: bool = False
    in_process: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    api: tuple[str, RunApi] | None = None


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend measured: a profile without the device, the command and the date.

    ceilings: those of the device that were measured again between the steps. sources, addresses,
    devices: see `schema.Profile`.
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


class Check(NamedTuple):
    """A count beside an independent reference's [FLOP]; None: that side has none.

    verdict: "agrees", "differs" or "not checked"; note: the reconciliation, or why it could not be checked.
    """

    reference_name: str
    what: str
    ours: float | None
    reference: float | None
    verdict: str
    note: str
