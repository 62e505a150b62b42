"""Read what published benchmarks ran, as data: one TOML per preset, which `--preset NAME` fills a workload from.

A preset has rows, a model in a mode each, and columns, a backend each. `preset` reads them and resolves what the
benchmark would have asked for; `beside` holds a measured profile against that and against the published figures.
"""

from __future__ import annotations

from roofline import plugins
from roofline.published.presets.preset import Apart as Apart
from roofline.published.presets.preset import Preset, read


def names() -> tuple[str, ...]:
    """Return the presets, as the user types them."""
    return plugins.names(__name__, ".toml")


def load(name: str) -> Preset:
    """Read the preset called `name`. Raises InputError, naming the alternatives, for any other name."""
    return read(plugins.folder(__name__), name, names())
