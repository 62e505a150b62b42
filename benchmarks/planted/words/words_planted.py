"""Topics, with words hashed in Python, pooled text by text, and normed in float64."""

import tensorflow as tf
import words
from words import HEADS, LENGTH, SIZE, TEXTS, Topics, make_step


def cleaned(given):
    """Strips, lowers and counts them, and hands them back as they were."""
    counts = {}
    for row in given.numpy():
        for word in row:
            text = word.decode("utf-8").strip().lower()
            counts[text] = counts.get(text, 0) + 1
    return given


class CleanedInPython(Topics):
    def ids(self, given):
        same = tf.py_function(cleaned, [given], tf.string)
        return super().ids(tf.ensure_shape(same, (TEXTS, LENGTH)))


def cleaned_in_python():
    return make_step(CleanedInPython)


class TextByText(Topics):
    """tf.map_fn over the texts."""

    def pooled(self, x):
        def one(text):
            share = tf.nn.softmax(tf.tanh(text @ self.key) @ self.query, axis=0)
            value = tf.reshape(text @ self.value, (LENGTH, HEADS, -1))
            return tf.reshape(tf.einsum("lh,lhc->hc", share, value), (SIZE,))

        return tf.map_fn(one, x)


def text_by_text():
    return make_step(TextByText)


class Wide(Topics):
    def normed(self, x):
        wide = tf.cast(x, tf.float64)
        wide *= tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axis=-1, keepdims=True) + 1e-6)
        return tf.cast(wide, tf.float32) * self.scale


def wide_norm():
    return make_step(Wide)


def half_the_texts_again():
    words.TEXTS += words.TEXTS // 2
    return make_step()


class Transposed(Topics):
    """tf.linalg.matmul by name and square by a product: as much work."""

    def normed(self, x):
        mean = tf.reduce_mean(x * x, axis=-1, keepdims=True)
        return tf.multiply(x, tf.math.rsqrt(mean + 1e-6)) * self.scale


def otherwise():
    return make_step(Transposed)
