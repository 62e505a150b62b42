"""The nodes of a Ray cluster (`roofline[ray]`): which of them may measure, and points as tasks on them.

Ray waits for ever for what no node has, repeats lost tasks without a word, and lets two tasks share a processor. So
requests are compared with what nodes have before anything runs, tasks are not repeated (`max_retries=0`; nodes.py
does), and each names its node and takes what it measures on: a CPU point all CPUs of the node, a GPU point its GPUs
and their share of the CPUs.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from types import ModuleType
from typing import Any, NamedTuple

from roofline import plugins
from roofline.core.decoding import UndecodableError, from_json
from roofline.core.numerals import whole
from roofline.core.schema import decode
from roofline.errors import InputError, MissingError, RooflineError
from roofline.sweeping import on_node
from roofline.sweeping.folder import Failure
from roofline.sweeping.nodes import Answer, Node
from roofline.sweeping.plan import Point
from roofline.version import __version__

#: Time in which a node describes itself [s]: it starts Python twice. By choice, for nodes that are busy.
_DESCRIBES_IN = 120.0


class Asked(NamedTuple):
    """What a point asks of its node. gpus: 0 for a point on the CPU. accelerator: Ray's name of the type of GPU."""

    gpus: int = 0
    accelerator: str | None = None
    resources: Mapping[str, float] = {}

    def of(self, node: Mapping[str, float]) -> dict[str, Any]:
        """Return the options of a task on a node with these resources."""
        gpus = node.get("GPU", 0.0)
        share = self.gpus / gpus if self.gpus and gpus else 1.0
        return {
            "num_cpus": int(node.get("CPU", 0.0) * share),
            "num_gpus": self.gpus,
            "resources": dict(self.resources),
            "accelerator_type": self.accelerator,
        }

    def slots(self, node: Mapping[str, float]) -> int:
        """Return how many points a node measures at once; 0 where it lacks what they ask for."""
        needed = {"GPU": float(self.gpus), **self.resources}
        if self.accelerator is not None and f"accelerator_type:{self.accelerator}" not in node:
            return 0
        if any(node.get(name, 0.0) < number for name, number in needed.items()):
            return 0
        # 0.3 // 0.1 is 2: floats are rounded. Ray counts in 0.0001.
        shares = [math.floor(node[name] / number + 1e-9) for name, number in needed.items() if number]
        return min(shares) if self.gpus else 1

    def __str__(self) -> str:
        parts = [f"{self.gpus} x GPU"] if self.gpus else []
        parts += [self.accelerator] if self.accelerator is not None else []
        return ", ".join(parts + [f"{name}={number:g}" for name, number in self.resources.items()])


@contextmanager
def connect(address: str, asked: Asked, backends: Sequence[str], say: Callable[[str], None]) -> Iterator[RayCluster]:
    """Connect to a cluster and choose its nodes; leave it at the end, which ends what still runs there for us.

    address: "auto", HOST:PORT, or "local" for a cluster of this machine alone, which ends with us. Raises MissingError
    without Ray, InputError for an address that does not answer and for what no node can do.
    """
    if not plugins.importable("ray"):
        raise MissingError("--ray needs Ray, which is not installed here: run `pip install 'roofline[ray]'`.")
    _check_address(address)
    ray = _import_ray()
    try:
        _join(ray, address)
        yield RayCluster(ray, asked, backends, say)
    finally:
        ray.shutdown()


def _import_ray() -> ModuleType:
    """Import Ray without its reports of use."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    return ray


def _check_address(address: str) -> None:
    """Check that something listens at HOST:PORT: Ray looks for it for many minutes. Raises InputError."""
    import socket

    if address in ("auto", "local"):
        return
    if "://" in address:
        raise InputError(f"--ray {address} is not possible: run the sweep on a node of the cluster, with --ray auto.")
    host, _, port = address.rpartition(":")
    number = whole(port)
    if not host or number is None or number >= 1 << 16:
        raise InputError(f"--ray {address} is no address: give HOST:PORT, auto or local.")
    try:
        socket.create_connection((host.strip("[]"), number), timeout=10).close()
    except OSError as error:
        raise InputError(f"No Ray cluster answers at {address} ({error}): see `ray status` on its head node.") from None


def _cluster_here(address: str) -> str:
    """Return the address of this machine's cluster: what Ray wrote down stays there when the cluster was killed."""
    from ray._private import services

    return str(services.get_ray_address_from_environment(address, None))


def _join(ray: ModuleType, address: str) -> None:
    """Join a cluster, or start one on this machine. Raises InputError where that is not possible."""
    given: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    if address == "local":  # its processes are ours: Ray's default lets all others go first
        os.environ.setdefault("RAY_worker_niceness", "0")
    try:
        if address == "auto":
            with suppress(ImportError, AttributeError):  # of another Ray, which has no such function inside
                _check_address(_cluster_here(address))
        with _own_signals():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **given)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"Cannot join a Ray cluster at {address} ({reason}): see `ray status` there; with a token, both sides need "
            "the same one and RAY_AUTH_MODE=token (docs/sweep.md)."
        ) from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our way to end by a signal, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class RayCluster:
    """The nodes of a cluster that can measure what is asked, as a `nodes.Cluster`.

    Nodes with another roofline are left out, and named. Raises InputError where none has what is asked, or where those
    that have it differ in what times depend on.
    """

    def __init__(self, ray: ModuleType, asked: Asked, backends: Sequence[str], say: Callable[[str], None]) -> None:
        self._ray, self._asked, self._say = ray, asked, say
        # The nodes may lack this module, or have another one.
        ray.cloudpickle.register_pickle_by_value(on_node)
        self._ended: SimpleQueue[tuple[Point, Future[tuple[str, bytes]]]] = SimpleQueue()
        alive = [node for node in ray.nodes() if node["Alive"]]
        able = [node for node in alive if asked.slots(node["Resources"])]
        if not able:
            raise InputError(f"No node has {asked or 'a CPU'}; there are: {'; '.join(map(_resources, alive))}.")
        names = _names(able)
        self._resources = {node["NodeID"]: node["Resources"] for node in able}
        described = self._describe(names, backends)
        self.nodes = [
            Node(
                id=node,
                name=names[node],
                slots=asked.slots(self._resources[node]),
                device=text["device"].get("gpu") or text["device"]["cpu"],
                versions=text["versions"],
            )
            for node, text in described.items()
        ]

    def _describe(self, names: Mapping[str, str], backends: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return what nodes say of themselves, of those that measure; name the others. names: by identifier."""
        ray = self._ray
        kind = "cuda" if self._asked.gpus else "cpu"
        describe = ray.remote(on_node.describe)
        # Futures, since a signal that comes while Ray itself waits ends in an error of Ray's.
        futures = {
            node: describe.options(num_cpus=0, **self._on(node)).remote(__version__, kind, list(backends)).future()
            for node in names
        }
        wait(futures.values(), timeout=_DESCRIBES_IN)
        described: dict[str, dict[str, Any]] = {}
        for node, future in futures.items():
            try:
                text = future.result(0)
            except TimeoutError:
                text = {"error": "it does not answer."}
            except ray.exceptions.RayError as error:
                text = {"error": _first_line(error)}
            if why := unusable(text):
                self._say(f"{names[node]} is left out: {why}")
                continue
            described[node] = text
            if text["niceness"]:
                self._say(
                    f"{names[node]} lets other programs go first (niceness {text['niceness']}): start Ray there with "
                    "RAY_worker_niceness=0."
                )
        if not described:
            raise MissingError("No node can measure: install the roofline of this machine on them.")
        check_alike({names[node]: text for node, text in described.items()})
        return described

    def _on(self, node: str) -> dict[str, Any]:
        """Return the options that bind a task to a node, and let Ray never repeat it."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return {"max_retries": 0, "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}

    def begin(self, point: Point, node: Node) -> None:
        """Begin a point on a node, where it waits until the node has free what it asks for."""
        measure = self._ray.remote(on_node.measure)
        options = {**self._asked.of(self._resources[node.id]), **self._on(node.id)}
        words = options_of(point, "cuda" if self._asked.gpus else "cpu")
        task: Future[tuple[str, bytes]] = measure.options(**options).remote(words, os.getcwd()).future()
        task.add_done_callback(lambda task: self._ended.put((point, task)))

    def wait(self) -> Answer:
        """Wait until a point ends."""
        point, task = self._ended.get()
        errors = self._ray.exceptions
        try:
            kind, data = task.result()
        except errors.OutOfMemoryError as error:
            return Answer(point, kind="out of memory", text=_first_line(error))
        except errors.TaskUnschedulableError as error:
            return Answer(point, text=_first_line(error), has_begun=False)
        except errors.RayTaskError as error:
            return Answer(point, kind="failed", text=_first_line(error.cause or error))
        except errors.RayError as error:
            return Answer(point, text=_first_line(error))
        return _answer(point, kind, data)

    def is_alive(self, node: Node) -> bool:
        """Return whether a node is still there."""
        return any(other["NodeID"] == node.id and other["Alive"] for other in self._ray.nodes())


def _answer(point: Point, kind: str, data: bytes) -> Answer:
    """Read what `on_node.measure` returned."""
    try:
        if kind == "profile":
            return Answer(point, decode(data, "the profile from the node"))
        if kind == "failure":
            failure = from_json(data, Failure)
            return Answer(point, kind=failure.kind, text=failure.text)
    except (RooflineError, UndecodableError) as error:
        return Answer(point, kind="failed", text=str(error))
    return Answer(point, kind="failed", text=data.decode("utf-8", "replace"))


def options_of(point: Point, device: str) -> list[str]:
    """Write a point as the model and options of `roofline sweep`. device: in place of the point's."""
    words = [point.model, "--backends", point.backend, "--mode", point.mode, "--precision", point.precision]
    words += ["--size", point.size, "--device", device, "--rounds", str(point.rounds), "--input", point.input]
    for name in ("batch", "seq", "new_tokens", "layers", "threads", "steps"):
        if (value := getattr(point, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words if point.optimizer else [*words, "--no-optimizer"]


def unusable(described: Mapping[str, Any]) -> str | None:
    """Say why a node cannot measure; None where it can."""
    if "device" in described:
        return None
    if described.get("roofline"):
        return f"it has roofline {described['roofline']}, and this is {__version__}."
    lines = str(described.get("error", "")).strip().splitlines()
    return lines[-1] if lines else "its Python has no roofline."


def check_alike(described: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse nodes that differ in what times depend on: a map of both would tell them apart, and not the backends."""
    facts = {node: {**text["device"], **text["versions"]} for node, text in described.items()}
    for name in dict.fromkeys(name for node in facts.values() for name in node):
        by_value: dict[str, list[str]] = {}
        for node, values in facts.items():
            by_value.setdefault(values.get(name) or "none", []).append(node)
        if len(by_value) > 1:
            apart = "; ".join(f"{value} on {', '.join(nodes)}" for value, nodes in by_value.items())
            raise InputError(
                f"The nodes differ in {name}: {apart}. Choose some that are alike with --ray-accelerator or "
                "--ray-resources."
            )


def _names(nodes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Name nodes as Ray does, by identifier; those of one name also by the begin of that."""
    names = [node["NodeName"] for node in nodes]
    return {
        node["NodeID"]: node["NodeName"]
        if names.count(node["NodeName"]) == 1
        else f"{node['NodeName']}/{node['NodeID'][:6]}"
        for node in nodes
    }


def _resources(node: Mapping[str, Any]) -> str:
    """Write what a node has, without memory and Ray's own names."""
    resources = {
        name: number
        for name, number in node["Resources"].items()
        if "memory" not in name and not name.startswith("node:")
    }
    return f"{node['NodeName']} ({', '.join(f'{name}={number:g}' for name, number in sorted(resources.items()))})"


def _first_line(error: BaseException) -> str:
    return next(filter(None, (line.strip() for line in str(error).splitlines())), type(error).__name__)
