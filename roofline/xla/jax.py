"""JAX as the recorder sees it: waiting, profiling, and the programs it compiles (Keras on JAX is the same)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

from roofline.core.schema import Memory
from roofline.core.step import Step
from roofline.core.switch import MALLOC
from roofline.errors import MeasurementError
from roofline.keras import memory as keras_memory
from roofline.recording import contention, process
from roofline.recording.process import ALLOCATED
from roofline.recording.xspace.called import called
from roofline.recording.xspace.framework import LEAST_OP, Read
from roofline.recording.xspace.written import written
from roofline.timing.outermost import Outermost
from roofline.traces.xplane.reader import XTrace
from roofline.xla import count, turned
from roofline.xla import flags as xla_flags
from roofline.xla.lines import by_stack
from roofline.xla.nnx_scopes import named_layers

TRIVIAL_OPS = 200
#: Variables that change how fast XLA is.
_VARIABLES = (
    *("NPROC", "OMP_NUM_THREADS", "NVIDIA_TF32_OVERRIDE", "XLA_PYTHON_CLIENT_PREALLOCATE", "OMP_WAIT_POLICY"),
    *MALLOC,
)
#: JAX's plugins for CUDA, and NVIDIA's libraries that XLA calls.
_CUDA = (
    *("jax-cuda12-plugin", "jax-cuda13-plugin", "nvidia-cublas-cu12", "nvidia-cublas"),
    *("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
)
#: Events of `jax.monitoring`. Tracing a function holds the tracing of those that it calls.
_COMPILING = frozenset(
    f"/jax/core/compile/{part}_duration" for part in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
)
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
#: What changes weights in a training step, op by op.
_UPDATES = (("keras.optimizers", "Optimizer.apply"), ("optax", "apply_updates"))
#: What the host does to start a program.
_STARTED = re.compile(r"^PjitFunction\(|LoadedExecutable::Execute")


def roofline_token(step: Any, number: Any) -> Any:
    """The program of `Jax.token`, which the trace knows by this name."""
    return number + 1


_jitted_token = jax.jit(roofline_token, keep_unused=True)


#: Programs of one kernel each on a GPU (see `Jax.trivial`). Numbers all alike would be set without a kernel.
adds_one = jax.jit(lambda x: x + 1)
writes_numbers = jax.jit(partial(jax.lax.iota, jnp.float32, 32))


def _arrays(outputs: object) -> list[jax.Array]:
    # Each type is looked at once: asking `isinstance` of each of 400 arrays takes 0.2 ms.
    leaves = jax.tree.leaves(outputs)
    kinds = {kind for kind in set(map(type, leaves)) if issubclass(kind, jax.Array)}
    return [leaf for leaf in leaves if type(leaf) in kinds]


class Jax:
    """See `recording.xspace.framework.Framework`.

    optimizers: top scopes whose ops are the optimizer's. libraries: distributions that models are made of. unnamed:
    whether the layers of the step may have no scopes of their own.
    """

    mechanism = "xla-thunk"
    ahead = True

    def __init__(self, optimizers: tuple[str, ...], libraries: tuple[str, ...], unnamed: bool = False) -> None:
        """From now on what the process compiles is timed."""
        self._optimizers, self._libraries, self._unnamed = optimizers, libraries, unnamed
        self._compiling = Outermost()
        self._token: jax.Array | None = None
        #: Whether a step was seen to take all that the one before returned.
        self._given_away = False
        #: Whether the last step returned nothing, and the first one kept no array either: there is nothing to wait for.
        self._returned_nothing = self._dropped = False
        #: Whether profiled steps applied an optimizer in Python: compiled ones do so when they are traced, before.
        self._updates = False
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def _count(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event in _COMPILING:
            self._compiling.ended(duration_secs)

    def compiling(self) -> float | None:
        """Measure how long this process has traced, lowered and compiled programs so far [s].

        None where JAX tells of none: the first step of a process compiles something.
        """
        return self._compiling.seconds or None

    def first(self, run: Callable[[], float]) -> float:
        """The first step, which traces and compiles; XLA leaves what it was given where it was told to."""
        before = {id(array): array for array in jax.live_arrays()}
        with named_layers() if self._unnamed else nullcontext():
            took = run()
        self._dropped = self._returned_nothing and all(before.get(id(array)) is array for array in jax.live_arrays())
        return took

    def wait(self, outputs: object) -> None:
        """Block until all arrays in `outputs` are there; what is no array is there already."""
        self.waiter(outputs)()

    def waiter(self, outputs: object) -> Callable[[], object]:
        """See `wait`; which arrays there are to wait for is looked up before.

        Arrays that a later step was given to write over are gone. Where none is left, and after a step that keeps its
        results to itself: until all arrays of the process are there.
        """
        arrays = _arrays(outputs)
        self._returned_nothing = outputs is None
        alive = [array for array in arrays if not array.is_deleted()]
        self._given_away |= bool(arrays) and not alive
        alive = alive or [array for array in jax.live_arrays() if not array.is_deleted()]
        return partial(jax.block_until_ready, alive)

    def end(self, outputs: object) -> object:
        """The arrays in `outputs`, one of which must outlive the next step; else a token."""
        arrays = _arrays(outputs)
        return arrays if arrays and not self._given_away else self.token(outputs)

    token_program = f"jit_{roofline_token.__name__}"

    def token(self, outputs: object) -> object:
        """The number of the token, which the device adds up after the step.

        A GPU runs programs in the order in which they were enqueued; elsewhere an output that the token is given, and
        does not read, keeps the order.
        """
        on_one_device = [array for array in _arrays(outputs) if not array.is_deleted() and len(array.devices()) == 1]
        smallest = min(on_one_device, key=lambda array: array.size, default=None)
        device = jax.devices()[0] if smallest is None else next(iter(smallest.devices()))
        if self._token is None or self._token.devices() != {device}:
            self._token = jax.device_put(np.int32(0), device)
        self._token = _jitted_token(smallest, self._token)
        return self._token

    def watch_memory(self, run: Callable[[], None]) -> None:
        """Nothing: programs say where their buffers lie."""

    def profiled(self, run: Callable[[], None]) -> bytes:
        """XSpace bytes of what ran inside `run`: executed instructions and host annotations, no Python calls."""
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.host_tracer_level = 2  # 1 holds the thunks, 2 our annotations as well
        start = partial(jax.profiler.start_trace, profiler_options=options)
        with called(_UPDATES) as updates:
            trace = written(run, start, jax.profiler.stop_trace)
        self._updates |= bool(updates)
        if trace is None:
            raise MeasurementError("JAX's profiler wrote no trace; is another profiler running in this process?")
        return trace

    def mark(self, name: str) -> AbstractContextManager[object]:
        """An annotation on the host's line of the trace."""
        return jax.profiler.TraceAnnotation(name)

    def scope(self, name: str) -> AbstractContextManager[object]:
        """Names the ops that are traced inside it."""
        return jax.named_scope(name)

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        """The instructions that the traced steps executed."""
        before = list(xla_flags.before_optimizations())
        counted, owned = count.count(traces, prefix, before, self._optimizers, line=by_stack())
        return Read(replace(counted, updates=self._updates), owned)

    def unseen(self, traces: list[XTrace], prefix: str) -> str:
        """Programs of which nobody waits for the results, or none at all."""
        if self._dropped and any(_STARTED.search(name) for trace in traces for name in trace.names):
            return (
                "The step returned before all that it started in JAX had run, and returned nothing of it to wait for: "
                "return its outputs."
            )
        return "The step ran no program of JAX: it must call a jitted function, or functions of jax.numpy."

    def flags(self) -> tuple[str, ...]:
        """Flag a step of which nothing tells when it had ended."""
        return ("nothing-returned",) if self._dropped else ()

    def trivial(self) -> Mapping[str, Callable[[], object]]:
        """On a CPU many results that are copies of one number each: the cheapest thunk there is, and none fuses with
        another. On a GPU they would, or become copies without a kernel: there programs of one kernel, many times. One
        adds; the other only writes and waits for no memory, so that it ends sooner (0.86 us, not 0.99, on an H100).
        """
        if jax.default_backend() != "cpu":
            number = jnp.asarray(1.0)
            return {
                "a kernel that adds to one number": lambda: [adds_one(number) for _ in range(TRIVIAL_OPS // 2)],
                "a kernel that writes 32 numbers": lambda: [writes_numbers() for _ in range(TRIVIAL_OPS // 2)],
            }

        @jax.jit
        def copies(many: list[Any]) -> list[Any]:
            return [x + 0 for x in many]  # an identity would hand the argument back without a thunk

        start = [jnp.asarray(number) for number in range(TRIVIAL_OPS)]
        return {LEAST_OP: lambda: copies(start)}

    def function(self, name: str, elements: int, times: int) -> Callable[[], object] | None:
        """A jitted program that evaluates function `name` on `elements` numbers; None for one JAX does not have."""
        call = _FUNCTIONS.get(name)
        if call is None:
            return None

        def repeated(x: Any) -> Any:
            for _ in range(times - 1):
                x = x + 1e-30 * call(x)  # a number as before, though no compiler can know
            return call(x)

        many = jnp.linspace(0.1, 0.9, elements, dtype=jnp.float32)
        jitted = jax.jit(repeated)
        return lambda: jitted(many)

    def versions(self) -> dict[str, str]:
        """JAX, its compiler, and what models are made of."""
        packages = ("jaxlib", "numpy", *self._libraries, *_CUDA)
        return {"jax": jax.__version__, **process.versions(packages)}

    def switches(self) -> dict[str, str]:
        """Report what decides the arithmetic, and that compilation was turned off: a step jits what it wants."""
        options = ("jax_default_matmul_precision", "jax_enable_x64")
        switches = {
            **{name: str(getattr(jax.config, name)) for name in options},
            **({"jit": "off"} if turned.left_out() else {}),
        }
        arithmetic = "tf32" if _takes_tf32(switches[options[0]]) else "ieee"
        return {**switches, "float32 matmul (XLA)": arithmetic, "float32 convolution (XLA)": arithmetic}

    def environment(self) -> dict[str, str]:
        """Affinity of this process, and the variables that steer XLA."""
        return {"cpus": process.cores(), **xla_flags.recorded(), **process.variables(_VARIABLES)}

    def threads(self) -> None:
        """Nothing: XLA's threads are set before it is loaded."""

    def memory(self, step: Step, device: str) -> Memory:
        """The allocator's peak on a GPU; on a CPU all memory of the process."""
        if device == "cpu":
            return Memory(resident=contention.peak_memory(), source="", **_held(step))
        statistics = jax.devices()[0].memory_stats() or {}
        peak = statistics.get("peak_bytes_in_use")
        return Memory(peak=None if peak is None else float(peak), source=ALLOCATED, **_held(step))


def _takes_tf32(asked: str) -> bool:
    """Tell whether XLA takes TF32 for products of float32: on NVIDIA's GPUs since Ampere, unless told not to.

    asked: `jax_default_matmul_precision`.

    Its CPU backend has no lower precision for float32, and AMD's GPUs name their architecture otherwise ("gfx90a").
    """
    capability = getattr(jax.devices()[0], "compute_capability", "") if jax.default_backend() != "cpu" else ""
    modern = bool(re.fullmatch(r"\d+\.\d+", str(capability))) and float(capability) >= 8
    return modern and asked not in ("highest", "float32") and os.environ.get("NVIDIA_TF32_OVERRIDE") != "0"


def _held(step: Step) -> dict[str, float | None]:
    """Bytes of parameters and optimizer state, where the step's model says them."""
    keras = keras_memory.state_bytes(step.model)
    if keras is not None:
        return dict(zip(("parameters", "optimizer"), keras, strict=True))
    state = getattr(step.model, "state", None)
    held = {
        "parameters": (getattr(state, "parameters", None), getattr(step.model, "frozen", None)),
        "optimizer": getattr(state, "optimizer", None),
    }
    state_bytes: dict[str, float | None] = {}
    for name, tree in held.items():
        arrays = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
        state_bytes[name] = float(sum(array.nbytes for array in arrays)) if arrays else None
    return state_bytes


def libraries() -> Iterator[Path]:
    """The files of jaxlib, and of JAX's plugins for GPUs, that hold XLA: all that are installed read its flags."""
    folder = Path(jaxlib.__file__).parent
    yield from (path for name in ("libjax_common.so", "xla_extension.so") if (path := folder / name).is_file())
    plugins = find_spec("jax_plugins")
    for place in plugins.submodule_search_locations or () if plugins else ():
        yield from Path(place).glob("*/xla_*_plugin.so")


def devices() -> tuple[str, ...]:
    """List what JAX can run on here."""
    kinds = {device.platform for device in jax.devices()}
    return ("cpu", "cuda") if kinds & {"gpu", "cuda"} else ("cpu",)
