"""Say what runs a step: ops one by one, a graph, or compiled code."""

from __future__ import annotations

from roofline.analysis.analysis import Analysis
from roofline.core.executor import COMPILED_CODE, op_by_op

#: What runs a step, by the mechanism that launches its ops, where no compiler is recorded.
_MECHANISMS = {"eager": "op by op", "cuda-graph": "replayed as CUDA graphs", "tensorflow-graph": "a TensorFlow graph"}
#: What ran where XLA's executor did, by the switch `jit`.
_BY_XLA = {
    "off": "XLA, op by op",
    "autocluster": "XLA, auto-clustered",
    "in part": "a TensorFlow graph, in part compiled by XLA",
}


def mechanism(run: Analysis) -> str:
    """Say what runs the step, in the words of no framework: ops one by one, a graph, or compiled code."""
    profile = run.profile
    launched = profile.profiled.mechanism if profile.profiled else "eager"
    if profile.compilation is not None:
        compiler, mode = profile.compilation.compiler, profile.compilation.mode
        if "nothing-compiled" in profile.flags:
            return f"op by op, as {compiler} compiled nothing"
        replayed = ", replayed as CUDA graphs" if launched == "cuda-graph" else ""
        return f"compiled by {compiler}{f', mode {mode}' if mode else ''}{replayed}"
    if launched == "xla-thunk":
        jit = profile.switches.get("jit", "on")
        # A step of the user's jits what it wants, and no switch knows of it: its programs do.
        return _BY_XLA.get("off" if jit == "on" and op_by_op(profile) else jit, "compiled by XLA")
    if COMPILED_CODE in profile.flags:
        return "op by op, beside compiled code"
    return _MECHANISMS.get(launched, launched)
