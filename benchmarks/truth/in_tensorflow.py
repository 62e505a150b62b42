"""A random model in TensorFlow: one tf.function of its inputs, with Keras's layers where they are what people call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
import tensorflow as tf
from arrays import inputs, numbers, statistics, types, weights
from built import Built, window
from net import GATES, Axis, Layer, Model, Padding, Place, Shape, after, axes, places, windows

Tensor = tf.Tensor
TYPES = {"bf16": tf.bfloat16, "fp16": tf.float16}
CONV = (None, tf.nn.conv1d, tf.nn.conv2d, tf.nn.conv3d)
CONV_TRANSPOSE = (None, tf.nn.conv1d_transpose, tf.nn.conv2d_transpose, tf.nn.conv3d_transpose)
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": tf.nn.relu,
    "gelu": tf.nn.gelu,
    "gelu_tanh": partial(tf.nn.gelu, approximate=True),
    "silu": tf.nn.silu,
    "sigmoid": tf.sigmoid,
    "tanh": tf.tanh,
    "softplus": tf.nn.softplus,
    "elu": tf.nn.elu,
    "leaky_relu": partial(tf.nn.leaky_relu, alpha=0.2),
    "glu": lambda x: _gated(*tf.split(x, 2, -1)),
}


def _gated(value: Tensor, gate: Tensor) -> Tensor:
    return value * tf.sigmoid(gate)


def build(model: Model, compiled: bool = False) -> Built:
    """compiled: by XLA."""
    net = _Net(model, compiled)
    given = {name: tf.constant(value) for name, value in inputs(model).items()}
    trained = net.trained()

    def infer(given: dict[str, Tensor]) -> Tensor:
        return net.forward(given)

    def loss_of(given: dict[str, Tensor]) -> Tensor:
        y = net.forward(given)
        if model.loss == "square":
            return tf.reduce_mean(tf.square(y))
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=given["labels"], logits=y))

    def train(given: dict[str, Tensor]) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(given)
        gradients = [
            tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, trained, unconnected_gradients="zero")
        ]
        if not model.update:
            return loss, gradients
        for weight, gradient in zip(trained, gradients, strict=True):
            weight.assign_sub(tf.cast(0.01, gradient.dtype) * gradient)
        return loss

    step = tf.function(train if model.trains else infer, jit_compile=True if compiled else None, autograph=False)

    def results() -> tuple[np.ndarray, float]:
        if not model.trains:
            return step(given).numpy(), 0.0

        @tf.function(jit_compile=True if compiled else None, autograph=False)
        def gradients_of(given: dict[str, Tensor]) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_of(given)
            return loss, [
                tf.convert_to_tensor(gradient)
                for gradient in tape.gradient(loss, trained, unconnected_gradients="zero")
            ]

        loss, gradients = gradients_of(given)
        norm = sum(float(tf.reduce_sum(tf.square(tf.cast(gradient, tf.float32)))) for gradient in gradients)
        return loss.numpy(), norm

    return Built(
        run=lambda: step(given),
        results=results,
        parameters=sum(weight.shape.num_elements() for weight in net.variables()),
        trained=sum(weight.shape.num_elements() for weight in trained),
    )


class _Net:
    """Its variables, those of Keras's layers among them, and a pass through it."""

    def __init__(self, model: Model, compiled: bool) -> None:
        self.model, self.compiled = model, compiled
        self.type: Any = None
        self.given: dict[str, Tensor] = {}
        self.keras: dict[str, Any] = {}
        values, described = numbers(model), weights(model)
        low = types(model)
        for place in places(model):
            if (layer := _of_keras(place, values)) is not None:
                self.keras[place.path] = layer
        self.weights = {
            name: tf.Variable(
                tf.cast(value, TYPES[low[name]] if name in low else tf.float32), trainable=described[name].trained
            )
            for name, value in values.items()
        }
        self.remembered = {name: tf.Variable(value, trainable=False) for name, value in statistics(model).items()}

    def variables(self) -> list[Any]:
        of_layers = [weight.value for layer in self.keras.values() for weight in layer.trainable_weights]
        return [*self.weights.values(), *of_layers]

    def trained(self) -> list[Any]:
        return [weight for weight in self.variables() if weight.trainable]

    def forward(self, given: dict[str, Tensor]) -> Tensor:
        self.given = given
        return self.layers(self.model.layers, self.model.shape, "", given["x"])

    def layers(self, layers: tuple[Layer, ...], shape: Shape, above: str, x: Tensor) -> Tensor:
        for number, layer in enumerate(layers):
            x = APPLY[layer.kind](self, Place(f"{above}{number}", layer, shape), x)
            shape = after(layer, shape)
        return x

    def inner(self, place: Place, x: Tensor) -> Tensor:
        return self.layers(place.layer.inner, place.shape, f"{place.path}.", x)

    def weight(self, place: Place, name: str) -> Tensor:
        value = self.weights[f"{place.path}/{name}"]
        return value if self.type is None else tf.cast(value, self.type)


def _of_keras(place: Place, values: dict[str, Any]) -> Any:
    """Keras's layer, filled with the weights, which are taken out of `values`; None for what is written here."""
    path, layer, shape = place
    if layer.kind == "attention" and layer["form"] == "module":
        return _keras_attention(path, layer, shape, values)
    # With two biases Keras has the GRU alone.
    if layer.kind == "rnn" and layer["form"] == "layer" and (layer["cell"] == "gru" or not layer["bias"]):
        return _keras_rnn(path, layer, shape, values)
    return None


def _keras_attention(path: str, layer: Layer, shape: Shape, values: dict[str, Any]) -> Any:
    import keras

    heads, size = layer["heads"], layer["size"]
    made = keras.layers.MultiHeadAttention(heads, key_dim=size)
    made.build(shape, shape, shape)
    own: list[Any] = []
    for name in ("query", "key", "value"):
        own.append(values.pop(f"{path}/{name}").reshape(shape[-1], heads, size))
        own.append(values.pop(f"{path}/{name}_bias").reshape(heads, size))
    own.append(values.pop(f"{path}/out").reshape(heads, size, shape[-1]))
    own.append(values.pop(f"{path}/out_bias"))
    made.set_weights(own)
    return made


def _keras_rnn(path: str, layer: Layer, shape: Shape, values: dict[str, Any]) -> Any:
    import keras

    kind = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU, "simple": keras.layers.SimpleRNN}[layer["cell"]]
    made = kind(layer["hidden"], use_bias=layer["bias"], return_sequences=not layer["last"])
    if layer["both"]:
        made = keras.layers.Bidirectional(made)
    made.build(shape)
    own: list[Any] = []
    for end in ("", "_back") if layer["both"] else ("",):
        for name in ("kernel", "recurrent"):
            own.append(_keras_order(layer, values.pop(f"{path}/{name}{end}")))
        if layer["bias"]:
            pair = [values.pop(f"{path}/{name}{end}") for name in ("bias", "recurrent_bias")]
            own.append(_keras_order(layer, np.stack(pair)))
    for variable, value in zip(made.trainable_weights, own, strict=True):
        variable.assign(value)
    return made


def _keras_order(layer: Layer, value: Any) -> Any:
    """Keras has the gates of a GRU as update, reset, new."""
    if layer["cell"] != "gru":
        return value
    reset, update, new = np.split(value, GATES["gru"], -1)
    return np.concatenate([update, reset, new], -1)


def linear(net: _Net, place: Place, x: Tensor) -> Tensor:
    """With a bias as Keras's Dense has it, else as a product in batches."""
    kernel = net.weight(place, "kernel")
    if place.layer["bias"]:
        return tf.nn.bias_add(tf.tensordot(x, kernel, 1), net.weight(place, "bias"))
    return x @ kernel


def conv(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer = place.layer
    y = _convolved(net, layer, axes(layer, place.shape), windows(layer, place.shape), x, net.weight(place, "kernel"))
    return tf.nn.bias_add(y, net.weight(place, "bias")) if layer["bias"] else y


def _convolved(net: _Net, layer: Layer, over: list[Axis], each: list[Padding], x: Tensor, kernel: Tensor) -> Tensor:
    """By the op of its dimensions, or by `tf.nn.convolution` as in Keras, which has no stride beside a dilation."""
    dimensions, groups, padding = len(over), layer["groups"], layer["padding"]
    strides, dilations = [axis.stride for axis in over], [axis.dilation for axis in over]
    by_keras = layer["bias"] and not (max(strides) > 1 and max(dilations) > 1)
    zeros = [(0, 0), *(window[:2] for window in each), (0, 0)]
    # TensorFlow 2.21 dies of the gradient of such a kernel on longer images.
    picks = not net.compiled and max(strides) > 1 and all(axis.kernel == 1 for axis in over)
    if padding in ("same", "valid"):
        padding = padding.upper()
    elif layer["pad_first"] or dimensions != 2 or by_keras or picks or 1 < groups == x.shape[-1]:
        x, padding = tf.pad(x, zeros), "VALID"
    else:
        padding = [list(ends) for ends in zeros]
    if picks:
        x = x[(slice(None), *(slice(None, None, stride) for stride in strides))]
        strides = [1] * dimensions
    # `tf.nn.depthwise_conv2d` has no stride beside a dilation, and computes something else.
    if 1 < groups == x.shape[-1] and dimensions < 3 and not (max(strides) > 1 and max(dilations) > 1):
        return _depthwise(x, kernel, strides, padding, dilations)
    if by_keras:
        function = partial(tf.nn.convolution, strides=strides, padding=padding, dilations=dilations)
    else:
        whole = {} if dimensions == 1 else {"strides": (1, *strides, 1), "dilations": (1, *dilations, 1)}
        function = partial(CONV[dimensions], padding=padding, **(whole or {"stride": strides, "dilations": dilations}))
    if groups > 1 and dimensions == 3:  # its kernel for CPUs has no groups
        parts = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1), strict=True)
        return tf.concat([function(a, b) for a, b in parts], -1)
    return function(x, kernel)


def _depthwise(x: Tensor, kernel: Tensor, strides: list[int], padding: Any, dilations: list[int]) -> Tensor:
    """Of a sequence as of an image that is one place high."""
    flat = len(strides) == 1
    if flat:
        x, kernel = x[:, None], kernel[None]
        strides, dilations = strides * 2, dilations * 2
    kernel = tf.reshape(kernel, (*kernel.shape[:2], x.shape[-1], -1))
    y = tf.nn.depthwise_conv2d(x, kernel, (1, *strides, 1), padding, dilations=dilations)
    return y[:, 0] if flat else y


def conv_transpose(net: _Net, place: Place, x: Tensor) -> Tensor:
    """Padding in numbers is what is cut off: by the op where it takes numbers, else off the whole."""
    layer, shape = place.layer, place.shape
    over, each, groups = axes(layer, shape), windows(layer, shape), layer["groups"]
    kernel = net.weight(place, "kernel")
    kernel = tf.transpose(kernel, (*range(len(over)), len(over) + 1, len(over)))
    sizes = [window.size for window in each]
    numbers = layer["padding"] not in ("same", "valid")
    padding: Any = "SAME" if layer["padding"] == "same" else "VALID"
    cut = numbers and not (len(over) == 2 and layer["bias"] and not any(layer["more"]))
    if cut:
        full = [(axis.size - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 for axis in over]
        sizes = [max(whole, window.low + window.size) for whole, window in zip(full, each, strict=True)]
    elif numbers:
        padding = [[0, 0], *(list(window[:2]) for window in each), [0, 0]]
    function = partial(
        CONV_TRANSPOSE[len(over)],
        output_shape=(shape[0], *sizes, layer["out"] // groups),
        strides=[axis.stride for axis in over],
        padding=padding,
        dilations=[axis.dilation for axis in over],
    )
    if groups > 1:
        parts = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1), strict=True)
        y = tf.concat([function(a, b) for a, b in parts], -1)
    else:
        y = function(x, kernel)
    if cut:
        begin = (0, *(window.low for window in each), 0)
        y = tf.slice(y, begin, (-1, *(window.size for window in each), -1))
    return tf.nn.bias_add(y, net.weight(place, "bias")) if layer["bias"] else y


def norm(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer, shape = place.layer, place.shape
    rank = len(shape)
    spatial = list(range(1, rank - 1))
    match layer["form"]:
        case "layer":
            y = _standard(x, [-1])
        case "rms":
            y = x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-5)
        case "instance":
            y = _standard(x, spatial)
        case "group":
            groups = layer["groups"]
            parts = tf.reshape(x, (*shape[:-1], groups, shape[-1] // groups))
            y = tf.reshape(_standard(parts, [*spatial, rank]), shape)
        case _:
            y = _batch_norm(net, place, x)
    if layer["affine"]:
        y = y * net.weight(place, "scale")
        y = y if layer["form"] == "rms" else y + net.weight(place, "offset")
    return y


def _standard(x: Tensor, over: list[int]) -> Tensor:
    mean, variance = tf.nn.moments(x, over, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def _batch_norm(net: _Net, place: Place, x: Tensor) -> Tensor:
    mean, variance = (net.remembered[f"{place.path}/{name}"] for name in ("mean", "variance"))
    if net.model.trains:
        known = mean, variance
        mean, variance = tf.nn.moments(x, list(range(len(place.shape) - 1)))
        for variable, value in zip(known, (mean, variance), strict=True):
            variable.assign(0.9 * variable + 0.1 * value)
    return tf.nn.batch_normalization(x, mean, variance, None, None, 1e-5)


def attention(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer, (batch, tokens, _) = place.layer, place.shape
    if place.path in net.keras:
        mask = net.given[place.path][:, None] if layer["mask"] == "lengths" else None
        return net.keras[place.path](x, x, attention_mask=mask, use_causal_mask=layer["mask"] == "causal")
    heads, kv_heads, size, memory = layer["heads"], layer["kv_heads"], layer["size"], layer["memory"]
    source = net.weight(place, "memory") if memory else x
    q, k, v = (_projected(net, place, name, x if name == "query" else source) for name in ("query", "key", "value"))
    q = tf.reshape(q, (batch, tokens, heads, size))
    if memory:
        k, v = (tf.reshape(part, (memory, kv_heads, size)) for part in (k, v))
        k, v = (tf.broadcast_to(part, (batch, memory, kv_heads, size)) for part in (k, v))
    else:
        k, v = (tf.reshape(part, (batch, tokens, kv_heads, size)) for part in (k, v))
    function = {"written": _written, "einsum": _by_einsum}.get(layer["form"], _fused)
    y = tf.reshape(function(net, place, q, k, v), (batch, tokens, heads * size))
    return _projected(net, place, "out", y)


def _projected(net: _Net, place: Place, name: str, x: Tensor) -> Tensor:
    y = tf.tensordot(x, net.weight(place, name), 1)
    return y + net.weight(place, f"{name}_bias") if place.layer["bias"] else y


def _mask(net: _Net, place: Place) -> Tensor | None:
    """What may be looked at, for scores of (batch, heads, queries, keys)."""
    kind = place.layer["mask"]
    if kind == "lengths":
        return net.given[place.path][:, None, None]
    return tf.constant(window(place.shape[1], kind))[None, None] if kind in ("causal", "window") else None


def _bias(place: Place, kind: Any) -> Tensor | None:
    if place.layer["mask"] != "bias":
        return None
    apart = np.arange(place.shape[1])[:, None] - np.arange(place.shape[1])
    slopes = np.asarray([2.0**-head for head in range(place.layer["heads"])])
    return tf.constant(-slopes[:, None, None] * np.abs(apart), kind)[None]


def _fused(net: _Net, place: Place, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """By Keras's function, which TensorFlow's graph sees written out."""
    import keras

    shared = place.layer["heads"] // place.layer["kv_heads"]
    if shared > 1:
        k, v = tf.repeat(k, shared, 2), tf.repeat(v, shared, 2)
    causal = place.layer["mask"] == "causal"
    mask = None if causal else _mask(net, place)
    return keras.ops.dot_product_attention(q, k, v, bias=_bias(place, q.dtype), mask=mask, is_causal=causal)


def _written(net: _Net, place: Place, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    shared = place.layer["heads"] // place.layer["kv_heads"]
    if shared > 1:
        k, v = tf.repeat(k, shared, 2), tf.repeat(v, shared, 2)
    q, k, v = (tf.transpose(part, (0, 2, 1, 3)) for part in (q, k, v))
    y = _softmax(net, place, tf.matmul(q, k, transpose_b=True)) @ v
    return tf.transpose(y, (0, 2, 1, 3))


def _by_einsum(net: _Net, place: Place, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    batch, tokens, heads, size = q.shape
    kv_heads, keys = place.layer["kv_heads"], k.shape[1]
    grouped = tf.reshape(q, (batch, tokens, kv_heads, heads // kv_heads, size))
    scores = tf.einsum("btkgd,bskd->bkgts", grouped, k)
    chances = _softmax(net, place, tf.reshape(scores, (batch, heads, tokens, keys)))
    chances = tf.reshape(chances, (batch, kv_heads, heads // kv_heads, tokens, keys))
    return tf.einsum("bkgts,bskd->btkgd", chances, v)


def _softmax(net: _Net, place: Place, scores: Tensor) -> Tensor:
    scores = scores / tf.cast(sqrt(place.layer["size"]), scores.dtype)
    bias, mask = _bias(place, scores.dtype), _mask(net, place)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = tf.where(mask, scores, scores.dtype.min)
    return tf.nn.softmax(scores)


def embedding(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer, table = place.layer, net.weight(place, "table")
    y = tf.one_hot(x, layer["rows"]) @ table if layer["form"] == "onehot" else tf.nn.embedding_lookup(table, x)
    y = tf.reduce_mean(y, 1) if layer["form"] == "bag" else y
    return y + net.weight(place, "positions") if layer["positions"] else y


def tied(net: _Net, place: Place, x: Tensor) -> Tensor:
    return tf.matmul(x, net.weights["0/table"], transpose_b=True)


def einsum(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer = place.layer
    y = tf.einsum(layer["rule"], x, x if layer["itself"] else net.weight(place, "kernel"))
    return tf.reshape(y, after(layer, place.shape)) if layer["joined"] else y


def pool(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer, dimensions = place.layer, len(place.shape) - 2
    if layer["form"] == "adaptive":
        return _adaptive(layer, x)
    zeros = layer["padding"]
    if zeros:
        x = tf.pad(x, [(0, 0), *((zeros, zeros),) * dimensions, (0, 0)], constant_values=x.dtype.min)
    kind = layer["by"].upper()
    return tf.nn.pool(x, [layer["kernel"]] * dimensions, kind, [layer["stride"]] * dimensions, "VALID")


def _adaptive(layer: Layer, x: Tensor) -> Tensor:
    """Of each dimension in turn, the mean or maximum of PyTorch's parts."""
    reduce = tf.reduce_max if layer["by"] == "max" else tf.reduce_mean
    for axis, size in enumerate(layer["size"], 1):
        whole = x.shape[axis]
        ends = [(part * whole // size, -(-(part + 1) * whole // size)) for part in range(size)]
        x = tf.stack([reduce(x[(slice(None),) * axis + (slice(*end),)], axis) for end in ends], axis)
    return x


def rnn(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer = place.layer
    directions = ("", "_back") if layer["both"] else ("",)
    if place.path in net.keras:
        begin = [state for end in directions for state in _begin(net, place, end)]
        return net.keras[place.path](x, initial_state=begin if layer["state"] == "learned" else None)
    ends = []
    for end in directions:
        steps = tf.reverse(x, [1]) if end else x
        begin, step = _begin(net, place, end), partial(_step, net, place, end)
        if layer["form"] == "loop":
            state, states = begin, []
            for now in tf.unstack(steps, axis=1):
                state = step(state, now)
                states.append(state[0])
            y = states[-1] if layer["last"] else tf.stack(states, 1)
        else:
            stacked = tf.scan(step, tf.transpose(steps, (1, 0, 2)), begin)[0]
            y = stacked[-1] if layer["last"] else tf.transpose(stacked, (1, 0, 2))
        ends.append(tf.reverse(y, [1]) if end and not layer["last"] else y)
    return tf.concat(ends, -1) if len(ends) > 1 else ends[0]


def _begin(net: _Net, place: Place, end: str) -> tuple[Tensor, ...]:
    shape = (place.shape[0], place.layer["hidden"])
    names = ("state", "memory") if place.layer["cell"] == "lstm" else ("state",)
    if place.layer["state"] == "zero":
        return tuple(tf.zeros(shape) for _ in names)
    return tuple(tf.broadcast_to(net.weight(place, f"{name}{end}"), shape) for name in names)


def _step(net: _Net, place: Place, end: str, state: tuple[Tensor, ...], x: Tensor) -> tuple[Tensor, ...]:
    a, b = x @ net.weight(place, f"kernel{end}"), state[0] @ net.weight(place, f"recurrent{end}")
    if place.layer["bias"]:
        a, b = a + net.weight(place, f"bias{end}"), b + net.weight(place, f"recurrent_bias{end}")
    cell = place.layer["cell"]
    if cell == "simple":
        return (tf.tanh(a + b),)
    if cell == "lstm":
        i, f, g, o = tf.split(a + b, 4, -1)
        c = tf.sigmoid(f) * state[1] + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c
    (r, z, n), (s, y, m) = tf.split(a, 3, -1), tf.split(b, 3, -1)
    reset, update = tf.sigmoid(r + s), tf.sigmoid(z + y)
    return ((1 - update) * tf.tanh(n + reset * m) + update * state[0],)


def scan(net: _Net, place: Place, x: Tensor) -> Tensor:
    kernels, biases = net.weight(place, "kernels"), net.weight(place, "biases")
    trips = place.layer["trips"]
    if place.layer["form"] == "scan":
        return tf.scan(lambda x, weights: tf.tanh(x @ weights[0] + weights[1]), (kernels, biases), x)[-1]
    kernels, biases = tf.convert_to_tensor(kernels), tf.convert_to_tensor(biases)
    return tf.while_loop(
        lambda trip, x: trip < trips,
        lambda trip, x: (trip + 1, tf.tanh(x @ kernels[trip] + biases[trip])),
        (tf.constant(0), x),
        maximum_iterations=trips,
    )[1]


def while_(net: _Net, place: Place, x: Tensor) -> Tensor:
    kernel = net.weight(place, "kernel")
    bound = place.layer["trips"] if net.model.trains else net.given[place.path]
    most = {"maximum_iterations": bound} if net.model.trains else {}
    step = lambda trip, x: (trip + 1, tf.tanh(x @ kernel))  # noqa: E731
    return tf.while_loop(lambda trip, x: trip < bound, step, (tf.constant(0), x), **most)[1]


def map_(net: _Net, place: Place, x: Tensor) -> Tensor:
    kernel = net.weight(place, "kernel")

    def product(sample: Tensor) -> Tensor:
        return tf.linalg.matvec(kernel, sample, transpose_a=True) if len(sample.shape) == 1 else sample @ kernel

    return tf.vectorized_map(product, x) if place.layer["form"] == "vmap" else tf.map_fn(product, x)


def cond(net: _Net, place: Place, x: Tensor) -> Tensor:
    short, up, down = (net.weight(place, name) for name in ("short", "up", "down"))
    return tf.cond(net.given[place.path], lambda: tf.tanh(x @ short), lambda: tf.nn.relu(x @ up) @ down)


def experts(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer, shape = place.layer, place.shape
    kernels = tf.unstack(net.weight(place, "kernels"))
    parts = tf.split(tf.reshape(x, (-1, shape[-1])), list(layer["sizes"]))
    rows = tf.concat([part @ kernel for part, kernel in zip(parts, kernels, strict=True)], 0)
    return tf.reshape(rows, after(layer, shape))


def residual(net: _Net, place: Place, x: Tensor) -> Tensor:
    y = net.inner(place, x)
    return x + y if place.layer["by"] == "add" else tf.concat([x, y], -1)


def mixed(net: _Net, place: Place, x: Tensor) -> Tensor:
    net.type = TYPES[place.layer["to"]]
    y = net.inner(place, tf.cast(x, net.type))
    net.type = None
    return tf.cast(y, tf.float32)


def scatter(net: _Net, place: Place, x: Tensor) -> Tensor:
    rows = tf.transpose(x, (1, 0, 2))
    return tf.transpose(tf.math.unsorted_segment_sum(rows, net.given[place.path], place.layer["slots"]), (1, 0, 2))


def resize(net: _Net, place: Place, x: Tensor) -> Tensor:
    """XLA has no gradient of the nearest place: there rows and columns are repeated, as Keras does it."""
    layer = place.layer
    if net.compiled and net.model.trains and layer["form"] == "nearest":
        return tf.repeat(tf.repeat(x, layer["factor"], 1), layer["factor"], 2)
    return tf.image.resize(x, after(layer, place.shape)[1:-1], layer["form"])


def reshape(net: _Net, place: Place, x: Tensor) -> Tensor:
    layer, shape = place.layer, after(place.layer, place.shape)
    match layer["form"]:
        case "mean":
            return tf.reduce_mean(x, list(range(1, len(place.shape) - 1)))
        case "transpose":
            return tf.transpose(x, (0, 2, 1))
        case "slice":
            return x[:, : shape[1]]
        case "flip":
            return tf.reverse(x, [1])
    return tf.reshape(x, shape)


APPLY: dict[str, Callable[[_Net, Place, Tensor], Tensor]] = {
    "linear": linear,
    "conv": conv,
    "conv_transpose": conv_transpose,
    "norm": norm,
    "attention": attention,
    "embedding": embedding,
    "tied": tied,
    "offset": lambda net, place, x: x + net.weight(place, "value"),
    "einsum": einsum,
    "pool": pool,
    "rnn": rnn,
    "scan": scan,
    "while": while_,
    "map": map_,
    "cond": cond,
    "experts": experts,
    "residual": residual,
    "checkpoint": lambda net, place, x: tf.recompute_grad(lambda x: net.inner(place, x))(x),
    "mixed": mixed,
    "scatter": scatter,
    "gather": lambda net, place, x: tf.gather(x, net.given[place.path], axis=1),
    "activation": lambda net, place, x: ACTIVATIONS[place.layer["function"]](x),
    "softmax": lambda net, place, x: (tf.nn.log_softmax if place.layer["log"] else tf.nn.softmax)(x),
    "resize": resize,
    "reshape": reshape,
    "sort": lambda net, place, x: tf.sort(x, -1),
    "top": lambda net, place, x: tf.math.top_k(x, place.layer["number"]).values,
    "cumsum": lambda net, place, x: tf.cumsum(x, -1),
    "dropout": lambda net, place, x: tf.nn.dropout(x, place.layer["rate"]),
}
