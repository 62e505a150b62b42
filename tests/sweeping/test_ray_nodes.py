"""Which nodes of a Ray cluster may measure, and what a point asks of one, by what Ray says of them. Without Ray."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from ended_processes import wait_for_end

from roofline import cli, plugins
from roofline.errors import InputError, MissingError
from roofline.sweeping import folder, lock, on_node
from roofline.sweeping.plan import Point
from roofline.sweeping.ray_nodes import Asked, check_alike, connect, options_of, unusable
from roofline.version import __version__

#: What Ray says of nodes: 32 CPUs with 4 GPUs, one of two resources called `bench`, 0.3 of one called `slot`; 2 CPUs.
GPUS = {"CPU": 32.0, "GPU": 4.0, "accelerator_type:H100": 1.0, "bench": 2.0, "slot": 0.3, "memory": 1e9}
CPUS = {"CPU": 2.0, "memory": 1e9}


@pytest.mark.parametrize(
    ("asked", "on_gpus", "on_cpus"),
    [
        (Asked(), 1, 1),
        (Asked(gpus=1), 4, 0),
        (Asked(gpus=2), 2, 0),
        (Asked(gpus=3), 1, 0),
        (Asked(gpus=5), 0, 0),
        (Asked(gpus=1, accelerator="H100"), 4, 0),
        (Asked(gpus=1, accelerator="A100"), 0, 0),
        (Asked(gpus=1, resources={"bench": 1.0}), 2, 0),
        (Asked(gpus=1, resources={"slot": 0.1}), 3, 0),
        # One point at a time is on the CPU, however many may be there.
        (Asked(resources={"bench": 1.0}), 1, 0),
        (Asked(resources={"bench": 3.0}), 0, 0),
    ],
)
def test_points_at_once(asked: Asked, on_gpus: int, on_cpus: int) -> None:
    assert (asked.slots(GPUS), asked.slots(CPUS)) == (on_gpus, on_cpus)


@pytest.mark.parametrize(
    ("asked", "cpus", "gpus"),
    [
        # A point on the CPU has the whole node.
        (Asked(), 32, 0),
        # One of 4 GPUs and a quarter of 32 CPUs.
        (Asked(gpus=1), 8, 1),
        (Asked(gpus=3), 24, 3),
    ],
)
def test_the_share_of_a_point(asked: Asked, cpus: int, gpus: int) -> None:
    assert (asked.of(GPUS)["num_cpus"], asked.of(GPUS)["num_gpus"]) == (cpus, gpus)


POINTS = [
    Point(model="mlp", backend="torch"),
    Point(
        model="gpt2", backend="torch-compile:mode=default,optimizer=foreach", mode="generate", precision="bf16",
        batch=2, seq=8, new_tokens=4, size="tiny", layers=1, threads=1, steps=3, rounds=2, input="host",
        optimizer=False,
    ),
]  # fmt: skip


@pytest.mark.parametrize("point", POINTS, ids=["defaults", "all"])
def test_the_command_on_a_node_is_that_of_the_point(
    tmp_path: Path, point: Point, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["sweep", *options_of(point, "auto"), "-o", str(tmp_path / "there"), "--plan-only"])
    assert left.value.code == 0, capsys.readouterr().err
    assert folder.read_plan(tmp_path / "there") == [point]


def described(**changes: str) -> dict[str, Any]:
    return {"device": {"cpu": "Xeon", "threads": "2"}, "versions": {"torch": "2.13.0", **changes}, "niceness": 0}


def test_nodes_that_differ_are_refused_by_name() -> None:
    check_alike({"a": described(), "b": described()})
    for changes in ({"torch": "2.12.0"}, {"jax": "0.10.2"}):
        with pytest.raises(InputError, match=rf"differ in {next(iter(changes))}: .* on a, c; .* on b"):
            check_alike({"a": described(), "b": described(**changes), "c": described()})
    with pytest.raises(InputError, match="differ in cpu: Xeon on a; EPYC on b"):
        check_alike({"a": described(), "b": {**described(), "device": {"cpu": "EPYC", "threads": "2"}}})


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (described(), None),
        ({"roofline": "0.0.1"}, f"it has roofline 0.0.1, and this is {__version__}."),
        ({"roofline": None}, "its Python has no roofline."),
        ({"roofline": None, "error": "Traceback\n  ...\nSyntaxError: bad\n"}, "SyntaxError: bad"),
    ],
)
def test_a_node_that_cannot_measure_says_why(node: dict[str, Any], why: str | None) -> None:
    assert unusable(node) == why


def test_a_node_tells_what_times_depend_on() -> None:
    here = on_node.describe(__version__, "cpu", ["torch"])
    assert here["roofline"] == __version__
    assert here["versions"]["torch"] == plugins.version_of("torch")
    assert here["device"]["kind"] == "cpu"
    assert "device" not in on_node.describe("0.0.1", "cpu", ["torch"])


def test_a_node_takes_no_defaults_of_its_own(tmp_path: Path) -> None:
    """The point says all; here an option that no verb has would end each command that reads it."""
    (tmp_path / "pyproject.toml").write_text("[tool.roofline]\nnothing = 1\n")
    kind, data = on_node.measure(options_of(Point(model="mlp", backend="torch", mode="generate"), "cpu"), str(tmp_path))
    assert (kind, json.loads(data)["kind"]) == ("failure", "refused")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "importable", lambda module: module != "ray")
    with pytest.raises(MissingError, match=r"pip install 'roofline\[ray\]'"), connect("auto", Asked(), [], print):
        pass


@pytest.mark.parametrize(
    "address",
    ["ray://127.0.0.1:10001", "here", "127.0.0.1:x", ":6379", "127.0.0.1:1", f"127.0.0.1:{'1' * 5000}"],
    ids=lambda address: address[:20],
)
def test_no_address(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """It is refused before Ray is imported; nothing listens at port 1."""
    monkeypatch.setattr(plugins, "importable", lambda module: True)
    with pytest.raises(InputError, match=r"--ray|No Ray cluster"), connect(address, Asked(), [], print):
        pass


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--ray-gpus", "1"), "add --ray auto"),
        (("--ray", "auto", "--budget", "1"), "--budget"),
        (("--ray", "auto", "--ray-gpus", "-1"), "--ray-gpus -1"),
        (("--ray", "auto", "--ray-gpus", "1", "--device", "cpu"), "--device cpu"),
        (("--ray", "auto", "--ray-gpus", "0", "--device", "cuda"), "--device cuda"),
        (("--ray", "auto", "--ray-resources", "bench"), "NAME=N"),
        (("--ray", "auto", "--ray-resources", "bench=0"), "NAME=N"),
        (("--ray", "auto", "--ray-resources", "=1"), "NAME=N"),
    ],
)
def test_options_that_no_cluster_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], why: str
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["sweep", "mlp", "--backends", "torch", "-o", str(tmp_path / "grid"), *options])
    assert left.value.code == 2
    assert why in capsys.readouterr().err


def test_nothing_of_ray_is_imported_without_it(tmp_path: Path) -> None:
    code = (
        "import sys; from roofline import cli\n"
        "try: cli.main(['sweep', 'mlp', '--backends', 'torch', '--mode', 'generate', '-o', sys.argv[1]])\n"
        "except SystemExit: print('ray' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "grid")], capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "False", ran.stderr


def test_what_measures_ends_with_the_process_that_waits_for_it(tmp_path: Path) -> None:
    """Else it would go on beside the next attempt. `roofline sweep` waits for the lock of the device here."""
    options = options_of(POINTS[0], "cpu")
    code = f"from roofline.sweeping import on_node; on_node.measure({options!r}, {str(tmp_path)!r})"
    with lock.alone("cpu", print):
        worker = subprocess.Popen([sys.executable, "-c", code])
        end = time.monotonic() + 30
        # -P: it is no copy of the worker any more, whose own last look at its parent would end it.
        while not (children := [child for child in psutil.Process(worker.pid).children() if "-P" in child.cmdline()]):
            assert time.monotonic() < end
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        assert wait_for_end([child.pid for child in children], 30) == []
