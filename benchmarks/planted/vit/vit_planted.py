"""The vision transformer with one thing done as one should not."""

import jax
import numpy as np
from vit import BATCH, SHRINK, SIDE, changed, layer, make_fit, make_train


def remembered_again():
    """Each layer is computed again on the way back, to save memory that there is plenty of."""
    return make_fit(jax.checkpoint(layer))


def by_numpy(pictures):
    """The same in the host's NumPy, where bytes become float64."""
    x = (pictures / 255 - 0.5) / 0.25
    return x.reshape(BATCH, SIDE, SHRINK, SIDE, SHRINK, 3).mean((2, 4)).astype(np.float32)


def prepared_on_host():
    return make_train(prepare=by_numpy)


def clipped_outside():
    """Gradients are clipped, and weights changed, op by op."""
    return make_train(change=changed)
