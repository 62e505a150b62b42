"""Model FLOPs of TensorFlow's graph mode: the contractions of the graph that the program wrote, before grappler.

Each is looked for among the nodes that ran: under its own name, or, where grappler fused it, under the name of what it
was fused into (`Conv2D`, `BiasAdd` and `Relu` run as one node `Relu`). One that was merged with an equal one or folded
into a constant has no such twin: it was asked for all the same, so a contraction beside it stands for it, and first of
all one that executes so much more than was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from statistics import median

from roofline.costs.counted import PHASES
from roofline.costs.repeated import repeated_once
from roofline.tensorflow.events import Ran
from roofline.tensorflow.graph import cost, one_hot, padded_products, recurrent, space_to_batch, zero_padding
from roofline.tensorflow.graph.graph import Function, Graphs, Node
from roofline.tensorflow.graph.recomputed import recomputed
from roofline.tensorflow.graph.tables import CONTRACTIONS, base
from roofline.tensorflow.places import Places
from roofline.tensorflow.scopes import canonical, path
from roofline.xla.names import at_home
from roofline.xla.scopes import Place

#: How many ops may lie between a contraction and the one it was fused into.
_HOPS = 8
_CLUSTERS = frozenset(("XlaRun", "XlaLaunch", "XlaLaunchV2"))
_CONDITIONAL = ("/then/_", "/else/_", "/body/_", "/branch")


@dataclass(frozen=True, slots=True)
class ModelContraction:
    """A contraction that the program asks for.

    name: with the numbers of loops and branches taken out. flops: of one execution, None where its shapes were not
    known. twin: the node that ran it, None where there is none. times: executions per step, None where nothing tells.
    """

    function: int
    name: str
    place: Place
    kind: str
    shapes: str
    flops: float | None
    twin: str | None
    times: float | None


@dataclass(frozen=True, slots=True)
class Model:
    """Hold what a step asks for.

    by_row: model FLOPs per step of the nodes that ran, by their place in the list of these. by_index: which of them are
    products with a one-hot matrix, for which none is asked.
    """

    contractions: tuple[ModelContraction, ...]
    by_row: Mapping[int, float]
    by_index: Set[int] = frozenset()

    @property
    def missing(self) -> tuple[ModelContraction, ...]:
        """Contractions without a twin: grappler merged them, folded them, or made something else of them."""
        return tuple(contraction for contraction in self.contractions if contraction.twin is None)

    def totals(self) -> dict[tuple[str, str, str], float]:
        """FLOPs per step by (phase, scope, kind), of the contractions whose FLOPs and executions are known."""
        sums: dict[tuple[str, str, str], float] = {}
        for contraction in self.contractions:
            if contraction.flops is not None and contraction.times:
                key = (PHASES[contraction.place.phase], contraction.place.scope or "", contraction.kind)
                sums[key] = sums.get(key, 0.0) + contraction.flops * contraction.times
        return sums


def assign(ran: Sequence[Ran], graphs: Graphs, places: Sequence[Places]) -> Model:
    """The contractions that the functions of a step ask for, and which of the nodes that ran stand for them.

    places: of the nodes of each function.
    """
    asked: list[ModelContraction] = []
    by_row: dict[int, float] = {}
    by_index: set[int] = set()
    alone = _alone(ran, graphs)
    for number, function in enumerate(graphs.functions):
        rows = {
            executed_node.node.name: row for row, executed_node in enumerate(ran) if executed_node.function == number
        }
        if rows and len(function.before):
            search = _Search(number, function, places[number], ran, rows, alone)
            asked += search.contractions()
            by_row |= search.by_row
            by_index |= search.by_index
    return Model(tuple(asked), by_row, by_index)


def _alone(ran: Sequence[Ran], graphs: Graphs) -> set[int]:
    """Find the nodes of which it is known which function ran them: none of their name is in others, or it is a part."""
    functions = Counter(node.name for function in graphs.functions for node in function.after)
    parts = Counter(executed_node.event for executed_node in ran)
    return {row for row, node in enumerate(ran) if functions[node.node.name] < 2 or parts[node.event] > 1}


def _contracts(node: Node) -> bool:
    return base(node.op) in CONTRACTIONS


def _is_conditional(name: str) -> bool:
    """Tell whether a node is in a loop or in a branch."""
    return any(mark in canonical(name) + "/" for mark in _CONDITIONAL)


class _Search:
    """Looks for the contractions of one function among its nodes that ran (`rows`: name -> place in `ran`)."""

    def __init__(
        self,
        number: int,
        function: Function,
        places: Places,
        ran: Sequence[Ran],
        rows: Mapping[str, int],
        alone: Set[int],
    ) -> None:
        """Nothing is assigned yet: a contraction that nobody asked for has none. alone: rows of no other function."""
        self._number, self._before, self._places = number, function.before, places
        self._ran, self._rows = ran, rows
        self._after = {canonical(node.name): node for node in function.after}
        self._consumers: dict[str, list[Node]] = {}
        for node in function.before:
            for source, _ in node.inputs:
                self._consumers.setdefault(source, []).append(node)
        self.by_row = {row: 0.0 for row in rows.values() if _contracts(ran[row].node)}
        #: Products with a one-hot matrix: they run, and stand for nothing that was asked for.
        self.by_index: set[int] = set()
        self._again: set[int] = set()
        self._clusters = any(base(node.op) in _CLUSTERS for node in function.after)
        # A step runs what is in no loop and in no branch as often as it calls the function.
        outside = [row for name, row in rows.items() if not _is_conditional(name)] or list(rows.values())
        outside = [row for row in outside if row in alone] or outside
        self._runs = float(round(median(ran[row].times for row in outside)))

    def contractions(self) -> list[ModelContraction]:
        """All contractions, with the model FLOPs put on the rows that stand for them."""
        asked = []
        repeated = recomputed(self._before)
        again = self._again_of_each(repeated)
        for node in filter(_contracts, self._before):
            if node.name in repeated and again[self._executed(node)]:
                again[self._executed(node)] -= 1
                self._repeats(node)
            elif one_hot.picks(node, self._before):
                self._leave_out(node)
            else:
                asked.append(self._asked(node))
        # What has a twin first: what is left then is what nobody asked for by name.
        for contraction in sorted(asked, key=lambda contraction: contraction.twin is None):
            if contraction.twin is not None:
                row = self._rows.get(contraction.twin)
            elif contraction.times is None and not self._clusters:
                row = self._renamed(contraction)
                times = None if row is None else self._ran[row].times
                asked[asked.index(contraction)] = contraction = replace(contraction, times=times)
            else:
                row = self._carrier(contraction)
            if row is not None and contraction.times:
                if contraction.flops is None:
                    self.by_row.pop(row, None)  # not known: what ran counts
                elif row in self.by_row:
                    self.by_row[row] += contraction.flops * contraction.times
        return asked

    def _again_of_each(self, repeated: Mapping[str, str]) -> Counter[float | None]:
        """Count, by their FLOPs, the contractions that are repeated beside the first one.

        Of a forward pass whose result nobody keeps only the repetition is there. repeated: what repeats each node.
        """
        first: Counter[float | None] = Counter()
        by_checkpoint: dict[str, Counter[float | None]] = {}
        for node in filter(_contracts, self._before):
            if node.name in repeated:
                by_checkpoint.setdefault(repeated[node.name], Counter())[self._executed(node)] += 1
            elif not path(node.name)[0]:
                first[self._executed(node)] += 1
        missing = repeated_once(by_checkpoint) - first
        return sum(by_checkpoint.values(), Counter[float | None]()) - missing

    def _executed(self, node: Node) -> float | None:
        """FLOPs of a contraction, None where they are not known: some shapes are known only where it runs."""
        flops, twin = cost.cost(node).cost.flops, self._twin(node)
        return flops if flops is not None or twin is None else cost.cost(twin).cost.flops

    def _repeats(self, node: Node) -> None:
        """Mark what runs a node: it was asked for where it ran first, and stands for nothing else."""
        twin = self._twin(node)
        row = None if twin is None else self._rows.get(twin.name)
        if row is not None:
            self._again.add(row)

    def _leave_out(self, node: Node) -> None:
        """Nothing is asked for of what runs a node."""
        twin = self._twin(node)
        row = None if twin is None else self._rows.get(twin.name)
        if row is not None:
            self.by_row.pop(row, None)
            self.by_index.add(row)

    def _asked(self, node: Node) -> ModelContraction:
        twin = self._twin(node)
        costed = cost.cost(node)
        flops = costed.cost.flops
        if flops is not None:
            for rule in (space_to_batch.flops, zero_padding.flops, padded_products.flops, recurrent.flops):
                asked = rule(node, self._before, self._consumers)
                if asked is not None:
                    flops = asked
                    break
        if twin is not None:
            row = self._rows.get(twin.name)
            times: float | None = 0.0 if row is None else self._ran[row].times  # a branch that was not taken
            if flops is None:
                flops = self._executed(node)
        else:
            # One that XLA took into a cluster is counted where the cluster's instructions are.
            times = None if self._clusters or _is_conditional(node.name) else self._runs
        return ModelContraction(
            function=self._number,
            name=canonical(node.name),
            place=self._places.of(twin or node),
            kind=costed.kind,
            shapes=costed.shapes,
            flops=flops,
            twin=None if twin is None else twin.name,
            times=times,
        )

    def _twin(self, node: Node) -> Node | None:
        """The node that runs it: the one of its name, else the fused one that has the name of what follows it."""
        current = node
        for _ in range(_HOPS):
            executed_node = self._after.get(canonical(current.name))
            if executed_node is not None:
                return (
                    executed_node
                    if _contracts(executed_node) and (current is node or executed_node.attrs.get("fused_ops"))
                    else None
                )
            following = self._consumers.get(current.name, [])
            if len(following) != 1:
                return None
            current = following[0]
        return None

    def _renamed(self, contraction: ModelContraction) -> int | None:
        """The contraction of the same place and work in a loop or branch that ran, and that nobody asked for by name.

        Grappler gave it a name of its own, as where it folds a transpose into a product; it runs as often as it was
        asked for.
        """
        return next(
            (
                row
                for row, asked in self.by_row.items()
                if not asked
                and row not in self._again
                and self._places.of(self._ran[row].node) == contraction.place
                and cost.cost(self._ran[row].node).cost.flops == contraction.flops
            ),
            None,
        )

    def _carrier(self, contraction: ModelContraction) -> int | None:
        """The contraction that stands for one that is gone.

        The nearest that executes so much more than was asked for, else the largest: of its scope and phase, else of its
        phase.
        """

        def nearness(row: int) -> tuple[bool, bool, bool, int, float]:
            place = self._places.of(self._ran[row].node)
            phase = place.phase == contraction.place.phase
            does_more = phase and self._does_more(row, contraction)
            shared = (
                at_home((contraction.place.scope or "").split("/"), [(place.scope or "").split("/")])
                if does_more
                else 0
            )
            return does_more, place == contraction.place, phase, shared, self.by_row[row]

        return max((row for row in self.by_row if row not in self._again), key=nearness, default=None)

    def _does_more(self, row: int, contraction: ModelContraction) -> bool:
        """Tell whether a row executes so many FLOPs that nobody asked for yet; any, where it is not known how many."""
        executed = cost.cost(self._ran[row].node).cost.flops
        if executed is None or contraction.times is None:
            return False
        if contraction.flops is None:
            return not self.by_row[row]
        return executed * self._ran[row].times - self.by_row[row] >= contraction.flops * contraction.times > 0
