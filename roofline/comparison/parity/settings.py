"""Whether two runs were set alike: dropout, attention form, GELU, masks, loss, optimizer, jit and other switches.

What ran is stronger than what a switch says: a fused attention kernel is one whatever was asked for. Switches of
different frameworks meet under the names below.
"""

from __future__ import annotations

from roofline.analysis.analysis import Analysis
from roofline.comparison.parity.difference import Difference, Pair
from roofline.comparison.parity.random import dropout, noise
from roofline.core.cost import NOT_FUSED
from roofline.core.executor import CALLS, COMPILED_CODE, PROGRAMS, HostLaunches, host_launches, op_by_op
from roofline.core.framework import framework
from roofline.core.schema import Compilation, Op, Profile, Signature
from roofline.units import plain

#: Values of "gelu" that mean the same: PyTorch's `approximate`, booleans of Keras and JAX, names of transformers.
GELU = {
    **dict.fromkeys(("erf", "none", "exact", "false", "gelu"), "erf"),
    **dict.fromkeys(("tanh", "true", "approximate", "gelu_new", "gelu_pytorch_tanh"), "tanh"),
}
#: Kinds of fused attention kernels, by what their names hold; the first that fits.
#: PyTorch's memory-efficient kernels are cutlass's; cuDNN's say "flash", too, and another's fmha is of no known kind.
FUSED = (
    ("cudnn", "cuDNN"),
    ("fmha_cutlass", "memory-efficient"),
    ("efficient", "memory-efficient"),
    ("flash", "flash"),
)
#: Settings of an optimizer that change its kernels. Its numbers (rate, betas) change no work.
_OPTIMIZER_KERNELS = ("optimizer foreach", "optimizer fused", "optimizer kernel", "optimizer jit", "optimizer amsgrad")
#: What ran where XLA's executor did, by the switch `jit`.
_BY_XLA = {
    "off": "XLA, op by op",
    "autocluster": "XLA, auto-clustered",
    "in part": "a TensorFlow graph, in part compiled by XLA",
}
#: Switches that another rule judges.
_JUDGED = frozenset(
    ("attention", "attention mask", "gelu", "dropout", "loss", "input", "jit", "tf32", "keras backend", "kv cache")
)
_JUDGED_FAMILIES = ("optimizer", "float32 ")
#: Switches that are recorded where they are not as here.
_UNLESS = {"detect_anomaly": "False"}
#: Switches that mean the same in every framework.
_SHARED = frozenset(("image layout", "gradient scaler", "guidance", "scheduler"))
_CORE = "attention core"


def settings(pair: Pair) -> list[Difference]:
    """All differences in how the step was set; where a run has no record of that, as a trace, one for all it lacks."""
    found = [
        *dropout(pair),
        *noise(pair),
        *_attention(pair),
        *_stated(pair, "attention mask", "The attention masks differ", pair.apart("block", (_CORE,))),
        *_gelu(pair),
        *_stated(pair, "loss", "The losses differ", pair.apart("block", ("loss",))),
        *_optimizer(pair),
        *_stated(pair, "kv cache", "Keys and values are cached differently", None),
        *_stated(pair, "input", "The inputs lie elsewhere when a step begins", pair.apart("class", ("transfer",))),
        *_jit(pair),
        *_graphs(pair),
        *_calls(pair),
        *_launches(pair),
        *_others(pair),
    ]
    a, b = pair.each(lambda run: bool(run.profile.switches))
    if a == b:
        return found
    told = [each for each in found if None not in (each.a, each.b)]
    names = ", ".join(each.what for each in found if None in (each.a, each.b))
    if names:
        text = "The settings of one run are not recorded, so they cannot be verified"
        told.append(pair.differ("settings", (names if a else None, names if b else None), text))
    return told


def _stated(pair: Pair, what: str, text: str, seconds: float | None) -> list[Difference]:
    """A switch of all frameworks by one name; missing on one side it is named as not recorded."""
    values = pair.switches(what)
    if values[0] == values[1]:
        return []
    return [
        pair.differ(what, values, f"The {what} of one run is not known" if None in values else text, seconds=seconds)
    ]


# ------------------------------------------------------------------------------------------------ attention and GELU


def _attention(pair: Pair) -> list[Difference]:
    """A fused kernel, and which, or written out: as it ran. seconds: |t_A - t_B| of the block "attention core"."""
    values = pair.each(_form)
    if values[0] == values[1]:
        return []
    text = "The attention of one run is not known" if None in values else "The attention forms differ"
    return [pair.differ("attention", values, text, seconds=pair.apart("block", (_CORE,)))]


def _form(run: Analysis) -> str | None:
    profile = run.profile
    names = {
        " ".join((profile.signatures[number].name, *(profile.kernels[kernel] for kernel, _ in op.kernels))).lower()
        for op in profile.ops
        for number in (op.signature, *op.constituents)
        if profile.signatures[number].op_class == "attention"
    }
    if names:
        kinds = {next((kind for part, kind in FUSED if part in name), "") for name in names} - {""}
        return f"a fused kernel ({', '.join(sorted(kinds))})" if kinds else "a fused kernel"
    if any(NOT_FUSED in signature.cost.note for signature in profile.signatures):
        return "a call of fused attention that no fused kernel carries out"
    return "written out" if "attention" in profile.switches or _CORE in run.by("block") else None


def _gelu(pair: Pair) -> list[Difference]:
    """erf or tanh, by the switch, else by what GELU ops evaluate. seconds: |t_A - t_B| of pointwise ops in the FFN."""
    values = pair.each(lambda run: _variant(run.profile))
    if values[0] == values[1]:
        return []

    def chosen(run: Analysis, op: Op) -> bool:
        return run.profile.blocks[op.block] == "FFN" and run.op_class(op) == "pointwise"

    text = "The GELU of one run is not known" if None in values else "The GELU variants differ"
    return [pair.differ("gelu", values, text, seconds=pair.apart_where(chosen))]


def _variant(profile: Profile) -> str | None:
    stated = profile.switches.get("gelu")
    if stated is not None:
        return GELU.get(stated.lower(), stated)
    kinds = {_evaluates(each) for each in profile.signatures if each.kind.startswith("gelu")} - {None}
    return kinds.pop() if len(kinds) == 1 else None


def _evaluates(signature: Signature) -> str | None:
    functions = signature.cost.functions or {}
    return next((name for name in ("erf", "tanh") if functions.get(name)), None)


# ------------------------------------------------------------------------------------------------ optimizer and jit


def _optimizer(pair: Pair) -> list[Difference]:
    """No update in one run is refused; another rule, or other kernels for it, are named.

    That a run has no optimizer must be said: an update written by hand is in no phase of its own.
    What that explains at most is not known: it is not the phase alone, but also its host and what follows.
    """
    if not pair.a.profile.mode == pair.b.profile.mode == "train":
        return []
    values = pair.each(_rule)
    if "none" in values and None not in values and values[0] != values[1]:
        return [pair.differ("optimizer", values, "Only one run updates its parameters", "refused")]
    unstated = pair.each(lambda run: "optimizer" not in run.profile.switches)
    if any(unstated) and not all(unstated):
        values = (None if unstated[0] else values[0], None if unstated[1] else values[1])
    if values[0] != values[1]:
        text = "The optimizer of one run is not known" if None in values else "The optimizers differ"
        return [pair.differ("optimizer", values, text)]
    a, b = pair.each(lambda run: run.profile.switches)
    names = [name for name in _OPTIMIZER_KERNELS if name in a and name in b and a[name] != b[name]]
    if not names:
        return []
    shown = tuple(", ".join(f"{name.removeprefix('optimizer ')} {each[name]}" for name in names) for each in (a, b))
    text = "The optimizers run in different ways"
    return [pair.differ("optimizer kernels", (shown[0], shown[1]), text)]


def _rule(run: Analysis) -> str | None:
    """The optimizer as recorded, AdamW without decay as Adam; "of its own" where only its ops are seen."""
    switches = run.profile.switches
    if "optimizer" not in switches:
        return "of its own" if "optimizer" in run.by("phase") else None
    undecayed = switches["optimizer"] == "AdamW" and switches.get("optimizer weight_decay") in ("0", "0.0")
    return "Adam" if undecayed else switches["optimizer"]


def _jit(pair: Pair) -> list[Difference]:
    """What runs the step: ops one by one, a graph, or compiled code. No rule says how much of the time that is."""
    values = pair.each(lambda run: mechanism(run.profile))
    return [] if values[0] == values[1] else [pair.differ("jit", values, "The step is run in different ways")]


def mechanism(profile: Profile) -> str:
    """What runs the step, in the words of no framework."""
    launched = profile.profiled.mechanism if profile.profiled else "eager"
    jit = profile.switches.get("jit")
    if profile.compilation is not None:
        mode = f", mode {profile.compilation.mode}" if profile.compilation.mode else ""
        by = f"compiled by {profile.compilation.compiler}{mode}"
        if "nothing-compiled" in profile.flags:
            return f"op by op, as {profile.compilation.compiler} compiled nothing"
        return f"{by}, replayed as CUDA graphs" if launched == "cuda-graph" else by
    if launched == "xla-thunk":
        # A step of the user's jits what it wants, and no switch knows of it: its programs do.
        apart = jit in (None, "on") and op_by_op(profile)
        return _BY_XLA.get("off" if apart else jit or "", "compiled by XLA")
    if COMPILED_CODE in profile.flags:
        return "op by op, beside compiled code"
    names = {"eager": "op by op", "cuda-graph": "replayed as CUDA graphs", "tensorflow-graph": "a TensorFlow graph"}
    return names.get(launched, launched)


def _graphs(pair: Pair) -> list[Difference]:
    """How many graphs one compiler made of the step, and how often it broke off."""
    a, b = pair.each(lambda run: run.profile.compilation)
    nothing = any(pair.each(lambda run: "nothing-compiled" in run.profile.flags))
    if a is None or b is None or a.compiler != b.compiler or nothing:
        return []
    values = _made_of_it(a), _made_of_it(b)
    return [] if values[0] == values[1] else [pair.differ("compiled graphs", values, "The step is compiled otherwise")]


def _made_of_it(compilation: Compilation) -> str:
    """ "3 graphs, 2 graph breaks"."""
    breaks = sum(compilation.breaks.values())
    return ", ".join([_many(compilation.graphs, "graph"), *([_many(breaks, "graph break")] if breaks else [])])


def _calls(pair: Pair) -> list[Difference]:
    """How many compiled programs, or functions of TensorFlow, Python calls in a step that is not compiled op by op."""
    if any(pair.each(lambda run: op_by_op(run.profile))):
        return []
    found = []
    for key, what in ((PROGRAMS, "compiled programs"), (CALLS, "calls of graphs")):
        a, b = (run.profile.conditions.get(key) for run in (pair.a, pair.b))
        if a is not None and b is not None and round(a) != round(b):
            values = f"{round(a)} per step", f"{round(b)} per step"
            found.append(pair.differ(what, values, f"Python runs another number of {what}"))
    return found


def _launches(pair: Pair) -> list[Difference]:
    """What the host of a GPU launches, where it launches graphs in one run: each is one launch of many kernels."""
    a, b = pair.each(lambda run: host_launches(run.profile))
    if a == b or not any(launches and launches.graphs for launches in (a, b)):
        return []
    text = (
        "The host launches kernels in different ways" if a and b else "What the host of one run launches is not known"
    )
    return [pair.differ("host launches", (_launched(a), _launched(b)), text)]


def _launched(launches: HostLaunches | None) -> str | None:
    """ "1 graph of 129 kernels and 1 kernel"."""
    if launches is None:
        return None
    graphs, kernels = round(launches.graphs), round(launches.kernels)
    told = [f"{_many(graphs, 'graph')} of {_many(round(launches.replayed), 'kernel')}"] if graphs else []
    return " and ".join([*told, _many(kernels, "kernel")] if kernels or not told else told)


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# ------------------------------------------------------------------------------------------------ the other switches


def _others(pair: Pair) -> list[Difference]:
    """Switches that no rule above judges, compared within one framework: two use one name for different things.

    One that a run lacks is named where the backends are the same.
    """
    a, b = pair.a.profile, pair.b.profile
    if framework(a) != framework(b):
        names = {*a.switches} & {*b.switches} & _SHARED
    elif a.backend != b.backend:
        names = {*a.switches, *_UNLESS} & {*b.switches, *_UNLESS}
    else:
        names = {*a.switches, *b.switches}
    # Those of a compiler bear its name, and are judged with what runs the step.
    compilers = {run.compilation.compiler for run in (a, b) if run.compilation} - {""}
    judged = *_JUDGED_FAMILIES, *compilers
    found = []
    for name in sorted(names - _JUDGED):
        values = _switch(a, name), _switch(b, name)
        if values[0] != values[1] and not name.startswith(judged):
            found.append(pair.differ(f"switch {plain(name)}", values, f"The switch {plain(name)} differs"))
    return found


def _switch(profile: Profile, name: str) -> str | None:
    """A switch as it was recorded, or as it is where it was not; None where that is not known."""
    return profile.switches.get(name, _UNLESS.get(name) if profile.switches else None)
