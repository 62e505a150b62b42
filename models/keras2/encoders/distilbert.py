"""DistilBERT with a two-class head, as KerasNLP's DistilBertClassifier."""

from functools import partial

from roofline.models._keras.encoders import distilbert
from roofline.models.keras2 import _step

network = partial(distilbert.network, _step)
build = partial(distilbert.build, _step)
