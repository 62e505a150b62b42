"""The ConvMixer, with an activation in float64, a prediction in each step, or pictures made ready by NumPy."""

import numpy as np
import tiles
from keras import ops
from tiles import BATCH, network, show, train


def gelu_in_double(x):
    """Against errors of rounding that nobody saw."""
    return ops.cast(ops.gelu(ops.cast(x, "float64"), approximate=False), "float32")


def wide_activation():
    return show(network(act=gelu_in_double))


def predicted():
    """A look at the predictions before each update, as for a log."""
    seen = []

    def before(model, x):
        seen.append(float(np.max(model.predict_on_batch(x))))
        return x

    return train(network(), before)


def jittered():
    """Pictures are turned twice and brightened by 0, one by one and in double precision."""

    def before(model, x):
        out = []
        for picture in x:
            turned = np.rot90(np.rot90(picture.astype("float64"), 2), 2)
            mean, deviation = turned.mean((0, 1)), turned.std((0, 1))
            out.append(np.clip((turned - mean) / deviation * deviation + mean, 0, 1).astype("float32"))
        return np.stack(out)

    return train(network(), before)


def fewer_pictures():
    tiles.BATCH = BATCH // 2
    return show(network())
