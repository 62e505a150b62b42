"""Switches: settings of a run that take a cause of slowness away and leave the rest of the step as it is.

A backend declares those that it has (`Backend.switches`); comparison/proof/switches.py says which kinds answer a row of
the account, and what can be set in every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A switch that a backend has.

    name: what people call it. kind: what it takes away. reads: the recorded switch or option that
    says how it stands; where nothing is recorded it stands as `assumed`. turns: from how it stands to what it is set
    to; "*" is anything else. option: of the backend, that is set so; backend: another one that runs the same model
    instead. in_step: by this name the measuring process turns it in a step that is there, whoever wrote it
    (`Backend.turn`). words: values in words. moves: what of a profile may change with it, as patterns over
    `same_run.recorded`. devices: where there is such a switch. undone: it does not take the cause away from the run
    that spends more, but what keeps it away from the run that spends less.
    """

    name: str
    kind: str
    turns: Mapping[str, str]
    moves: tuple[str, ...]
    reads: str = ""
    assumed: str | None = None
    option: str | None = None
    backend: str | None = None
    in_step: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ("cpu", "cuda")
    undone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A switch turned: what a run is asked for instead; what is not set stays as it was.

    text: "attention eager -> sdpa". options: of the backend, all of them. variables: of the measuring process. in_step:
    what that process turns in the step, by the names of `Backend.turn`.
    """

    text: str
    moves: tuple[str, ...]
    options: Mapping[str, str] | None = None
    backend: str | None = None
    precision: str | None = None
    threads: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    in_step: Mapping[str, str] = field(default_factory=dict)


#: glibc's malloc gives large blocks back to the system at once, and gets them again page by page, unless it is told to
#: keep what was freed: no block is mapped for itself, the heap is never trimmed, and grows by 64 MiB at once.
MALLOC = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "1099511627776",
    "MALLOC_TOP_PAD_": "67108864",
}
#: The kind of switch by which a compiler takes many small ops together.
COMPILED_AWAY = "compiler"
#: The kind by which a device is given many launches at once.
LAUNCHED_AWAY = "launches"
#: The arithmetic of float32 products, "ieee" or "tf32", by which every process can be told.
FLOAT32 = "float32"
#: Kinds that every process can be told, whatever its backend: how many threads it has, and what malloc gives back.
THREADS, MEMORY = "threads", "memory"
#: The kind by which a run that is compiled loses that.
COMPILED_THERE = "compiled in the other run"

#: The same model without its random masks: an option of every backend whose models have them.
DROPOUT = Switch(
    name="dropout",
    kind="dropout",
    reads="dropout",
    turns={"*": "off"},
    option="dropout",
    moves=("option dropout", "switch dropout", "switch random bits"),
)
#: XLA compiles what Keras runs.
JIT = Switch(
    name="jit",
    kind=COMPILED_AWAY,
    reads="jit",
    turns={"off": "on"},
    option="jit",
    moves=("option jit", "switch jit"),
)
#: XLA's graphs of launches, which it makes unless told otherwise.
COMMAND_BUFFERS = Switch(
    name="command buffers",
    kind=LAUNCHED_AWAY,
    reads="command_buffers",
    turns={"off": "on"},
    option="command_buffers",
    moves=("option command_buffers", "environment XLA_FLAGS"),
    devices=("cuda",),
)
#: The models made of the transformers library: PyTorch's fused attention, or products and softmax written out.
ATTENTION = Switch(
    name="attention",
    kind="attention",
    reads="attention",
    turns={"eager": "sdpa", "sdpa": "eager"},
    option="attention",
    moves=("option attention", "switch attention"),
)
#: PyTorch's optimizers: one kernel for all parameters.
OPTIMIZER = Switch(
    name="optimizer",
    kind="optimizer",
    reads="optimizer fused",
    turns={"False": "fused"},
    option="optimizer",
    words={"False": "not fused"},
    moves=("option optimizer", "switch optimizer fused", "switch optimizer foreach"),
)

# Of a step that is there, which no model of ours builds: what the measuring process turns in it.

#: One kernel for all parameters of each optimizer that steps, or one loop over them for each of its ops.
OWN_OPTIMIZERS = tuple(
    Switch(
        name=f"optimizer {form}",
        kind="optimizer",
        reads=f"optimizer {form}",
        turns={"False": "True"},
        in_step=f"optimizer {form}",
        words={"False": "off", "True": "on"},
        moves=("switch optimizer fused", "switch optimizer foreach"),
    )
    for form in ("fused", "foreach")
)
#: JAX without its compiler, op by op.
OWN_JIT = Switch(
    name="jax.jit",
    kind=COMPILED_THERE,
    reads="jit",
    assumed="on",
    turns={"on": "off"},
    in_step="jit",
    moves=("switch jit",),
    undone=True,
)
