"""Writes the traces of the ranks of one job, of which one may be slower, so that tests can state what is in them.

A job is simulated: in each of its steps every rank computes before each collective, which begins on a rank when that is
done there, and ends on all ranks `TRANSFER` after it has begun on the last. The numbers of all ranks but the slow one
are alike, but for `jitter` drawn anew for each.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from make_kineto import COMM, COMPUTE, Trace, X

#: [µs] What a rank computes before each of the collectives of a step, with idle time around it, and a transfer.
KERNELS = ((200, 300), (400,), (150, 150))
IDLE, TRANSFER = 40, 60
ELEMENTS = 250_000  # 1 MB of floats
WT = ([256, 512], "float", [1, 256])


@dataclass(frozen=True)
class Slow:
    """What is wrong with a rank: kernels that last `pace` times as long, `more` kernels before each collective, `idle`
    longer before it, or steps that begin `late`. Times in µs.
    """

    rank: int = 1
    pace: float = 1.0
    more: int = 0
    idle: int = 0
    late: int = 0


def ranks(number: int = 4, slow: Slow | None = None, steps: int = 3, jitter: int = 6, clock: int = 1000) -> list[bytes]:
    """Write the traces of `number` ranks. clock: how much later each clock is than that of the rank before [µs]."""
    rng = random.Random(0)
    traces = [Trace() for _ in range(number)]
    end = [0] * number  # of the last collective
    for step in range(steps):
        begun = [end[rank] for rank in range(number)]
        for at, durations in enumerate(KERNELS):
            arrivals = []
            for rank, trace in enumerate(traces):
                mine = slow if slow is not None and slow.rank == rank else Slow()
                late = mine.late if (step, at) == (0, 0) else 0
                time = end[rank] + IDLE + mine.idle + late + rng.randrange(jitter + 1)
                if at == 0:
                    begun[rank] = end[rank] + late
                for kernel in (*durations, *(100 for _ in range(mine.more))):
                    last = time + round(kernel * mine.pace)
                    _op(trace, time, last, kernel)
                    time = last
                arrivals.append(time)
            finished = max(arrivals) + TRANSFER
            for rank, trace in enumerate(traces):
                _collective(trace, arrivals[rank], finished, number, at)
                end[rank] = finished
        for rank, trace in enumerate(traces):
            trace.annotation(f"ProfilerStep#{step + 7}", begun[rank], end[rank] - 1)
    return [_of_rank(trace, rank, number, rank * clock) for rank, trace in enumerate(traces)]


def _op(trace: Trace, start: int, end: int, kernel: int) -> None:
    """An op whose kernel starts at once; of another shape for each duration that it is to have."""
    rows = ([kernel, 256], "float", [256, 1])
    trace.op("aten::mm", start - 8, start - 1, rows, WT)
    trace.kernel("sm80_gemm", start, end, trace.call("cudaLaunchKernel", start - 6, start - 3), COMPUTE)


def _collective(trace: Trace, start: int, end: int, number: int, at: int) -> None:
    said = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS}
    said |= {"Group size": number, "Process Group Name": "0", "Process Group Ranks": str(list(range(number)))}
    trace.op("record_param_comms", start - 8, start - 1, X, **said)
    correlation = trace.call("cudaLaunchKernel", start - 6, start - 3)
    trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start, end, correlation, COMM, **said)


def _of_rank(trace: Trace, rank: int, number: int, clock: int) -> bytes:
    for event in trace.events:
        event["start"] += clock
        event["end"] += clock
    header, _, rest = trace.write().decode().partition('"schemaVersion"')
    info = json.dumps({"backend": "nccl", "rank": rank, "world_size": number})
    return f'{header}"distributedInfo": {info}, "schemaVersion"{rest}'.encode()
