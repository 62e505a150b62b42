"""Join counted kernels to the ops of a profile, by the order of their launches and the names of their functions."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from roofline.core.schema import Counters, Profile
from roofline.counters.nsight_compute import TOOL, Kernel
from roofline.errors import InputError, MeasurementError
from roofline.units import printable

#: Share of the time that must be joined. By choice: a table of another step joins far less by accident.
LEAST = 0.95
#: Number of kernels that may be on one side alone, and of names that may be compared, before two sequences are taken
#: for those of different steps: a bound on time (seconds) and memory (tens of megabytes).
_MOST_APART, _MOST_COMPARED = 2000, 10_000_000
#: Letters of a kernel's name that are read, by choice: names of templates in templates have a few thousand.
_LONGEST_NAME = 20_000
#: Functions that a list of kernels names, and letters of each, by choice.
_NAMES, _LETTERS = 5, 60
#: Names of copies and fills by the driver, which are no kernels and which ncu does not count.
_DRIVER = re.compile(r"Mem(cpy|set)\b")
#: Namespaces without a name, as Kineto, ncu and others write them.
_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\banonymous-namespace::")


@dataclass(frozen=True, slots=True)
class Joined:
    """Hold the counted kernels of each op.

    launches: the number of kernels of each op in the profile; kernels: the counted ones of each op, in their order;
    without: the kernels of no op.
    """

    launches: tuple[int, ...]
    kernels: tuple[tuple[Kernel, ...], ...]
    without: tuple[Kernel, ...]

    def complete(self, op: int) -> bool:
        """Tell whether an op has kernels, and all of them were counted."""
        return 0 < self.launches[op] == len(self.kernels[op])


def count(profile: Profile, joined: Joined, file: str) -> Profile:
    """Add the counted bytes of its ops to a profile.

    file: the name of the kernels' table. Raises MeasurementError where less than `LEAST` of the time could be joined:
    the table is then of another step.
    """
    counters = replace(_columns(joined), file=file, busy=_busy_share(profile, joined))
    if min(counters.joined, counters.busy) < LEAST:
        without = f" Without an op: {most_frequent(joined.without)}." if joined.without else ""
        raise MeasurementError(
            f"{file} is not of this step: {counters.kernels - counters.unjoined} of {counters.kernels} counted kernels "
            f"belong to its ops ({counters.joined:.1%} of their time), and cover {counters.busy:.1%} of its busy time; "
            f"{LEAST:.0%} is the least.{without} Count it again with the command that `roofline counters PROFILE` "
            "prints."
        )
    return replace(profile, counters=counters)


def _columns(joined: Joined) -> Counters:
    """Sum the counts of each op; file and share of busy time stay empty."""
    ops = range(len(joined.kernels))
    every = [kernel for kernels in (*joined.kernels, joined.without) for kernel in kernels]

    def column(name: str) -> tuple[float | None, ...]:
        if any(getattr(kernel, name) is None for kernel in every):
            return ()
        return tuple(
            sum(getattr(kernel, name) for kernel in joined.kernels[op]) if joined.complete(op) else None for op in ops
        )

    weights = [kernel.seconds for kernel in every]
    total = sum(seconds or 0.0 for seconds in weights)
    timed = total > 0 and None not in weights
    lost = sum(kernel.seconds or 0.0 for kernel in joined.without) if timed else len(joined.without)
    return Counters(
        tool=TOOL,
        file="",
        kernels=len(every),
        unjoined=len(joined.without),
        joined=1 - lost / (total if timed else len(every)),
        busy=0.0,
        read=column("read"),
        written=column("written"),
        through_cache=column("through_cache"),
        seconds=column("seconds"),
    )


def _busy_share(profile: Profile, joined: Joined) -> float:
    """Compute the share of the ops with counted bytes in the own time of all ops that launch kernels."""
    own_ns = np.asarray([sum(op.own_ns) for op in profile.ops], float)
    launching = np.asarray(joined.launches) > 0
    complete = np.asarray([joined.complete(op) for op in range(len(profile.ops))], bool)
    busy_ns = float(own_ns[launching].sum())
    return float(own_ns[complete].sum()) / busy_ns if busy_ns else 0.0


def join(profile: Profile, step: Sequence[Kernel]) -> Joined:
    """Assign each counted kernel of a step to an op; ops are taken in the order in which they began.

    step: its kernels in the order of their launches. Raises InputError for a profile without kernels of a GPU,
    MeasurementError where the kernels are far from those of the profile.
    """
    if not profile.kernels or profile.device.kind == "cpu":
        raise InputError("The profile has no GPU kernels to match: profile the step on a GPU.")
    order = sorted(range(len(profile.ops)), key=lambda op: profile.ops[op].start_ns)
    functions = _functions(profile)
    launches = tuple(op.launches if names else 0 for op, names in zip(profile.ops, functions, strict=True))
    if sum(launches) - len(step) > _MOST_APART:
        raise _of_another_step()
    expected = [(op, name) for op in order for name in _known_launches(functions[op], launches[op])]
    kernels: list[list[Kernel]] = [[] for _ in profile.ops]
    without: list[Kernel] = []
    counted = {name: function(name) for name in {kernel.name for kernel in step}}
    owners = _owners(expected, functions, [counted[kernel.name] for kernel in step])
    for owner, kernel in zip(owners, step, strict=True):
        (without if owner is None else kernels[owner]).append(kernel)
    return Joined(launches, tuple(map(tuple, kernels)), tuple(without))


def _functions(profile: Profile) -> list[tuple[str, ...]]:
    """List the functions of each op's kernels, each once, in the order in which they were first launched."""
    functions = [None if _DRIVER.match(name) else function(name) for name in profile.kernels]
    return [
        tuple(dict.fromkeys(name for kernel, _ in op.kernels if (name := functions[kernel]) is not None))
        for op in profile.ops
    ]


def _known_launches(names: Sequence[str], launches: int) -> Sequence[str]:
    """List the known launches of an op: all of a single function; of several functions, the first launch of each."""
    return list(names) * launches if len(names) == 1 else names


def _owners(
    expected: Sequence[tuple[int, str]], functions: Sequence[Sequence[str]], counted: Sequence[str]
) -> list[int | None]:
    """Find the op of each counted kernel; None where there is none.

    A profile does not record how often each of several functions of an op was launched, nor the order of further
    launches: an unassigned kernel belongs to the op of its neighbour if that has such a function.
    """
    owners: list[int | None] = [None] * len(counted)
    for expected_index, counted_index in _align([name for _, name in expected], counted):
        owners[counted_index] = expected[expected_index][0]
    for step in (1, -1):
        for place in range(len(counted))[::step]:
            before = place - step
            neighbour = owners[before] if 0 <= before < len(counted) else None
            if owners[place] is None and neighbour is not None and counted[place] in functions[neighbour]:
                owners[place] = neighbour
    return owners


def _align(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the indices (x, y) of a longest common subsequence of two sequences of names, the last ones first.

    E. W. Myers, An O(ND) Difference Algorithm and Its Variations, Algorithmica 1 (1986), its greedy form: after D =
    `differences`, `reach` holds the furthest x, the index in `first`, of a path on each of the diagonals x - y = -D,
    2 - D, ..., D. Raises MeasurementError for sequences too far apart.
    """
    numbers: dict[str, int] = {}
    ours, theirs = ([numbers.setdefault(name, len(numbers)) for name in names] for names in (first, second))
    history, compared = [array("l", [0])], 0
    for differences in range(_MOST_APART + 1):
        before, reach = history[-1], array("l")
        for number in range(differences + 1):
            x = begin = 0 if not differences else _step(before, number, differences)[0]
            y = x - (2 * number - differences)
            while x < len(ours) and y < len(theirs) and ours[x] == theirs[y]:
                x, y = x + 1, y + 1
            reach.append(x)
            compared += x - begin + 1
            if x >= len(ours) and y >= len(theirs):
                yield from _backwards(history, number, x)
                return
        history.append(reach)
        if compared > _MOST_COMPARED:
            break
    raise _of_another_step()


def _step(before: array[int], number: int, differences: int) -> tuple[int, int]:
    """Extend paths by a difference: x on the diagonal of this number, and the number of the diagonal it comes from.

    before: the furthest x of paths with one difference less.
    """
    down = number == 0 or (number < differences and before[number - 1] < before[number])
    return (before[number], number) if down else (before[number - 1] + 1, number - 1)


def _backwards(history: Sequence[array[int]], number: int, x: int) -> Iterator[tuple[int, int]]:
    """Yield the equal indices on the path that ends at `x` on the diagonal of this number, from its end on."""
    for differences in range(len(history) - 1, -1, -1):
        begin, previous = _step(history[differences], number, differences) if differences else (0, 0)
        diagonal = 2 * number - differences
        yield from ((place, place - diagonal) for place in range(x - 1, begin - 1, -1))
        number = previous
        x = history[differences][number]


def function(name: str) -> str:
    """Extract the function from a kernel's name: without result, namespaces, template arguments and parameters.

    Kineto writes `void at::native::f<4, (anonymous namespace)::g<float> >(int)`, ncu some of that in other ways.
    """
    name = _UNNAMED.sub("", name[:_LONGEST_NAME]).replace("->", "").removeprefix("void ").strip()
    depth, outside = 0, []
    for piece in re.findall(r"[<>(]|[^<>(]+", name):
        if piece == "(" and not depth:
            break
        depth += (piece == "<") - (piece == ">")
        if not depth and piece != ">":
            outside.append(piece)
    return "".join(outside).strip().rpartition("::")[2]


def most_frequent(kernels: Sequence[Kernel]) -> str:
    """List the functions of kernels with their launches, those of most launches first.

    A table may come from anywhere: its names are made harmless for a terminal.
    """
    launches: Counter[str] = Counter()
    for name, number in Counter(kernel.name for kernel in kernels).items():
        launches[function(name)] += number
    listed = [
        f"{printable(name[:_LETTERS]) or '(no name)'} x {number}" for name, number in launches.most_common(_NAMES)
    ]
    if omitted := len(launches) - len(listed):
        listed.append(f"{omitted} more name{'' if omitted == 1 else 's'}")
    return ", ".join(listed)


def _of_another_step() -> MeasurementError:
    return MeasurementError(
        "The counted kernels and those of the profile are not of one step: count it again with the command that "
        "`roofline counters PROFILE` prints."
    )
