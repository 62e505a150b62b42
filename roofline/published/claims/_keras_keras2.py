"""What the page on Keras 3 says of Keras 2."""

from __future__ import annotations

from roofline.published.claims._claim import Claim, more, teraflops, times
from roofline.published.claims._keras_table import FIRST, JAX, KERAS2, TENSORFLOW, Figures, above


def faster_than_keras2(figures: Figures) -> Claim:
    gains = figures.gains(KERAS2)
    least = min(gains, key=lambda row: gains[row])
    return Claim(
        says="Keras 3 with its best backend is faster than Keras 2 in every benchmark.",
        where="Key finding 4",
        arithmetic=f"In {above(gains, 1)} of the {len(gains)} rows that Keras 2 has; least in {least[0]}, "
        f"{times(gains[least])} as fast.",
        verdict="true",
        figures={"rows": len(gains), "faster": above(gains, 1), "least": gains[least]},
        why="In two of the rows it is XLA against none, as far as the scripts say: see the next claims.",
    )


def sam_predict(figures: Figures) -> Claim:
    gain = figures.gains(KERAS2)["SAM predict", "4"]
    first = {c.column: c.seconds for c in figures.publication.cells if (c.version, c.task) == (FIRST, "SAM predict")}
    then = (first[KERAS2] or 0.0) / (first[JAX] or 1.0)
    old, new = figures.rate("SAM predict", KERAS2), figures.rate("SAM predict", JAX)
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


def sd_fit(figures: Figures) -> Claim:
    gain = figures.gains(KERAS2)["SD fit", "8"]
    old, new = figures.rate("SD fit", KERAS2), figures.rate("SD fit", JAX)
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


def bert_fit(figures: Figures) -> Claim:
    gain = figures.gains(KERAS2)["BERT fit", "32"]
    first = [c for c in figures.publication.cells if (c.version, c.task) == (FIRST, "BERT fit")]
    before = {c.column: c.seconds or 0.0 for c in first}
    then = before[KERAS2] / min(before[TENSORFLOW], before[JAX])
    old, new = figures.rate("BERT fit", KERAS2), figures.rate("BERT fit", TENSORFLOW)
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


def only_upgraded(figures: Figures) -> Claim:
    gains = {
        row: figures.seconds[*row, KERAS2] / figures.seconds[*row, TENSORFLOW]
        for row in figures.rows
        if (*row, KERAS2) in figures.seconds
    }
    least = min(gains, key=lambda row: gains[row])
    return Claim(
        says="Keras 3 on TensorFlow is already faster than Keras 2 on TensorFlow.",
        where="Key finding 4",
        arithmetic=f"In {above(gains, 1)} of {len(gains)} rows; least in {least[0]}, by "
        f"{100 * (gains[least] - 1):.1f} %.",
        verdict="true",
        figures={"rows": len(gains), "faster": above(gains, 1), "least": gains[least]},
        why=(
            f"{sum(gain < 1.1 for gain in gains.values())} rows differ by less than 10 %, the last by less than 1 %, "
            "and no spread is published. The two largest gaps, SAM predict and SD fit, are XLA against none."
        ),
    )


def because_of_fused_ops(figures: Figures) -> Claim:
    gains = figures.gains(KERAS2)
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
