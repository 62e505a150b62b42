"""Functions of the frameworks' own indices are counted as by hand (`make functions`)."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "functions"
BY_HAND = tomllib.loads((FOLDER / "by_hand.toml").read_text(encoding="utf-8"))


def swept(framework: str, names: Sequence[str]) -> dict[str, str]:
    """Counts functions in a process of their own: how each came out."""
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    command = [sys.executable, str(FOLDER / "run.py"), "--frameworks", framework, "--only", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines() if f" {framework}." in line]
    return {rest.partition(":")[0]: kind for kind, rest in lines}


def test_some_functions_of_pytorch_as_by_hand() -> None:
    names = ["torch.bilinear", "torch.conv_transpose3d", "torch.embedding_renorm_", "torch.pdist"]
    assert swept("torch", names) == dict.fromkeys(names, "known")


def test_a_name_that_no_index_has_is_an_error() -> None:
    pytest.importorskip("torch")
    command = [sys.executable, str(FOLDER / "run.py"), "--frameworks", "torch", "--only", "torch.pdist", "torch.pdits"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("no function of torch that is swept: torch.pdits\n")


@pytest.mark.thorough
@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_all_that_were_counted_by_hand(framework: str) -> None:
    names = list(BY_HAND[framework])
    assert swept(framework, names) == dict.fromkeys(names, "known")


@pytest.mark.parametrize(("many", "taken"), [(10, list(range(10))), (4, [0, 2, 5, 7]), (3, [0, 3, 6])])
def test_every_kth_begins_with_the_first_and_reaches_the_end(
    many: int, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    from index import every_kth

    assert every_kth([str(number) for number in range(10)], many) == [str(number) for number in taken]
