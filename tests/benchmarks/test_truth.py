"""Random models are counted as their closed form says, to the last FLOP (`make truth`)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).resolve().parents[2] / "benchmarks" / "truth" / "run.py"
MODELS = 20
#: Of these, as few as have a layer of each kind that any of them has.
EACH_KIND = (0, 1, 2, 3, 7, 9, 10, 11, 13)
#: Models that are counted on these backends, a third of them on each.
THIRDS = {
    "jax": range(0, MODELS, 3),
    "tensorflow": range(1, MODELS, 3),
    "tensorflow-xla": range(2, MODELS, 3),
}


def missed(backend: str, models: Sequence[int]) -> list[int]:
    """Count models: the numbers of those whose count is not their closed form."""
    command = [sys.executable, str(RUN), "--only", *map(str, models), "--backends", backend]
    # Its own flags show XLA's small loops, which those of the tests do not.
    variables = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert f"of {len(models)} models as in the closed form" in done.stdout
    words = (line.split() for line in done.stdout.splitlines())
    return sorted({int(line[1]) for line in words if line[:1] == ["model"] and line[2:4] == ["on", f"{backend}:"]})


def test_models_with_each_kind_of_layer_on_torch() -> None:
    assert missed("torch", EACH_KIND) == []


@pytest.mark.parametrize("backend", ["jax", "tensorflow", pytest.param("tensorflow-xla", marks=pytest.mark.thorough)])
def test_a_third_of_them_on_another_backend(backend: str) -> None:
    assert missed(backend, THIRDS[backend]) == []


@pytest.mark.parametrize(("changed", "taken"), [("", ["1"]), ("-changed", [])], ids=["a commit", "changes"])
def test_what_the_same_commit_counted_without_an_error_is_not_counted_again(
    changed: str, taken: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    spec = importlib.util.spec_from_file_location("truth_run", RUN)
    assert spec is not None
    assert spec.loader is not None
    run: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    counted: list[str] = []

    def count(backend: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        counted.extend(names)
        yield from ({"model": name, "flops": 1.0} for name in names)

    monkeypatch.setattr(run, "count", count)
    monkeypatch.setattr(run, "commit", lambda: f"now{changed}")
    output = tmp_path / "results"
    rows = [
        {"backend": "torch", "commit": f"now{changed}", "model": "1", "flops": 2.0},
        {"backend": "torch", "commit": f"now{changed}", "model": "2", "error": "SIGKILL: no word"},
        {"backend": "torch", "commit": "before", "model": "3", "flops": 2.0},
        {"backend": "torch", "model": "4", "flops": 2.0},
        {"backend": "jax", "commit": f"now{changed}", "model": "5", "flops": 2.0},
    ]
    output.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    names = ["1", "2", "3", "4", "5"]
    results = {result["model"]: result["flops"] for result in run.count_missing("torch", names, output)}
    assert counted == [name for name in names if name not in taken]
    assert results == {name: 2.0 if name in taken else 1.0 for name in names}
    added = [json.loads(line) for line in output.read_text().splitlines()[len(rows) :]]
    assert [(row["model"], row["commit"]) for row in added] == [(name, f"now{changed}") for name in counted]


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_two_hundred_models_on_torch() -> None:
    assert missed("torch", range(200)) == []
