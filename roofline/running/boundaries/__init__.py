"""Kinds of places at which a step ends, one per file (see `boundary`)."""

from __future__ import annotations

#: Which of them is taken where a program has several: the first of this list.
ORDER = (
    # what the program says itself
    "said",
    "torch_profiler",
    # the loops of libraries
    "transformers_trainer",
    # the optimizer
    "torch_optimizer",
    # inference
    "transformers_generate",
    "torch_call",
)
#: These end no step; they tell that some steps are unlike the others.
INTERRUPTIONS = ("torch_data", "torch_save")
