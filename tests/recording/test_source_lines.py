"""What a line of the user's program is called: by the module, and never by a folder of the machine."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from roofline.recording.source_lines import SourceFiles


def test_files_are_named_below_the_folder_of_their_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("mypack", "mypack/deep", "site-packages"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    for name in ("mypack/deep/layer.py", "script.py", "site-packages/library.py"):
        (tmp_path / name).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    import_module("mypack.deep.layer")
    files = SourceFiles()
    assert files[f"{tmp_path}/mypack/deep/layer.py"] == "mypack/deep/layer.py"
    assert files[f"{tmp_path}/mypack/deep/__init__.py"] == "mypack/deep/__init__.py"
    assert files.line(f"{tmp_path}/script.py", 7) == "script.py:7"  # no module
    for other in (f"{tmp_path}/site-packages/library.py", json.__file__, msgspec.__file__, "<string>"):
        assert files[other] is None
    for ours in ("roofline.units", "roofline.models"):
        assert files[str(import_module(ours).__file__)] is None


def test_cells_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = SimpleNamespace(format_code_name=lambda file: ("Cell", "In[3]") if file == "/tmp/ipy/1.py" else None)
    shell = SimpleNamespace(compile=compiled)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert SourceFiles().line("/tmp/ipy/1.py", 2) == "In[3]:2"
    assert SourceFiles()["/tmp/ipy/2.py"] == "2.py"
