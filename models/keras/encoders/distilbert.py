"""DistilBERT with a two-class head, as keras_hub's DistilBertTextClassifier."""

from functools import partial

from roofline.models._keras.encoders import distilbert
from roofline.models.keras import _step

network = partial(distilbert.network, _step)
build = partial(distilbert.build, _step)
