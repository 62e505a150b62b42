"""A Python function that a compiled step or a graph calls back: what frameworks call the op that waits for it.

The op itself is known: it hands its inputs to Python, on the host, and waits for the result. What Python does with them
is not. An op of PyTorch that is a Python function itself may have any name: its kind says so.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from roofline.analysis.analysis import Analysis
from roofline.core.rows import per_profile, rows
from roofline.core.schema import Profile, Signature
from roofline.core.vocabulary import BOUNDS, CALLBACK

#: XLA's custom calls for `jax.pure_callback`, `io_callback` and `debug.callback` of a CPU and of a GPU
#: (jax/_src/callback.py: xla_python_cpu_callback, xla_ffi_python_cpu_callback, xla_ffi_partitioned_python_gpu_callback,
#: xla_buffer_python_cpu_callback), JAX's names for the three, and TensorFlow's ops for `py_function` and
#: `numpy_function` (tensorflow/core/ops/script_ops.cc: PyFunc, PyFuncStateless, EagerPyFunc).
_CALLED = re.compile(r"(^|_)(python_[cgt]pu|pure|io|debug)_callback\b|^(Eager)?PyFunc(Stateless)?\b")

#: From this part of a time on, it is most of it. By choice.
_MOST = 0.5
_UNKNOWN = BOUNDS.index("unknown")


@lru_cache(maxsize=4096)
def calls_python(name: str) -> bool:
    """Return whether an op of that name calls a Python function back."""
    return _CALLED.search(name) is not None


def is_python(signature: Signature) -> bool:
    """Return whether an op calls a Python function back, or is one."""
    return signature.kind == CALLBACK or calls_python(signature.name)


@per_profile
def python_ops(profile: Profile) -> frozenset[str]:
    """Name the ops that call Python back, or are Python functions."""
    return frozenset(signature.name for signature in profile.signatures if is_python(signature))


def called_back(analysis: Analysis) -> tuple[str, ...]:
    """Name the ops in which a step waits for Python, if they have half or more of the time without a known roof."""
    profile, table = analysis.profile, analysis.table
    names = [signature.name for signature in profile.signatures]
    number = rows(profile).signature
    of_python = np.asarray([is_python(signature) for signature in profile.signatures], bool)[number]
    called = of_python & (table.bound == _UNKNOWN)
    if not called.any() or float(table.share[called].sum()) < _MOST * float(table.share[table.bound == _UNKNOWN].sum()):
        return ()
    return tuple(dict.fromkeys(names[row] for row in number[called].tolist()))
