"""The tests in several processes at once: a file in one of them, the longest files first, one thread each.

A file stays in one process, so that what it records once is recorded once. Tests that time something real are marked
`xdist_group("timing")` and run one after the other.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

#: Of this process and of its children: two processes with a thread per core each would wait for one another.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NPROC": "1",  # XLA's pool
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
}

#: By the processor time of the file, most first: what is begun last must not be what takes longest.
LONGEST = ()


def limit_threads() -> None:
    """Before a framework is loaded; what the developer set stays."""
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)


def longest_first(items: list[pytest.Item], folder: Any) -> None:
    rank = {folder / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup`: a group in one process, and a file with what in it has no group."""
    from xdist.scheduler import LoadGroupScheduling

    class ByFileOrGroup(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            return group if group != nodeid else nodeid.partition("::")[0]

    return ByFileOrGroup(config, log) if config.getvalue("dist") == "loadgroup" else None
