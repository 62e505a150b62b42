"""LeNet5 as a keras.Sequential.

On the torch backend Keras transposes every image to and from PyTorch's own layout around each convolution and pooling.
"""

from functools import partial

from roofline.models._keras.images import lenet5
from roofline.models.keras import _step

network = partial(lenet5.network, _step)
build = partial(lenet5.build, _step)
