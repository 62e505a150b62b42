"""Scripts that answer for names, in processes of their own: an error costs the name that it is of, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPT = """
import json, sys
for name in sys.argv[2:]:
    if name == "dies":
        sys.exit("the last word")
    print(json.dumps({"name": name, "error": "its own"} if name == "fails" else {"name": name}), flush=True)
    if name == "fails":
        break
"""


def test_an_error_is_of_the_name_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from workers import ask

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    names = ["first", "fails", "behind", "dies", "last", "fails"]
    assert list(ask(script, "jax", names, what="name", patience=60, most=5)) == [
        {"name": "first"},
        {"name": "fails", "error": "its own"},
        {"name": "behind"},
        {"name": "dies", "error": "status 1: the last word"},
        {"name": "last"},
        {"name": "fails", "error": "its own"},
    ]
