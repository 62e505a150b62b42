"""The notebook of the tutorial: it runs in a real kernel as it is saved, and its outputs are those of a profile."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "tutorial" / "notebook.ipynb"

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def saved() -> Any:
    return nbformat.read(FILE, as_version=4)


def outputs(notebook: Any) -> list[tuple[str, Any]]:
    """Of each cell of code its first line, and what it shows."""
    return [
        (cell.source.splitlines()[-1], cell.outputs[0].get("data", {}) if cell.outputs else {})
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def compared(notebook: Any) -> str:
    """The text of the comparison."""
    cell = 'roofline.compare(roofline.profile(one_by_one, name="block"), at_once)'
    return " ".join(dict(outputs(notebook))[cell]["text/plain"].split())


def holds(notebook: Any) -> None:
    """What is so in each run, as the 2 * 64 * 256 * 1024 FLOP of a product."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [1, 2, 3, 4, 5, 6]
    shown = dict(outputs(notebook))
    assert "matmul" in shown["at_once"]["text/html"]
    assert (
        "33554432.0"
        in shown['ops[["name", "class", "flops", "bytes_read", "seconds", "floor", "bound"]]']["text/plain"]
    )
    assert "<img" in shown['roofline.plot(at_once, kind="roofline", width=5)']["text/html"]
    # 64 times two products and a GELU, and what puts them together: counted, whatever the times are
    told = compared(notebook)
    assert "moved: 128 x addmm, 64 x gelu, 1 x cat B: " in told
    assert "193 calls" in told
    assert "in-pieces" in told
    assert all(len(data.get("text/html", "")) < 100_000 for data in shown.values())


def test_it_is_saved_with_its_outputs_and_small(saved: Any) -> None:
    nbformat.validate(saved)
    holds(saved)
    assert "torch (A) took 11.1x longer than torch (B) in these two runs" in compared(saved)
    assert FILE.stat().st_size < 200_000


@pytest.mark.thorough
def test_it_runs(
    saved: Any, tmp_path: Path, variables: dict[str, str], brief: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a kernel of its own, in an empty folder, with ceilings made by hand."""
    from nbclient import NotebookClient

    for name, value in {**variables, **brief, "IPYTHONDIR": str(tmp_path / "ipython")}.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.from_dict(saved)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    (tmp_path / "here").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter, about itself
        NotebookClient(
            notebook, kernel_name="python3", timeout=300, resources={"metadata": {"path": str(tmp_path / "here")}}
        ).execute()
    holds(notebook)
    assert sorted(file.name for file in (tmp_path / "here").iterdir()) == ["block.html", "block.json"]
