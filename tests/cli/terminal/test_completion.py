"""What a shell completes, and the script that makes it do so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roofline import plugins

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("roofline sh", {"show"}),
        ("roofline show p.json --by k", {"kernel"}),
        ("roofline show p.json --format ", set(plugins.names("roofline.renderers"))),
        ("roofline show p.json --sort a", {"above", "attained"}),
        ("roofline show h100/bert-torchs", {f"h100/bert-torchscript-infer-b{n}-tf32" for n in (1, 32)}),
        ("roofline show bert-", {"bert-torch-infer-b1-s128-amd-epyc-1"}),
        ("roofline show ", set()),  # the shell completes names of files
        ("roofline compare a.json bert-l", {"bert-layer"}),
        ("roofline whatif h100/bert-keras-jax-", {"h100/bert-keras-jax-infer-b32-tf32"}),
        ("roofline counters h100/bert-keras-jax-", {"h100/bert-keras-jax-infer-b32-tf32"}),
        ("roofline compare a b --format l", {"latex"}),
        ("roofline compare bert --backends torch,keras-j", {"torch,keras-jax"}),
        ("roofline profile ber", {"bert", "bert-layer"}),
        ("roofline profile bert --backend tensorflow-", {"tensorflow-xla"}),
        ("roofline plot a.json --kind w", {"wall", "waterfall"}),
        ("roofline whatif a.json --device h100-s", {"h100-sxm"}),
        ("roofline check a b --format g", {"github"}),
    ],
)
def test_the_shell_completes(roofline: Run, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                             words: str, some: set[str]) -> None:  # fmt: skip
    (tmp_path / "p.json").touch()
    for name, value in {
        "_ROOFLINE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }.items():
        monkeypatch.setitem(variables, name, value)
    ended = roofline()
    assert ended.err == ""
    assert set(ended.out.split()) == some


def test_the_script_for_a_shell_is_printed(tmp_path: Path, variables: dict[str, str]) -> None:
    """Of a shell that is named: typer would find out which one started this, maybe one that it does not know."""
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-m", "roofline", "--show-completion", "bash"]
    done = subprocess.run(
        command, env={**os.environ, **variables, **named}, capture_output=True, text=True, check=False
    )
    assert "complete -o default -F _roofline_completion roofline" in done.stdout, done.stderr
