"""The colours of all pictures: one palette for what limits ops, another for groups of ops, and one for the two runs.

Colours of bounds are Okabe and Ito's; those of groups are told apart from them and from each other by readers with any
kind of colour vision. Each is a pair: on white paper, and on the dark page of a report.
"""

from __future__ import annotations

from typing import Literal

from roofline.core.vocabulary import Bound, Group, StorageKind

Pair = tuple[str, str]

BOUNDS: dict[Bound, Pair] = {
    "compute": ("#0072b2", "#4aa8e0"),
    "memory": ("#e69f00", "#e8ac2c"),
    "overhead": ("#009e73", "#25b88f"),
    "unknown": ("#8b949e", "#8b949e"),
}
GROUPS: dict[Group, Pair] = {
    "matmul": ("#332288", "#8f86e8"),
    "normalisation": ("#8c510a", "#d08a4e"),
    "pointwise": ("#56b4e9", "#a9def5"),
    "optimizer": ("#882255", "#d06aa3"),
    "communication": ("#ddcc77", "#e3d591"),
    "other": ("#8a8a8a", "#98a1ab"),
}
#: Of what memory is for.
STORAGES: dict[StorageKind, Pair] = {
    "parameters": ("#1b4965", "#5b92b8"),
    "gradients": ("#bc6c25", "#d99a5b"),
    "optimizer": GROUPS["optimizer"],
    "inputs": ("#9c9c9c", "#a8b0b8"),
    "results": ("#c9a227", "#d9bc5c"),
    "activations": ("#62b6cb", "#8fd0df"),
    "workspace": ("#588157", "#86b085"),
}
#: Of two runs: time that the second one saves, time that it adds, and a whole step.
SIDES: dict[Literal["saves", "adds", "wall"], Pair] = {
    "saves": ("#8a8f94", "#98a1ab"),
    "adds": ("#d55e00", "#f0803c"),
    "wall": ("#404040", "#c9d1d9"),
}


def variables() -> str:
    """Write all of them as custom properties of a style sheet, named as what they stand for."""
    of_storages = ((f"storage-{kind}", pair) for kind, pair in STORAGES.items())
    pairs = (*BOUNDS.items(), *GROUPS.items(), *SIDES.items(), *of_storages)
    return f":root {{ {' '.join(f'--{name}: light-dark({light}, {dark});' for name, (light, dark) in pairs)} }}\n"
