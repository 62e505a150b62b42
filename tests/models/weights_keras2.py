"""Weights of the models in Keras 2 under the names and in the layouts of the models in PyTorch.

KerasNLP builds its layers in the same order as keras_hub, so all is as in `weights_keras`.
"""

from __future__ import annotations

from weights_keras import get_weights, set_weights

__all__ = ["get_weights", "set_weights"]
