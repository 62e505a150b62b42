"""Layers that the models in TensorFlow share, with the names that torch gives their scopes and parameters.

Every layer knows its scope, a path, and opens it when called; a parameter's name is that path and "weight" or "bias".
B, S, H: batch, sequence, hidden. Matrices lie as TensorFlow likes them, (inputs, outputs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import prod, sqrt
from zlib import crc32

import tensorflow as tf

Initial = Callable[[Sequence[int], Sequence[int]], tf.Tensor]  # shape, seed -> values


@dataclass(frozen=True, slots=True)
class Dtypes:
    """What parameters are kept in and what is computed in; they differ in mixed precision only.

    As under a Keras mixed policy, activations and contractions are in `compute`. Statistics (normalisation, softmax)
    and the loss are in float32 always.
    """

    variable: tf.DType = tf.float32
    compute: tf.DType = tf.float32


FLOAT32 = Dtypes()


# Parameters


def normal(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
    """Values of standard deviation 0.02, as BERT and GPT-2 begin."""
    return tf.random.stateless_normal(shape, seed, stddev=0.02)


def zeros(shape: Sequence[int], seed: Sequence[int]) -> tf.Tensor:
    """Zeros; `seed` is not used."""
    return tf.zeros(shape)


def uniform(fan_in: int) -> Initial:
    """Values within 1 / sqrt(fan_in) of 0, as torch's Linear and Conv2d begin."""
    bound = 1 / sqrt(fan_in)
    return lambda shape, seed: tf.random.stateless_uniform(shape, seed, -bound, bound)


def parameter(name: str, shape: Sequence[int], dtypes: Dtypes, initial: Initial) -> tf.Variable:
    """A variable whose values follow from its name, whatever else is made before or after it."""
    return tf.Variable(tf.cast(initial(shape, [0, seed(name)]), dtypes.variable), name=name)


def seed(name: str) -> int:
    """A number for random values that belong to `name`."""
    return crc32(name.encode()) & 0x7FFFFFFF


def scoped(path: str) -> AbstractContextManager[str]:
    """The name scope `path` itself, from wherever it is opened and however often."""
    return tf.name_scope(f"{path}/")


# Layers


class Dense(tf.Module):
    """x @ weight + bias over the last dimension, as one product of matrices: (..., inputs) to (..., outputs)."""

    def __init__(self, scope: str, inputs: int, outputs: int, dtypes: Dtypes, initial: Initial | None = None) -> None:
        super().__init__()
        self.scope, self.outputs, self.compute = scope, outputs, dtypes.compute
        self.weight = parameter(f"{scope}/weight", (inputs, outputs), dtypes, initial or normal)
        self.bias = parameter(f"{scope}/bias", (outputs,), dtypes, initial or zeros)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Applies the layer."""
        with scoped(self.scope):
            # Three dimensions by two would be a batched product, and its weight gradient a sum of products.
            rows = tf.reshape(x, (-1, x.shape[-1]))
            rows = tf.matmul(rows, tf.cast(self.weight, self.compute))
            rows = tf.nn.bias_add(rows, tf.cast(self.bias, self.compute))
            return tf.reshape(rows, (*x.shape[:-1], self.outputs))


class Convolution(tf.Module):
    """A convolution without padding over images (B, height, width, channels): TensorFlow's layout, not torch's."""

    def __init__(self, scope: str, side: int, inputs: int, outputs: int, dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, self.compute = scope, dtypes.compute
        initial = uniform(side * side * inputs)
        self.weight = parameter(f"{scope}/weight", (side, side, inputs, outputs), dtypes, initial)
        self.bias = parameter(f"{scope}/bias", (outputs,), dtypes, initial)

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        """Applies the layer."""
        with scoped(self.scope):
            maps = tf.nn.conv2d(images, tf.cast(self.weight, self.compute), strides=1, padding="VALID")
            return tf.nn.bias_add(maps, tf.cast(self.bias, self.compute))


class Embedding(tf.Module):
    """Rows of a table by number: (...) to (..., width). Its gradient is sparse (tf.IndexedSlices)."""

    def __init__(self, scope: str, rows: int, width: int, dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, self.compute = scope, dtypes.compute
        self.weight = parameter(f"{scope}/weight", (rows, width), dtypes, normal)

    def __call__(self, numbers: tf.Tensor) -> tf.Tensor:
        """Looks the rows up."""
        with scoped(self.scope):
            return tf.cast(tf.gather(self.weight, numbers), self.compute)


class LayerNorm(tf.Module):
    """Normalisation over the last dimension, with scale and offset."""

    def __init__(self, scope: str, width: int, epsilon: float, dtypes: Dtypes) -> None:
        super().__init__()
        self.scope, self.epsilon = scope, epsilon
        self.weight = parameter(f"{scope}/weight", (width,), dtypes, lambda shape, _: tf.ones(shape))
        self.bias = parameter(f"{scope}/bias", (width,), dtypes, zeros)

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        """Applies the layer."""
        with scoped(self.scope):
            wide = tf.cast(x, tf.float32)
            mean, variance = tf.nn.moments(wide, axes=[-1], keepdims=True)
            weight, bias = tf.cast(self.weight, tf.float32), tf.cast(self.bias, tf.float32)
            return tf.cast(tf.nn.batch_normalization(wide, mean, variance, bias, weight, self.epsilon), x.dtype)


class Dropout(tf.Module):
    """Dropout with random numbers of its own."""

    def __init__(self, scope: str, rate: float) -> None:
        super().__init__()
        self.scope, self.rate = scope, rate

    def __call__(self, x: tf.Tensor, training: bool) -> tf.Tensor:
        """Applies the layer; does nothing outside training."""
        if not training:
            return x
        with scoped(self.scope):
            return tf.nn.dropout(x, self.rate, seed=seed(self.scope))


# Attention


class Attention(tf.Module):
    """softmax(Q K^T / sqrt(width of a head) + mask) V with dropout, written out: (B, S, H) thrice to (B, S, H)."""

    def __init__(self, scope: str, heads: int, dropout: Dropout) -> None:
        super().__init__()
        self.scope, self.heads, self.dropout = scope, heads, dropout

    def __call__(
        self, query: tf.Tensor, key: tf.Tensor, value: tf.Tensor, mask: tf.Tensor, training: bool
    ) -> tf.Tensor:
        """mask: float32, added to the scores (B, heads, S, S); any shape that broadcasts."""
        with scoped(self.scope):
            query, key, value = (self._split(x) for x in (query, key, value))
            scores = tf.matmul(query, key, transpose_b=True) * query.shape[-1] ** -0.5
            probabilities = tf.nn.softmax(tf.cast(scores, tf.float32) + mask)
            probabilities = self.dropout(tf.cast(probabilities, value.dtype), training)
            mixed = tf.transpose(tf.matmul(probabilities, value), (0, 2, 1, 3))
            return tf.reshape(mixed, (*mixed.shape[:2], prod(mixed.shape[2:])))

    def _split(self, x: tf.Tensor) -> tf.Tensor:
        """(B, S, H) to (B, heads, S, H / heads)."""
        batch, seq, hidden = x.shape
        return tf.transpose(tf.reshape(x, (batch, seq, self.heads, hidden // self.heads)), (0, 2, 1, 3))


def padding_mask(mask: tf.Tensor) -> tf.Tensor:
    """What is added to the scores so that no token attends where `mask` (B, S) is 0; (B, 1, 1, S), float32."""
    return (1.0 - tf.cast(mask, tf.float32)[:, tf.newaxis, tf.newaxis, :]) * tf.float32.min


def causal_mask(mask: tf.Tensor) -> tf.Tensor:
    """The same for a decoder, where no token attends to a later one either; (B, 1, S, S), float32."""
    seq = mask.shape[1]
    earlier = tf.linalg.band_part(tf.ones((seq, seq), tf.bool), -1, 0)
    seen = tf.logical_and(earlier, tf.cast(mask, tf.bool)[:, tf.newaxis, tf.newaxis, :])
    return tf.where(seen, 0.0, tf.float32.min)


def gelu(form: str) -> Callable[[tf.Tensor], tf.Tensor]:
    """GELU in the form that the geometry names: "erf" (exact) or "tanh"."""
    return lambda x: tf.nn.gelu(x, approximate=form == "tanh")
