"""What the page on Keras 3 says of its table, version of April 2024."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

from roofline.published.claims._claim import Claim, more, teraflops, times
from roofline.published.implied import Implied, implied
from roofline.published.publication import Publication

#: (task, batch) of a row.
Place = tuple[str, str]

_EAGER, _COMPILED, _KERAS2 = "Native PyTorch (eager)", "Native PyTorch (compiled)", "Keras 2 (TF)"
_JAX, _TF, _TORCH = "Keras 3 (JAX)", "Keras 3 (TF)", "Keras 3 (PyTorch eager)"
_BACKENDS = (_TF, _JAX, _TORCH)
_FIRST = "2024-03 first (v0.0.1)"
#: The page counts ten tasks; its table has twelve rows, two of them generating for one prompt.
_TENTH = "1"


class Figures:
    """The table by row and column, as times [s]."""

    def __init__(self, publication: Publication, version: str = "") -> None:
        self.publication = publication
        shown = [cell for cell in publication.cells if cell.version == (version or publication.versions[0])]
        self.cells = {(cell.task, cell.batch, cell.column): cell for cell in shown}
        self.seconds = {place: cell.seconds for place, cell in self.cells.items() if cell.seconds is not None}
        self.rows: tuple[Place, ...] = tuple(dict.fromkeys((cell.task, cell.batch) for cell in shown))

    def best(self, row: Place) -> float:
        """The best backend of Keras 3 [s]."""
        return min(self.seconds[*row, column] for column in _BACKENDS)

    def gains(self, column: str) -> dict[Place, float]:
        """How many times as fast Keras 3's best backend is as a column, in the rows that the column has."""
        return {row: self.seconds[*row, column] / self.best(row) for row in self.rows if (*row, column) in self.seconds}

    def rate(self, task: str, column: str) -> Implied:
        """What the cell of a task implies; KeyError where the task has several rows."""
        return implied(self.publication, self.publication.find(task, column))

    def winners(self, columns: tuple[str, ...]) -> dict[str, int]:
        """How many rows each column is the fastest in."""
        fastest = [
            min((self.seconds[*row, column], column) for column in columns if (*row, column) in self.seconds)[1]
            for row in self.rows
        ]
        return {column: fastest.count(column) for column in columns}

    def fastest(self) -> dict[str, int]:
        """How many rows each column of the table is the fastest in."""
        return self.winners(tuple(dict.fromkeys(column for _, _, column in self.seconds)))


def claims(publication: Publication) -> tuple[Claim, ...]:
    """In the order of the page's findings."""
    figures = Figures(publication)
    made: tuple[Callable[[Figures], Claim], ...] = (
        _no_best_backend,
        _jax_first,
        _faster_everywhere,
        _twice_as_fast,
        _slower_where_compiled,
        _faster_than_compiled,
        _faster_than_keras2,
        _sam_predict,
        _sd_fit,
        _bert_fit,
        _only_upgraded,
        _because_of_fused_ops,
        _generate,
    )
    return tuple(one(figures) for one in made)


def _no_best_backend(figures: Figures) -> Claim:
    won = figures.winners(_BACKENDS)
    return Claim(
        says="No backend of Keras 3 is always the fastest.",
        where="Key finding 1",
        arithmetic=f"Of 12 rows JAX is first in {won[_JAX]}, TensorFlow in {won[_TF]}, PyTorch in {won[_TORCH]}.",
        verdict="true",
        figures={"JAX": won[_JAX], "TensorFlow": won[_TF], "PyTorch": won[_TORCH]},
        why=(
            "True of JAX and TensorFlow, both compiled by XLA. PyTorch, the only one that runs eagerly, is never "
            "first. Where the two are within a few percent, one run of 100 steps without a spread decides nothing."
        ),
    )


def _jax_first(figures: Figures) -> Claim:
    among, overall = figures.winners(_BACKENDS)[_JAX], figures.fastest()[_JAX]
    first = Figures(figures.publication, _FIRST).fastest()[_JAX]
    close = figures.seconds["SD fit", "8", _TF] / figures.seconds["SD fit", "8", _JAX]
    return Claim(
        says="JAX is first in 7 rows.",
        where="read off the table; the page marks the best cell of each row",
        arithmetic=(
            f"Among the backends of Keras 3 JAX is first in {among} of 12 rows, among all columns in {overall}; among "
            f"all columns of the first version in {first}. One of them, SD fit, by {100 * (close - 1):.1f} %."
        ),
        verdict="depends",
        figures={"backends": among, "all columns": overall, "first version": first, "SD fit, TF / JAX": close},
        why=(
            "It depends on whom it is compared with: in SD fit compiled native PyTorch, which the first version had "
            "not, is faster. 4 of the rows are generate, where a loop that XLA compiled as a whole is closer to its "
            "memory roof than one that Python drives; more the table does not say."
        ),
    )


def _faster_everywhere(figures: Figures) -> Claim:
    gains = figures.gains(_EAGER)
    least = min(gains, key=lambda row: gains[row])
    return Claim(
        says="Keras 3 with its best backend is faster than native PyTorch for all models (default settings).",
        where="Key finding 2, figure 1",
        arithmetic=f"In {sum(gain > 1 for gain in gains.values())} of {len(gains)} rows; least in {least[0]}, "
        f"{times(gains[least])} as fast.",
        verdict="true",
        figures={"rows": len(gains), "faster": sum(gain > 1 for gain in gains.values()), "least": gains[least]},
        why=(
            "Default settings are not one arithmetic: TensorFlow and JAX multiply float32 in TF32, PyTorch's matmul "
            "does not. That concerns SAM and BERT, the largest gaps; the next claim says how much of one it is."
        ),
    )


def _twice_as_fast(figures: Figures) -> Claim:
    gains = figures.gains(_EAGER)
    ten = _ten(gains)
    jax, native = figures.rate("BERT predict", _JAX), figures.rate("BERT predict", _EAGER)
    seconds = jax.cell.seconds or 0.0
    kept = jax.floors["fp32"] / seconds
    return Claim(
        says="More than 100 % more throughput than native PyTorch in 5 of 10 tasks, at most 340 %.",
        where="Key finding 2",
        arithmetic=(
            f"{_above(ten, 2)} of 10 without the rows that generate for one prompt, {_above(gains, 2)} of 12 with "
            f"them; most {more(max(gains.values()))}, BERT predict."
        ),
        verdict="true",
        figures={
            "of ten": _above(ten, 2),
            "of twelve": _above(gains, 2),
            "most": max(gains.values()),
            "floor in fp32 / JAX": kept,
        },
        why=(
            f"For JAX, BERT predict implies {teraflops(jax)}, above the ceiling of IEEE FP32; for native PyTorch "
            f"{teraflops(native)}, and its matmul computes in IEEE FP32 by default. There the products alone take at "
            f"least {jax.floors['fp32']:.2f} s, {times(kept)} what JAX took for everything: of the factor "
            f"{gains['BERT predict', '256']:.2f} at least so much is arithmetic, and no other kernel would help."
        ),
    )


def _slower_where_compiled(figures: Figures) -> Claim:
    gains = _ten(figures.gains(_COMPILED))
    slower = {row: 1 - gain for row, gain in gains.items() if gain < 1}
    return Claim(
        says="With torch.compile, Keras 3 is 1 to 9 % slower in 4 of 10 tasks.",
        where="Key finding 2, figure 2",
        arithmetic=f"{len(slower)} of 10: "
        + ", ".join(f"{task} {100 * less:.1f} %" for (task, _), less in slower.items())
        + " less throughput.",
        verdict="true",
        figures={task: less for (task, _), less in slower.items()},
        why=(
            f"In BERT fit this column implies {teraflops(figures.rate('BERT fit', _COMPILED))}: it is no IEEE FP32 "
            "either, because the Trainer turns TF32 on when it compiles. Both columns of SD fit are above IEEE FP32, "
            "and Gemma and Mistral are in bfloat16. So where both sides compute alike, compiled PyTorch is ahead; why, "
            "the table does not say."
        ),
    )


def _faster_than_compiled(figures: Figures) -> Claim:
    gains = figures.gains(_COMPILED)
    ten = _ten(gains)
    native = figures.rate("SAM predict", _COMPILED)
    kept = native.floors["fp32"] / figures.best(("SAM predict", "4"))
    apart = [
        figures.seconds[*row, _EAGER] / figures.seconds[*row, _COMPILED]
        for row in figures.rows
        if row[0].endswith("generate")
    ]
    return Claim(
        says="With torch.compile, Keras 3 still has more than 50 % more throughput in 5 of 10 tasks, at most 290 %.",
        where="Key finding 2, figure 2",
        arithmetic=(
            f"{_above(ten, 1.5)} of 10 without the rows that generate for one prompt, {_above(gains, 1.5)} of 12 with "
            f"them; most {more(max(gains.values()))}, SAM predict."
        ),
        verdict="true",
        figures={
            "of ten": _above(ten, 1.5),
            "of twelve": _above(gains, 1.5),
            "most": max(gains.values()),
            "floor in fp32 / JAX": kept,
        },
        why=(
            f"SAM predict, compiled, implies {teraflops(native)}, PyTorch's default for matmul, which this loop does "
            f"not change. The image encoder alone takes at least {native.floors['fp32']:.2f} s in it, {times(kept)} "
            "what JAX took for the whole model: so much of the factor is arithmetic. The rows that generate were "
            f"probably not compiled: the two native columns are within {100 * (max(apart) - 1):.0f} % of each other, "
            "and in a later version generate of a compiled model was seen to run that of the original one."
        ),
    )


def _faster_than_keras2(figures: Figures) -> Claim:
    gains = figures.gains(_KERAS2)
    least = min(gains, key=lambda row: gains[row])
    return Claim(
        says="Keras 3 with its best backend is faster than Keras 2 in every benchmark.",
        where="Key finding 4",
        arithmetic=f"In {_above(gains, 1)} of the {len(gains)} rows that Keras 2 has; least in {least[0]}, "
        f"{times(gains[least])} as fast.",
        verdict="true",
        figures={"rows": len(gains), "faster": _above(gains, 1), "least": gains[least]},
        why="In two of the rows it is XLA against none, as far as the scripts say: see the next claims.",
    )


def _sam_predict(figures: Figures) -> Claim:
    gain = figures.gains(_KERAS2)["SAM predict", "4"]
    first = {c.column: c.seconds for c in figures.publication.cells if (c.version, c.task) == (_FIRST, "SAM predict")}
    then = (first[_KERAS2] or 0.0) / (first[_JAX] or 1.0)
    old, new = figures.rate("SAM predict", _KERAS2), figures.rate("SAM predict", _JAX)
    return Claim(
        says="380 % more throughput than Keras 2 on SAM predict.",
        where="Key finding 4",
        arithmetic=f"{more(gain)} in this table; {more(then)} in the first version (batch 7), with the same sentence.",
        verdict="true",
        figures={"now": gain, "in the first version": then},
        why=(
            "By the scripts Keras 2 ran without XLA here: they compile the backbone with jit_compile and then call "
            "predict of the whole model, which never got it; Keras 3 takes XLA by itself. Keras 2 implies "
            f"{teraflops(old)}, JAX {teraflops(new)}. Whether Keras 2 used TF32 its rate does not say, so how much is "
            "XLA and how much arithmetic is not known."
        ),
    )


def _sd_fit(figures: Figures) -> Claim:
    gain = figures.gains(_KERAS2)["SD fit", "8"]
    old, new = figures.rate("SD fit", _KERAS2), figures.rate("SD fit", _JAX)
    return Claim(
        says="More than 150 % more throughput than Keras 2 on SD fit.",
        where="Key finding 4",
        arithmetic=f"{more(gain)}.",
        verdict="true",
        figures={"now": gain},
        why=(
            "The scripts compile this model without jit_compile: Keras 2 then runs without XLA, Keras 3 with it. "
            f"Keras 2 implies {teraflops(old)}, JAX {teraflops(new)}: both are above IEEE FP32, so TF32 on one side "
            "alone is not it, unless convolutions ran in Winograd kernels. Which ops it is, only a profile can say."
        ),
    )


def _bert_fit(figures: Figures) -> Claim:
    gain = figures.gains(_KERAS2)["BERT fit", "32"]
    first = [c for c in figures.publication.cells if (c.version, c.task) == (_FIRST, "BERT fit")]
    before = {c.column: c.seconds or 0.0 for c in first}
    then = before[_KERAS2] / min(before[_TF], before[_JAX])
    old, new = figures.rate("BERT fit", _KERAS2), figures.rate("BERT fit", _TF)
    return Claim(
        says="More than 100 % more throughput than Keras 2 on BERT fit.",
        where="Key finding 4",
        arithmetic=f"{more(gain)} in this table, {more(then)} in the first one (batch 54).",
        verdict="true",
        figures={"now": gain, "in the first version": then},
        why=(
            f"Keras 2 implies {teraflops(old)}, though its time also holds all that is no product, and Keras 3 "
            f"{teraflops(new)}. TensorFlow's default is TF32 for both, which the rate of Keras 2 does not prove. Both "
            "got jit_compile. Why Keras 2 is slower the table does not say."
        ),
    )


def _only_upgraded(figures: Figures) -> Claim:
    gains = {
        row: figures.seconds[*row, _KERAS2] / figures.seconds[*row, _TF]
        for row in figures.rows
        if (*row, _KERAS2) in figures.seconds
    }
    least = min(gains, key=lambda row: gains[row])
    return Claim(
        says="Keras 3 on TensorFlow is already faster than Keras 2 on TensorFlow.",
        where="Key finding 4",
        arithmetic=f"In {_above(gains, 1)} of {len(gains)} rows; least in {least[0]}, by "
        f"{100 * (gains[least] - 1):.1f} %.",
        verdict="true",
        figures={"rows": len(gains), "faster": _above(gains, 1), "least": gains[least]},
        why=(
            f"{sum(gain < 1.1 for gain in gains.values())} rows differ by less than 10 %, the last by less than 1 %, "
            "and no spread is published. The two largest gaps, SAM predict and SD fit, are XLA against none."
        ),
    )


def _because_of_fused_ops(figures: Figures) -> Claim:
    gains = figures.gains(_KERAS2)
    without = sorted(gains, key=lambda row: -gains[row])[:2]
    return Claim(
        says="Keras 2 is slower mainly because it uses more of TensorFlow's fused ops, which XLA compiles less well.",
        where="Key finding 4",
        arithmetic="The two largest gaps are "
        + " and ".join(f"{task} ({times(gains[task, batch])})" for task, batch in without)
        + "; in both Keras 2 never got jit_compile.",
        verdict="depends",
        figures={task: gains[task, batch] for task, batch in without},
        why=(
            "It cannot be the reason where Keras 2 did not run under XLA, which are the two largest gaps. For the "
            "other four rows the table says nothing either way."
        ),
    )


def _generate(figures: Figures) -> Claim:
    slow = {
        (task, batch): figures.seconds[task, batch, _TORCH] / figures.seconds[task, batch, _EAGER]
        for task, batch in product(("Gemma generate", "Mistral generate"), ("32", "1"))
    }
    share = implied(figures.publication, figures.cells["Mistral generate", "1", _TORCH]).share or 0.0
    return Claim(
        says="Generating with Keras 3 on PyTorch is abnormally slow because KerasNLP pads to a fixed length.",
        where="the page's asterisk",
        arithmetic=f"{min(slow.values()):.1f} to {max(slow.values()):.1f} times as long as native PyTorch; Mistral at "
        f"batch 1 reads its weights at {100 * share:.1f} % of the memory roof.",
        verdict="depends",
        figures={"least": min(slow.values()), "most": max(slow.values()), "share": share},
        why=(
            "JAX and TensorFlow run the same padded loop, compiled, and are the fastest two, so padding alone is not "
            "it; that the loop is run eagerly is what sets this column apart. How much is padding's was not measured."
        ),
    )


def _ten(gains: Mapping[Place, float]) -> dict[Place, float]:
    """Without the rows that generate for one prompt: the ten tasks of the page."""
    return {row: gain for row, gain in gains.items() if not (row[0].endswith("generate") and row[1] == _TENTH)}


def _above(gains: Mapping[Place, float], ratio: float) -> int:
    return sum(gain > ratio for gain in gains.values())
