"""Commands of the pages run as those of tests/cli do: in this process, with ceilings made by hand."""

from __future__ import annotations

from of_cli import conftest

brief, variables, measuring = conftest.brief, conftest.variables, conftest.measuring
