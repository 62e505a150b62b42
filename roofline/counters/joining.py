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

#: Shares of the time that must be joined. By choice: what a table of another step joins by accident is far below.
LEAST = 0.95
#: Kernels that may be on one side alone, and names that may be compared, before two sequences are taken for those of
#: different steps: a bound on time (seconds) and memory (tens of megabytes).
_MOST_APART, _MOST_COMPARED = 2000, 10_000_000
#: Letters of a kernel's name that are looked at, by choice: names of templates in templates have a few thousand.
_LONGEST_NAME = 20_000
#: Functions that a list of kernels names, and letters of each, by choice.
_NAMES, _LETTERS = 5, 60
#: What a profile calls copies and fills by the driver, which are no kernels and which ncu does not count.
_DRIVER = re.compile(r"Mem(cpy|set)\b")
#: Namespaces without a name, as Kineto, ncu and others write them.
_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\banonymous-namespace::")


@dataclass(frozen=True, slots=True)
class Joined:
    """The kernels that were counted of each op.

    launches: int[op], the kernels that the profile says it has; kernels: those of each op, in their order; without: the
    kernels of no op.
    """

    launches: tuple[int, ...]
    kernels: tuple[tuple[Kernel, ...], ...]
    without: tuple[Kernel, ...]

    def complete(self, op: int) -> bool:
        """Whether all kernels of an op were counted, and there are any."""
        return 0 < self.launches[op] == len(self.kernels[op])


def count(profile: Profile, joined: Joined, file: str) -> Profile:
    """The profile with the bytes that counters saw of its ops.

    file: the name of the table that the kernels come from. Raises MeasurementError where less than `LEAST` of the time
    could be joined: the table is then of another step.
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
    """The sums of each op; a file and a share of busy time are not known here."""
    ops = range(len(joined.kernels))
    every = [kernel for kernels in (*joined.kernels, joined.without) for kernel in kernels]

    def column(name: str) -> tuple[float | None, ...]:
        if any(getattr(kernel, name) is None for kernel in every):
            return ()
        return tuple(
            sum(getattr(kernel, name) for kernel in joined.kernels[op]) if joined.complete(op) else None for op in ops
        )

    weights = [kernel.seconds for kernel in every]
    whole = sum(seconds or 0.0 for seconds in weights)
    timed = whole > 0 and None not in weights
    lost = sum(kernel.seconds or 0.0 for kernel in joined.without) if timed else len(joined.without)
    return Counters(
        tool=TOOL,
        file="",
        kernels=len(every),
        unjoined=len(joined.without),
        joined=1 - lost / (whole if timed else len(every)),
        busy=0.0,
        read=column("read"),
        written=column("written"),
        through_cache=column("through_cache"),
        seconds=column("seconds"),
    )


def _busy_share(profile: Profile, joined: Joined) -> float:
    """The share of the ops with counted bytes in the own time of all ops that launch kernels."""
    own = np.asarray([sum(op.own_ns) for op in profile.ops], float)
    launching = np.asarray(joined.launches) > 0
    complete = np.asarray([joined.complete(op) for op in range(len(profile.ops))], bool)
    whole = float(own[launching].sum())
    return float(own[complete].sum()) / whole if whole else 0.0


def join(profile: Profile, step: Sequence[Kernel]) -> Joined:
    """Give each counted kernel of a step to an op; ops are taken in the order in which they began.

    step: its kernels in the order of their launches. Raises InputError for a profile without kernels of a GPU,
    MeasurementError where the kernels are far from those of the profile.
    """
    if not profile.kernels or profile.device.kind == "cpu":
        raise InputError("The profile names no kernels of a GPU, so nothing can be joined to it: profile it on a GPU.")
    order = sorted(range(len(profile.ops)), key=lambda op: profile.ops[op].start_ns)
    functions = _functions(profile)
    launches = tuple(op.launches if names else 0 for op, names in zip(profile.ops, functions, strict=True))
    if sum(launches) - len(step) > _MOST_APART:
        raise _of_another_step()
    expected = [(op, name) for op in order for name in _launched(functions[op], launches[op])]
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


def _launched(names: Sequence[str], launches: int) -> Sequence[str]:
    """The launches of an op as far as they are known: all of them of one function, of several the first of each."""
    return list(names) * launches if len(names) == 1 else names


def _owners(
    expected: Sequence[tuple[int, str]], functions: Sequence[Sequence[str]], counted: Sequence[str]
) -> list[int | None]:
    """The op of each counted kernel; None where there is none.

    A profile does not say how often each of several functions of an op was launched, nor in which order further
    launches came: a kernel that is left over belongs to the op of its neighbour where that has such a function.
    """
    owners: list[int | None] = [None] * len(counted)
    for here, there in _aligned([name for _, name in expected], counted):
        owners[there] = expected[here][0]
    for step in (1, -1):
        for place in range(len(counted))[::step]:
            before = place - step
            neighbour = owners[before] if 0 <= before < len(counted) else None
            if owners[place] is None and neighbour is not None and counted[place] in functions[neighbour]:
                owners[place] = neighbour
    return owners


def _aligned(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The places of a longest common subsequence of two sequences of names, the last ones first.

    E. W. Myers, An O(ND) Difference Algorithm and Its Variations, Algorithmica 1 (1986), its greedy form: after so many
    differences, `reach` holds how far in `first` a path comes on each of the diagonals -apart, 2 - apart, ..., apart,
    which are the places in `first` less those in `second`. Raises MeasurementError for sequences too far apart.
    """
    numbers: dict[str, int] = {}
    ours, theirs = ([numbers.setdefault(name, len(numbers)) for name in names] for names in (first, second))
    history, compared = [array("l", [0])], 0
    for apart in range(_MOST_APART + 1):
        before, reach = history[-1], array("l")
        for number in range(apart + 1):
            here = begin = 0 if not apart else _step(before, number, apart)[0]
            there = here - (2 * number - apart)
            while here < len(ours) and there < len(theirs) and ours[here] == theirs[there]:
                here, there = here + 1, there + 1
            reach.append(here)
            compared += here - begin + 1
            if here >= len(ours) and there >= len(theirs):
                yield from _backwards(history, number, here)
                return
        history.append(reach)
        if compared > _MOST_COMPARED:
            break
    raise _of_another_step()


def _step(before: array[int], number: int, apart: int) -> tuple[int, int]:
    """Where the last difference leads on a diagonal, by its number, and the number of the diagonal that it comes from.

    before: how far paths with a difference less come.
    """
    down = number == 0 or (number < apart and before[number - 1] < before[number])
    return (before[number], number) if down else (before[number - 1] + 1, number - 1)


def _backwards(history: Sequence[array[int]], number: int, here: int) -> Iterator[tuple[int, int]]:
    """The equal places on the path that ends at `here` on the diagonal of that number, from its end on."""
    for apart in range(len(history) - 1, -1, -1):
        begin, previous = _step(history[apart], number, apart) if apart else (0, 0)
        diagonal = 2 * number - apart
        yield from ((place, place - diagonal) for place in range(here - 1, begin - 1, -1))
        number = previous
        here = history[apart][number]


def function(name: str) -> str:
    """The name of a kernel's function alone: no result, namespaces, template arguments and parameters.

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
    """List the functions of kernels, those of most launches first, and how many launches each has.

    A table may come from anywhere: nothing in its names acts on a terminal.
    """
    launches: Counter[str] = Counter()
    for name, number in Counter(kernel.name for kernel in kernels).items():
        launches[function(name)] += number
    listed = [f"{_printable(name) or '(no name)'} x {number}" for name, number in launches.most_common(_NAMES)]
    if more := len(launches) - len(listed):
        listed.append(f"{more} more name{'' if more == 1 else 's'}")
    return ", ".join(listed)


def _printable(name: str) -> str:
    """Cut a name, and replace what acts on a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in name[:_LETTERS])


def _of_another_step() -> MeasurementError:
    return MeasurementError(
        "The counted kernels and those of the profile are not of one step: count it again with the command that "
        "`roofline counters PROFILE` prints."
    )
