"""`%%roofline`: a cell of a notebook is a step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import handmade
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("IPython")

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import roofline
from roofline.api.magics import CellStep, backend_of
from roofline.measuring import in_process
from roofline.recording import record


@pytest.fixture
def shell() -> Iterator[Any]:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.run_cell("%load_ext roofline")
    yield shell
    InteractiveShell.clear_instance()


def step(shell: Any, cell: str) -> CellStep:
    return CellStep(shell, cell)


def test_a_cell_is_measured(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path))  # the ceilings of this machine are not what is tested
    monkeypatch.setattr(in_process.ceilings, "measured", lambda *_: handmade.device())
    monkeypatch.setattr(record, "bandwidth", lambda plan, threads: {})
    shell.run_cell("import torch\nx = torch.ones(8, 4, requires_grad=True)\nn = 0\nmany = []")
    lines = ("print('hello')", "n += 1", "many.append(n)", "loss = (", "  x @ x.T", ").sum()", "loss.backward()")
    cell = "\n".join(("%%roofline --steps 3 --mode train --name mine", *lines))
    result = shell.run_cell(cell, store_history=True).result
    printed = capsys.readouterr()
    assert printed.out.count("hello") == 1
    assert f"The cell ran {len(shell.user_ns['many'])} times, each with names as they were" in printed.err
    assert shell.user_ns["n"] == 1
    assert set(shell.user_ns["many"]) == {1}
    assert shell.user_ns["loss"].item() == 8 * 8 * 4  # of a product of ones
    assert len(result.wall.steps) == 3
    assert "mine" in result._repr_html_()
    assert result.mode == "train"
    named = {result.signatures[op.signature].name: result.lines[op.line] for op in result.ops if op.line is not None}
    assert named["aten::mm"].endswith(":6")
    assert named["aten::sum"].endswith(":7")
    assert {name.partition(":")[0] for name in result.lines} == {"In[1]"}  # the only cell that was stored


def test_names_are_as_before_each_run(shell: Any) -> None:
    shell.user_ns.update(n=5, held=[])
    run = step(shell, "n = n + 1\nheld.append(n)\nfresh = n\ndel n")
    for _ in range(3):
        assert run() == (None, [None, 6])
    assert shell.user_ns["held"] == [6, 6, 6]
    assert (shell.user_ns["fresh"], "n" in shell.user_ns) == (6, False)  # as after one run


def test_the_value_of_the_last_expression_is_returned(shell: Any) -> None:
    assert step(shell, "a, (b, c) = 1, (2, 3)\nsum(q for q in [a, b, c])")() == (6, [1, 2, 3])
    assert step(shell, "%time\n7")()[0] == 7
    with pytest.raises(SyntaxError):
        step(shell, "await x")


def test_arrays_that_are_given_away_are_not_given_again(shell: Any) -> None:
    jax = pytest.importorskip("jax")
    shell.user_ns.update(
        update=jax.jit(lambda p: {"w": p["w"] + 1}, donate_argnums=0), keep=jax.jit(lambda p: {"w": p["w"] + 1})
    )
    for function, last in (("update", 3), ("keep", 1)):
        shell.user_ns["p"] = {"w": jax.numpy.zeros(4)}
        run = step(shell, f"p = {function}(p)")
        for _ in range(3):
            run()
        assert shell.user_ns["p"]["w"].tolist() == [last] * 4
        assert ("from where the one before left off" in run.said()) == (function == "update")


def test_an_error_shows_the_cell_alone(shell: Any) -> None:
    cell = "import torch\ntorch.ones(2) @ torch.ones(3)"
    result = shell.run_cell_magic
    with pytest.raises(RuntimeError) as raised:
        result("roofline", "--backend torch", cell)
    names = [entry.name for entry in raised.traceback]
    assert "record" not in names
    assert names[-1] == "<module>"


@pytest.mark.parametrize(
    "line", ["--steps 0 --backend torch", "--backend nothing", "--mode sleep", "--colour", '--name "x']
)
def test_what_cannot_be_asked(shell: Any, line: str) -> None:
    with pytest.raises(UsageError):
        shell.run_cell_magic("roofline", line, "1")


def test_the_backend_is_that_of_the_framework_of_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    import json
    import sys

    assert backend_of({"json": json, "nn": torch.nn}) == "torch"
    jax = type(json)("jax.numpy")
    assert backend_of({"jnp": jax}) == "jax"
    for namespace in ({}, {"json": json}, {"torch": torch, "jnp": jax}):
        with pytest.raises(UsageError, match="--backend"):
            backend_of(namespace)
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(backend=SimpleNamespace(backend=lambda: "torch")))
    keras = type(json)("keras")
    assert backend_of({"keras": keras}) == backend_of({"keras": keras, "torch": torch}) == "keras-torch"


def test_steps_of_a_loop_in_a_cell(
    shell: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The cell runs once: 130 updates of a layer of 4 x 8 numbers and 8, made in a cell before it, on 16 samples."""
    monkeypatch.setenv("ROOFLINE_CACHE", str(tmp_path))
    monkeypatch.setattr(record, "bandwidth", lambda plan, threads: {})
    before = "import torch\nnet = torch.nn.Linear(4, 8)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\nn = 0"
    assert shell.run_cell(before).success
    lines = ("for _ in range(130):", "  net(torch.ones(16, 4)).sum().backward()", "  optimizer.step()", "  n += 1")
    result = shell.run_cell("\n".join(("%%roofline --loop", *lines, "print('all')"))).result
    printed = capsys.readouterr()
    assert shell.user_ns["n"] == 130
    assert printed.out.count("all") == 1
    assert "a step: from one optimizer.step() to the next, 130 seen" in printed.err
    forward = sum(amounts.model for phase, amounts in roofline.analyze(result).products.items() if phase == "forward")
    assert (result.model, result.mode, forward) == ("Linear", "train", 2 * 16 * 4 * 8)
    failed = shell.run_cell("%%roofline --loop\noptimizer.step()\n1 / 0").error_in_exec
    assert isinstance(failed, ZeroDivisionError)
    assert isinstance(shell.run_cell("%%roofline --loop\nn = 1").error_in_exec, UsageError)  # there is no step


def test_functions_that_jax_compiled_in_an_earlier_cell_are_seen(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    jax = pytest.importorskip("jax")
    double = jax.jit(lambda x: 2 * x)
    shell.user_ns.update(jax=jax, double=double, same=double, jit=jax.jit)
    for before, name in (("assert double is same", "double"), ("triple = jit(lambda x: 3 * x)", "triple")):
        shell.run_cell(f"%%roofline --loop\n{before}\nfor _ in range(5):\n  {name}(jax.numpy.ones(3))")
        told = capsys.readouterr().err
        assert "a step: from one call of <lambda>() to the next, 5 seen" in told
        assert "let its loop run more often" in told
    assert (shell.user_ns["double"], shell.user_ns["jit"]) == (double, jax.jit)


def test_a_cell_is_compiled_as_the_shell_would(shell: Any) -> None:
    shell.run_cell("from dataclasses import dataclass, fields")
    cell = "@dataclass\nclass Size:\n  rows: int"
    step(shell, cell)()
    assert shell.ev("fields(Size)[0].type") is int
    shell.run_cell("from __future__ import annotations")
    step(shell, cell)()
    assert shell.ev("fields(Size)[0].type") == "int"
