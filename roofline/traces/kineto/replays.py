"""Find the op that owns a kernel replayed from a graph.

A replay shows one launch for all kernels of its graph and no op for any of them. A second run of the same program
without graphs, the reference, shows the same kernels in the same order, each with its op. The two are matched by order
and name; the times stay those of the replay.

Nothing is guessed. A kernel is matched only where every way to lay the replay over the reference says the same:

1. Each graph is a stretch of the reference. All stretches of a stream are laid in order as early as possible and as
   late as possible; a graph that lands in one place both times is there.
2. Between two such graphs lie eager kernels and graphs that differ from the reference by a kernel or two. Of all
   longest common subsequences there, the pairs that are in every one of them count. A layer that is repeated once less
   often than in the reference can thus not be matched with its neighbour's ops: it can be left out at several places.

Everything else is left without an op, for the caller to count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import NDArray

from roofline.traces.kineto.events import decoded
from roofline.traces.kineto.links import Links
from roofline.traces.kineto.reader import KinetoTrace
from roofline.traces.rows import Rows

#: Kernels of the replay times kernels of the reference, beyond which two stretches that differ are not compared.
MAX_CELLS = 2**26


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """Device events of one or several steps, in order of start, as int64 columns of one length.

    key: what is compared, the name (with grid and block where both runs record them), numbered alike in both runs.
    stream: numbered alike in both runs where (device, stream) are the same. step: which step. launch: the graph
    launch that replayed it, -1 for a kernel that an op launched. node: its node of the graph, -1 where not recorded.
    """

    key: Rows
    stream: Rows
    step: Rows
    launch: Rows
    node: Rows

    def __len__(self) -> int:
        return len(self.key)

    def select(self, rows: Rows) -> Kernels:
        """The given rows, in that order."""
        return Kernels(self.key[rows], self.stream[rows], self.step[rows], self.launch[rows], self.node[rows])


def owners(replayed: Kernels, reference: Kernels, owner: Rows, hosts: Rows | None = None) -> Rows:
    """int64[replayed]: who owns each kernel of the replayed steps, -1 where that is not certain.

    reference: the kernels of one step without graphs; owner: who owns each of them, -1 for none. hosts: who owns each
    kernel of the replayed steps by its own launch, -1 for none, as for all that a graph launched. It stands in for an
    eager kernel that order does not place, as long as the reference has a kernel of that name and owner to spare: the
    copies into a graph's fixed inputs look like ops of the reference, and are not.
    """
    place = positions(replayed, reference)
    owners_found = np.append(owner, -1)[place]
    if hosts is None:
        return owners_found
    for step in np.unique(replayed.step).tolist():
        in_step = replayed.step == step
        free = np.setdiff1d(np.arange(len(reference)), place[in_step])
        rows = np.flatnonzero(in_step & (place < 0) & (replayed.launch < 0) & (hosts >= 0))
        wanted = np.stack([replayed.key[rows], hosts[rows]])
        spare = np.stack([reference.key[free], owner[free]])
        _, code = np.unique(np.concatenate([wanted, spare], axis=1), axis=1, return_inverse=True)
        code = code.ravel()
        asked = np.bincount(code[: len(rows)], minlength=len(code))
        available = np.bincount(code[len(rows) :], minlength=len(code))
        fits = (asked <= available)[code[: len(rows)]]
        owners_found[rows[fits]] = hosts[rows[fits]]
    return owners_found


def positions(replayed: Kernels, reference: Kernels) -> Rows:
    """int64[replayed]: the kernel of the reference that each kernel of the replayed steps repeats, -1 if not certain.

    A node of a graph is the same kernel in every replay: what one step tells holds for all, and where two steps
    contradict each other none is believed.
    """
    place = np.full(len(replayed), -1, np.int64)
    place_of: dict[tuple[bytes, ...], Rows] = {}
    for step in np.unique(replayed.step).tolist():
        rows = np.flatnonzero(replayed.step == step)
        kernels = replayed.select(rows)
        _, launch = np.unique(kernels.launch, return_inverse=True)
        signature = (kernels.key.tobytes(), kernels.stream.tobytes(), launch.tobytes(), (kernels.launch < 0).tobytes())
        if signature not in place_of:  # most steps are alike
            place_of[signature] = _step(kernels, reference)
        place[rows] = place_of[signature]
    return _by_node(replayed, reference, place)


def _step(replayed: Kernels, reference: Kernels) -> Rows:
    """`positions` for the kernels of one step, stream by stream.

    Streams are paired by what they hold. A stream of the reference that is left over, because the replay shows the
    branches of a graph as one stream, is looked for among what its graphs still lack.
    """
    place = np.full(len(replayed), -1, np.int64)
    unplaced = np.ones(len(replayed), bool)
    unused = set(np.unique(reference.stream).tolist())
    for once_more in (False, True):
        for stream, reference_stream in _pairs(replayed.select(np.flatnonzero(unplaced)), reference, unused):
            mine = np.flatnonzero(unplaced & (replayed.stream == stream))
            theirs = np.flatnonzero(reference.stream == reference_stream)
            matched = _stream(replayed.key[mine], replayed.launch[mine], reference.key[theirs])
            place[mine] = np.where(matched >= 0, theirs[matched], -1)
            unused.discard(reference_stream)
        unplaced = (place < 0) & (replayed.launch >= 0)
        if once_more or not unplaced.any():
            break
    return place


def _pairs(replayed: Kernels, reference: Kernels, unused: set[int]) -> list[tuple[int, int]]:
    """Streams of the replay and of the reference that hold the most kernels of the same keys, most first.

    Of equally good partners the one of the same number is taken; where that does not decide, none.
    """
    rows = np.flatnonzero(np.isin(reference.stream, sorted(unused)))
    mine, my = np.unique(replayed.stream, return_inverse=True)
    theirs, their = np.unique(reference.stream[rows], return_inverse=True)
    keys, key = np.unique(np.concatenate([replayed.key, reference.key[rows]]), return_inverse=True)
    held = [
        np.bincount(stream * len(keys) + code, minlength=count * len(keys)).reshape(count, len(keys))
        for stream, code, count in ((my, key[: len(my)], len(mine)), (their, key[len(my) :], len(theirs)))
    ]
    # Twice the common kernels, and one for the same number: a number alone decides nothing else.
    score = (
        np.stack([np.minimum(held_by_stream, held[1]).sum(axis=1) for held_by_stream in held[0]])
        if len(mine)
        else np.zeros((0, 0))
    )
    score = np.where(score > 0, 2 * score + (mine[:, None] == theirs[None, :]), 0)
    pairs = []
    while score.size and score.max() > 0:
        row, column = np.unravel_index(int(score.argmax()), score.shape)
        best = score[row, column]
        rivals = (score[row] == best).sum() + (score[:, column] == best).sum() - 2
        if not rivals:
            pairs.append((int(mine[row]), int(theirs[column])))
            score[row], score[:, column] = 0, 0
        elif (score[row] == best).sum() > 1:
            score[row] = 0
        else:
            score[:, column] = 0
    return pairs


def _stream(keys: Rows, launch: Rows, reference: Rows) -> Rows:
    """int64[keys]: the place of each kernel of one stream in the reference's stream, -1 where not certain."""
    if np.array_equal(keys, reference):
        return np.arange(len(keys))
    place = np.full(len(keys), -1, np.int64)
    low = reference_low = 0  # what lies before is done
    for first, last, at in _graphs(keys, launch, reference):
        place[low:first] = _shifted(certain(keys[low:first], reference[reference_low:at]), reference_low)
        rows = first + np.flatnonzero(launch[first : last + 1] == launch[first])
        place[rows] = at + np.arange(len(rows))
        low, reference_low = last + 1, at + len(rows)
    place[low:] = _shifted(certain(keys[low:], reference[reference_low:]), reference_low)
    return place


def _shifted(place: Rows, by: int) -> Rows:
    return np.where(place >= 0, place + by, -1)


def _graphs(keys: Rows, launch: Rows, reference: Rows) -> list[tuple[int, int, int]]:
    """(first row, last row, place in the reference) of the graphs whose place is certain, in order of time.

    Empty where the graphs found in the reference do not lie there in the order of the replay.
    """
    numbers, begin = np.unique(launch, return_index=True)
    numbers = numbers[np.argsort(begin)]
    spans: list[tuple[int, int]] = []
    places: list[Rows] = []
    lengths: list[int] = []
    for number in numbers[numbers >= 0].tolist():
        rows = np.flatnonzero(launch == number)
        at = occurrences(keys[rows], reference)
        # Graphs of one stream run one after the other; two that are interleaved are a trace that cannot be right.
        if len(at) and (not spans or rows[0] > spans[-1][1]):
            spans.append((int(rows[0]), int(rows[-1])))
            places.append(at)
            lengths.append(len(rows))
    early, late, end = [], [], 0
    for at, length in zip(places, lengths, strict=True):
        next_one = np.searchsorted(at, end)
        if next_one == len(at):
            return []
        early.append(int(at[next_one]))
        end = early[-1] + length
    end = len(reference)
    for at, length in zip(places[::-1], lengths[::-1], strict=True):
        late.append(int(at[np.searchsorted(at, end - length, "right") - 1]))
        end = late[-1]
    bounds = zip(spans, early, late[::-1], strict=True)
    return [(first, last, at) for (first, last), at, latest in bounds if at == latest]


def occurrences(stretch: Rows, sequence: Rows) -> Rows:
    """Find all places at which `sequence` holds `stretch`, in order: int64; none where either is empty."""
    if not 0 < len(stretch) <= len(sequence):
        return np.zeros(0, np.int64)
    # The key that is rarest in the sequence leaves the fewest places to look at.
    keys, codes = np.unique(np.concatenate([stretch, sequence]), return_inverse=True)
    frequency = np.bincount(codes[len(stretch) :], minlength=len(keys))[codes[: len(stretch)]]
    rarest = int(frequency.argmin())
    at = np.flatnonzero(sequence == stretch[rarest]) - rarest
    at = at[(at >= 0) & (at + len(stretch) <= len(sequence))]
    alike = [bool(np.array_equal(sequence[place : place + len(stretch)], stretch)) for place in at.tolist()]
    matches: Rows = at[np.asarray(alike, bool)]
    return matches


def certain(keys: Rows, reference: Rows) -> Rows:
    """Pair each key with its place in `reference` in every longest common subsequence: int64[keys], else -1.

    Each longest common subsequence has one first pair, one second pair, and so on. A pair is in all of them exactly
    if it is the only one that can be the n-th. O(len(keys) * len(reference)), by rows; beyond MAX_CELLS all are -1.
    """
    place = np.full(len(keys), -1, np.int64)
    n, m = len(keys), len(reference)
    if np.array_equal(keys, reference):
        return np.arange(n)
    in_reference, in_keys = np.isin(keys, reference), np.isin(reference, keys)
    if not (in_reference.all() and in_keys.all()):  # what the reference lacks is in no common subsequence
        mine, theirs = np.flatnonzero(in_reference), np.flatnonzero(in_keys)
        common = certain(keys[mine], reference[theirs])
        place[mine[common >= 0]] = theirs[common[common >= 0]]
        return place
    if not n or n * m > MAX_CELLS:
        return place
    # before[i, j]: the longest common subsequence of keys[:i] and reference[:j].
    before = np.zeros((n + 1, m + 1), np.int16 if min(n, m) < 2**15 else np.int32)
    for i in range(n):
        step = before[i, :-1] + (reference == keys[i])
        before[i + 1, 1:] = np.maximum.accumulate(np.maximum(before[i, 1:], step))
    longest = int(before[n, m])
    after = np.zeros(m + 1, before.dtype)  # that of keys[i:] and reference[j:], row by row from the end
    count, partner = np.zeros((2, longest), np.int64)
    row = np.full(longest, -1, np.int64)
    for i in range(n - 1, -1, -1):
        alike = reference == keys[i]
        usable = np.flatnonzero(alike & (before[i, :-1] + after[1:] + 1 == longest))
        rank = before[i, usable]
        count += np.bincount(rank, minlength=longest)
        row[rank], partner[rank] = i, usable
        later = np.maximum(after[:-1], after[1:] + alike)
        after[:-1] = np.maximum.accumulate(later[::-1])[::-1]
    only = count == 1
    place[row[only]] = partner[only]
    return place


def _by_node(replayed: Kernels, reference: Kernels, place: Rows) -> Rows:
    """Places completed, or taken back, by what other replays of the same node say."""
    rows = np.flatnonzero(replayed.node >= 0)
    if not len(rows):
        return place
    named = np.stack([replayed.node[rows], _calls(replayed.select(rows)), replayed.key[rows]])
    nodes, node = np.unique(named, axis=1, return_inverse=True)
    node = node.ravel()
    least = np.full(nodes.shape[1], len(reference))
    greatest = np.full(nodes.shape[1], -1)
    placed = place[rows] >= 0
    np.minimum.at(least, node[placed], place[rows][placed])
    np.maximum.at(greatest, node[placed], place[rows][placed])
    place = place.copy()
    place[rows] = np.where(least == greatest, greatest, -1)[node]
    # Two kernels of a step cannot be one of the reference.
    pairs = np.stack([replayed.step, place])
    _, code, times = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
    return np.where(times[code.ravel()] == 1, place, -1)


def _calls(replayed: Kernels) -> Rows:
    """Count the launches of each kernel's graph in this step before: its second launch is another call.

    Launches with a node in common are of one graph.
    """
    launches, launch = np.unique(replayed.launch, return_inverse=True)
    nodes, node = np.unique(replayed.node, return_inverse=True)
    graph = np.arange(len(launches))
    while True:
        of_node = np.full(len(nodes), len(launches))
        np.minimum.at(of_node, node, graph[launch])
        least = graph.copy()
        np.minimum.at(least, launch, of_node[node])
        if np.array_equal(least, graph):
            break
        graph = least
    calls, call = np.unique(np.stack([replayed.step, graph[launch], launch]), axis=1, return_inverse=True)
    first = np.ones(calls.shape[1], bool)
    first[1:] = (np.diff(calls[:2], axis=1) != 0).any(axis=0)
    begins = np.flatnonzero(first)
    before: Rows = (np.arange(len(first)) - begins[np.cumsum(first) - 1])[call.ravel()]
    return before


# Trace -> columns


class _Recorded(msgspec.Struct, gc=False):
    """Hold what a device event records beyond its name."""

    grid: msgspec.Raw = msgspec.Raw(b"")
    block: msgspec.Raw = msgspec.Raw(b"")
    node: msgspec.Raw = msgspec.field(default=msgspec.Raw(b""), name="graph node id")


_NO_SHAPE = (b"", b"null", b"[]", b"[0,0,0]")
_NO_NODE = (b"", b"null", b"0")  # 0 is that of a kernel outside a graph
_LONGEST = 64  # characters of a grid, a block or an id; what is longer is damage and need not be told apart

Run = tuple[KinetoTrace, Links, Rows, Rows]  # a trace, its links, the step of each device event, the rows wanted


def columns(replayed: Run, reference: Run) -> tuple[Kernels, Kernels]:
    """The device events `rows` of two traces as columns that can be compared.

    Both are given as (trace, its links, the step of each device event, rows in order of start). Grid and block count
    for the names of which both traces record them throughout: a graph of HIP records none. They do not where no launch
    of a name has the same in both: a generated kernel that is tuned when it first runs, may be tuned in another way.
    """
    runs = (replayed, reference)
    sizes = [len(rows) for *_, rows in runs]
    names = _shared([[name.removesuffix(".kd") for name in trace.names] for trace, *_ in runs])  # ".kd" in graphs only
    threads = _shared([trace.threads for trace, *_ in runs])
    name = np.concatenate(
        [codes[trace.device.name[rows]] for codes, (trace, _, _, rows) in zip(names, runs, strict=True)]
    )
    recorded = [_recorded([trace.device.args[row] for row in rows.tolist()]) for trace, _, _, rows in runs]
    grid, block, node = (np.concatenate(texts) for texts in zip(*recorded, strict=True))
    bare = np.isin(name, name[np.isin(grid, _NO_SHAPE) | np.isin(block, _NO_SHAPE)])
    shape = [np.where(bare, 0, np.unique(text, return_inverse=True)[1]) for text in (grid, block)]
    key = _coded(name, *shape)
    in_both = np.isin(key, np.intersect1d(key[: sizes[0]], key[sizes[0] :]))
    tuned = ~np.isin(name, name[in_both])
    key = _coded(name, *(np.where(tuned, 0, dimension) for dimension in shape))
    node = np.where(np.isin(node, _NO_NODE), -1, np.unique(node, return_inverse=True)[1])
    at = np.split(np.arange(sum(sizes)), sizes[:1])
    kernels = [
        Kernels(key[part], codes[trace.device.thread[rows]], step[rows], _by_graph(links)[rows], node[part])
        for part, codes, (trace, links, step, rows) in zip(at, threads, runs, strict=True)
    ]
    return kernels[0], kernels[1]


def _coded(*columns: Rows) -> Rows:
    """A number for each row of the columns, the same for equal rows."""
    codes: Rows = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].ravel()
    return codes


def _by_graph(links: Links) -> Rows:
    return np.where(links.graph, links.launch, -1)


def _shared(lists: Sequence[Sequence[object]]) -> list[Rows]:
    """A number for each entry of each list, the same for equal entries."""
    numbers = {entry: number for number, entry in enumerate(dict.fromkeys(chain.from_iterable(lists)))}
    return [np.asarray([numbers[entry] for entry in entries], np.int64) for entries in lists]


def _recorded(args: list[bytes]) -> tuple[NDArray[np.bytes_], ...]:
    """Grid, block and graph node id of each event as JSON text, empty where absent."""
    events = [event or _Recorded() for event in decoded(args, _Recorded)]
    # A trace that another tool wrote anew has other spaces.
    fields = (
        [bytes(getattr(event, name)).translate(None, b" \t\r\n")[:_LONGEST] for event in events]
        for name in _Recorded.__struct_fields__
    )
    return tuple(np.asarray(field, f"S{_LONGEST}") for field in fields)
