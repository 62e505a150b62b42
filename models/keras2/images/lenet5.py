"""LeNet5 as a tf_keras.Sequential."""

from functools import partial

from roofline.models._keras.images import lenet5
from roofline.models.keras2 import _step

network = partial(lenet5.network, _step)
build = partial(lenet5.build, _step)
