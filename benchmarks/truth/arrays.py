"""The weights and inputs of a random model, the same numbers for every framework.

Weights are called "PATH/NAME", as "3.1/kernel", and have TensorFlow's layout: features in before features out,
kernels of images with their channels last. Those of a transposed convolution are (*kernel, in, out / groups).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from net import GATES, Layer, Model, Place, Shape, output_shape, places, weight_shape
from numpy.typing import NDArray

Array = NDArray[np.generic]

#: How far the numbers of weights spread, before they are divided by the root of their features.
SLOPE = 0.3


class Weight(NamedTuple):
    """Its shape, whether it is trained, and what its numbers spread around: 1 for scales, else 0."""

    shape: Shape
    trained: bool = True
    around: float = 0.0


def weights(model: Model) -> dict[str, Weight]:
    """Every weight of a model by its name, in the order of the layers."""
    return {f"{place.path}/{name}": weight for place in places(model) for name, weight in _weights(place).items()}


def numbers(model: Model) -> dict[str, Array]:
    """The weights themselves, float32: small, and drawn anew for each model."""
    random = np.random.default_rng(model.number)
    return {name: _number(weight, random).astype("f4") for name, weight in weights(model).items()}


def _number(weight: Weight, random: np.random.Generator) -> NDArray[np.float64]:
    spread = SLOPE / weight.shape[-1] ** 0.5
    return weight.around + spread * random.standard_normal(weight.shape)


def types(model: Model) -> dict[str, str]:
    """The type of the weights that are kept in 16 bits, by their names."""
    low = {
        f"{place.path}.": place.layer["to"]
        for place in places(model)
        if place.layer.kind == "mixed" and place.layer["by"] == "cast"
    }
    return {name: to for name in weights(model) for path, to in low.items() if name.startswith(path)}


def inputs(model: Model) -> dict[str, Array]:
    """What the step is given: "x", in training with classes "labels", and by path what single layers are given."""
    random = np.random.default_rng((model.number, 1))
    given: dict[str, Array] = {}
    first = model.layers[0]
    if first.kind == "embedding":
        given["x"] = random.integers(0, first["rows"], model.shape).astype("i4")
    else:
        given["x"] = random.standard_normal(model.shape).astype("f4")
    for path, layer, shape in places(model):
        if layer.kind == "scatter":
            given[path] = random.integers(0, layer["slots"], shape[1]).astype("i4")
        elif layer.kind == "gather":
            given[path] = np.asarray(layer["rows"], "i4")
        elif layer.kind == "cond":
            given[path] = np.asarray(layer["first"])
        elif layer.kind == "while" and not model.trains:
            given[path] = np.asarray(layer["trips"], "i4")
        elif layer.kind == "attention" and layer["mask"] == "lengths":
            keys = layer["memory"] or shape[1]
            given[path] = (np.arange(keys) <= random.integers(0, keys, (shape[0], 1))).reshape(shape[0], keys)
    if model.trains and model.loss == "entropy":
        shape = output_shape(model)
        given["labels"] = random.integers(0, shape[-1], shape[:-1]).astype("i4")
    return given


def _weights(place: Place) -> dict[str, Weight]:
    layer, shape = place.layer, place.shape
    features = shape[-1]
    match layer.kind:
        case "linear":
            trained = not layer["frozen"]
            return {
                "kernel": Weight((features, layer["out"]), trained),
                **({"bias": Weight((layer["out"],), trained)} if layer["bias"] else {}),
            }
        case "conv":
            kernel = tuple(axis for axis in _kernel(layer, shape))
            trained = not layer["frozen"]
            return {
                "kernel": Weight((*kernel, features // layer["groups"], layer["out"]), trained),
                **({"bias": Weight((layer["out"],), trained)} if layer["bias"] else {}),
            }
        case "conv_transpose":
            return {
                "kernel": Weight((*_kernel(layer, shape), features, layer["out"] // layer["groups"])),
                **({"bias": Weight((layer["out"],))} if layer["bias"] else {}),
            }
        case "norm" if layer["affine"]:
            scale = {"scale": Weight((features,), around=1.0)}
            return scale if layer["form"] == "rms" else {**scale, "offset": Weight((features,))}
        case "attention":
            return _attention(layer, features)
        case "embedding":
            positions = {"positions": Weight((shape[1], layer["out"]))} if layer["positions"] else {}
            return {"table": Weight((layer["rows"], layer["out"])), **positions}
        case "offset":
            return {"value": Weight(shape[1:])}
        case "einsum":
            second = weight_shape(layer, shape)
            return {} if second is None else {"kernel": Weight(second)}
        case "rnn":
            return _rnn(layer, features)
        case "scan":
            return {
                "kernels": Weight((layer["trips"], features, features)),
                "biases": Weight((layer["trips"], features)),
            }
        case "while":
            return {"kernel": Weight((features, features))}
        case "map":
            return {"kernel": Weight((features, layer["out"]))}
        case "cond":
            return {
                "short": Weight((features, features)),
                "up": Weight((features, layer["wide"])),
                "down": Weight((layer["wide"], features)),
            }
        case "experts":
            return {"kernels": Weight((len(layer["sizes"]), features, layer["out"]))}
    return {}


def _kernel(layer: Layer, shape: Shape) -> Shape:
    kernel = layer["kernel"]
    return tuple(kernel) if isinstance(kernel, tuple) else (kernel,) * (len(shape) - 2)


def _attention(layer: Layer, features: int) -> dict[str, Weight]:
    queries, keys = layer["heads"] * layer["size"], layer["kv_heads"] * layer["size"]
    kernels = {
        "query": Weight((features, queries)),
        "key": Weight((features, keys)),
        "value": Weight((features, keys)),
        "out": Weight((queries, features)),
    }
    biases = {f"{name}_bias": Weight(weight.shape[1:]) for name, weight in kernels.items()} if layer["bias"] else {}
    memory = {"memory": Weight((layer["memory"], features))} if layer["memory"] else {}
    return {**kernels, **biases, **memory}


def _rnn(layer: Layer, features: int) -> dict[str, Weight]:
    hidden, gates = layer["hidden"], GATES[layer["cell"]] * layer["hidden"]
    weights: dict[str, Weight] = {}
    for end in ("", "_back") if layer["both"] else ("",):
        weights[f"kernel{end}"] = Weight((features, gates))
        weights[f"recurrent{end}"] = Weight((hidden, gates))
        if layer["bias"]:
            weights[f"bias{end}"] = Weight((gates,))
            weights[f"recurrent_bias{end}"] = Weight((gates,))
        if layer["state"] == "learned":
            weights[f"state{end}"] = Weight((hidden,))
            if layer["cell"] == "lstm":
                weights[f"memory{end}"] = Weight((hidden,))
    return weights


def statistics(model: Model) -> dict[str, Array]:
    """What batch norms remember of the batches that they saw, by "PATH/mean" and "PATH/variance": no weights."""
    return {
        f"{path}/{name}": np.full(shape[-1], value, "f4")
        for path, layer, shape in places(model)
        if layer.kind == "norm" and layer["form"] == "batch"
        for name, value in (("mean", 0.0), ("variance", 1.0))
    }
