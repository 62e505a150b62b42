"""Functions of the frameworks' own indices are counted as by hand (`make functions`)."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "functions"
BY_HAND = tomllib.loads((FOLDER / "by_hand.toml").read_text(encoding="utf-8"))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the script in this process, which knows a framework's index sooner: its status and what it printed."""
    monkeypatch.syspath_prepend(str(FOLDER))

    def main(framework: str, names: Sequence[str]) -> tuple[int, str, str]:
        if find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed")
        monkeypatch.setattr(sys, "argv", ["run.py", "--frameworks", framework, "--only", *names])
        with pytest.raises(SystemExit) as ended:
            run_path(str(FOLDER / "run.py"), run_name="__main__")
        return int(ended.value.code or 0), *capsys.readouterr()

    return main


def kinds(framework: str, printed: str) -> dict[str, str]:
    """How each function came out."""
    lines = [line.split(maxsplit=1) for line in printed.splitlines() if f" {framework}." in line]
    return {rest.partition(":")[0]: kind for kind, rest in lines}


def test_some_functions_of_pytorch_as_by_hand(run: Callable[..., tuple[int, str, str]]) -> None:
    """They are counted in a process of their own."""
    names = ["torch.bilinear", "torch.conv_transpose3d", "torch.embedding_renorm_", "torch.pdist"]
    status, printed, _ = run("torch", names)
    assert (status, kinds("torch", printed)) == (0, dict.fromkeys(names, "known"))


def test_a_name_that_no_index_has_is_an_error(run: Callable[..., tuple[int, str, str]]) -> None:
    status, printed, said = run("torch", ["torch.pdist", "torch.pdits"])
    assert (status, printed) == (2, "")
    assert said.endswith("no function of torch that is swept: torch.pdits\n")


@pytest.mark.thorough
@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_all_that_were_counted_by_hand(framework: str, run: Callable[..., tuple[int, str, str]]) -> None:
    names = list(BY_HAND[framework])
    assert kinds(framework, run(framework, names)[1]) == dict.fromkeys(names, "known")


@pytest.mark.parametrize(("many", "taken"), [(10, list(range(10))), (4, [0, 2, 5, 7]), (3, [0, 3, 6])])
def test_every_kth_begins_with_the_first_and_reaches_the_end(
    many: int, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    from index import every_kth

    assert every_kth([str(number) for number in range(10)], many) == [str(number) for number in taken]
