"""What the networks in JAX share: layers under named scopes, one way to make them, attention and dropout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import Array

from roofline.core.step import Workload
from roofline.errors import InputError

#: Initial weights of the published transformers: normal, this standard deviation.
TRANSFORMER = nnx.initializers.normal(0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """Makes layers that agree in dtypes and draw their initial weights from one stream.

    rngs: the stream.
    dtype: what layers compute in; None: what their weights and inputs promote to.
    param_dtype: what weights are stored in.
    kernel: initial weights of matrices and tables; None: flax's own.
    """

    rngs: nnx.Rngs
    dtype: Any = None
    param_dtype: Any = jnp.float32
    kernel: nnx.Initializer | None = None

    def _common(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "param_dtype": self.param_dtype, "rngs": self.rngs}

    def linear(self, width_in: int, width_out: int, *, bias: bool = True) -> nnx.Linear:
        """(..., width_in) to (..., width_out)."""
        initial = {} if self.kernel is None else {"kernel_init": self.kernel}
        return nnx.Linear(width_in, width_out, use_bias=bias, **initial, **self._common())

    def conv(
        self, width_in: int, width_out: int, kernel: int, *, stride: int = 1, padding: str = "VALID", bias: bool = True
    ) -> nnx.Conv:
        """(batch, side, side, width_in) to (batch, side', side', width_out).

        side' is side - kernel + 1 without padding, side with "SAME", divided by the stride.
        """
        initial = {} if self.kernel is None else {"kernel_init": self.kernel}
        size, strides = (kernel, kernel), (stride, stride)
        return nnx.Conv(width_in, width_out, size, strides, padding=padding, use_bias=bias, **initial, **self._common())

    def zeros(self, *shape: int) -> nnx.Param:
        """A learnt array that begins at 0, as positions do in vision transformers."""
        return nnx.Param(jnp.zeros(shape, self.param_dtype))

    def embed(self, rows: int, width: int) -> nnx.Embed:
        """A table (rows, width)."""
        initial = {} if self.kernel is None else {"embedding_init": self.kernel}
        return nnx.Embed(rows, width, **initial, **self._common())

    def norm(self, width: int, epsilon: float) -> nnx.LayerNorm:
        """Layer norm over the last dimension, its statistics in float32 by flax's one-pass formula."""
        return nnx.LayerNorm(width, epsilon=epsilon, **self._common())


def named(name: str, layer: Callable[..., Any], *inputs: Any) -> Any:
    """`layer(*inputs)`, its ops under the scope `name`. nnx opens no scopes by itself."""
    with jax.named_scope(name):
        return layer(*inputs)


def dropped(layer: nnx.Dropout, hidden: Array, rngs: nnx.Rngs | None, name: str = "dropout") -> Array:
    """`hidden` with elements dropped, under the scope `name`; rngs None: as it is."""
    with jax.named_scope(name):
        return layer(hidden, deterministic=rngs is None, rngs=rngs)


class Layers(nnx.Module):
    """Layers of one kind, one after the other."""

    def __init__(
        self, kind: Callable[[Mapping[str, Any], Make], nnx.Module], dims: Mapping[str, Any], make: Make
    ) -> None:
        self.layer = nnx.List([kind(dims, make) for _ in range(dims["layers"])])

    def __call__(self, hidden: Array, mask: Array, rngs: nnx.Rngs | None) -> Array:
        """(batch, seq, hidden) to the same shape."""
        for number, layer in enumerate(self.layer):
            hidden = named(f"layer.{number}", layer, hidden, mask, rngs)
        return hidden


def attended(
    query: Array, key: Array, value: Array, mask: Array, *, heads: int, rate: float, rngs: nnx.Rngs | None
) -> Array:
    """softmax(QK^T / sqrt(d)) V of a projection (batch, seq, hidden) and two (batch, keys, hidden), in `heads` heads.

    mask: boolean, broadcasts to (batch, heads, seq, keys); False is left out.
    rate: dropout of the attention weights; rngs None: no dropout.

    `nnx.dot_product_attention` calls `jax.nn.dot_product_attention` (XLA's form: products and softmax written out)
    and, with dropout, which that does not have, writes the same out itself. The weights are dropped one by one, as
    PyTorch does, and not alike in all heads and samples, which is flax's default.
    """
    live = rngs is not None and rate > 0
    context = nnx.dot_product_attention(
        *(each.reshape(*each.shape[:2], heads, -1) for each in (query, key, value)),
        mask=mask,
        broadcast_dropout=False,
        dropout_rng=rngs.dropout() if live else None,
        dropout_rate=rate if live else 0.0,
    )
    return context.reshape(*query.shape[:2], -1)


def attention_form(workload: Workload, rate: float) -> str:
    """What `attended` runs, as a switch. Raises InputError where JAX cannot run it."""
    if workload.mode == "train" and rate > 0:
        return "nnx.dot_product_attention_weights"
    if workload.device == "cpu" and workload.precision in ("fp16", "mixed-fp16"):
        raise InputError("JAX's attention knows no float16 on a CPU: use --precision bf16 or mixed-bf16.")
    return "jax.nn.dot_product_attention"


def gelu(form: str) -> Callable[[Array], Array]:
    """GELU by its form, "erf" or "tanh"."""
    return partial(jax.nn.gelu, approximate={"erf": False, "tanh": True}[form])
