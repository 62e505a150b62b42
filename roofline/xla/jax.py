"""JAX as the recorder sees it: waiting, profiling, and the programs it compiles (Keras on JAX is the same)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from roofline.core.schema import Memory
from roofline.core.step import Step
from roofline.core.switch import MALLOC
from roofline.errors import MeasurementError
from roofline.keras import memory as keras_memory
from roofline.recording import contention
from roofline.recording.executor import Read
from roofline.traces.xplane.reader import XTrace
from roofline.xla import count
from roofline.xla import flags as xla_flags

TRIVIAL_OPS = 200
#: Events of `jax.monitoring`, none inside another. The duration of a trace holds those of the functions in it.
_COMPILING = frozenset(f"/jax/core/compile/{part}_duration" for part in ("jaxpr_to_mlir_module", "backend_compile"))


#: The functions of `costs.formulas` as JAX has them.
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(jnp, name)
        for name in ("exp", "exp2", "expm1", "log", "log1p", "log2", "sin", "cos", "tanh", "sqrt")
    },
    "erf": jax.lax.erf,
    "rsqrt": jax.lax.rsqrt,
    "sigmoid": jax.nn.sigmoid,
    "pow": lambda x: jnp.power(x, 1.7),
}


class Jax:
    """See `recording.executor.Framework`. optimizers: top scopes whose ops are the optimizer's."""

    mechanism = "xla-thunk"

    def __init__(self, optimizers: tuple[str, ...] = ("optimizer",), libraries: tuple[str, ...] = ("flax", "optax")):
        self._optimizers, self._libraries = optimizers, libraries
        self._compiling = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def _count(self, event: str, seconds: float, **_: object) -> None:
        if event in _COMPILING:
            self._compiling += seconds

    def compiling(self) -> float | None:
        """How long this process has lowered and compiled programs so far [s]; tracing them comes before that.

        None where JAX tells of none: the first step of a process compiles something.
        """
        return self._compiling or None

    def first(self, run: Callable[[], float]) -> float:
        """The first step, which traces and compiles; XLA leaves what it was given where it was told to."""
        return run()

    def wait(self, outputs: object) -> None:
        """Block until all arrays in `outputs` are there; what is no array is there already.

        A step that keeps its results to itself returns none: then until all arrays of the process are there.
        """
        if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(outputs)):
            jax.block_until_ready(outputs)
        else:
            jax.block_until_ready([array for array in jax.live_arrays() if not array.is_deleted()])

    def profiled(self, run: Callable[[], None]) -> bytes:
        """XSpace bytes of what ran inside `run`: executed instructions and host annotations, no Python calls."""
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.host_tracer_level = 2  # 1 holds the thunks, 2 our annotations as well
        with tempfile.TemporaryDirectory() as folder:
            jax.profiler.start_trace(folder, profiler_options=options)
            try:
                run()
            finally:
                jax.profiler.stop_trace()
            files = list(Path(folder).rglob("*.xplane.pb"))
            if not files:
                raise MeasurementError("JAX's profiler wrote no trace; is another profiler running in this process?")
            return files[0].read_bytes()

    def mark(self, name: str) -> AbstractContextManager[object]:
        """An annotation on the host's line of the trace."""
        return jax.profiler.TraceAnnotation(name)

    def scope(self, name: str) -> AbstractContextManager[object]:
        """Names the ops that are traced inside it."""
        return jax.named_scope(name)

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        """The instructions that the traced steps executed."""
        counted, owned = count.count(traces, prefix, list(xla_flags.before_optimizations()), self._optimizers)
        return Read(counted, owned)

    def trivial(self) -> Callable[[], object]:
        """Many results that are copies of one number each: the cheapest thunk there is, and none fuses with another."""

        @jax.jit
        def copies(many: list[Any]) -> list[Any]:
            return [x + 0 for x in many]  # an identity would hand the argument back without a thunk

        start = [jnp.asarray(number) for number in range(TRIVIAL_OPS)]
        return lambda: copies(start)

    def function(self, name: str, elements: int) -> Callable[[], object] | None:
        """A jitted program that evaluates function `name` on `elements` numbers; None for one JAX does not have."""
        call = _FUNCTIONS.get(name)
        if call is None:
            return None
        many = jnp.linspace(0.1, 0.9, elements, dtype=jnp.float32)
        jitted = jax.jit(call)
        return lambda: jitted(many)

    def versions(self) -> dict[str, str]:
        """JAX, its compiler, and what models are made of."""
        found = {"jax": jax.__version__}
        for name in ("jaxlib", "numpy", *self._libraries, "jax-cuda12-plugin", "jax-cuda13-plugin"):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
        return found

    def switches(self) -> dict[str, str]:
        """What decides the arithmetic and the compilation."""
        precision = jax.config.jax_default_matmul_precision
        found = {
            "jax_default_matmul_precision": str(precision),
            "jax_enable_x64": str(jax.config.jax_enable_x64),
            "jit": "on",
        }
        if jax.default_backend() == "cpu":  # XLA's CPU backend has no lower precision for float32
            found["float32 matmul (XLA)"] = found["float32 convolution (XLA)"] = "ieee"
        return found

    def environment(self) -> dict[str, str]:
        """Affinity of this process, and the variables that steer XLA."""
        found = {"cpus": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())}
        flags = xla_flags.own_flags()
        if flags:
            found["XLA_FLAGS"] = flags
        for name in (
            "NPROC",
            "OMP_NUM_THREADS",
            "NVIDIA_TF32_OVERRIDE",
            "XLA_PYTHON_CLIENT_PREALLOCATE",
            "OMP_WAIT_POLICY",
            *MALLOC,
        ):
            if name in os.environ:
                found[name] = os.environ[name]
        return found

    def memory(self, step: Step, device: str) -> Memory:
        """The allocator's peak on a GPU, the process's on a CPU."""
        if device == "cpu":
            source = "peak resident set of the process, libraries included"
            return Memory(peak=contention.peak_memory(), source=source, **_held(step))
        statistics = jax.devices()[0].memory_stats() or {}
        peak = statistics.get("peak_bytes_in_use")
        return Memory(peak=None if peak is None else float(peak), source="allocator's peak", **_held(step))


def _held(step: Step) -> dict[str, float | None]:
    """Bytes of parameters and optimizer state, where the step's model says them."""
    keras = keras_memory.state_bytes(step.model)
    if keras is not None:
        return dict(zip(("parameters", "optimizer"), keras, strict=True))
    state = getattr(step.model, "state", None)
    found: dict[str, float | None] = {}
    for name in ("parameters", "optimizer"):
        arrays = [leaf for leaf in jax.tree.leaves(getattr(state, name, None)) if isinstance(leaf, jax.Array)]
        found[name] = float(sum(array.nbytes for array in arrays)) if arrays else None
    return found


def devices() -> tuple[str, ...]:
    """What JAX can run on here."""
    kinds = {device.platform for device in jax.devices()}
    return ("cpu", "cuda") if kinds & {"gpu", "cuda"} else ("cpu",)
