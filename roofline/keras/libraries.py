"""Name the distributions of Keras models, by major version."""

from __future__ import annotations

KERAS_3 = ("keras", "keras-hub")
KERAS_2 = ("tf_keras", "keras-nlp", "keras-cv")
