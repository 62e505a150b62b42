"""What `import roofline` offers: every name is there, is said to be, has an example, and its example runs."""

from __future__ import annotations

import ast
import doctest
import gzip
import inspect
from pathlib import Path
from typing import Any

import handmade
import pytest
from msgspec.structs import replace

import roofline
from roofline import plugins
from roofline.recording import record

NAMES = [name for name in roofline.__all__ if not name.startswith("_")]


def test_every_verb_of_the_python_interface_is_a_public_name() -> None:
    """One file per verb: a new one must not be forgotten in roofline/__init__.py."""
    verbs = {name.replace("-", "_") for name in plugins.names("roofline.api")} - {
        "step_profiler",
        "magics",
    }  # of IPython
    assert verbs <= set(roofline.__all__)
    assert set(roofline.__all__) <= set(dir(roofline))


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is(name: str) -> None:
    public: Any = getattr(roofline, name)
    told = inspect.getdoc(public) or ""
    assert ">>> " in told, "no example"
    if not inspect.isclass(public) and name not in ("scope", "step"):
        assert "Error" in told, "nothing of what it raises"


def test_a_callback_says_what_it_is() -> None:
    """Read and not imported: each loads its library. What they do is in tests/api/test_callbacks.py."""
    folder = Path(roofline.callbacks.__file__).parent
    for name in roofline.callbacks.__all__:
        module = ast.parse((folder / f"{name.removesuffix('Callback').lower()}.py").read_text())
        (found,) = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == name)
        assert ">>> " in (ast.get_docstring(found) or "")


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a small model and saved profiles of the names that the examples use."""
    import torch

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("roofline.costs.custom._FORMULAS", {})
    monkeypatch.setattr(record, "bandwidth", lambda plan, threads: {})  # a second of a recording
    profile = handmade.profile()
    for file in ("p.json", "torch.json", "baseline.json"):
        roofline.save(profile, file)
    roofline.save(
        replace(profile, wall=replace(profile.wall, steps=tuple(2 * t for t in profile.wall.steps))), "jax.json"
    )
    if name == "import_trace":
        Path("trace.json.gz").write_bytes(gzip.compress(a_trace(torch)))
    model = torch.nn.Linear(4, 4)
    names = {
        "roofline": roofline,
        "profile": profile,
        "model": model,
        "x": torch.randn(2, 4),
        "loader": [torch.randn(2, 4)] * 150,
        "train": lambda batch: model(batch).sum().backward(),
    }
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(getattr(roofline, name)) or ""):
        exec(compile(example.source, f"<example of {name}>", "single"), names)


def a_trace(torch: Any) -> bytes:
    """A trace of torch.profiler, of two steps."""
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(64, 64)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(3):
            x @ x
            profiler.step()
    profiler.export_chrome_trace("recorded.json")
    return Path("recorded.json").read_bytes()
