"""BERT with a two-class head, as KerasNLP's BertClassifier.

The mask is applied by adding -1e9 where it is 0. Attention is written out (einsum, masked softmax, dropout, einsum).
"""

from functools import partial

from roofline.models._keras.encoders import bert
from roofline.models.keras2 import _step

network = partial(bert.network, _step)
build = partial(bert.build, _step)
