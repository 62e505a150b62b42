"""Gemma 7B with its tied language-model head, as keras_hub's GemmaCausalLM."""

from functools import partial

from roofline.models._keras.decoders import gemma
from roofline.models.keras import _step

network = partial(gemma.network, _step)
build = partial(gemma.build, _step)
