"""RoBERTa with a two-class head, as keras_hub's RobertaTextClassifier."""

from functools import partial

from roofline.models._keras.encoders import roberta
from roofline.models.keras import _step

network = partial(roberta.network, _step)
build = partial(roberta.build, _step)
