"""Which keywords a sound has, in Keras 3: convolutions over a spectrogram, pooled, trained batch by batch."""

import keras
import numpy as np
from keras import layers

BATCH, FRAMES, BANDS, WIDTH, WORDS = 16, 40, 24, 32, 12


def network():
    keras.utils.set_random_seed(0)
    inputs = keras.Input((FRAMES, BANDS, 1))
    x = layers.Conv2D(WIDTH, 3, strides=(1, 2), padding="same", activation="relu")(inputs)
    x = layers.Conv2D(WIDTH, 3, strides=(2, 2), padding="same", activation="relu")(x)
    x = layers.Conv2D(WIDTH, 3, strides=(2, 2), padding="same", activation="relu")(x)
    return keras.Model(inputs, layers.Dense(WORDS, activation="sigmoid")(layers.GlobalAveragePooling2D()(x)))


def sounds():
    generator = np.random.default_rng(0)
    spectrograms = generator.standard_normal((BATCH, FRAMES, BANDS, 1)).astype("float32")
    return spectrograms, generator.integers(0, 2, (BATCH, WORDS)).astype("float32")


def make_train(metrics=()):
    model, (x, y) = network(), sounds()
    model.compile(optimizer=keras.optimizers.SGD(1e-3), loss="binary_crossentropy", metrics=list(metrics))
    return lambda: model.train_on_batch(x, y, return_dict=True)["loss"]
