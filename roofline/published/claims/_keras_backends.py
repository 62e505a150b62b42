"""What the page on Keras 3 says of its backends."""

from __future__ import annotations

from itertools import product

from roofline.published.claims._claim import Claim
from roofline.published.claims._keras_table import BACKENDS, EAGER, FIRST, JAX, TENSORFLOW, TORCH, Figures
from roofline.published.implied import implied


def no_best_backend(figures: Figures) -> Claim:
    won = figures.winners(BACKENDS)
    return Claim(
        says="No backend of Keras 3 is always the fastest.",
        where="Key finding 1",
        arithmetic=f"Of 12 rows JAX is first in {won[JAX]}, TensorFlow in {won[TENSORFLOW]}, PyTorch in {won[TORCH]}.",
        verdict="true",
        figures={"JAX": won[JAX], "TensorFlow": won[TENSORFLOW], "PyTorch": won[TORCH]},
        why=(
            "True of JAX and TensorFlow, both compiled by XLA. PyTorch, the only one that runs eagerly, is never "
            "first. Where the two are within a few percent, one run of 100 steps without a spread decides nothing."
        ),
    )


def jax_first(figures: Figures) -> Claim:
    among, overall = figures.winners(BACKENDS)[JAX], figures.fastest()[JAX]
    first = Figures(figures.publication, FIRST).fastest()[JAX]
    close = figures.seconds["SD fit", "8", TENSORFLOW] / figures.seconds["SD fit", "8", JAX]
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


def generate(figures: Figures) -> Claim:
    slow = {
        (task, batch): figures.seconds[task, batch, TORCH] / figures.seconds[task, batch, EAGER]
        for task, batch in product(("Gemma generate", "Mistral generate"), ("32", "1"))
    }
    share = implied(figures.publication, figures.cells["Mistral generate", "1", TORCH]).share or 0.0
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
