"""Stable Diffusion 1.4 of KerasCV's layers.

On the torch backend Keras transposes every image to and from PyTorch's own layout around each convolution.
"""

from functools import partial

from roofline.models._keras.images import stable_diffusion
from roofline.models.keras import _step

encoder = partial(stable_diffusion.encoder, _step)
network = partial(stable_diffusion.network, _step)
build = partial(stable_diffusion.build, _step)
