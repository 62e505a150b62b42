"""Small programs that between them use what compiled models use, compiled by JAX for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from roofline.xla.hlo.proto import HloProto

HEADS = 2


@dataclass(frozen=True)
class Compiled:
    """module: jaxlib's object; proto: the HloProto, with buffer assignment, as a profiler trace holds it."""

    module: Any
    proto: bytes


def compiled(function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> Compiled:
    """The optimised program."""
    executable = jax.jit(function, donate_argnums=donate).lower(*arguments).compile().runtime_executable()
    (module,) = executable.hlo_modules()
    assignment = executable.get_compiled_memory_stats().serialized_buffer_assignment_proto
    whole = HloProto()
    whole.hlo_module.ParseFromString(module.as_serialized_hlo_module_proto())
    whole.buffer_assignment.ParseFromString(assignment)
    return Compiled(module, whole.SerializeToString())


def lowered_proto(function: Callable[..., Any], *arguments: Any) -> bytes:
    """The module before optimisation, as a bare HloModuleProto."""
    return jax.jit(function).lower(*arguments).compiler_ir("hlo").as_serialized_hlo_module_proto()


def _normal(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _ids(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def mlp(weights, x):
    for w, b in weights:
        x = jax.nn.relu(x @ w + b)
    return x.mean()


def sgd(weights, x):
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, jax.grad(mlp)(weights, x))


def layer_norm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * gain + bias


def transformer(p, ids):
    x = p["emb"][ids]
    batch, length, width = x.shape
    for layer in p["layers"]:
        with jax.named_scope("attention"):
            h = layer_norm(x, layer["g"], layer["b"])
            q, k, v = (
                part.reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)
                for part in jnp.split(h @ layer["qkv"], 3, -1)
            )
            scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4.0
            y = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)
            x = x + y.transpose(0, 2, 1, 3).reshape(batch, length, width) @ layer["o"]
        with jax.named_scope("ffn"):
            h = layer_norm(x, layer["g"], layer["b"])
            x = x + jax.nn.gelu(h @ layer["up"], approximate=False) @ layer["down"]
    return x @ p["emb"].T


def transformer_loss(p, ids, labels):
    logs = jax.nn.log_softmax(transformer(p, ids), -1)
    return -jnp.take_along_axis(logs, labels[..., None], -1).mean()


def train(p, m, v, ids, labels):
    loss, g = jax.value_and_grad(transformer_loss)(p, ids, labels)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
    return jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v, loss


def transformer_parameters(width: int = 32, ffn: int = 64, layers: int = 2, vocabulary: int = 50) -> Any:
    layer = {
        "qkv": _normal(width, 3 * width), "o": _normal(width, width), "up": _normal(width, ffn),
        "down": _normal(ffn, width), "g": _normal(width), "b": _normal(width),
    }  # fmt: skip
    return {"emb": _normal(vocabulary, width), "layers": [layer] * layers}


def transformer_flops(batch: int, length: int, width: int = 32, ffn: int = 64, layers: int = 2, vocabulary: int = 50):
    """Forward, in closed form: projections, scores and values, FFN, head."""
    tokens = batch * length
    each = 2 * tokens * width * (3 * width + width + 2 * ffn) + 2 * 2 * batch * length * length * width
    return layers * each + 2 * tokens * width * vocabulary


def convolutions(ws, x):
    """Padded, strided, dilated and grouped, with pooling."""
    x = jax.nn.relu(lax.conv_general_dilated(x, ws[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = lax.conv_general_dilated(x, ws[1], (2, 2), ((1, 2), (0, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.sigmoid(x)
    x = lax.conv_general_dilated(
        x, ws[2], (1, 1), "SAME", rhs_dilation=(2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = lax.conv_general_dilated(
        x, ws[3], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
    )
    return (lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9.0).sum()


def scan(w, x):
    return lax.scan(lambda carry, _: (jnp.tanh(carry @ w), carry.sum()), x, None, length=10)


def dynamic_loop(w, x, n):
    return lax.fori_loop(0, n, lambda _, y: jnp.tanh(y @ w), x)


def conditional(choice, w, x):
    return lax.cond(choice > 0, lambda y: jnp.tanh(y @ w) @ w, lambda y: y * 2.0, x)


def sort_gather_scatter(table, ids, values):
    order = jnp.argsort(values)
    counts = jnp.zeros(table.shape[0]).at[ids].add(1.0)
    taken = table[ids] * counts[ids][:, None]
    placed = table.at[ids[:3]].set(taken[:3])
    return order, lax.top_k(values, 3), taken.sum(0), placed


def softmax_and_norm(x, gain, bias):
    with jax.named_scope("layer_norm"):
        y = layer_norm(x, gain, bias)
    return jax.nn.softmax(y, -1), jax.nn.log_softmax(x, -1)


def outer_product(x, y):
    return jnp.einsum("i,j->ij", x, y), jnp.einsum("bi,bj->bij", x[None], y[None])


def cache_update(cache, new, at):
    return lax.dynamic_update_slice(cache, new, (0, at, 0))


def functions(x):
    each = [jnp.sin, jnp.cos, jnp.tan, jnp.expm1, jnp.log1p, jnp.cbrt, lax.erf, jnp.floor, jnp.sign, jnp.round]
    return sum(f(x) for f in each) + jax.nn.sigmoid(x) + jnp.arctan2(x, x + 1.0) + x**2.5 + jnp.remainder(x, 3.0)


def integers(x):
    return ((x + 3) * x // 7) ^ (x << 2), jnp.cumsum(x), lax.population_count(x)


def drawn(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0.0)


def fft(x):
    return jnp.fft.fft(x)


@cache
def programs() -> dict[str, Compiled]:
    """Every program, compiled, by name."""
    p = transformer_parameters()
    ids = _ids(2, 12)
    weights = [_normal(3, 3, 3, 8), _normal(3, 3, 8, 8), _normal(3, 3, 8, 8), _normal(3, 3, 2, 8)]
    image = _normal(2, 15, 14, 3)
    square = _normal(16, 16)
    layers = [(_normal(16, 32), _normal(32)), (_normal(32, 8), _normal(8))]
    return {
        "mlp": compiled(mlp, layers, _normal(4, 16)),
        "mlp train": compiled(jax.grad(mlp), layers, _normal(4, 16)),
        "mlp train, donated": compiled(sgd, layers, _normal(4, 16), donate=(0,)),
        "transformer": compiled(transformer, p, ids),
        "transformer train": compiled(train, p, p, p, ids, ids),
        "convolutions": compiled(convolutions, weights, image),
        "convolutions train": compiled(jax.grad(convolutions, argnums=(0, 1)), weights, image),
        "scan": compiled(scan, square, square),
        "scan train": compiled(jax.grad(lambda w, x: scan(w, x)[0].sum()), square, square),
        "dynamic loop": compiled(dynamic_loop, square, square, _ids()),
        "conditional": compiled(conditional, _normal(), square, square),
        "sort, gather, scatter": compiled(sort_gather_scatter, _normal(20, 8), _ids(6), _normal(30)),
        "softmax and norm": compiled(softmax_and_norm, _normal(6, 40), _normal(40), _normal(40)),
        "softmax and norm train": compiled(
            jax.grad(lambda *a: sum(map(jnp.sum, softmax_and_norm(*a)))), _normal(6, 40), _normal(40), _normal(40)
        ),
        "outer product": compiled(outer_product, _normal(24), _normal(40)),
        "cache update": compiled(cache_update, _normal(2, 64, 8), _normal(2, 1, 8), _ids()),
        "cache update, donated": compiled(cache_update, _normal(2, 64, 8), _normal(2, 1, 8), _ids(), donate=(0,)),
        "functions": compiled(functions, _normal(5, 7)),
        "integers": compiled(integers, _ids(30)),
        "random": compiled(drawn, jax.random.key(0), _normal(8, 8)),
    }
