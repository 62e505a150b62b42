"""A Python function that a compiled step calls back: what frameworks call the op that waits for it.

The op itself is known: it hands its inputs to Python, on the host, and waits for the result. What Python does with them
is not.
"""

from __future__ import annotations

import re

#: XLA's custom calls for `jax.pure_callback`, `io_callback` and `debug.callback` of a CPU and of a GPU
#: (jax/_src/callback.py: xla_python_cpu_callback, xla_ffi_python_cpu_callback, xla_ffi_partitioned_python_gpu_callback,
#: xla_buffer_python_cpu_callback), JAX's names for the three, and TensorFlow's ops for `py_function` and
#: `numpy_function` (tensorflow/core/ops/script_ops.cc: PyFunc, PyFuncStateless, EagerPyFunc).
_CALLED = re.compile(r"(^|_)(python_[cgt]pu|pure|io|debug)_callback\b|^(Eager)?PyFunc(Stateless)?\b")


def calls_python(name: str) -> bool:
    """Whether an op of that name calls a Python function back."""
    return _CALLED.search(name) is not None
