"""Say whether two runs were set alike: dropout, attention form, GELU, masks, loss, optimizer, jit and other switches.

What ran is stronger than what a switch says: a fused attention kernel is one whatever was asked for. Switches of
different frameworks meet under the names below.
"""

from __future__ import annotations

from roofline.analysis.analysis import Analysis
from roofline.comparison.parity.difference import Difference, Pair, seconds_of, seconds_where
from roofline.comparison.parity.mechanism import mechanism
from roofline.comparison.parity.random import dropout, noise
from roofline.core.cost import NOT_FUSED
from roofline.core.executor import CALLS, PROGRAMS, HostLaunches, host_launches, op_by_op
from roofline.core.framework import framework
from roofline.core.schema import Compilation, Op, Profile
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
    """Compare how the step was set; of a run without a record, as a trace, one difference says what it lacks."""
    core = pair.explains(lambda run: seconds_of(run, "block", _CORE))
    loss = pair.explains(lambda run: seconds_of(run, "block", "loss"))
    copies = pair.explains(lambda run: seconds_of(run, "class", "transfer"))
    ffn = pair.explains(lambda run: seconds_where(run, _is_pointwise_of_ffn))
    differences = [
        *dropout(pair),
        *noise(pair),
        *pair.compare("attention", pair.each(_attention), "The attention forms differ", seconds=core),
        *pair.compare("attention mask", pair.switches("attention mask"), "The attention masks differ", seconds=core),
        *pair.compare("gelu", pair.each(_gelu), "The GELU variants differ", seconds=ffn),
        *pair.compare("loss", pair.switches("loss"), "The losses differ", seconds=loss),
        *_optimizer(pair),
        *pair.compare("kv cache", pair.switches("kv cache"), "Keys and values are cached differently"),
        *pair.compare(
            "input", pair.switches("input"), "The inputs are in different places when a step begins", seconds=copies
        ),
        *pair.compare("jit", pair.each(mechanism), "The step is run in different ways"),
        *_graphs(pair),
        *_calls(pair),
        *_launches(pair),
        *_others(pair),
    ]
    a, b = pair.each(lambda run: bool(run.profile.switches))
    lacking = ", ".join(difference.what for difference in differences if None in (difference.a, difference.b))
    if a == b or not lacking:
        return differences
    text = "The settings of one run are not recorded, so they cannot be verified"
    recorded = [difference for difference in differences if None not in (difference.a, difference.b)]
    return [*recorded, pair.differ("settings", (lacking if a else None, lacking if b else None), text)]


def _is_pointwise_of_ffn(run: Analysis, op: Op) -> bool:
    return run.profile.blocks[op.block] == "FFN" and run.op_class(op) == "pointwise"


def _attention(run: Analysis) -> str | None:
    """Say whether attention ran as a fused kernel, and which, or unfused."""
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


def _gelu(run: Analysis) -> str | None:
    """Say whether GELU is by erf or tanh: by the switch, else by what all GELU ops evaluate."""
    stated = run.profile.switches.get("gelu")
    if stated is not None:
        return GELU.get(stated.lower(), stated)
    kinds = {
        function
        for signature in run.profile.signatures
        for function in signature.cost.functions or ()
        if signature.kind.startswith("gelu") and function in ("erf", "tanh")
    }
    return kinds.pop() if len(kinds) == 1 else None


def _optimizer(pair: Pair) -> list[Difference]:
    """Refuse a run without an update beside one that has it; name another rule, or other kernels for it.

    That a run has no optimizer must be said: an update written by hand is in no phase of its own.
    What that explains at most is not known: it is not the phase alone, but also its host and what follows.
    """
    if not pair.a.profile.mode == pair.b.profile.mode == "train":
        return []
    rules = pair.each(_rule)
    if "none" in rules and None not in rules and rules[0] != rules[1]:
        return [pair.differ("optimizer", rules, "Only one run updates its parameters", "refused")]
    a, b = pair.each(lambda run: run.profile.switches)
    if ("optimizer" in a) != ("optimizer" in b):  # one of which only the ops are seen may be any
        rules = (rules[0] if "optimizer" in a else None, rules[1] if "optimizer" in b else None)
    differences = pair.compare("optimizer", rules, "The optimizers differ")
    names = [name for name in _OPTIMIZER_KERNELS if name in a and name in b and a[name] != b[name]]
    if differences or not names:
        return differences
    ways = [
        ", ".join(f"{name.removeprefix('optimizer ')} {run_switches[name]}" for name in names)
        for run_switches in (a, b)
    ]
    return pair.compare("optimizer kernels", (ways[0], ways[1]), "The optimizers run in different ways")


def _rule(run: Analysis) -> str | None:
    """Say the optimizer as recorded, AdamW without decay as Adam; "of its own" where only its ops are seen."""
    switches = run.profile.switches
    if "optimizer" not in switches:
        return "of its own" if "optimizer" in run.by("phase") else None
    undecayed = switches["optimizer"] == "AdamW" and switches.get("optimizer weight_decay") in ("0", "0.0")
    return "Adam" if undecayed else switches["optimizer"]


def _graphs(pair: Pair) -> list[Difference]:
    """Compare how many graphs one compiler made of the step, and how often it broke off."""
    a, b = pair.each(lambda run: run.profile.compilation)
    nothing = any(pair.each(lambda run: "nothing-compiled" in run.profile.flags))
    if a is None or b is None or a.compiler != b.compiler or nothing:
        return []
    return pair.compare("compiled graphs", (_compiled(a), _compiled(b)), "The step is compiled differently")


def _compiled(compilation: Compilation) -> str:
    """Say "3 graphs, 2 graph breaks"."""
    graphs, breaks = _many(compilation.graphs, "graph"), sum(compilation.breaks.values())
    return f"{graphs}, {_many(breaks, 'graph break')}" if breaks else graphs


def _calls(pair: Pair) -> list[Difference]:
    """Compare how many compiled programs, or functions of TensorFlow, Python calls in a step not compiled op by op."""
    if any(pair.each(lambda run: op_by_op(run.profile))):
        return []
    differences = []
    for key, noun in ((PROGRAMS, "compiled programs"), (CALLS, "calls of graphs")):
        a, b = pair.a.profile.conditions.get(key), pair.b.profile.conditions.get(key)
        if a is not None and b is not None:
            values = f"{round(a)} per step", f"{round(b)} per step"
            differences += pair.compare(noun, values, f"Python runs another number of {noun}")
    return differences


def _launches(pair: Pair) -> list[Difference]:
    """Compare what the host of a GPU launches where that is graphs in one run: each is one launch of many kernels."""
    a, b = pair.each(lambda run: host_launches(run.profile))
    if a == b or not any(launches and launches.graphs for launches in (a, b)):
        return []
    text = "The host launches kernels in different ways"
    text = text if a and b else "What the host of one run launches is not known"
    return [pair.differ("host launches", (_launched(a), _launched(b)), text)]


def _launched(launches: HostLaunches | None) -> str | None:
    """Say "1 graph of 129 kernels and 1 kernel"."""
    if launches is None:
        return None
    graphs, kernels = round(launches.graphs), _many(round(launches.kernels), "kernel")
    if not graphs:
        return kernels
    replayed = f"{_many(graphs, 'graph')} of {_many(round(launches.replayed), 'kernel')}"
    return f"{replayed} and {kernels}" if round(launches.kernels) else replayed


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _others(pair: Pair) -> list[Difference]:
    """Compare the switches that no rule above judges within one framework: two use one name for different things.

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
    differences = []
    for name in sorted(names - _JUDGED):
        values = _switch(a, name), _switch(b, name)
        if values[0] != values[1] and not name.startswith(judged):
            differences.append(pair.differ(f"switch {plain(name)}", values, f"The switch {plain(name)} differs"))
    return differences


def _switch(profile: Profile, name: str) -> str | None:
    """Return a switch as it was recorded, or as it is where it was not; None where that is not known."""
    return profile.switches.get(name, _UNLESS.get(name) if profile.switches else None)
