"""Programs that four devices share, counted in a process of their own: JAX takes their number when it begins.

The product is 2 x 64 x 128 x 256 = 4,194,304 FLOP whoever does it; each device does a quarter, or all of it again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")

PRODUCT = 2 * 64 * 128 * 256
PROGRAM = """
import json
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from test_count import ran, total

mesh = Mesh(jax.devices(), ("d",))

def put(shape, *spec):
    return jax.device_put(np.ones(shape, np.float32), NamedSharding(mesh, P(*spec)))

def by_rows(x, w):
    return x @ w

def over_k(x, w):
    return x @ w

def by_hand(x, w):
    body = lambda a, b: jax.lax.psum(a @ b, "d")
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "d"), P("d")), out_specs=P())(x, w)

def looped(x, w):
    return jax.lax.scan(lambda c, _: (jnp.tanh(c @ w[:, :128]), None), x, None, length=5)[0]

def counted_trips(x, w, n):
    return jax.lax.fori_loop(0, n, lambda i, c: jnp.tanh(c @ w[:, :128]), x)

def train(x, w):
    return jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

def two_layers(x, w, v):
    return jnp.tanh(x @ w) @ v

def train_two_layers(x, w, v):
    return jax.grad(lambda w, v: (two_layers(x, w, v) ** 2).sum(), (0, 1))(w, v)

def replicas(x, w):
    return jax.pmap(lambda x, w: jax.lax.pmean(x @ w, "i"), "i", in_axes=(0, None))(x, w)

square = Mesh(np.asarray(jax.devices()).reshape(2, 2), ("data", "model"))

def placed(shape, *spec):
    return jax.device_put(np.ones(shape, np.float32), NamedSharding(square, P(*spec)))

x, w = (64, 128), (128, 256)
steps = {
    "rows": (by_rows, put(x, "d"), put(w)),
    "columns": (by_rows, put(x), put(w, None, "d")),
    "summed": (over_k, put(x, None, "d"), put(w, "d")),
    "shard_map": (by_hand, put(x, None, "d"), put(w, "d")),
    "each all of it": (by_rows, put(x), put(w)),
    "data parallel": (train, put(x, "d"), put(w)),
    "scan": (looped, put(x, "d"), put(w)),
    "loop": (counted_trips, put(x, "d"), put(w), 7),
    "tensor parallel": (two_layers, put(x), put(w, None, "d"), put((256, 128), "d")),
    "both": (
        *(train_two_layers, placed(x, "data"), placed(w, None, "model"), placed((256, 128), "model")),
    ),
    "replicas": (replicas, np.ones((4, 16, 128), np.float32), np.ones(w, np.float32)),
}
found, bytes_of, turns = {}, {}, {}
for name, (function, *given) in steps.items():
    function.__name__ = function.__qualname__ = name.replace(" ", "_")
    counted = ran(jax.jit(function), *given)
    communicated = sum(op.costed.op_class == "communication" for op in counted.ops)
    found[name] = [total(counted, "model_flops"), total(counted, "flops"), communicated, list(counted.flags)]
    bytes_of[name] = [total(counted, "bytes_read"), sum(size for op in counted.ops for _, _, size in op.costed.reads)]
    turns[name] = [counted.devices, max(op.times for op in counted.ops)]
print(json.dumps([found, bytes_of, turns]))
"""


def test_what_devices_share_is_asked_for_once_and_executed_by_each() -> None:
    here = Path(__file__).resolve()
    paths = (here.parent, here.parents[2], os.environ.get("PYTHONPATH", ""))
    variables = {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found, bytes_of, turns = json.loads(done.stdout.splitlines()[-1])
    half = PRODUCT // 2
    assert {name: (asked, executed) for name, (asked, executed, _, _) in found.items()} == {
        "rows": (PRODUCT, PRODUCT),
        "columns": (PRODUCT, PRODUCT),
        "summed": (PRODUCT, PRODUCT),
        "shard_map": (PRODUCT, PRODUCT),
        "each all of it": (PRODUCT, 4 * PRODUCT),
        "data parallel": (2 * PRODUCT, 2 * PRODUCT),
        "scan": (5 * half, 5 * half),
        "loop": (7 * half, 7 * half),
        "tensor parallel": (2 * PRODUCT, 2 * PRODUCT),
        # Forward two, of both weights and of what is between them one each.
        "both": (5 * PRODUCT, 5 * PRODUCT),
        "replicas": (PRODUCT, PRODUCT),
    }
    assert {name for name, (_, _, communicated, _) in found.items() if communicated} == {
        *("summed", "shard_map", "data parallel", "tensor parallel", "both", "replicas"),
    }
    assert all("several-devices" in flags for _, _, _, flags in found.values())
    # Each device has rows of its own, and all weights: its buffers are no others', of which none finds them in a cache.
    assert bytes_of["rows"] == [4 * (64 * 128 + 4 * 128 * 256)] * 2
    assert bytes_of["each all of it"] == [4 * 4 * (64 * 128 + 128 * 256)] * 2
    # As often as each of them runs an op: a loop is what one device repeats.
    assert (turns["rows"], turns["scan"]) == ([4, 1], [4, 5])
