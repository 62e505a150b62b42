"""Number the buffers that nodes of a TensorFlow graph read or write: one per value, shared by all its views.

A value is an output of a node. What only hands its input on shares that one's buffer; reading a variable shares the
variable's; a value that is assigned to a variable becomes its buffer, as it does when TensorFlow runs it; an update in
place writes the variable.

Reading a variable of which single rows are read or updated anywhere copies all of it: from the first such access on
TensorFlow keeps the variable in a mode in which nobody else may hold its buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofline.costs.counted import Access, Costed
from roofline.tensorflow.graph.bytes import shown
from roofline.tensorflow.graph.graph import Graph, Node, Source
from roofline.tensorflow.graph.tables import FORWARDING, GATHERS, RESOURCE_SCATTERS, base, update_rule

#: A value with its function: the names of two functions may be the same.
_Value = tuple[int, str, int]

_EACH_TO_ITS_OWN = frozenset(("IdentityN",))
#: Values that live longer than a step, or that nobody computes: a variable does not take their buffer over.
_GIVEN = frozenset(("Const", "Arg", "DeviceArg", "VarHandleOp", "Placeholder"))


class Buffers:
    """Numbers the buffers of the values of several graphs."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        """Follows all assignments at once."""
        self._graphs = graphs
        self._owner: dict[_Value, _Value] = {}
        self._numbers: dict[_Value, int] = {}
        self._by_rows: set[_Value] = set()
        for number, graph in enumerate(graphs):
            for node in graph:
                if node.inputs and _touches_rows(base(node.op)):
                    self._by_rows.add(self._root(number, node.inputs[0]))
        for number, graph in enumerate(graphs):
            for node in graph:
                if base(node.op) == "AssignVariableOp" and len(node.inputs) > 1:
                    self._assign(number, node)

    def of(self, function: int, node: Node, costed: Costed) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The buffers of a node's accesses: (reads, writes), aligned with those of `costed`."""
        return self._numbered(function, node, costed.reads), self._numbered(function, node, costed.writes)

    def copies(self, function: int, node: Node) -> bool:
        """Tell whether a node that reads a variable has to copy it."""
        if base(node.op) != "ReadVariableOp" or not node.inputs:
            return False
        return self._root(function, node.inputs[0]) in self._by_rows

    def lasting(self) -> set[int]:
        """The numbers of variables and constants, which live longer than a step."""
        return {number for value, number in self._numbers.items() if self._lasts(value)}

    def _lasts(self, value: _Value) -> bool:
        function, name, place = value
        node = None if function < 0 else self._graphs[function].by_name.get(name)
        if node is None:
            return function < 0
        handle = place < len(node.outputs) and node.outputs[place].handle
        return base(node.op) == "Const" or (base(node.op) in _GIVEN and handle)

    def _numbered(self, function: int, node: Node, accesses: Sequence[Access]) -> tuple[int, ...]:
        values = (node.inputs[place] if is_input else (node.name, place) for is_input, place, _ in accesses)
        return tuple(self._number(self._root(function, value)) for value in values)

    def _number(self, value: _Value) -> int:
        return self._numbers.setdefault(self._owner.get(value, value), len(self._numbers))

    def _root(self, function: int, value: Source) -> _Value:
        """The value whose buffer this is. Loops end at what they began with."""
        nodes = self._graphs[function].by_name
        visited = set()
        read: _Value | None = None
        while value not in visited:
            visited.add(value)
            node = nodes.get(value[0])
            if node is None:
                break
            plain = base(node.op)
            if plain == "VarHandleOp" and node.attrs.get("shared_name"):
                root = (-1, str(node.attrs["shared_name"]), 0)  # the same variable in every function
                return read if read is not None and root in self._by_rows else root
            source = shown(node)
            if source is not None and source < len(node.inputs):
                value = node.inputs[source]
                continue
            if plain not in FORWARDING or not node.inputs:
                break
            if plain == "ReadVariableOp":
                read = (function, *value)
            value = node.inputs[value[1] if plain in _EACH_TO_ITS_OWN else 0]
        root = (function, *value)
        return read if read is not None and root in self._by_rows else root

    def _assign(self, function: int, node: Node) -> None:
        variable, value = (self._root(function, node.inputs[place]) for place in (0, 1))
        producer = self._graphs[function].by_name.get(value[1])
        if producer is not None and base(producer.op) not in _GIVEN and value not in self._owner and value != variable:
            self._owner[value] = variable


def _touches_rows(op: str) -> bool:
    rule = update_rule(op)
    return (op in GATHERS and op.startswith("Resource")) or op in RESOURCE_SCATTERS or (rule is not None and rule[1])
