"""Kinds of places at which a step ends, one per file (see `boundary`)."""

from __future__ import annotations

#: Which of them is taken where a program has several: the first of this list.
ORDER = (
    # what the program says itself
    "said",
    "torch_profiler",
    "jax_annotation",
    # the loops of libraries
    "transformers_trainer",
    "keras_fit",
    "tensorflow_trace",  # behind Keras, whose loops have it, too
    # the optimizer
    "torch_optimizer",
    "jax_update",
    "tensorflow_update",
    "keras_optimizer",
    # inference
    "transformers_generate",
    "keras_predict",
    "torch_call",
    "jax_call",
    "tensorflow_call",
    "keras_call",
    # what is left of a training that has none of these
    "torch_backward",
    "tensorflow_gradient",
)
#: These end no step; they tell that some steps are unlike the others.
INTERRUPTIONS = ("torch_data", "torch_save")
