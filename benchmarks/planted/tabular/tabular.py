"""A transformer over the columns of a table (FT-Transformer) in TensorFlow, trained with Adam by a tf.GradientTape."""

import numpy as np
import tensorflow as tf

ROWS, NUMBERS, KINDS, VALUES, MANY, WIDTH, HEADS, LAYERS = 48, 8, 6, 200, 2000, 48, 4, 2
COLUMNS = NUMBERS + KINDS + 1


def weights(values=VALUES):
    generator = np.random.default_rng(0)

    def weight(*shape):
        return tf.Variable(generator.standard_normal(shape).astype(np.float32) / shape[-2] ** 0.5)

    def layer():
        return {
            "qkv": weight(WIDTH, 3 * WIDTH), "out": weight(WIDTH, WIDTH),
            "up": weight(WIDTH, 4 * WIDTH), "down": weight(2 * WIDTH, WIDTH),
        }  # fmt: skip

    return {
        "scale": weight(NUMBERS, WIDTH), "shift": weight(NUMBERS, WIDTH), "kinds": weight(KINDS, values, WIDTH),
        "first": weight(1, WIDTH), "layers": [layer() for _ in range(LAYERS)], "head": weight(WIDTH, 1),
    }  # fmt: skip


def rows(values=VALUES):
    generator = np.random.default_rng(1)
    numbers = generator.standard_normal((ROWS, NUMBERS)).astype(np.float32)
    kinds = generator.integers(0, values, (ROWS, KINDS)).astype(np.int32)
    return numbers, kinds, generator.standard_normal((ROWS, 1)).astype(np.float32)


def looked_up(tables, kinds):
    return tf.stack([tf.gather(tables[i], kinds[:, i]) for i in range(KINDS)], axis=1)


def norm(x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def layer(w, x):
    qkv = tf.reshape(tf.tensordot(norm(x), w["qkv"], 1), (-1, COLUMNS, 3, HEADS, WIDTH // HEADS))
    q, k, v = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)))
    share = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / (WIDTH // HEADS) ** 0.5)
    mixed = tf.reshape(tf.transpose(share @ v, (0, 2, 1, 3)), (-1, COLUMNS, WIDTH))
    x = x + tf.tensordot(mixed, w["out"], 1)
    a, b = tf.split(tf.tensordot(norm(x), w["up"], 1), 2, axis=-1)
    return x + tf.tensordot(a * tf.nn.relu(b), w["down"], 1)


def predicted(w, numbers, kinds, looked_up=looked_up):
    x = tf.concat((
        tf.tile(w["first"][None], (len(numbers), 1, 1)), numbers[..., None] * w["scale"] + w["shift"],
        looked_up(w["kinds"], kinds),
    ), axis=1)  # fmt: skip
    for one in w["layers"]:
        x = layer(one, x)
    return norm(x[:, 0]) @ w["head"]


def make_step(looked_up=looked_up, values=VALUES):
    w, (numbers, kinds, _) = weights(values), (tf.constant(a) for a in rows(values))

    @tf.function
    def step():
        return predicted(w, numbers, kinds, looked_up)

    return step


class Adam:
    def __init__(self, variables):
        self.variables = variables
        self.first, self.second = ([tf.Variable(tf.zeros_like(v)) for v in variables] for _ in range(2))
        self.times = tf.Variable(0.0)

    def update(self, gradients, rate):
        self.times.assign_add(1.0)
        rate = rate * tf.sqrt(1 - 0.999**self.times) / (1 - 0.9**self.times)
        for v, m, s, g in zip(self.variables, self.first, self.second, gradients, strict=True):
            m.assign(0.9 * m + 0.1 * g)
            s.assign(0.999 * s + 0.001 * g * g)
            v.assign_sub(rate * m / (tf.sqrt(s) + 1e-8))


def rate_of(step):
    """Warms up."""
    return 1e-4 * tf.minimum(step / 1000, 1.0)


def make_train(inside=True, schedule=lambda: tf.function(rate_of), number=tf.constant):
    w, (numbers, kinds, y) = weights(), (tf.constant(a) for a in rows())
    adam, schedule, steps = Adam(tf.nest.flatten(w)), schedule(), 0

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((predicted(w, numbers, kinds) - y) ** 2)
        slopes = tape.gradient(loss, adam.variables)
        return loss, [tf.convert_to_tensor(slope) for slope in slopes]

    @tf.function
    def whole(rate):
        loss, slopes = gradients()
        adam.update(slopes, rate)
        return loss

    def step():
        nonlocal steps
        steps += 1
        rate = schedule(number(float(steps)))
        if inside:
            return whole(rate)
        loss, slopes = gradients()
        adam.update(slopes, rate)
        return loss

    return step


def make_many():
    """Columns with many values."""
    return make_step(values=MANY)
