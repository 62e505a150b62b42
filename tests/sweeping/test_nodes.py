"""Points on several nodes: each ends once, a cell stays on one node, what is lost is measured again and recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import toy_sweeps

from roofline.errors import MeasurementError
from roofline.sweeping import folder, nodes
from roofline.sweeping.nodes import Answer, Node
from roofline.sweeping.plan import Point, points

A, B = (Node(name, name, 1, "Xeon", {"roofline": "1", "torch": "2"}) for name in "ab")


def plan(batches: tuple[int, ...] = (1, 2, 4)) -> list[Point]:
    return points(["toy"], ["torch", "jax"], ["infer"], ["default"], batches, [32])


def measured(point: Point) -> Answer:
    return Answer(point, toy_sweeps.measured(point))


class Here:
    """A cluster whose nodes end points in the order in which they began. answer: what comes of a point on a node."""

    def __init__(self, answer: Callable[[Point, str], Answer | None], *listed: Node) -> None:
        self.nodes, self.gone = listed, set[str]()
        self.begun: list[tuple[str, Point]] = []
        self.running: list[tuple[Point, Node]] = []
        self.at_once = Counter[str]()
        self._answer = answer

    def begin(self, point: Point, node: Node) -> None:
        self.running.append((point, node))
        self.begun.append((node.name, point))
        at_once = sum(on is node for _, on in self.running)
        self.at_once[node.name] = max(self.at_once[node.name], at_once)

    def wait(self) -> Answer:
        point, node = self.running.pop(0)
        return self._answer(point, node.name) or measured(point)

    def is_alive(self, node: Node) -> bool:
        return node.name not in self.gone


def quiet(line: str) -> None:
    pass


def test_each_point_is_measured_once_and_a_cell_on_one_node(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan())
    cluster = Here(lambda point, node: None, A, B)
    assert nodes.run(tmp_path, every, cluster, quiet) == {"measured": 6}
    assert sorted(point.key for _, point in cluster.begun) == sorted(point.key for point in every)
    on = {cell: {node for node, point in cluster.begun if point.without("backend") == cell} for cell in cells(every)}
    assert sorted(map(len, on.values())) == [1, 1, 1]
    assert {node for of in on.values() for node in of} == {"a", "b"}
    assert cluster.at_once == {"a": 1, "b": 1}
    attempts = folder.attempts(tmp_path)
    assert [(attempt.number, attempt.end) for attempt in attempts] == [(1, "measured")] * 6
    assert {attempt.node for attempt in attempts} == {"a", "b"}
    assert attempts[0].versions == A.versions
    assert nodes.run(tmp_path, every, cluster, quiet) == {}


def cells(every: list[Point]) -> set[Point]:
    return {point.without("backend") for point in every}


def test_a_node_with_two_devices_measures_two_points_at_once(tmp_path: Path) -> None:
    cluster = Here(lambda point, node: None, A._replace(slots=2))
    assert nodes.run(tmp_path, folder.write_plan(tmp_path, plan()), cluster, quiet) == {"measured": 6}
    assert cluster.at_once == {"a": 2}


def test_a_lost_process_is_begun_again_and_the_attempt_is_recorded(tmp_path: Path) -> None:
    every, lost = folder.write_plan(tmp_path, plan((1,))), []

    def answer(point: Point, node: str) -> Answer | None:
        if point is every[0] and not lost:
            lost.append(point)
            return Answer(point, text="killed")
        return None

    assert nodes.run(tmp_path, every, Here(answer, A), quiet) == {"measured": 2}
    of = [(attempt.number, attempt.end) for attempt in folder.attempts(tmp_path) if attempt.point == every[0].key]
    assert of == [(1, "lost"), (2, "measured")]
    assert folder.failure(tmp_path, every[0]) is None


def test_what_is_lost_three_times_is_a_failure(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan((1,)))
    cluster = Here(lambda point, node: Answer(point, text="killed") if point is every[1] else None, A)
    assert nodes.run(tmp_path, every, cluster, quiet) == {"measured": 1, "failed": 1}
    record = folder.failure(tmp_path, every[1])
    assert record is not None
    assert (record.kind, record.attempts) == ("failed", 3)
    # Attempts go on where they were.
    assert nodes.run(tmp_path, every, Here(lambda point, node: None, A), quiet, retry=True) == {"measured": 1}
    of = [(attempt.number, attempt.end) for attempt in folder.attempts(tmp_path) if attempt.point == every[1].key]
    assert of == [(1, "lost"), (2, "lost"), (3, "lost"), (4, "measured")]


def test_the_points_of_a_lost_node_go_to_another_one(tmp_path: Path) -> None:
    """b is gone with its first point: of its cell both points are then measured on a."""
    every = folder.write_plan(tmp_path, plan())

    def answer(point: Point, node: str) -> Answer | None:
        if node == "b":
            cluster.gone.add("b")
            return Answer(point, text="gone")
        return None

    cluster = Here(answer, A, B)
    assert nodes.run(tmp_path, every, cluster, quiet) == {"measured": 6}
    assert [point.batch for node, point in cluster.begun if node == "b"] == [2]
    assert Counter(attempt.end for attempt in folder.attempts(tmp_path)) == {"measured": 6, "lost": 1}


def test_a_point_that_never_began_was_not_tried(tmp_path: Path) -> None:
    """Ray refuses tasks for a node that it has just lost."""
    every = folder.write_plan(tmp_path, plan((1, 2)))
    cluster = Here(lambda point, node: Answer(point, has_begun=False) if node == "b" else None, A, B)
    assert nodes.run(tmp_path, every, cluster, quiet) == {"measured": 4}
    assert [attempt.number for attempt in folder.attempts(tmp_path)] == [1] * 4


def test_without_a_node_the_next_call_goes_on(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan())

    def answer(point: Point, node: str) -> Answer | None:
        if point.batch == 2:
            cluster.gone.add("a")
            return Answer(point, text="gone")
        return None

    cluster = Here(answer, A)
    with pytest.raises(MeasurementError, match="4 points have no result"):
        nodes.run(tmp_path, every, cluster, quiet)
    assert [folder.is_done(tmp_path, point) for point in every] == [True] * 2 + [False] * 4
    assert nodes.run(tmp_path, every, Here(lambda point, node: None, B), quiet) == {"measured": 4}
    assert len(list((tmp_path / "points").iterdir())) == 6


def test_kinds_of_failures_are_those_of_the_node(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan((1,)))
    answer = {every[0]: Answer(every[0], kind="refused", text="512 positions")}
    assert nodes.run(tmp_path, every, Here(lambda p, node: answer.get(p), A), quiet) == {"refused": 1, "measured": 1}
    assert folder.failure(tmp_path, every[0]) == folder.Failure("refused", "512 positions", 1)


def test_a_line_that_was_cut_off_hides_no_other(tmp_path: Path) -> None:
    """The driver was killed while it wrote."""
    every = folder.write_plan(tmp_path, plan((1, 2)))
    nodes.run(tmp_path, every[:2], Here(lambda point, node: None, A), quiet)
    record = tmp_path / "attempts.jsonl"
    record.write_bytes(record.read_bytes()[:-9])
    nodes.run(tmp_path, every[2:], Here(lambda point, node: None, A), quiet)
    assert [attempt.point for attempt in folder.attempts(tmp_path)] == [every[0].key, every[2].key, every[3].key]


def test_what_is_said_of_an_attempt_is_bounded(tmp_path: Path) -> None:
    every = folder.write_plan(tmp_path, plan((1,)))
    nodes.run(tmp_path, every, Here(lambda point, node: Answer(point, kind="failed", text="x" * 5000), A), quiet)
    assert [len(attempt.text) for attempt in folder.attempts(tmp_path)] == [1000, 1000]
