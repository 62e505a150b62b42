"""Commands of the pages run as those of tests/cli do: in this process, with ceilings made by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_FILE = Path(__file__).resolve().parents[1] / "cli" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("conftest_of_cli", _FILE)
assert _SPEC
assert _SPEC.loader
_of_cli = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_of_cli)

brief, variables, measuring = _of_cli.brief, _of_cli.variables, _of_cli.measuring
