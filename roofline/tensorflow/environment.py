"""The environment of a process that is to import TensorFlow; nothing here imports it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from roofline.xla import flags


def variables(threads: int | None, device: str, options: Mapping[str, str]) -> dict[str, str]:
    """Thread pools, logging, and where XLA leaves the programs that it was given.

    One inter-op thread: ops of a graph then run one after the other, each on all cores, which is as fast on a CPU and
    gives every op a time of its own.
    """
    environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **flags.dumping()}
    if threads is not None:
        environment |= {"TF_NUM_INTRAOP_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), "NPROC": str(threads)}
    if device == "cpu":
        environment |= {"CUDA_VISIBLE_DEVICES": "-1"}
        environment |= {"TF_NUM_INTEROP_THREADS": os.environ.get("TF_NUM_INTEROP_THREADS", "1")}
        if options.get("mode") == "autocluster":
            # TensorFlow leaves CPUs out of clustering unless it is told before it is imported.
            environment["TF_XLA_FLAGS"] = f"{os.environ.get('TF_XLA_FLAGS', '')} --tf_xla_cpu_global_jit".strip()
    return environment
