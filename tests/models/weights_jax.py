"""Weights of the models in JAX by the names and in the layouts of the PyTorch models, to compare the two.

Names are those of `state_dict()` (Hugging Face's for BERT, DistilBERT and GPT-2, those of `models/torch` for LeNet5 and
the MLP). What differs is the layout: JAX stores matrices (in, out) where PyTorch's Linear has (out, in), and images as
(height, width, channels) where PyTorch has (channels, height, width), which also reorders LeNet5's first dense layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from roofline.core.step import Step

#: GPT-2's layers that Hugging Face stores (in, out) too.
_CONV1D = frozenset(("c_attn", "c_fc", "c_proj"))
#: A second name of a weight that is there once: the heads that are the token table.
_TIED = {"transformer.wte.weight": "lm_head.weight", "model.embed_tokens.weight": "lm_head.weight"}

Path = tuple[str | int, ...]


def get_weights(model: Step | nnx.Module) -> dict[str, np.ndarray]:
    """The present weights, as PyTorch's `state_dict()` has them; a tied weight under both names."""
    parameters = _parameters(model)
    channels = _channels(parameters)
    weights = {_name(path): _to_torch(path, np.asarray(array), channels) for path, array in _leaves(parameters)}
    return {other: weights[name] for name, other in _TIED.items() if name in weights} | weights


def set_weights(model: Step | nnx.Module, weights: Mapping[str, np.ndarray]) -> None:
    """Puts PyTorch's weights in the place of the present ones, in their dtypes and on their device.

    Raises KeyError where a name is missing or left over, ValueError where a shape differs.
    """
    parameters = _parameters(model)
    channels = _channels(parameters)
    left = set(weights) - set(_TIED.values())

    def converted(path: Path, old: jax.Array) -> jax.Array:
        left.discard(_name(path))
        new = _to_jax(path, np.asarray(weights[_name(path)]), channels)
        if new.shape != old.shape:
            raise ValueError(f"{_name(path)} is {new.shape} and not {old.shape}")
        # A copy: a step gives its parameters' memory away, and an array of numpy's may share it with PyTorch.
        return jax.device_put(jnp.array(new, old.dtype, copy=True), old.device)

    changed = _mapped(parameters, converted)
    if left:
        raise KeyError(f"no place for {', '.join(sorted(left))}")
    if isinstance(model, Step):
        learned = {path for path, _ in _leaves(model.model.parameters)}
        model.model.parameters = _part(changed, lambda path: path in learned)
        model.model.frozen = _part(changed, lambda path: path not in learned)
    else:
        nnx.update(model, nnx.State(changed))


def set_inputs(step: Step, inputs: Mapping[str, np.ndarray], targets: np.ndarray | None = None) -> None:
    """Gives the following steps other inputs and targets, of the same shapes, in JAX's layout (`to_jax_images`)."""
    program = step.model
    for name, old in program.inputs.items():
        program.inputs[name] = _like(inputs[name], old)
    if targets is not None:
        program.targets = _like(targets, program.targets)


def to_jax_images(images: np.ndarray) -> np.ndarray:
    """(batch, channels, height, width) to (batch, height, width, channels)."""
    return np.moveaxis(images, 1, -1)


def to_torch_images(images: np.ndarray) -> np.ndarray:
    """(batch, height, width, channels) to (batch, channels, height, width)."""
    return np.moveaxis(images, -1, 1)


def _like(new: np.ndarray, old: jax.Array) -> jax.Array:
    assert new.shape == old.shape, (new.shape, old.shape)
    return jax.device_put(jnp.array(new, old.dtype, copy=True), old.device)


def _parameters(model: Step | nnx.Module) -> dict[str, Any]:
    if isinstance(model, Step):
        return _merged(model.model.parameters, model.model.frozen)
    return nnx.to_pure_dict(nnx.state(model, nnx.Param))


def _leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, dict):
        for key, below in tree.items():
            yield from _leaves(below, (*path, key))
    else:
        yield path, tree


def _mapped(tree: Any, change: Any, path: Path = ()) -> Any:
    if isinstance(tree, dict):
        return {key: _mapped(below, change, (*path, key)) for key, below in tree.items()}
    return change(path, tree)


def _merged(one: Any, other: Any) -> Any:
    """Both trees, which have no leaf in common, as one."""
    if not isinstance(one, dict):
        return one
    return {
        key: _merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
        for key in {**one, **other}
    }


def _part(tree: dict[Any, Any], wanted: Callable[[Path], bool], path: Path = ()) -> dict[Any, Any]:
    """What of the tree has wanted leaves."""
    found = {
        key: _part(below, wanted, (*path, key)) if isinstance(below, dict) else below for key, below in tree.items()
    }
    return {key: below for key, below in found.items() if (below if isinstance(below, dict) else wanted((*path, key)))}


def _name(path: Path) -> str:
    """("encoder", "layer", 3, "query", "kernel") is "encoder.layer.3.query.weight"."""
    last = "weight" if path[-1] in ("kernel", "embedding", "scale") else path[-1]
    return ".".join(str(part) for part in (*path[:-1], last))


def _channels(parameters: Mapping[str, Any]) -> int | None:
    """How many channels are flattened before the first dense layer; None without convolutions."""
    kernels = [array for path, array in _leaves(parameters) if str(path[0]).startswith("conv") and path[-1] == "kernel"]
    return kernels[-1].shape[-1] if kernels else None


def _to_torch(path: Path, array: np.ndarray, channels: int | None) -> np.ndarray:
    if path[-1] != "kernel" or path[-2] in _CONV1D:
        return array
    if array.ndim == 4:  # height, width, in, out
        return array.transpose(3, 2, 0, 1)
    if channels and path[-2] == "dense1":
        side = round((array.shape[0] // channels) ** 0.5)
        array = array.reshape(side, side, channels, -1).transpose(2, 0, 1, 3).reshape(array.shape)
    return array.T


def _to_jax(path: Path, array: np.ndarray, channels: int | None) -> np.ndarray:
    if path[-1] != "kernel" or path[-2] in _CONV1D:
        return array
    if array.ndim == 4:  # out, in, height, width
        return array.transpose(2, 3, 1, 0)
    array = array.T
    if channels and path[-2] == "dense1":
        side = round((array.shape[0] // channels) ** 0.5)
        array = array.reshape(channels, side, side, -1).transpose(1, 2, 0, 3).reshape(array.shape)
    return array
