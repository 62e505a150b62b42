"""How far a run was compiled: what decides whether a compiler should have taken a cause away."""

from __future__ import annotations

from roofline.analysis.analysis import Analysis
from roofline.core.executor import CALLS, PROGRAMS, compiles, executor_of, op_by_op

#: So many times as many programs are another way to dispatch a step, by choice.
MORE_PROGRAMS = 1.5
#: From more than this share of the busy time in eager ops on, a step was not compiled. By choice: most of it.
_MOSTLY = 0.5
#: What the switch `jit` says where a compiler was asked for.
_COMPILED = frozenset(("on", "compile", "autocluster"))


def more_programs(slower: Analysis, other: Analysis) -> bool:
    """Whether the slower run dispatches more compiled programs, or graphs of TensorFlow, and not all of it op by op."""
    many, few = programs(slower, other)[1]
    return not op_by_op(slower.profile) and many > MORE_PROGRAMS * few > 0


def programs(run: Analysis, other: Analysis) -> tuple[str, tuple[float, float]]:
    """What both runs dispatch of what a framework made of a step, and how many of them per step; 0: not known."""
    for what, key in (("compiled programs", PROGRAMS), ("graphs", CALLS)):
        one, less = (each.profile.conditions.get(key) or 0.0 for each in (run, other))
        if one and less:
            return what, (one, less)
    return "compiled programs", (0.0, 0.0)


def in_pieces(slower: Analysis, other: Analysis) -> bool:
    """Whether only the slower run got a program for each op, or for two."""
    return op_by_op(slower.profile) and not op_by_op(other.profile)


def taken_apart(run: Analysis, other: Analysis) -> bool:
    """Whether a run dispatches more compiled programs than the other one, which has none for each op."""
    many, few = (each.profile.conditions.get(PROGRAMS) or 0.0 for each in (run, other))
    return not op_by_op(other.profile) and many > MORE_PROGRAMS * few > 0


def compiled_in_vain(slower: Analysis, other: Analysis) -> bool:
    """Whether the slower run was to be compiled and mostly was not, and the other one is not the same."""
    if not meant_to_be_compiled(slower) or not mostly_eager(slower):
        return False
    return not (mostly_eager(other) and executor_of(other.profile) == executor_of(slower.profile))


def meant_to_be_compiled(run: Analysis) -> bool:
    """Whether a compiler was asked for."""
    asked = {run.profile.options.get("jit"), run.profile.switches.get("jit")}
    return run.profile.compilation is not None or bool(asked & _COMPILED)


def mostly_eager(run: Analysis) -> bool:
    """Whether a run's compiler had no part in most of its ops' time."""
    compilation = run.profile.compilation
    if compilation is None:
        return run.profile.profiled is not None and not compiles(run.profile)
    eager = sum(seconds for _, seconds in compilation.eager.values())
    return compilation.graphs == 0 or eager > _MOSTLY * run.busy
