"""The colours of all pictures: palettes for what limits ops, groups of ops, memory, two runs, and several things.

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
    "transfer": ("#117733", "#63b07c"),
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
#: The n-th of several things compared: devices, backends.
SERIES: tuple[Pair, ...] = (
    ("#0072B2", "#4aa8e0"),
    ("#D55E00", "#f0803c"),
    ("#009E73", "#25b88f"),
    ("#CC79A7", "#d98fb8"),
    ("#000000", "#e6e9ec"),
    ("#E69F00", "#e8ac2c"),
    ("#56B4E9", "#7cc6f0"),
    ("#332288", "#8f86e8"),
    ("#8C510A", "#d08a4e"),
    ("#808080", "#98a1ab"),
)


def on(colour: str) -> str:
    """Return the colour of a text on another one, "#rrggbb": black or white, whichever stands out more.

    By the relative luminance of WCAG 2.1: (L + 0.05) / 0.05 of black is above 1.05 / (L + 0.05) of white from 0.179 on.
    """
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "white"


def variables() -> str:
    """Write all of them as custom properties of a style sheet, named as what they stand for."""
    series = [(f"series-{number}", pair) for number, pair in enumerate(SERIES)]
    inks = [(f"on-{name}", (on(light), on(dark))) for name, (light, dark) in (*series, *BOUNDS.items())]
    of_storages = [(f"storage-{kind}", pair) for kind, pair in STORAGES.items()]
    pairs = (*BOUNDS.items(), *GROUPS.items(), *SIDES.items(), *series, *inks, *of_storages)
    return f":root {{ {' '.join(f'--{name}: light-dark({light}, {dark});' for name, (light, dark) in pairs)} }}\n"
