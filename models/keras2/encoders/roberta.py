"""RoBERTa with a two-class head, as KerasNLP's RobertaClassifier."""

from functools import partial

from roofline.models._keras.encoders import roberta
from roofline.models.keras2 import _step

network = partial(roberta.network, _step)
build = partial(roberta.build, _step)
