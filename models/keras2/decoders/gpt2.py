"""GPT-2 with its tied language-model head, as KerasNLP's GPT2CausalLM.

The head computes in float32 whatever the precision, as published.
"""

from functools import partial

from roofline.models._keras.decoders import gpt2
from roofline.models.keras2 import _step

network = partial(gpt2.network, _step)
build = partial(gpt2.build, _step)
