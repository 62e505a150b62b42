"""TensorFlow as the recorder sees it: graph mode, XLA, and both in one program (Keras on TensorFlow is the same)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import tracing_compilation

from roofline.core.executor import CALLS
from roofline.core.schema import Memory
from roofline.core.step import Step
from roofline.core.switch import MALLOC
from roofline.errors import MeasurementError
from roofline.keras import eager as keras_eager
from roofline.keras import memory as keras_memory
from roofline.recording import contention, process
from roofline.recording.process import ALLOCATED
from roofline.recording.step_recorder import NO_WORK
from roofline.recording.xspace.framework import LEAST_OP, Read
from roofline.recording.xspace.written import written
from roofline.tensorflow import allocations, events, graphs, lines, run_shapes, with_xla
from roofline.tensorflow.count import Line
from roofline.tensorflow.graph.cost import cost
from roofline.tensorflow.graph.graph import Graphs
from roofline.traces.xplane.reader import XTrace
from roofline.xla import flags as xla_flags

TRIVIAL_OPS = 200
#: Variables that change how fast TensorFlow is.
_VARIABLES = (
    *("TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_XLA_FLAGS", "NVIDIA_TF32_OVERRIDE", "OMP_WAIT_POLICY"),
    *MALLOC,
)
#: The functions of `costs.formulas` as TensorFlow has them.
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(tf.math, name) for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "sqrt", "rsqrt")
    },
    **{name: getattr(tf.math, name) for name in ("erf", "erfc", "sigmoid")},
    "pow": lambda x: tf.pow(x, 1.7),
    "random": lambda x: tf.random.uniform(tf.shape(x)),
}


class TensorFlow:
    """See `recording.xspace.framework.Framework`.

    asked: whether XLA was to compile the step; what it did compile is seen in the traces. optimizers: top
    scopes whose ops are the optimizer's. libraries: distributions that models are made of.
    """

    def __init__(self, asked: bool, optimizers: tuple[str, ...], libraries: tuple[str, ...]) -> None:
        """No graph is known before the first step."""
        self._asked, self._optimizers, self._libraries = asked, optimizers, libraries
        self._graphs = Graphs((), ())
        self._collected: graphs.Collected | None = None
        self._line: Line | None = None
        self._allocations = allocations.NONE
        #: Whether steps ran instructions of XLA; and nodes, None where no trace was read.
        self._compiled = False
        self._nodes: bool | None = None

    @property
    def mechanism(self) -> str:
        """The executor whose least op is the launch floor."""
        return "xla-thunk" if self._compiled else "tensorflow-graph"

    ahead = False

    def first(self, run: Callable[[], float]) -> float:
        """The first step, which traces its functions: their graphs are kept, before and after grappler."""
        result: list[float] = []
        self._collected = graphs.collected(lambda: result.append(run()))
        self._graphs = self._collected.graphs
        return result[0]

    def compiling(self) -> float | None:
        """Measure how long this process has built graphs, and XLA compiled them [s], without grappler's part.

        None where this TensorFlow does not tell it, or XLA compiles and does not write when.
        """
        counter = getattr(tracing_compilation, "_graph_building_time_counter", None)
        by_xla = xla_flags.compiling_seconds()
        if counter is None or (by_xla is None and (self._asked or self._compiled)):
            return None
        return 1e-6 * float(counter.get_cell().value()) + (by_xla or 0.0)

    def wait(self, outputs: object) -> None:
        """Block until the devices have done all that was enqueued; a CPU's functions have ended when they return."""
        self.waiter(outputs)()

    def waiter(self, outputs: object) -> Callable[[], object]:
        """See `wait`; which devices there are is looked up before."""
        return tf.test.experimental.sync_devices if tf.config.list_logical_devices("GPU") else lambda: None

    def end(self, outputs: object) -> object:
        """Nothing: `wait` waits for all that was enqueued."""

    token_program = None

    def token(self, outputs: object) -> object:
        """No program is known to run after all others of a device."""
        raise NotImplementedError

    def watch_memory(self, run: Callable[[], None]) -> None:
        """Run a step whose allocators and nodes tell what they do: that takes longer, so no time is taken of it.

        Where it calls functions that the first step did not, another one is run whose graphs are kept.
        """
        library = allocations.library_in(Path(tf.__file__).parent)

        def run_verbosely() -> None:
            with run_shapes.verbose(library):
                run()

        traces: list[bytes] = []

        def watch() -> None:
            with allocations.reporting(library):
                traces.append(self.profiled(run_verbosely))

        self._collected = graphs.collected_anew(watch) or self._collected
        self._allocations = allocations.read(traces[-1])
        if self._collected is not None:
            self._graphs = self._collected.with_shapes(run_shapes.read(traces[-1]))

    def profiled(self, run: Callable[[], None]) -> bytes:
        """XSpace bytes of what ran inside `run`: nodes, instructions and host annotations, no Python calls."""
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
        )
        profiler = tf.profiler.experimental
        trace = written(run, partial(profiler.start, options=options), profiler.stop)
        if trace is None:
            raise MeasurementError("TensorFlow's profiler wrote no trace; is another one running in this process?")
        return trace

    def mark(self, name: str) -> AbstractContextManager[object]:
        """An annotation on the host's line of the trace."""
        annotation: AbstractContextManager[object] = tf.profiler.experimental.Trace(name)
        return annotation

    def scope(self, name: str) -> AbstractContextManager[object]:
        """Names the ops that are traced inside it; the slash keeps TensorFlow from numbering the name."""
        return _scope(name)

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        """The nodes and the instructions that the traced steps executed, and how often Python called the framework."""
        # Of a step of nodes and instructions the floor is that of the executor whose least op is the cheaper one.
        self._compiled |= any(bool((trace.hlo_op >= 0).any()) for trace in traces)
        if self._line is None:
            self._line = lines.by_traceback(self._collected.metadata.function_graphs if self._collected else ())
        if self._nodes is None:  # of the step, which is read before the programs that measure the executor
            self._nodes = any(events.runs_nodes(trace, prefix) for trace in traces)
        before = list(xla_flags.before_optimizations())
        counted, owned = with_xla.count(
            traces, prefix, self._graphs, before, self._optimizers, self._allocations, self._line
        )
        return Read(counted, owned, {CALLS: events.calls(traces, prefix)})

    def unseen(self, traces: list[XTrace], prefix: str) -> str:
        """Functions whose graphs were not shown or not read, ops without a function, or nothing at all."""
        functions, ops = events.called(traces, prefix)
        shown = self._collected is not None and bool(self._collected.metadata.function_graphs)
        nodes = [node for function in self._graphs.functions for node in function.after]
        is_read = shown and not self._graphs.warnings
        if functions and not ops and is_read and all(cost(node).view for node in nodes):
            return NO_WORK
        if functions and not ops:
            shared = "Their nodes share names and differ in shapes: measure a step that calls one of them."
            none = shared if len(self._graphs.functions) > 1 else "TensorFlow showed no graph of them."
            why = next(iter(self._graphs.warnings), none)
            return f"The ops of {', '.join(functions[:3])} are not known. {why}"
        if ops:
            keras = keras_eager.runs_eagerly()
            return (
                f"The step runs TensorFlow op by op ({', '.join(ops[:3])}), which cannot be counted: "
                f"{'leave out run_eagerly, or ' if keras else ''}put it into a tf.function."
            )
        return "The step ran no op of TensorFlow: return a callable that runs a tf.function or a Keras model."

    def flags(self) -> tuple[str, ...]:
        """Flag a step of which XLA was to compile and did not."""
        return ("nothing-compiled",) if self._asked and self._nodes and not self._compiled else ()

    def trivial(self) -> Mapping[str, Callable[[], object]]:
        """Many of the cheapest ops: XLA copies a number, a graph changes a variable in place."""
        if self._compiled:
            start = [tf.constant(number) for number in range(TRIVIAL_OPS)]

            def copies(numbers: list[Any]) -> list[Any]:
                return [number + 0 for number in numbers]

            jitted = tf.function(copies, jit_compile=True, autograph=False)
            return {LEAST_OP: lambda: jitted(start)}
        variables = [tf.Variable(0.0) for _ in range(TRIVIAL_OPS)]

        def updates() -> None:
            for variable in variables:
                variable.assign_add(1.0)

        return {LEAST_OP: tf.function(updates, autograph=False)}

    def function(self, name: str, elements: int, times: int) -> Callable[[], object] | None:
        """A program that evaluates function `name` on `elements` numbers; None for one TensorFlow does not have.

        Several times in a row only where XLA compiles it: a graph goes to memory and back for each.
        """
        call = _FUNCTIONS.get(name)
        if call is None or (times > 1 and not self._compiled):
            return None

        def repeated(x: Any) -> Any:
            for _ in range(times - 1):
                x = x + 1e-30 * call(x)  # a number as before, though no compiler can know
            return call(x)

        many = tf.linspace(tf.constant(0.1), tf.constant(0.9), elements)
        compiled = tf.function(repeated, jit_compile=self._compiled, autograph=False)
        return lambda: compiled(many)

    def versions(self) -> dict[str, str]:
        """TensorFlow, and what models are made of."""
        return {"tensorflow": tf.__version__, **process.versions(("numpy", *self._libraries))}

    def switches(self) -> dict[str, str]:
        """Report what decides the arithmetic and the compilation."""
        tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
        gpu = bool(tf.config.list_logical_devices("GPU"))
        arithmetic = "tf32" if gpu and tf32 else "ieee"
        jit = {True: "in part" if self._nodes else "compile", False: "off"}[self._compiled]
        return {
            **({} if self._nodes is None else {"jit": jit}),
            "float32 matmul (TensorFlow)": arithmetic,
            "float32 convolution (TensorFlow)": arithmetic,
            "oneDNN": os.environ.get("TF_ENABLE_ONEDNN_OPTS", "default"),
            "auto-clustering": str(tf.config.optimizer.get_jit() or "off"),
        }

    def environment(self) -> dict[str, str]:
        """Threads and affinity of this process, and the variables that steer TensorFlow and XLA."""
        threading = tf.config.threading
        return {
            "cpus": process.cores(),
            "inter-op threads": str(threading.get_inter_op_parallelism_threads() or "default"),
            "intra-op threads": str(threading.get_intra_op_parallelism_threads() or "default"),
            **xla_flags.recorded(),
            **process.variables(_VARIABLES),
        }

    def threads(self) -> int | None:
        """The intra-op threads that a program set; what the environment asks for TensorFlow does not tell."""
        return tf.config.threading.get_intra_op_parallelism_threads() or None

    def memory(self, step: Step, device: str) -> Memory:
        """The allocator's peak on a GPU; on a CPU all memory of the process."""
        if device == "cpu":
            return Memory(resident=contention.peak_memory(), source="", **_held(step))
        peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return Memory(peak=float(peak), source=ALLOCATED, **_held(step))


@contextmanager
def _scope(name: str) -> Iterator[None]:
    outer = tf.get_current_name_scope()
    with tf.name_scope(f"{outer}/{name}/" if outer else f"{name}/"):
        yield


def _held(step: Step) -> dict[str, float | None]:
    """Bytes of parameters and optimizer state, where the step's model says them."""
    keras = keras_memory.state_bytes(step.model)
    if keras is not None:
        return dict(zip(("parameters", "optimizer"), keras, strict=True))
    if not isinstance(step.model, tf.Module):
        return {}
    return {"parameters": float(sum(v.shape.num_elements() * v.dtype.size for v in step.model.trainable_variables))}


def devices() -> tuple[str, ...]:
    """List what TensorFlow can run on here."""
    return ("cpu", "cuda") if tf.config.list_physical_devices("GPU") else ("cpu",)
