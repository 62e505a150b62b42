"""Carries over from the eager step what a compiled one does not know: the layer of every op, and the model FLOPs.

A compiled step runs no module hooks, and its products may be merged, repeated or turned into something else. Its
eager twin (the same step, dispatched op by op) is counted beside it. Both are sequences of ops that touch the same
weights in about the same order, so scopes are carried over by buffers first, by order second, and by data last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from roofline.core.vocabulary import PRODUCTS
from roofline.costs.counted import PHASES, Costed, Counted
from roofline.pytorch.eager_model_flops import with_model_flops
from roofline.traces.alignment import align

__all__ = ["VARIES", "varies", "with_model_flops", "with_scopes"]

_FORWARD, _BACKWARD, _OPTIMIZER = map(PHASES.index, ("forward", "backward", "optimizer"))
#: Matched before all others: compilers keep them, and there are few of them.
_ANCHORS = frozenset(("contraction", "attention", "normalisation", "softmax", "embedding"))

#: A buffer as one write left it: (storage, number of the write; 0: as the step found it).
_Version = tuple[int, int]


#: Set where each step asks for another amount of work.
VARIES = "shapes-vary"


def varies(counted: Counted, eager: Counted, count_again: Callable[[], Counted]) -> bool:
    """Tell whether each step asks for another amount of work, so that the eager step is no twin of the compiled one.

    count_again: counts one more eager step. Two of them tell, where the forward pass executes not what was asked for:
    steps that take two amounts in turn could show the same one twice.
    """
    asked = _of_forward(eager, "model_flops")
    if asked == _of_forward(counted, "flops"):
        return False
    return any(_of_forward(count_again(), "model_flops") != asked for _ in range(2))


def _of_forward(counted: Counted, amount: str) -> float:
    rows = np.flatnonzero(counted.phase == _FORWARD).tolist()
    return float(sum(getattr(counted.ops[row].costed.cost, amount) or 0.0 for row in rows))


# Scopes


def with_scopes(
    counted: Counted, eager: Counted, is_placed: NDArray[np.bool_] | None = None, shared: bool = False
) -> Counted:
    """Give the ops of `counted` that have no scope of their own those of `eager`.

    is_placed: ops whose scope stands; by default those with a scope that is not the outermost. shared: both runs were
    recorded together, so that one storage number is one buffer in both. The optimizer's ops keep their scope. For the
    others, the first rule that says something holds:

    1. weight: an op that reads a buffer which the step never writes and of which the forward pass of one layer alone
       reads is that layer's (with `shared` as the eager step tells it, else by the ops whose scope is known);
    2. sibling: in the backward pass, a product or sum that reads the same gradient (or a copy of it) as a product
       that rule 1 placed: the gradient of a weight belongs with that of the layer's input;
    3. order: per phase, products, attention, norms, softmax and lookups are aligned with the eager ones by work, the
       ops between two such by kind and shapes, then by kind, at last whatever their order;
    4. data: the layer that wrote what the op reads (in the backward pass: that wrote the gradient), else the one that
       reads what it writes, as for a mask that the compiled program builds and the eager one does not;
    5. place: the nearest op before in the phase, else after it, else the outermost scope.
    """
    names, place = _merged(counted.scopes, eager.scopes)
    theirs = place[eager.scope] if len(eager.scope) else np.zeros(0, np.int64)
    if is_placed is None:
        is_placed = np.asarray([bool(counted.scopes[scope]) for scope in counted.scope.tolist()], bool)
    mine = np.where(is_placed | (counted.phase == _OPTIMIZER), counted.scope, -1)
    buffers, eager_buffers = _buffers(counted), _buffers(eager)
    weights = _Weights(buffers.written | eager_buffers.written if shared else buffers.written)
    weights.learn(counted, buffers, mine)
    if shared:
        weights.learn(eager, eager_buffers, theirs)
        weights.forget(_readers(counted, buffers), _readers(eager, eager_buffers))
    mine = _siblings(counted, buffers, weights.place(counted, buffers, mine))
    tags = None
    if shared:
        tags = _siblings(eager, eager_buffers, weights.place(eager, eager_buffers, np.full(len(theirs), -1, np.int64)))
    for phase in (_FORWARD, _BACKWARD):
        mine = _by_order(counted, mine, eager, theirs, tags, phase)
    mine = _by_data(counted, buffers, mine)
    for phase in range(len(PHASES)):
        rows = np.flatnonzero(counted.phase == phase)
        mine[rows] = _nearest(mine[rows])
    if (mine < 0).any() and "" not in names:
        names = (*names, "")
    return replace(counted, scopes=names, scope=np.where(mine < 0, names.index("") if "" in names else 0, mine))


def _merged(first: Sequence[str], second: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Merge two tables of names: those of the first keep their places; also return where the second's are."""
    table = {name: number for number, name in enumerate(first)}
    place = [table.setdefault(name, len(table)) for name in second]
    return tuple(table), np.asarray(place, np.int64)


@dataclass(slots=True)
class _Buffers:
    """Holds which write of which buffer each op reads and makes.

    A copy has the version of what it copies, as long as that is one. written: buffers that the passes write.
    writer: the op that made a version.
    """

    reads: list[tuple[_Version, ...]] = field(default_factory=list)
    writes: list[tuple[_Version, ...]] = field(default_factory=list)
    written: set[int] = field(default_factory=set)
    writer: dict[_Version, int] = field(default_factory=dict)


def _buffers(counted: Counted) -> _Buffers:
    buffers = _Buffers()
    number: dict[int, int] = {}
    copied: dict[_Version, _Version] = {}
    for row, op in enumerate(counted.ops):
        reads = tuple((storage, number.get(storage, 0)) for storage in op.reads if storage >= 0)
        reads = tuple(copied.get(version, version) for version in reads)
        writes = []
        for storage in op.writes:
            if storage < 0:
                continue
            number[storage] = number.get(storage, 0) + 1
            version = (storage, number[storage])
            if op.costed.op_class == "movement" and len(reads) == 1:
                copied[version] = reads[0]
            buffers.writer[version] = row
            writes.append(version)
        buffers.reads.append(reads)
        buffers.writes.append(tuple(writes))
        if counted.phase[row] != _OPTIMIZER:
            buffers.written.update(op.writes)
    return buffers


class _Weights:
    """Knows which layer reads a buffer that the passes do not write, itself or a copy of it (as autocast makes).

    A weight that two layers share is told apart by the class of the op that reads it (a lookup or a product).
    """

    def __init__(self, written: set[int]) -> None:
        self._written = written
        self._scopes: dict[tuple[int, str | None], set[int]] = {}

    def learn(self, counted: Counted, buffers: _Buffers, scope: NDArray[np.int64]) -> None:
        for row in np.flatnonzero((counted.phase == _FORWARD) & (scope >= 0)).tolist():
            for storage, _ in buffers.reads[row]:
                if storage not in self._written:
                    for key in ((storage, counted.ops[row].costed.op_class), (storage, None)):
                        self._scopes.setdefault(key, set()).add(int(scope[row]))

    def forget(self, ours: Counter[int], theirs: Counter[int]) -> None:
        """Drop what either step does not read, and what more ops read than in the eager step.

        A frozen graph keeps equal constants (biases of 0, say) once.
        """
        self._scopes = {key: scopes for key, scopes in self._scopes.items() if 0 < ours[key[0]] <= theirs[key[0]]}

    def place(self, counted: Counted, buffers: _Buffers, scope: NDArray[np.int64]) -> NDArray[np.int64]:
        """Apply rule 1 to the ops without a scope (-1)."""
        result = scope.copy()
        for row in np.flatnonzero((scope < 0) & (counted.phase != _OPTIMIZER)).tolist():
            kinds = (counted.ops[row].costed.op_class, None)
            candidates = (self._scopes.get((storage, kind), ()) for kind in kinds for storage, _ in buffers.reads[row])
            result[row] = next((next(iter(scopes)) for scopes in candidates if len(scopes) == 1), -1)
        return result


def _readers(counted: Counted, buffers: _Buffers) -> Counter[int]:
    """Count the ops of the forward pass, copies aside, that read each buffer or a copy of it."""
    forward = np.flatnonzero(counted.phase == _FORWARD).tolist()
    rows = [row for row in forward if counted.ops[row].costed.op_class != "movement"]
    return Counter(storage for row in rows for storage in {storage for storage, _ in buffers.reads[row]})


def _siblings(counted: Counted, buffers: _Buffers, scope: NDArray[np.int64]) -> NDArray[np.int64]:
    """Apply rule 2 to the ops of the backward pass that have no scope."""
    backward = np.flatnonzero(counted.phase == _BACKWARD).tolist()
    readers: dict[_Version, set[int]] = {}
    for row in backward:
        if scope[row] >= 0 and counted.ops[row].costed.op_class == "contraction":
            for version in _gradients(counted, buffers, row):
                readers.setdefault(version, set()).add(int(scope[row]))
    result = scope.copy()
    for row in backward:
        if scope[row] < 0 and counted.ops[row].costed.op_class in ("contraction", "reduction"):
            versions = _gradients(counted, buffers, row)
            scopes_of_gradients = [readers[version] for version in versions if version in readers]
            if len(scopes_of_gradients) == 1 and len(scopes_of_gradients[0]) == 1:
                result[row] = next(iter(scopes_of_gradients[0]))
    return result


def _gradients(counted: Counted, buffers: _Buffers, row: int) -> list[_Version]:
    """List the versions that an op reads and that the backward pass wrote."""
    written_versions = ((version, buffers.writer.get(version, -1)) for version in buffers.reads[row])
    return [version for version, writer in written_versions if writer >= 0 and counted.phase[writer] == _BACKWARD]


# Order

_Key = Callable[[Costed], object]


def _work(costed: Costed) -> object:
    if costed.op_class in PRODUCTS:
        return costed.op_class, costed.cost.flops
    return _kind(costed), costed.shapes


def _kind_and_shapes(costed: Costed) -> object:
    return _kind(costed), costed.shapes


#: One thing under several names: eager dropout on a CPU draws its mask and multiplies by it, and so it does backward.
_SAME_KIND = {"bernoulli": "dropout", "dropout_backward": "mul"}


def _kind(costed: Costed) -> str:
    if costed.op_class in PRODUCTS:
        return costed.op_class
    plain = costed.kind.removeprefix("native_")
    return _SAME_KIND.get(plain, plain)


#: How ops are compared in order, the surest first: (anchors alone, what must be equal, among those of one tag).
_LEVELS: tuple[tuple[bool, _Key, bool], ...] = (
    (True, _work, True),
    (True, _work, False),
    (True, _kind, False),
    (False, _kind_and_shapes, True),
    (False, _kind_and_shapes, False),
    (False, _kind, False),
)


def _by_order(
    counted: Counted,
    mine: NDArray[np.int64],
    eager: Counted,
    theirs: NDArray[np.int64],
    tags: NDArray[np.int64] | None,
    phase: int,
) -> NDArray[np.int64]:
    """Apply rule 3 to the ops of a phase: return `mine` with the scopes of matched eager ops.

    tags: the scopes of the eager ops that the first rules can place; those of both sides are matched with each other
    first.
    """
    rows, eager_rows = np.flatnonzero(counted.phase == phase), np.flatnonzero(eager.phase == phase)
    ops = [counted.ops[row].costed for row in rows.tolist()]
    eager_ops = [eager.ops[row].costed for row in eager_rows.tolist()]
    tags_of_rows = mine[rows] if tags is not None else np.full(len(rows), -1, np.int64)
    tags_of_eager = tags[eager_rows] if tags is not None else np.full(len(eager_rows), -1, np.int64)
    pairs: list[tuple[int, int]] = []
    fixed = pairs
    for anchors, key, tagged in _LEVELS:
        codes: dict[object, int] = {}
        a = _codes(ops, tags_of_rows if tagged else np.zeros_like(tags_of_rows), key, codes)
        b = _codes(eager_ops, tags_of_eager if tagged else np.zeros_like(tags_of_eager), key, codes)
        chosen, eager_chosen = _chosen(ops, anchors), _chosen(eager_ops, anchors)
        ends = [*pairs, (len(ops), len(eager_ops))]
        begin = (-1, -1)
        for end in ends:
            i = chosen[(chosen > begin[0]) & (chosen < end[0])]
            j = eager_chosen[(eager_chosen > begin[1]) & (eager_chosen < end[1])]
            if len(i) and len(j):
                twin = align(a[i], b[j])
                aligned = np.flatnonzero(twin >= 0)
                pairs = [*pairs, *zip(i[aligned].tolist(), j[twin[aligned]].tolist(), strict=True)]
            begin = end
        pairs = sorted(
            (i, j) for i, j in set(pairs) if mine[rows[i]] < 0 or theirs[eager_rows[j]] == mine[rows[i]]
        )  # an op whose scope is known is no anchor beside one of another scope
        fixed = pairs if anchors else fixed
    matched = {i for i, _ in pairs} | set(np.flatnonzero(mine[rows] >= 0).tolist())
    eager_matched = {j for _, j in pairs} | set(np.flatnonzero(tags_of_eager >= 0).tolist())
    result = mine.copy()
    for row, twin_row in [*pairs, *_out_of_order(ops, eager_ops, matched, eager_matched, fixed)]:
        if result[rows[row]] < 0:
            result[rows[row]] = theirs[eager_rows[twin_row]]
    return result


def _out_of_order(
    ops: Sequence[Costed],
    eager_ops: Sequence[Costed],
    matched: set[int],
    eager_matched: set[int],
    fixed: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Match the remaining ops between two anchors (`fixed`) whatever their order: by kind and shapes, then by kind.

    matched, eager_matched: positions in `ops` and `eager_ops` that are no longer to be matched.
    """
    pairs: list[tuple[int, int]] = []
    matched, eager_matched = set(matched), set(eager_matched)
    begin = (-1, -1)
    for end in [*fixed, (len(ops), len(eager_ops))]:
        for key in (_kind_and_shapes, _kind):
            waiting: dict[object, list[int]] = {}
            for j in range(begin[1] + 1, end[1]):
                if j not in eager_matched:
                    waiting.setdefault(key(eager_ops[j]), []).append(j)
            for i in range(begin[0] + 1, end[0]):
                candidates = waiting.get(key(ops[i])) if i not in matched else None
                if candidates:
                    pairs.append((i, candidates.pop(0)))
                    matched.add(i)
                    eager_matched.add(pairs[-1][1])
        begin = end
    return pairs


def _codes(costed: Iterable[Costed], tags: NDArray[np.int64], key: _Key, codes: dict[object, int]) -> NDArray[np.int64]:
    named = zip(costed, tags.tolist(), strict=True)
    return np.asarray([codes.setdefault((key(op), tag), len(codes)) for op, tag in named], np.int64)


def _chosen(costed: Sequence[Costed], anchors: bool) -> NDArray[np.int64]:
    return np.asarray([i for i, op in enumerate(costed) if not anchors or op.op_class in _ANCHORS], np.int64)


# Data and place


def _by_data(counted: Counted, buffers: _Buffers, scope: NDArray[np.int64]) -> NDArray[np.int64]:
    """Apply rule 4: by producers in order, then by consumers in reverse, then by producers again."""
    result = scope.copy()
    reader: dict[_Version, list[int]] = {}
    for row, versions in enumerate(buffers.reads):
        for version in versions:
            reader.setdefault(version, []).append(row)

    def from_producers(row: int) -> int:
        writers = [buffers.writer[version] for version in buffers.reads[row] if version in buffers.writer]
        of_phase = [writer for writer in writers if counted.phase[writer] == counted.phase[row]]
        return next((int(result[writer]) for writer in reversed(of_phase or writers) if result[writer] >= 0), -1)

    def from_consumers(row: int) -> int:
        consumers = (consumer for version in buffers.writes[row] for consumer in reader.get(version, ()))
        consumers = (consumer for consumer in consumers if counted.phase[consumer] != _OPTIMIZER)
        return next((int(result[consumer]) for consumer in consumers if result[consumer] >= 0), -1)

    order = range(len(counted.ops))
    for rows, rule in ((order, from_producers), (reversed(order), from_consumers), (order, from_producers)):
        for row in rows:
            if result[row] < 0:
                result[row] = rule(row)
    return result


def _nearest(scope: NDArray[np.int64]) -> NDArray[np.int64]:
    """Apply rule 5 to the ops of one phase."""
    placed = np.flatnonzero(scope >= 0)
    if not len(placed):
        return scope
    before = np.searchsorted(placed, np.arange(len(scope)), side="right") - 1
    return scope[placed[np.maximum(before, 0)]]
