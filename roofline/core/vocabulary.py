"""The words of the field as this project uses them (docs/terms.md): classes, groups, phases, bounds."""

from __future__ import annotations

from typing import Literal, get_args

OpClass = Literal[
    "contraction",  # matrix products and convolutions
    "attention",  # a fused attention kernel
    "normalisation",  # layer, batch and RMS norm
    "softmax",
    "reduction",
    "pointwise",
    "embedding",  # gather and scatter of rows
    "movement",  # copy, cast, transpose, concatenation
    "random",
    "optimizer",
    "communication",
    "transfer",  # host <-> device
    "other",
]
Group = Literal["matmul", "normalisation", "pointwise", "optimizer", "communication", "transfer", "other"]
Phase = Literal["forward", "backward", "optimizer", "prefill", "decode", "mixed"]
Bound = Literal["compute", "memory", "overhead", "unknown"]
Quality = Literal["exact", "assumed", "unknown"]
StorageKind = Literal[
    "parameters",
    "gradients",  # of parameters
    "optimizer",  # its state
    "inputs",  # all else that was there before the step
    "results",  # of a compiled program
    "activations",  # made in a forward pass and used by later ops
    "workspace",  # all else: inside of one op, or between those of a backward pass or an optimizer
]

CLASSES: tuple[OpClass, ...] = get_args(OpClass)
GROUPS: tuple[Group, ...] = get_args(Group)
BOUNDS: tuple[Bound, ...] = get_args(Bound)
PHASES: tuple[Phase, ...] = get_args(Phase)
STORAGE_KINDS: tuple[StorageKind, ...] = get_args(StorageKind)

#: What keeps work that was launched from starting while a device runs nothing, as far as a trace says.
FOR_STREAM, FOR_EVENT, FOR_COPY = "waiting for another stream", "waiting for an event", "waiting for a copy"
NOT_RECORDED = "waiting, cause not recorded"
DEVICE_WAITS = (FOR_STREAM, FOR_EVENT, FOR_COPY, NOT_RECORDED)

#: How plain steps were timed (`Wall.protocol`), in words.
PROTOCOLS: dict[str, str] = {"steady": "back to back", "single": "waited for one by one"}
#: The types of numbers that are multiplied in matrices, and not counted with.
FLOATING = frozenset(("fp64", "fp32", "fp16", "bf16", "fp8", "complex64", "complex128"))
#: The switch in which a step says how often it decodes: the prompt's own pass may give the first token.
PASSES = "decode passes"
#: Where memory was read that is all of the process's, and not of a step (`Memory.resident`).
RESIDENT = "peak resident set of the process, libraries included"
#: The kind of an op that is a Python function of the user's, whatever its name (docs/counting.md).
CALLBACK = "callback"
#: The kind of direct linear algebra: matrix FLOPs, and no products that runs are compared by (docs/counting.md).
LINEAR_ALGEBRA = "linear algebra"
#: Matrix work; all other classes do vector work.
PRODUCTS: frozenset[OpClass] = frozenset(("contraction", "attention"))

#: The first three groups are the classes of Ivanov et al., "Data Movement Is All You Need" (2021):
#: tensor contraction, statistical normalization, element-wise.
GROUP_OF: dict[OpClass, Group] = {
    "contraction": "matmul",
    "attention": "matmul",
    "normalisation": "normalisation",
    "softmax": "normalisation",
    "reduction": "normalisation",
    "pointwise": "pointwise",
    "random": "pointwise",
    "movement": "pointwise",
    "embedding": "pointwise",
    "optimizer": "optimizer",
    "communication": "communication",
    "transfer": "transfer",
    "other": "other",
}

#: Frameworks whose ops are measured, by their modules, which are also the backends that run them as they are.
FRAMEWORKS = ("torch", "jax", "tensorflow")
