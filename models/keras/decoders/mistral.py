"""Mistral 7B with its language-model head, as keras_hub's MistralCausalLM."""

from functools import partial

from roofline.models._keras.decoders import mistral
from roofline.models.keras import _step

network = partial(mistral.network, _step)
build = partial(mistral.build, _step)
