"""A random model in JAX: one jitted function of its weights and inputs, channels last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from arrays import inputs, numbers, statistics, types, weights
from built import Built, window
from jax import lax
from net import Layer, Model, Place, Shape, after, axes, places, windows

Array = jax.Array
Arrays = dict[str, jax.Array]
TYPES = {"bf16": jnp.bfloat16, "fp16": jnp.float16}
SPATIAL = (None, "W", "HW", "DHW")
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
    "elu": jax.nn.elu,
    "leaky_relu": partial(jax.nn.leaky_relu, negative_slope=0.2),
    "glu": lambda x: jnp.multiply(*_gated(jnp.split(x, 2, -1))),
}


def _gated(halves: list[Array]) -> tuple[Array, Array]:
    return halves[0], jax.nn.sigmoid(halves[1])


def build(model: Model) -> Built:
    given = {name: jnp.asarray(value) for name, value in inputs(model).items()}
    described, low = weights(model), types(model)
    made = {
        name: jnp.asarray(value, TYPES[low[name]] if name in low else jnp.float32)
        for name, value in numbers(model).items()
    }
    trained = {name: value for name, value in made.items() if described[name].trained}
    frozen = {name: value for name, value in made.items() if not described[name].trained}
    remembered = {name: jnp.asarray(value) for name, value in statistics(model).items()}
    key = jax.random.PRNGKey(0) if any(place.layer.kind == "dropout" for place in places(model)) else None

    def infer(weights: Arrays, remembered: Arrays, given: Arrays) -> Array:
        return _Pass(model, weights, remembered, given, None).layers(model.layers, model.shape, "", given["x"])

    def loss_of(trained: Arrays, frozen: Arrays, remembered: Arrays, given: Arrays, key: Any) -> tuple[Array, Arrays]:
        whole = _Pass(model, {**frozen, **trained}, dict(remembered), given, key)
        y = whole.layers(model.layers, model.shape, "", given["x"])
        if model.loss == "square":
            return jnp.mean(jnp.square(y)), whole.remembered
        chances = jax.nn.log_softmax(y)
        return -jnp.mean(jnp.take_along_axis(chances, given["labels"][..., None], -1)), whole.remembered

    differentiated = jax.value_and_grad(loss_of, has_aux=True)

    def train(trained: Arrays, frozen: Arrays, remembered: Arrays, given: Arrays, key: Any) -> tuple[Any, ...]:
        (loss, remembered), gradients = differentiated(trained, frozen, remembered, given, key)
        if not model.update:
            return loss, remembered, gradients
        return loss, remembered, jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, trained, gradients)

    step = jax.jit(train if model.trains else infer)
    state = [trained, remembered]

    def run() -> Any:
        if not model.trains:
            return step(made, remembered, given)
        loss, state[1], results = step(state[0], frozen, state[1], given, key)
        if model.update:
            state[0] = results
        return loss, state[1], results

    def results() -> tuple[np.ndarray, float]:
        if not model.trains:
            return np.asarray(run()), 0.0
        (loss, _), gradients = jax.jit(differentiated)(trained, frozen, remembered, given, key)
        norm = sum(float(jnp.sum(jnp.square(gradient.astype(jnp.float32)))) for gradient in gradients.values())
        return np.asarray(loss), norm

    return Built(
        run=run,
        results=results,
        parameters=sum(value.size for value in made.values()),
        trained=sum(value.size for value in trained.values()),
    )


class _Pass:
    """One pass through the layers. remembered: of batch norms, replaced as they see a batch."""

    def __init__(self, model: Model, weights: Mapping[str, Array], remembered: Arrays, given: Arrays, key: Any) -> None:
        self.model, self.weights, self.remembered, self.given, self.key = model, weights, remembered, given, key
        self.type: Any = None

    def layers(self, layers: tuple[Layer, ...], shape: Shape, above: str, x: Array) -> Array:
        for number, layer in enumerate(layers):
            x = APPLY[layer.kind](self, Place(f"{above}{number}", layer, shape), x)
            shape = after(layer, shape)
        return x

    def inner(self, place: Place, x: Array) -> Array:
        return self.layers(place.layer.inner, place.shape, f"{place.path}.", x)

    def weight(self, place: Place, name: str) -> Array:
        value = self.weights[f"{place.path}/{name}"]
        return value if self.type is None else value.astype(self.type)

    def has(self, place: Place, name: str) -> bool:
        return f"{place.path}/{name}" in self.weights


def linear(net: _Pass, place: Place, x: Array) -> Array:
    y = x @ net.weight(place, "kernel")
    return y + net.weight(place, "bias") if place.layer["bias"] else y


def conv(net: _Pass, place: Place, x: Array) -> Array:
    layer, shape = place.layer, place.shape
    over, each = axes(layer, shape), windows(layer, shape)
    pads: Any = [tuple(window[:2]) for window in each]
    if layer["pad_first"]:
        x, pads = jnp.pad(x, [(0, 0), *pads, (0, 0)]), "VALID"
    elif layer["padding"] in ("same", "valid"):
        pads = layer["padding"].upper()
    y = lax.conv_general_dilated(
        x,
        net.weight(place, "kernel"),
        window_strides=[axis.stride for axis in over],
        padding=pads,
        rhs_dilation=[axis.dilation for axis in over],
        dimension_numbers=_layout(len(over)),
        feature_group_count=layer["groups"],
    )
    return y + net.weight(place, "bias") if layer["bias"] else y


def conv_transpose(net: _Pass, place: Place, x: Array) -> Array:
    """The kernel is turned around, and of its groups those of the input become those of the output."""
    layer, shape = place.layer, place.shape
    over, each, groups = axes(layer, shape), windows(layer, shape), layer["groups"]
    spatial = tuple(range(len(over)))
    kernel = jnp.flip(net.weight(place, "kernel"), spatial)
    sizes, (channels, out) = kernel.shape[:-2], kernel.shape[-2:]
    if groups > 1:
        kernel = jnp.moveaxis(kernel.reshape(*sizes, groups, channels // groups, out), -3, -2)
        kernel = kernel.reshape(*sizes, channels // groups, groups * out)
    pads = [
        ((axis.kernel - 1) * axis.dilation - window.low, (axis.kernel - 1) * axis.dilation - window.high)
        for axis, window in zip(over, each, strict=True)
    ]
    strides, dilations = [axis.stride for axis in over], [axis.dilation for axis in over]
    if groups == 1:
        y = lax.conv_transpose(x, kernel, strides, pads, rhs_dilation=dilations, dimension_numbers=_layout(len(over)))
    else:
        y = lax.conv_general_dilated(
            x,
            kernel,
            window_strides=(1,) * len(over),
            padding=pads,
            lhs_dilation=strides,
            rhs_dilation=dilations,
            dimension_numbers=_layout(len(over)),
            feature_group_count=groups,
        )
    return y + net.weight(place, "bias") if layer["bias"] else y


def _layout(dimensions: int) -> tuple[str, str, str]:
    spatial = SPATIAL[dimensions]
    return f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"


def norm(net: _Pass, place: Place, x: Array) -> Array:
    layer, shape = place.layer, place.shape
    spatial = tuple(range(1, x.ndim - 1))
    match layer["form"]:
        case "layer":
            y = _standard(x, (-1,))
        case "rms":
            y = x * lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-5)
        case "instance":
            y = _standard(x, spatial)
        case "group":
            groups = layer["groups"]
            parts = x.reshape(*shape[:-1], groups, shape[-1] // groups)
            y = _standard(parts, (*spatial, x.ndim)).reshape(x.shape)
        case _:
            y = _batch_norm(net, place, x)
    if layer["affine"]:
        y = y * net.weight(place, "scale")
        y = y if layer["form"] == "rms" else y + net.weight(place, "offset")
    return y


def _standard(x: Array, over: tuple[int, ...]) -> Array:
    mean, variance = jnp.mean(x, over, keepdims=True), jnp.var(x, over, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5)


def _batch_norm(net: _Pass, place: Place, x: Array) -> Array:
    mean, variance = (net.remembered[f"{place.path}/{name}"] for name in ("mean", "variance"))
    if net.model.trains:
        over = tuple(range(x.ndim - 1))
        mean, variance = jnp.mean(x, over), jnp.var(x, over)
        for name, value in (("mean", mean), ("variance", variance)):
            known = net.remembered[f"{place.path}/{name}"]
            net.remembered[f"{place.path}/{name}"] = 0.9 * known + 0.1 * lax.stop_gradient(value)
    return (x - mean) * lax.rsqrt(variance + 1e-5)


def attention(net: _Pass, place: Place, x: Array) -> Array:
    layer, (batch, tokens, _) = place.layer, place.shape
    heads, kv_heads, size, memory = layer["heads"], layer["kv_heads"], layer["size"], layer["memory"]
    source = net.weight(place, "memory") if memory else x
    q, k, v = (_projected(net, place, name, x if name == "query" else source) for name in ("query", "key", "value"))
    q = q.reshape(batch, tokens, heads, size)
    k, v = (part.reshape(*part.shape[:-1], kv_heads, size) for part in (k, v))
    if memory:
        k, v = (jnp.broadcast_to(part, (batch, *part.shape)) for part in (k, v))
    function = {"written": _written, "einsum": _by_einsum}.get(layer["form"], _fused)
    y = function(net, place, q, k, v).reshape(batch, tokens, heads * size)
    return _projected(net, place, "out", y)


def _projected(net: _Pass, place: Place, name: str, x: Array) -> Array:
    y = x @ net.weight(place, name)
    return y + net.weight(place, f"{name}_bias") if place.layer["bias"] else y


def _mask(net: _Pass, place: Place) -> Array | None:
    """What may be looked at, for scores of (batch, heads, queries, keys)."""
    kind = place.layer["mask"]
    if kind == "lengths":
        return net.given[place.path][:, None, None]
    return jnp.asarray(window(place.shape[1], kind)) if kind in ("causal", "window") else None


def _bias(place: Place, kind: Any) -> Array | None:
    if place.layer["mask"] != "bias":
        return None
    places = np.arange(place.shape[1], dtype="f4")
    slopes = np.asarray([2.0**-head for head in range(place.layer["heads"])], "f4")
    return jnp.asarray(-slopes[:, None, None] * np.abs(places[:, None] - places), kind)


def _fused(net: _Pass, place: Place, q: Array, k: Array, v: Array) -> Array:
    causal = place.layer["mask"] == "causal"
    bias, mask = _bias(place, q.dtype), None if causal else _mask(net, place)
    if mask is not None and mask.ndim == 2:
        mask = mask[None, None]
    return jax.nn.dot_product_attention(q, k, v, None if bias is None else bias[None], mask, is_causal=causal)


def _written(net: _Pass, place: Place, q: Array, k: Array, v: Array) -> Array:
    shared = place.layer["heads"] // place.layer["kv_heads"]
    if shared > 1:
        k, v = jnp.repeat(k, shared, 2), jnp.repeat(v, shared, 2)
    q, k, v = (part.transpose(0, 2, 1, 3) for part in (q, k, v))
    y = _softmax(net, place, q @ k.swapaxes(-2, -1)) @ v
    return y.transpose(0, 2, 1, 3)


def _by_einsum(net: _Pass, place: Place, q: Array, k: Array, v: Array) -> Array:
    batch, tokens, heads, size = q.shape
    kv_heads = place.layer["kv_heads"]
    grouped = q.reshape(batch, tokens, kv_heads, heads // kv_heads, size)
    scores = jnp.einsum("btkgd,bskd->bkgts", grouped, k)
    chances = _softmax(net, place, scores.reshape(batch, heads, tokens, -1)).reshape(scores.shape)
    return jnp.einsum("bkgts,bskd->btkgd", chances, v)


def _softmax(net: _Pass, place: Place, scores: Array) -> Array:
    scores = scores / sqrt(place.layer["size"])
    bias, mask = _bias(place, scores.dtype), _mask(net, place)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    return jax.nn.softmax(scores)


def embedding(net: _Pass, place: Place, x: Array) -> Array:
    layer, table = place.layer, net.weight(place, "table")
    y = jax.nn.one_hot(x, layer["rows"]) @ table if layer["form"] == "onehot" else jnp.take(table, x, axis=0)
    y = jnp.mean(y, 1) if layer["form"] == "bag" else y
    return y + net.weight(place, "positions") if layer["positions"] else y


def tied(net: _Pass, place: Place, x: Array) -> Array:
    return x @ net.weights["0/table"].T


def einsum(net: _Pass, place: Place, x: Array) -> Array:
    layer = place.layer
    y = jnp.einsum(layer["rule"], x, x if layer["itself"] else net.weight(place, "kernel"))
    return y.reshape(*y.shape[: layer["joined"]], -1) if layer["joined"] else y


def pool(net: _Pass, place: Place, x: Array) -> Array:
    layer, dimensions = place.layer, len(place.shape) - 2
    if layer["form"] == "adaptive":
        return _adaptive(layer, x)
    sizes, strides = (1, *(layer["kernel"],) * dimensions, 1), (1, *(layer["stride"],) * dimensions, 1)
    pads = ((0, 0), *((layer["padding"],) * 2,) * dimensions, (0, 0))
    if layer["by"] == "max":
        return lax.reduce_window(x, -jnp.inf, lax.max, sizes, strides, pads)
    return lax.reduce_window(x, 0.0, lax.add, sizes, strides, pads) / prod(sizes)


def _adaptive(layer: Layer, x: Array) -> Array:
    """Of each dimension in turn, the mean or maximum of PyTorch's parts."""
    reduce = jnp.max if layer["by"] == "max" else jnp.mean
    for axis, size in enumerate(layer["size"], 1):
        whole = x.shape[axis]
        ends = [(part * whole // size, -(-(part + 1) * whole // size)) for part in range(size)]
        x = jnp.stack([reduce(lax.slice_in_dim(x, *end, axis=axis), axis) for end in ends], axis)
    return x


def rnn(net: _Pass, place: Place, x: Array) -> Array:
    layer = place.layer
    ends = []
    for end in ("", "_back") if layer["both"] else ("",):
        steps = jnp.flip(x, 1) if end else x
        begin = _begin(net, place, end, x.shape[0])
        step = partial(_step, net, place, end)
        if layer["form"] == "loop":
            state, states = begin, []
            for number in range(x.shape[1]):
                state = step(state, steps[:, number])
                states.append(state[0])
            y = states[-1] if layer["last"] else jnp.stack(states, 1)
        else:
            state, stacked = lax.scan(lambda state, x, step=step: (step(state, x),) * 2, begin, steps.swapaxes(0, 1))
            y = state[0] if layer["last"] else stacked[0].swapaxes(0, 1)
        ends.append(jnp.flip(y, 1) if end and not layer["last"] else y)
    return jnp.concatenate(ends, -1)


def _begin(net: _Pass, place: Place, end: str, batch: int) -> tuple[Array, ...]:
    shape = (batch, place.layer["hidden"])
    names = ("state", "memory") if place.layer["cell"] == "lstm" else ("state",)
    if place.layer["state"] == "zero":
        return tuple(jnp.zeros(shape) for _ in names)
    return tuple(jnp.broadcast_to(net.weight(place, f"{name}{end}"), shape) for name in names)


def _step(net: _Pass, place: Place, end: str, state: tuple[Array, ...], x: Array) -> tuple[Array, ...]:
    a, b = x @ net.weight(place, f"kernel{end}"), state[0] @ net.weight(place, f"recurrent{end}")
    if place.layer["bias"]:
        a, b = a + net.weight(place, f"bias{end}"), b + net.weight(place, f"recurrent_bias{end}")
    cell = place.layer["cell"]
    if cell == "simple":
        return (jnp.tanh(a + b),)
    if cell == "lstm":
        i, f, g, o = jnp.split(a + b, 4, -1)
        c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c
    (r, z, n), (s, y, m) = jnp.split(a, 3, -1), jnp.split(b, 3, -1)
    reset, update = jax.nn.sigmoid(r + s), jax.nn.sigmoid(z + y)
    return ((1 - update) * jnp.tanh(n + reset * m) + update * state[0],)


def scan(net: _Pass, place: Place, x: Array) -> Array:
    stacked = net.weight(place, "kernels"), net.weight(place, "biases")
    if place.layer["form"] == "scan":
        return lax.scan(lambda x, weights: (jnp.tanh(x @ weights[0] + weights[1]), None), x, stacked)[0]
    return lax.fori_loop(0, place.layer["trips"], lambda trip, x: jnp.tanh(x @ stacked[0][trip] + stacked[1][trip]), x)


def while_(net: _Pass, place: Place, x: Array) -> Array:
    kernel = net.weight(place, "kernel")
    if net.model.trains:
        return lax.fori_loop(0, place.layer["trips"], lambda _, x: jnp.tanh(x @ kernel), x)
    bound = net.given[place.path]
    return lax.while_loop(lambda s: s[0] < bound, lambda s: (s[0] + 1, jnp.tanh(s[1] @ kernel)), (jnp.int32(0), x))[1]


def map_(net: _Pass, place: Place, x: Array) -> Array:
    kernel = net.weight(place, "kernel")
    if place.layer["form"] == "vmap":
        return jax.vmap(lambda sample: sample @ kernel)(x)
    return lax.map(lambda sample: sample @ kernel, x)


def cond(net: _Pass, place: Place, x: Array) -> Array:
    short, up, down = (net.weight(place, name) for name in ("short", "up", "down"))
    return lax.cond(net.given[place.path], lambda x: jnp.tanh(x @ short), lambda x: jax.nn.relu(x @ up) @ down, x)


def experts(net: _Pass, place: Place, x: Array) -> Array:
    layer, kernels = place.layer, net.weight(place, "kernels")
    rows = x.reshape(-1, x.shape[-1])
    if layer["form"] == "ragged":
        y = lax.ragged_dot(rows, kernels, jnp.asarray(layer["sizes"], jnp.int32))
    else:
        parts = jnp.split(rows, np.cumsum(layer["sizes"])[:-1])
        y = jnp.concatenate([part @ kernels[number] for number, part in enumerate(parts)])
    return y.reshape(*x.shape[:-1], -1)


def residual(net: _Pass, place: Place, x: Array) -> Array:
    y = net.inner(place, x)
    return x + y if place.layer["by"] == "add" else jnp.concatenate([x, y], -1)


def checkpoint(net: _Pass, place: Place, x: Array) -> Array:
    """Weights are arguments, as they are in a library's layers."""
    own = {name: value for name, value in net.weights.items() if name.startswith(f"{place.path}.")}

    def inner(weights: dict[str, Array], x: Array) -> Array:
        within = _Pass(net.model, {**net.weights, **weights}, net.remembered, net.given, net.key)
        within.type = net.type
        return within.inner(place, x)

    return jax.checkpoint(inner)(own, x)


def mixed(net: _Pass, place: Place, x: Array) -> Array:
    net.type = TYPES[place.layer["to"]]
    y = net.inner(place, x.astype(net.type))
    net.type = None
    return y.astype(jnp.float32)


def scatter(net: _Pass, place: Place, x: Array) -> Array:
    zeros = jnp.zeros((x.shape[0], place.layer["slots"], x.shape[2]))
    return zeros.at[:, net.given[place.path]].add(x)


def resize(net: _Pass, place: Place, x: Array) -> Array:
    method = "nearest" if place.layer["form"] == "nearest" else "bilinear"
    return jax.image.resize(x, after(place.layer, place.shape), method)


def reshape(net: _Pass, place: Place, x: Array) -> Array:
    layer, shape = place.layer, after(place.layer, place.shape)
    match layer["form"]:
        case "mean":
            return jnp.mean(x, tuple(range(1, x.ndim - 1)))
        case "transpose":
            return x.swapaxes(1, 2)
        case "slice":
            return x[:, : shape[1]]
        case "flip":
            return jnp.flip(x, 1)
    return x.reshape(shape)


def dropout(net: _Pass, place: Place, x: Array) -> Array:
    rate = place.layer["rate"]
    kept = jax.random.bernoulli(jax.random.fold_in(net.key, int(place.path.partition(".")[0])), 1 - rate, x.shape)
    return jnp.where(kept, x / (1 - rate), 0.0)


APPLY: dict[str, Callable[[_Pass, Place, Array], Array]] = {
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
    "checkpoint": checkpoint,
    "mixed": mixed,
    "scatter": scatter,
    "gather": lambda net, place, x: jnp.take(x, net.given[place.path], axis=1),
    "activation": lambda net, place, x: ACTIVATIONS[place.layer["function"]](x),
    "softmax": lambda net, place, x: (jax.nn.log_softmax if place.layer["log"] else jax.nn.softmax)(x),
    "resize": resize,
    "reshape": reshape,
    "sort": lambda net, place, x: jnp.sort(x, -1),
    "top": lambda net, place, x: lax.top_k(x, place.layer["number"])[0],
    "cumsum": lambda net, place, x: jnp.cumsum(x, -1),
    "dropout": dropout,
}
