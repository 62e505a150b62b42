"""BERT with a two-class head, as keras_hub's BertTextClassifier.

The mask is applied by a select before and one after the softmax. Attention is written out (einsum, masked softmax,
dropout, einsum): Keras calls a fused kernel only where the model was made without dropout.
"""

from functools import partial

from roofline.models._keras.encoders import bert
from roofline.models.keras import _step

network = partial(bert.network, _step)
build = partial(bert.build, _step)
