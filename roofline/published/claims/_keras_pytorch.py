"""What the page on Keras 3 says of native PyTorch."""

from __future__ import annotations

from roofline.published.claims._claim import Claim, more, teraflops, times
from roofline.published.claims._keras_table import COMPILED, EAGER, JAX, TENSORFLOW, Figures, above, flops, ten_tasks


def faster_everywhere(figures: Figures) -> Claim:
    gains = figures.gains(EAGER)
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


def twice_as_fast(figures: Figures) -> Claim:
    gains = figures.gains(EAGER)
    ten = ten_tasks(gains)
    jax, native = figures.rate("BERT predict", JAX), figures.rate("BERT predict", EAGER)
    seconds = jax.cell.seconds or 0.0
    kept = jax.floors["fp32"] / seconds
    return Claim(
        says="More than 100 % more throughput than native PyTorch in 5 of 10 tasks, at most 340 %.",
        where="Key finding 2",
        arithmetic=(
            f"{above(ten, 2)} of 10 without the rows that generate for one prompt, {above(gains, 2)} of 12 with "
            f"them; most {more(max(gains.values()))}, BERT predict."
        ),
        verdict="true",
        figures={
            "of ten": above(ten, 2),
            "of twelve": above(gains, 2),
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


def slower_where_compiled(figures: Figures) -> Claim:
    gains = ten_tasks(figures.gains(COMPILED))
    slower = {row: 1 - gain for row, gain in gains.items() if gain < 1}
    work, left = {}, {}
    for task in ("Gemma fit", "Mistral fit"):
        native, keras = figures.rate(task, COMPILED), figures.rate(task, TENSORFLOW)
        work[task] = flops(keras) / flops(native) - 1
        left[task] = 1 - (keras.rate or 0.0) / (native.rate or 1.0)
    return Claim(
        says="With torch.compile, Keras 3 is 1 to 9 % slower in 4 of 10 tasks.",
        where="Key finding 2, figure 2",
        arithmetic=f"{len(slower)} of 10: "
        + ", ".join(f"{task} {100 * less:.1f} %" for (task, _), less in slower.items())
        + " less throughput.",
        verdict="true",
        figures={
            **{task: less for (task, _), less in slower.items()},
            **{f"{task}, work": more for task, more in work.items()},
            **{f"{task}, rate": less for task, less in left.items()},
        },
        why=(
            "In part it is more work: Keras adds the adapters to the weights and then needs a gradient as large as the "
            f"weights, {100 * work['Gemma fit']:.1f} % more products in Gemma and {100 * work['Mistral fit']:.1f} % in "
            f"Mistral. By rate, it is {100 * left['Gemma fit']:.1f} and {100 * left['Mistral fit']:.1f} % behind. In "
            f"BERT fit this column implies {teraflops(figures.rate('BERT fit', COMPILED))}: no IEEE FP32 either, "
            "because the Trainer turns TF32 on when it compiles. SD fit is above IEEE FP32 in both columns. Why "
            "compiled PyTorch is ahead there the table does not say."
        ),
    )


def faster_than_compiled(figures: Figures) -> Claim:
    gains = figures.gains(COMPILED)
    ten = ten_tasks(gains)
    native = figures.rate("SAM predict", COMPILED)
    kept = native.floors["fp32"] / figures.best(("SAM predict", "4"))
    apart = [
        abs(figures.seconds[*row, EAGER] / figures.seconds[*row, COMPILED] - 1)
        for row in figures.rows
        if row[0].endswith("generate")
    ]
    return Claim(
        says="With torch.compile, Keras 3 still has more than 50 % more throughput in 5 of 10 tasks, at most 290 %.",
        where="Key finding 2, figure 2",
        arithmetic=(
            f"{above(ten, 1.5)} of 10 without the rows that generate for one prompt, {above(gains, 1.5)} of 12 with "
            f"them; most {more(max(gains.values()))}, SAM predict."
        ),
        verdict="true",
        figures={
            "of ten": above(ten, 1.5),
            "of twelve": above(gains, 1.5),
            "most": max(gains.values()),
            "floor in fp32 / JAX": kept,
            "eager and compiled apart": max(apart),
        },
        why=(
            f"SAM predict, compiled, implies {teraflops(native)}, PyTorch's default for matmul, which this loop does "
            f"not change. The image encoder alone takes at least {native.floors['fp32']:.2f} s in it, {times(kept)} "
            "what JAX took for the whole model: so much of the factor is arithmetic. The rows that generate were "
            f"probably not compiled: the two native columns are at most {100 * max(apart):.1f} % apart, and in a later "
            "version generate of a compiled model was seen to run that of the original one."
        ),
    )
