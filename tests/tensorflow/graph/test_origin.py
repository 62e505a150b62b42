"""What made a tensor, through chains of any length and in damaged graphs."""

from __future__ import annotations

import pytest

from roofline.tensorflow.graph.graph import Graph, Node
from roofline.tensorflow.graph.origin import constant, origin

LENGTH = 3000


def graph(first: Node) -> Graph:
    chain = (Node(f"copy {n}", "Identity", ((f"copy {n - 1}" if n else first.name, 0),)) for n in range(LENGTH))
    return Graph((first, *chain))


@pytest.mark.parametrize("op", ["OneHot", "Cast"])
def test_a_long_chain_is_followed_to_its_beginning(op: str) -> None:
    found = origin(graph(Node("first", op)), f"copy {LENGTH - 1}", ("Identity", "Cast"))
    assert found is not None
    assert found.op == op


def test_a_circle_ends() -> None:
    found = origin(graph(Node("first", "Identity", ((f"copy {LENGTH - 1}", 0),))), "first", ("Identity",))
    assert found is not None
    assert found.op == "Identity"


def test_what_is_not_there_has_no_origin_and_no_numbers() -> None:
    node = Node("node", "Cast", (("absent", 0), ("two", 0)))
    nodes = Graph((node, Node("two", "Const", attrs={"value": (2, 3)})))
    assert origin(nodes, "node", ("Cast",)) is None
    assert [constant(nodes, node, place) for place in (0, 1, 2)] == [(), (2, 3), ()]
