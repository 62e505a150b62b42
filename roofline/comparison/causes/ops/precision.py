"""The same work in another arithmetic: TF32, bf16, fp16 or fp64 in one run only, and the casts that go with it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from roofline.analysis.caches.accesses import reads_kept
from roofline.comparison.arrays import Array, Bools, Rows
from roofline.comparison.causes.attribution import Attribution
from roofline.comparison.causes.cause import Cause
from roofline.comparison.causes.claim import NONE, Claim
from roofline.comparison.causes.facts import Facts
from roofline.comparison.causes.phrases import following, host_and_after, listed, moved, opening, ops
from roofline.comparison.causes.program import in_words_of, takes_options
from roofline.comparison.causes.select import FLOATS, VECTOR, WIDTH, are, both, casts, changes_width
from roofline.comparison.segments import Segments
from roofline.comparison.terms import Side
from roofline.core.framework import framework
from roofline.core.rows import buffers_known
from roofline.core.schema import Op, Profile
from roofline.core.switch import FLOAT32, Setting
from roofline.core.vocabulary import BOUNDS, CLASSES, PRODUCTS

#: Of one stretch, so many blocks are looked at one by one. By choice: a bound on the time that it takes.
_MOST_BLOCKS = 100
_GENERATED = re.compile(r"triton_(?!tem_)")  # by a compiler, but for its templates of products
_NAMED = {8: "fp64", 4: "fp32", 2: "16-bit types"}
#: The switch of JAX without which there is no float64.
_X64 = "jax_enable_x64"
#: Where to cast once what each step casts, by what the program is written with.
_CAST_ONCE = {
    "torch": "cast weights and input once (model.to(dtype) before the steps), not with .to(dtype) in each of them",
    "jax": "cast parameters and input once, outside of the step (jax.tree.map with astype)",
    "tensorflow": "cast variables and input once, outside of the step, not with tf.cast in each of them",
    "keras": "create the layers in the type that they compute in (dtype=...), so that no step casts their weights",
    "tf_keras": "create the layers in the type that they compute in (dtype=...), so that no step casts their weights",
}
#: What casts the results of a step's own ops, by what it is written with.
_CASTS = {
    "torch": ".to(dtype), .double() or .float()",
    "jax": "astype, or a constant of a wider type",
    "tensorflow": "tf.cast",
    "keras": "ops.cast, or layers of different dtypes",
    "tf_keras": "tf.cast, or layers of different dtypes",
}
#: Where a program sets what products of float32 data are computed in; of convolutions in PyTorch it is another switch.
SET_FLOAT32 = {
    "torch": "torch.set_float32_matmul_precision, and torch.backends.cudnn.allow_tf32 for convolutions",
    "jax": "jax.default_matmul_precision",
    "tensorflow": "tf.config.experimental.enable_tensor_float_32_execution",
}
#: Where a program sets the type it computes in.
_SET = {
    "torch": "model.to(dtype) or torch.autocast; look for .double() and .float()",
    "jax": "astype of parameters and input; look for float64 and astype",
    "tensorflow": "the dtype of variables and input; look for tf.cast",
    "keras": "keras.config.set_dtype_policy, or dtype=... of a layer",
    "tf_keras": "tf_keras.mixed_precision.set_global_policy, or dtype=... of a layer",
}


def claim(attribution: Attribution) -> Iterator[Claim]:
    """Matched products in another arithmetic, then, where runs share their ops, stretches of another type, and casts.

    Casts between ops that both runs have are there for what computes in another type, if something does; else they are
    what the one run does with its weights or its input in each step and the other one did before.
    """
    a, b, pairs = attribution.a.segments, attribution.b.segments, attribution.matching
    differ = [
        _computed_in(a, row) != _computed_in(b, partner)
        and None not in (_computed_in(a, row), _computed_in(b, partner))
        for row, partner in zip(pairs.pairs_a, pairs.pairs_b, strict=True)
    ]
    chosen = np.asarray(differ, bool)
    about: dict[str, str] = {}
    if chosen.any():
        rows, partners = pairs.pairs_a[chosen], pairs.pairs_b[chosen]
        about = _most_time(attribution, rows, partners)
        about["inputs"] = _same_inputs(a, rows, b, partners)
        yield Claim("precision", rows, partners, about=about)
    if not pairs.alike:
        yield from _wider(attribution)
        return
    alone = list[tuple[Rows, Rows]]()
    copies, wide = (casts(a), casts(b)), (changes_width(a), changes_width(b))
    for rows, partners in _stretches(attribution):
        types = [_types(some, chosen) for some, chosen in ((a, rows), (b, partners))]
        if types[0] != types[1] and all(types) and _dearer(attribution, (rows, partners), types, wide):
            about = {
                side: " and ".join(sorted(mine - other or mine))
                for side, mine, other in zip("ab", types, types[::-1], strict=True)
            }
            computing = _computing(a, rows, copies[0]), _computing(b, partners, copies[1])
            yield Claim("precision", *computing, about=about, host=True)
        elif (len(rows) > 0) != (len(partners) > 0) and copies[0][rows].all() and copies[1][partners].all():
            alone.append((rows, partners))
    # Alone they are a cause only where no run may make them inside of kernels that the other one does not fuse.
    fuses = bool(a.fused.any()) != bool(b.fused.any())
    for rows, partners in alone:
        if about or (not fuses and wide[0][rows].all() and wide[1][partners].all()):
            yield Claim("precision", rows, partners, about=about or _cast_alone(attribution, rows, partners), host=True)


def _most_time(attribution: Attribution, rows: Rows, partners: Rows) -> dict[str, str]:
    """What both runs compute in, of these products, where it is most of their time."""
    a, b = attribution.a, attribution.b
    seconds = defaultdict[tuple[str, str], float](float)
    for row, partner in zip(rows.tolist(), partners.tolist(), strict=True):
        types = str(_computed_in(a.segments, row)), str(_computed_in(b.segments, partner))
        seconds[types] += float(a.seconds[row] + b.seconds[partner])
    types = max(seconds, key=lambda each: seconds[each])
    return {"a": types[0], "b": types[1]}


def _cast_alone(attribution: Attribution, rows: Rows, partners: Rows) -> dict[str, str]:
    """What a claim about casts between the same ops says: what is cast, as far as it is known.

    kept: what is there before the step, as weights are; computed: the results of its ops.
    """
    comparison = attribution.comparison
    run, side, some = (comparison.a, attribution.a, rows) if len(rows) else (comparison.b, attribution.b, partners)
    if not buffers_known(run.profile):
        return {"casts": "only"}
    kept = reads_kept(run.profile)[side.segments.op[some]].any()
    return {"casts": "kept" if kept else "computed"}


def _wider(attribution: Attribution) -> Iterator[Claim]:
    """Of runs that share few ops, by phase: vector work of one in a wider type than any that the other one uses there.

    Which ops of the other run do the same is not known, but that these would move so much less in its type: as the
    width of both, of which the rest is claimed. Functions may take longer than that in a wider type, and libraries
    differ in by how much: of ops that evaluate them, and are not so small that their time is the launch, all is claimed
    but what is enough for them in the other run's type, where that is more. Of casts into the wider type and
    back all is.
    """
    free = attribution.rows(lambda some: np.isin([CLASSES[code] for code in some.op_class], sorted(VECTOR)))
    phases = [
        np.asarray([some.places[row].phase for row in rows.tolist()], object) for some, rows in _each(attribution, free)
    ]
    reached = [np.where(changes_width(some), _reached(some), 0) for some in both(attribution)]
    for phase in sorted({*phases[0]} & {*phases[1]}):
        rows = [chosen[of == phase] for chosen, of in zip(free, phases, strict=True)]
        types = [
            np.asarray([WIDTH.get(some.signature[row].dtype or "", 0) for row in chosen.tolist()])
            for some, chosen in _each(attribution, rows)
        ]
        widest = [int(of.max(initial=0)) for of in types]
        if widest[0] == widest[1] or not all(widest):
            continue
        more = int(widest[1] > widest[0])
        side, there = (attribution.a, attribution.b)[:: -1 if more else 1]
        mine, others = rows[more], rows[1 - more]
        casts = reached[more][mine] >= widest[more]
        if (reached[1 - more][others] >= widest[more]).any():  # then such casts have another reason
            casts = np.zeros(len(mine), bool)
        wide, evaluates = (types[more] == widest[more]) & ~casts, _evaluates(side.segments)[mine]
        functions = wide & evaluates & (side.segments.bound[mine] != BOUNDS.index("overhead"))
        narrower = widest[1 - more] / widest[more]
        enough = min(narrower, _enough(side, mine[functions], mine[~evaluates], there, others, narrower))
        about = {run: _NAMED[width] for run, width in zip("ab", widest, strict=True)}
        for chosen, part in ((casts, 1.0), (functions, 1 - enough), (wide & ~functions, 1 - narrower)):
            if chosen.any():
                a, b = (NONE, mine[chosen]) if more else (mine[chosen], NONE)
                yield Claim("precision", a, b, part_a=part, part_b=part, about=about)


def _reached(some: Segments) -> Array:
    """The bytes of the wider type of each segment, were it a cast: of what it reads or writes, or of its kernel."""
    found = [
        max(
            WIDTH.get(one.dtype or "", 0) * max(1.0, (one.cost.bytes_written or 0.0) / (one.cost.bytes_read or np.inf)),
            WIDTH.get(whole.dtype or "", 0),
        )
        for one, whole in zip(some.signature, some.whole, strict=True)
    ]
    return np.asarray(found, np.float64)


def _evaluates(some: Segments) -> Bools:
    """Which segments evaluate functions."""
    return np.asarray([any((one.cost.functions or {}).values()) for one in some.signature], bool)


def _enough(side: Side, rows: Rows, around: Rows, there: Side, others: Rows, narrower: float) -> float:
    """What part of the time of some segments is enough for the functions that they evaluate, in the other run's type.

    Each evaluation at what it takes the other run, in the ops of its phase that evaluate the same; besides what the
    segments would move in that type beyond what those ops move, at the rate of what is around and evaluates nothing.
    1 where that is not known.
    """
    number, seconds, moved = (defaultdict[str, float](float) for _ in range(3))
    for row in others[_evaluates(there.segments)[others]].tolist():
        functions = _functions(there.segments, row)
        for name, times in functions.items():
            share = times / functions.total()
            number[name] += times
            seconds[name] += float(there.seconds[row]) * share
            moved[name] += float(there.segments.bytes[row]) * share
    mine = sum((_functions(side.segments, row) for row in rows.tolist()), Counter[str]())
    took, traffic = float(side.seconds[rows].sum()), float(np.nansum(side.segments.bytes[around]))
    if not took or any(not number[name] for name in mine):
        return 1.0
    needed = sum(times * seconds[name] / number[name] for name, times in mine.items())
    beyond = float(side.segments.bytes[rows].sum()) * narrower
    beyond -= sum(times * moved[name] / number[name] for name, times in mine.items())
    if not beyond <= 0:  # or unknown
        needed += beyond * float(side.seconds[around].sum()) / traffic if traffic else np.inf
    return 1.0 if np.isnan(needed) else needed / took


def _functions(some: Segments, row: int) -> Counter[str]:
    """How often a segment evaluates which functions."""
    functions = some.signature[row].cost.functions or {}
    return Counter({name: times / int(some.times[row]) for name, times in functions.items() if times})


def _each(attribution: Attribution, rows: Sequence[Rows]) -> Iterator[tuple[Segments, Rows]]:
    return zip(both(attribution), rows, strict=True)


def _stretches(attribution: Attribution) -> Iterator[tuple[Rows, Rows]]:
    """What has no partner, by stretch, and in one by block where both runs have that: each has its own cause."""
    for stretch in attribution.matching.unmatched:
        rows, partners = attribution.free(stretch.a, stretch.b)
        places = [
            np.asarray([some.places[row].block for row in chosen.tolist()], object)
            for some, chosen in ((attribution.a.segments, rows), (attribution.b.segments, partners))
        ]
        shared = sorted({*places[0]} & {*places[1]})[:_MOST_BLOCKS]
        alone = rows[~np.isin(places[0], shared)], partners[~np.isin(places[1], shared)]
        if not shared or len({*places[0], *places[1]}) == 1 or _lost_its_place(attribution, (rows, partners), alone):
            yield rows, partners
            continue
        for block in shared:
            yield rows[places[0] == block], partners[places[1] == block]
        yield alone


def _lost_its_place(attribution: Attribution, stretch: tuple[Rows, Rows], alone: tuple[Rows, Rows]) -> bool:
    """Whether what stands in blocks of one run only is in the other run as well, in blocks of both."""
    if bool(len(alone[0])) == bool(len(alone[1])):
        return False
    names = [
        Counter(some.signature[row].name for row in rows) for some, rows in zip(both(attribution), stretch, strict=True)
    ]
    one, other = names if len(alone[0]) else names[::-1]
    some, rows = (attribution.a.segments, alone[0]) if len(alone[0]) else (attribution.b.segments, alone[1])
    here = Counter(some.signature[row].name for row in rows)
    return all(other[name] >= one[name] for name in here)


def _types(some: Segments, rows: Rows) -> set[str]:
    """The floating types that some segments compute in, as far as they are known.

    Of a kernel that a compiler generated and nothing is known of but its name, a type is that of an input: it reads in
    one type and computes in another.
    """
    known = (row for row in rows.tolist() if not _GENERATED.match(some.signature[row].name))
    return {str(some.signature[row].dtype) for row in known} & FLOATS


def _computing(some: Segments, rows: Rows, copies: Bools) -> Rows:
    """Some segments without copies that stay in their type, which have another cause. copies: which are casts."""
    kept: Rows = rows[~are(some, rows, {"movement"}) | copies[rows]]
    return kept


def _dearer(
    attribution: Attribution, rows: tuple[Rows, Rows], types: list[set[str]], wide: tuple[Bools, Bools]
) -> bool:
    """Whether the run that takes longer computes in a wider type, or copies into another one and back.

    In a type that the other one does not have: what it does in the same one has another cause. wide: which segments of
    either run are copies into another floating type.
    """
    times = [
        float(side.seconds[chosen].sum()) for side, chosen in zip((attribution.a, attribution.b), rows, strict=True)
    ]
    slower = int(times[1] > times[0])
    widest = [max(WIDTH[one] for one in some) for some in types]
    copied = bool(wide[slower][rows[slower]].any())
    return bool(types[slower] - types[1 - slower]) and (widest[slower] > widest[1 - slower] or copied)


def _computed_in(some: Segments, row: int) -> str | None:
    found = some.signature[row].precision
    return found.arithmetic if found and some.places[row].op_class in PRODUCTS else None


def _same_inputs(a: Segments, rows: Rows, b: Segments, partners: Rows) -> str:
    """The type of data of all these products of both runs; empty where they differ in it."""
    precisions = [some.signature[row].precision for some, those in ((a, rows), (b, partners)) for row in those.tolist()]
    types = {one.inputs for one in precisions if one is not None}
    return types.pop() if len(types) == 1 else ""


def sentence(facts: Facts) -> str:
    """What either run computes in, or how many casts the one makes."""
    if "casts" in facts.about:
        names, host = listed(facts.does_more.names), host_and_after(facts)
        what = "casts into another type"
        return f"{opening(facts, what)} that {facts.less} does not make: {moved(facts.does_more)} ({names}){host}."
    text = f"{opening(facts, 'the same work')}: {facts.about_more} where {facts.less} computes in {facts.about_less}"
    return f"{text}{following(facts)}."


def advice(facts: Facts) -> str:
    """To cast once; else where a precision is set: a flag of the command for its own models, or in the program."""
    if "casts" in facts.about:
        if facts.about["casts"] == "computed":
            how = in_words_of(facts.run_more.profile, _CASTS, "casts")
            return f"leave what the step computes in one type: look for {how} between these ops"
        if "optimizer" in facts.run_more.by("phase"):
            return "keep weights in the type that they are used in, or cast each once per step and not at each use"
        keep = "cast what stays the same once, before the steps, and keep it in the type it is used in"
        return in_words_of(facts.run_more.profile, _CAST_ONCE, keep)
    if all(takes_options(run.profile) for run in (facts.run_more, facts.run_less)):
        return "set the same precision in both (--precision fp32, or tf32, bf16 where the model allows it)"
    if facts.about.get("inputs") == "fp32":  # the data is of one type: what differs is a switch, and no cast
        names = dict.fromkeys(framework(run.profile) for run in (facts.run_more, facts.run_less))
        switches = [SET_FLOAT32[name] for name in names if name in SET_FLOAT32]
        how = "; ".join(switches) or "there is a switch of the framework for it"
        return f"compute products of float32 data alike in both: {how}"
    return f"compute in the same type in both: {in_words_of(facts.run_more.profile, _SET, 'set it in the program')}"


def label(facts: Facts) -> str:
    """Both types, or how many casts."""
    if "casts" in facts.about:
        return f"casts into another type ({ops(facts.does_more)} against {ops(facts.does_less)})"
    return f"precision ({facts.about_more} against {facts.about_less})"


def setting(mine: Profile, other: Profile) -> Setting | None:
    """TF32 for products of float32 data, or none of it: what this run does not do, and the other does if they differ.

    None where it is not known how this run's products ran, or where they did not run as was asked for: then nothing
    that could be asked for is sure to change them. Of JAX also no float64, where only the other run has none.
    """
    if mine.switches.get(_X64) == "True" and other.switches.get(_X64) == "False":
        return Setting(
            text="jax_enable_x64 True -> False",
            moves=(f"switch {_X64}",),
            in_step={_X64: "False"},
        )
    if mine.device.kind != "cuda" or mine.precision not in ("default", "fp32", "tf32"):
        return None
    now = _tf32(mine)
    if now is None and mine.precision != "default":
        now = mine.precision == "tf32"
    if now is None:
        return None
    target = "fp32" if now else "tf32"
    if target == mine.precision:
        return None
    moves = ("precision", "switch float32 *", "switch jax_default_matmul_precision")
    if mine.own_step:  # which may take no precision: the process is told
        before = "tf32" if now else "fp32"
        return Setting(
            text=f"float32 products {before} -> {target}", moves=moves[1:], in_step={FLOAT32: "ieee" if now else "tf32"}
        )
    return Setting(text=f"precision {mine.precision} -> {target}", moves=moves, precision=target)


def _tf32(profile: Profile) -> bool | None:
    """Whether products of float32 data ran in less than IEEE arithmetic, by executed FLOPs; None: not recorded.

    What was asked for says little: frameworks differ in what they do by default, and switches may not reach a kernel.
    """
    flops = {True: 0.0, False: 0.0}
    for op in profile.ops:
        arithmetic = _arithmetic(profile, op)
        if arithmetic is not None:
            flops[arithmetic != "fp32"] += profile.signatures[op.signature].cost.flops or 0.0
    return None if not any(flops.values()) else flops[True] > flops[False]


def _arithmetic(profile: Profile, op: Op) -> str | None:
    """That of a product of float32 data: of the op, or of the first of its constituents that has one."""
    for number in (op.signature, *op.constituents):
        precision = profile.signatures[number].precision
        if precision is not None:
            return precision.arithmetic if precision.inputs == "fp32" else None
    return None


CAUSE = Cause(
    name="precision",
    claim=claim,
    after=("more-work",),
    sentence=sentence,
    advice=advice,
    label=label,
    setting=setting,
)
