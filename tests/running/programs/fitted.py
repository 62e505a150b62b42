"""Fit a small model of Keras on JAX, with a validation after each of two epochs; print its weights."""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(128, activation="relu"), keras.layers.Dropout(0.1), keras.layers.Dense(8)])
model.compile("adam", "mse")
x = np.random.default_rng(0).normal(size=(8 * int(sys.argv[1]), 64)).astype(np.float32)
model.fit(x, x[:, :8], batch_size=16, epochs=2, verbose=0, validation_data=(x[:32], x[:32, :8]))
print(model.get_weights()[0].tolist())
