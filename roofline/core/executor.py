"""Name what launches the ops of a step, and count what the host launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roofline.core.framework import framework
from roofline.core.rows import rows
from roofline.core.schema import Compilation, Profile

#: Options of backends that change who dispatches.
_OPTIONS = ("mode", "jit", "command_buffers")
#: Conditions of a profile: what an op takes the host around itself [s]: one of a function; the only one of a layer
#: inside others, and the latter where no cache holds any of it.
OP_ALONE, OP_IN_LAYERS, OP_COLD = (f"host_seconds_per_op_{where}" for where in ("alone", "in_layers", "cold"))
#: Results that the host reads in a step (`.item()`).
READS = "host_reads_per_step"
#: Time in which the thread that dispatches was on no core [s], of steps whose ops run in it.
AWAY = "away_seconds_per_step"
#: Time in which that thread slept, or waited for others than its own ops [s].
ASLEEP = "asleep_seconds_per_step"
#: No sleep of Linux takes less [s]: waking up alone takes as long.
SHORTEST_SLEEP = 2e-5
#: Time in which that thread wanted a core and had none [s]: no part of the two above. And the same of the one other
#: thread of the process that did so for longest.
QUEUED = "waiting_for_a_core_seconds_per_step"
QUEUED_WORKER = "worker_waiting_for_a_core_seconds_per_step"
#: Of a step whose ops run on other threads than the one that dispatches: how long that one was on a core, and how long
#: it waited for the results when all was dispatched [s].
ON_CORE, WAITED = "dispatching_on_a_core_seconds_per_step", "waiting_for_results_seconds_per_step"
#: How long programs are traced and compiled in a step, mean over the plain ones [s].
COMPILING = "compiling_seconds_per_step"
#: Compiled programs that a step runs.
PROGRAMS = "programs_per_step"
#: Functions that Python has TensorFlow run in a step: what is in a graph it does not dispatch.
CALLS = "calls_per_step"
#: Graphs that the host of a GPU launches in a step (CUDA graphs, XLA's command buffers), and kernels that these launch.
GRAPHS, IN_GRAPHS = "graph_launches_per_step", "graph_kernels_per_step"
#: Tensors that a step makes of Python's numbers and lists, and how long Python takes for that [s].
MADE, MAKING = "tensors_made_of_python_per_step", "making_tensors_of_python_seconds_per_step"
#: The flag of a step that runs compiled code whose kernels its backend does not see.
COMPILED_CODE = "compiled-code"
#: From more than a program for every second op on, a step is compiled op by op. By choice.
_PROGRAMS_PER_OP = 0.5
#: In the place of an executor in names of launch floors: engines that copy and fill memory run no kernels.
COPY = "copy"
#: Mechanisms whose host launches each kernel of a GPU for itself.
_LAUNCH_KERNELS = ("eager", "tensorflow-graph")
#: The mechanism of steps whose kernels, or some of them, are replayed from graphs.
CUDA_GRAPH = "cuda-graph"
#: How the names of executors begin that run compiled programs.
_COMPILED = "xla-"


def executor_of(profile: Profile) -> str:
    """Name what launches the ops of a step, as the launch floors of a device are named."""
    return executor_name(framework(profile), profile.profiled.mechanism if profile.profiled else "eager")


def executor_name(framework: str, mechanism: str) -> str:
    """Name what launches a framework's ops by `mechanism`; one with a hyphen serves many frameworks (XLA's thunks)."""
    return mechanism if "-" in mechanism else f"{framework}-{mechanism}"


def waited_for_a_core(conditions: Mapping[str, float]) -> float | None:
    """Return how long the thread of a step that waited longest for a core waited [s]; None where it is not recorded.

    Threads wait at the same time, so that their sum is no part of a step.
    """
    return max((conditions[name] for name in (QUEUED, QUEUED_WORKER) if name in conditions), default=None)


@dataclass(frozen=True, slots=True)
class HostLaunches:
    """Launches of a GPU's host in a step: graphs, which launch `replayed` kernels, and single `kernels`."""

    graphs: float
    replayed: float
    kernels: float

    @property
    def all(self) -> float:
        """Return how often it launches anything."""
        return self.graphs + self.kernels


def host_launches(profile: Profile) -> HostLaunches | None:
    """Count what the host of a step launches; None on a CPU, of a step without times, and where it is not known.

    Profiled steps of XLA have no command buffers, which plain steps may have. Of older profiles: a compiled graph that
    was seen to be replayed is one launch, of all kernels but those of the ops that ran outside of compiled graphs.
    """
    if profile.device.kind == "cpu" or profile.profiled is None:
        return None
    launches = float(rows(profile).launches.sum())
    graphs, replayed = (profile.conditions.get(name) for name in (GRAPHS, IN_GRAPHS))
    if graphs is None or replayed is None:
        if profile.profiled.mechanism in _LAUNCH_KERNELS or profile.options.get("command_buffers") == "off":
            graphs, replayed = 0.0, 0.0
        elif profile.profiled.mechanism == CUDA_GRAPH and profile.compilation is not None:
            graphs, replayed = float(profile.compilation.graphs), launches - _outside(profile, profile.compilation)
        else:
            return None
    return HostLaunches(graphs, replayed, max(0.0, launches - replayed))


def _outside(profile: Profile, compilation: Compilation) -> float:
    """Count the launches of ops that run outside of compiled graphs: of all of a phase, else one of each."""
    columns = rows(profile)
    launches = 0.0
    for name, (ops, _) in compilation.eager.items():
        in_phase = columns.phase == profile.phases.index(name) if name in profile.phases else columns.phase < 0
        launches += float(columns.launches[in_phase].sum()) if in_phase.sum() == ops else ops
    return launches


def compiles(profile: Profile) -> bool:
    """Return whether what launches the ops runs programs that a compiler made, and no ops one by one."""
    return profile.profiled is not None and profile.profiled.mechanism.startswith(_COMPILED)


def one_by_one(profile: Profile) -> bool:
    """Return whether a host launches each kernel of a step for itself, and neither a compiled program nor a graph."""
    return profile.profiled is not None and "-" not in profile.profiled.mechanism


def op_by_op(profile: Profile) -> bool:
    """Return whether a framework that compiles programs was given one for each op, or for two."""
    programs = profile.conditions.get(PROGRAMS)
    if programs is None or programs <= 1:
        return False
    # Beside a GPU launches are kernels; on a CPU they are how often an op ran.
    ran = rows(profile).launches.clip(1).sum(dtype=float) if profile.device.kind == "cpu" else len(profile.ops)
    return programs > _PROGRAMS_PER_OP * float(ran)


def dispatched_alike(a: Profile, b: Profile) -> bool:
    """Return whether both runs dispatch their ops alike, so that an op more costs both hosts the same."""
    return a.backend == b.backend and executor_of(a) == executor_of(b) and _mechanism(a) == _mechanism(b)


def _mechanism(run: Profile) -> tuple[object, ...]:
    """Return what decides who dispatches a run, of runs of one backend."""
    graphs = run.compilation is not None and run.compilation.graphs > 0
    return (graphs, *(run.options.get(name) for name in _OPTIONS))
