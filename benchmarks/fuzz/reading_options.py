"""Read the defaults of options in a project's pyproject.toml, which may be anybody's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import mutation
from target import Target, written

from roofline import cli, plugins
from roofline.cli.options import defaults


@cache
def _command(verb: str) -> Any:
    return cli._command(cli.build(verb), verb)


def pyproject(data: bytes) -> None:
    """Read the defaults of options, and write them as words of a command."""
    file = written("pyproject.toml", data)
    table = defaults.read(file)
    defaults.check_tables(file, table, plugins.names("roofline.cli"))
    command = _command("profile")
    values = defaults.of_verb(file, table, "profile", command, lambda: [command])
    defaults.told(file, defaults.words_of(values, "profile", command, ["bert"]))


def _projects() -> Iterator[bytes]:
    yield b'[tool.roofline]\nbackend = "torch"\nsteps = 5\n[tool.roofline.profile]\nbatch = 8\nmode = "train"\n'
    yield b"[tool.roofline]\nwidth = 80\n[tool.other]\nx = 1\n"


TARGETS = {"pyproject": Target(pyproject, _projects, mutation.of_toml)}
