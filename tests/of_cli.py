"""The fixtures of tests/cli for tests of other folders: `from of_cli import conftest`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_FILE = Path(__file__).resolve().parent / "cli" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("conftest_of_cli", _FILE)
assert _SPEC
assert _SPEC.loader
conftest = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(conftest)
