"""A network of 4-32-16-4 units as a keras.Sequential."""

from functools import partial

from roofline.models._keras.basic import mlp
from roofline.models.keras import _step

network = partial(mlp.network, _step)
build = partial(mlp.build, _step)
