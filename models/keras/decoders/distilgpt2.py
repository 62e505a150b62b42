"""DistilGPT2, GPT-2 with half of its layers, as keras_hub's GPT2CausalLM.

Size base is distilgpt2, 81,912,576 parameters. Only the dimensions differ from `gpt2`.
"""

from roofline.models.keras.decoders.gpt2 import build, network

__all__ = ["build", "network"]
