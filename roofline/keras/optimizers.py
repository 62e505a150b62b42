"""List Keras's names for the scopes of its optimizers' ops, where the user gave no name."""

from __future__ import annotations

#: Keras 3 writes class names with underscores ("adam_w"), Keras 2 as they are ("AdamW"), compared in lower case.
SCOPES = (
    *("optimizer", "adam", "adam_w", "adamw", "sgd", "rmsprop", "rms_prop", "adagrad", "adadelta", "adamax", "nadam"),
    *("ftrl", "lion", "lamb", "adafactor", "muon", "loss_scale_optimizer"),
)
