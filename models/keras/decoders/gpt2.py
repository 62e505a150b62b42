"""GPT-2 with its tied language-model head, as keras_hub's GPT2CausalLM."""

from functools import partial

from roofline.models._keras.decoders import gpt2
from roofline.models.keras import _step

network = partial(gpt2.network, _step)
build = partial(gpt2.build, _step)
