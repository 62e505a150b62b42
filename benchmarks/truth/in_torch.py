"""A random model in PyTorch: modules where there are any, images with their channels first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import sqrt
from typing import Any

import numpy as np
import torch
from arrays import inputs, numbers, statistics
from built import Built, window
from net import Layer, Model, Place, Shape, after, axes, windows
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
CONV = (None, nn.Conv1d, nn.Conv2d, nn.Conv3d)
CONV_TRANSPOSE = (None, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
INSTANCE_NORM = (None, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)
CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "simple": nn.RNNCell}
LAYERS = {"lstm": nn.LSTM, "gru": nn.GRU, "simple": nn.RNN}
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softplus": functional.softplus,
    "elu": functional.elu,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.2),
}

Function = Callable[[Tensor], Tensor]


def build(model: Model) -> Built:
    torch.manual_seed(0)
    source = _Source(model)
    net = Net(model, source).train(model.trains)
    x = torch.from_numpy(source.given["x"])
    x = x.long() if model.layers[0].kind == "embedding" else channels_first(x)
    labels = torch.from_numpy(source.given["labels"]).long() if "labels" in source.given else None
    trained = [weight for weight in net.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.01) if model.update else None
    silent = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}.get(model.no_grad, nullcontext)

    def infer() -> Tensor:
        with silent():
            return net(x)

    def train() -> Tensor:
        net.zero_grad()
        y = net(x)
        if labels is None:
            loss = y.float().square().mean()
        else:
            loss = functional.cross_entropy(y.reshape(-1, y.shape[-1]), labels.reshape(-1))
        loss.backward()
        if optimizer is not None:
            optimizer.step()
        return loss

    def results() -> tuple[np.ndarray, float]:
        if not model.trains:
            y = infer()
            return (channels_last(y) if y.ndim >= 4 else y).detach().numpy(), 0.0
        loss = train()
        return loss.detach().numpy(), sum(
            float(weight.grad.double().square().sum()) for weight in trained if weight.grad is not None
        )

    return Built(
        run=train if model.trains else infer,
        results=results,
        model=net,
        parameters=sum(weight.numel() for weight in net.parameters()),
        trained=sum(weight.numel() for weight in trained),
    )


def channels_first(x: Tensor) -> Tensor:
    return x.movedim(-1, 1).contiguous() if x.ndim >= 4 else x


def channels_last(x: Tensor) -> Tensor:
    return x.movedim(1, -1)


class _Source:
    """The numbers of a model, as parameters under their names."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.weights, self.given, self.remembered = numbers(model), inputs(model), statistics(model)
        self.table: nn.Parameter | None = None
        self.mode = model.mode

    def has(self, name: str) -> bool:
        return name in self.weights

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self.weights[name])

    def parameter(self, name: str) -> nn.Parameter:
        return nn.Parameter(self.tensor(name).clone())

    def input(self, path: str) -> Tensor:
        return torch.from_numpy(self.given[path])


def fill(parameter: Tensor, values: Tensor) -> None:
    with torch.no_grad():
        parameter.copy_(values)


class Net(nn.Module):
    """The layers one after the other."""

    def __init__(self, model: Model, source: _Source) -> None:
        super().__init__()
        self.layers = nn.ModuleList(modules(model.layers, model.shape, "", source))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def modules(layers: tuple[Layer, ...], shape: Shape, above: str, source: _Source) -> list[nn.Module]:
    made = []
    for number, layer in enumerate(layers):
        made.append(MODULES[layer.kind](Place(f"{above}{number}", layer, shape), source))
        shape = after(layer, shape)
    return made


class Plain(nn.Module):
    """A function without weights."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class ChannelsSecond(nn.Module):
    """A module of images on a sequence, whose channels are last."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x.transpose(1, 2)).transpose(1, 2)


class ChannelsLast(nn.Module):
    """A module of sequences on an image, whose channels are second."""

    def __init__(self, module: nn.Module, back: bool = True) -> None:
        super().__init__()
        self.module, self.back = module, back

    def forward(self, x: Tensor) -> Tensor:
        y = self.module(channels_last(x))
        return channels_first(y) if self.back else y


def of_image(place: Place, module: nn.Module) -> nn.Module:
    return ChannelsSecond(module) if len(place.shape) == 3 else module


def of_features(place: Place, module: nn.Module) -> nn.Module:
    return ChannelsLast(module) if len(place.shape) >= 4 else module


def linear(place: Place, source: _Source) -> nn.Module:
    path, layer, shape = place
    module = nn.Linear(shape[-1], layer["out"], bias=layer["bias"])
    fill(module.weight, source.tensor(f"{path}/kernel").T)
    if layer["bias"]:
        fill(module.bias, source.tensor(f"{path}/bias"))
    return module.requires_grad_(not layer["frozen"])


class Padded(nn.Module):
    """Zeros around an image as an op of its own."""

    def __init__(self, pads: list[int], module: nn.Module) -> None:
        super().__init__()
        self.pads, self.module = pads, module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(functional.pad(x, self.pads))


def conv(place: Place, source: _Source) -> nn.Module:
    path, layer, shape = place
    over, each = axes(layer, shape), windows(layer, shape)
    pads: list[int] | None = None
    padding: Any
    if layer["padding"] == "same" and all(axis.stride == 1 for axis in over):
        padding = "same"
    elif layer["pad_first"] or any(window.low != window.high for window in each):
        padding, pads = 0, [size for window in reversed(each) for size in window[:2]]
    else:
        padding = tuple(window.low for window in each)
    module: nn.Module = CONV[len(over)](
        shape[-1],
        layer["out"],
        tuple(axis.kernel for axis in over),
        stride=tuple(axis.stride for axis in over),
        padding=padding,
        dilation=tuple(axis.dilation for axis in over),
        groups=layer["groups"],
        bias=layer["bias"],
    )
    fill(module.weight, source.tensor(f"{path}/kernel").movedim((-1, -2), (0, 1)))
    if layer["bias"]:
        fill(module.bias, source.tensor(f"{path}/bias"))
    module.requires_grad_(not layer["frozen"])
    return of_image(place, module if pads is None else Padded(pads, module))


class Cropped(nn.Module):
    """A module whose last places are cut off."""

    def __init__(self, module: nn.Module, sizes: Shape) -> None:
        super().__init__()
        self.module, self.sizes = module, sizes

    def forward(self, x: Tensor) -> Tensor:
        y = self.module(x)
        for dimension, size in enumerate(self.sizes, 2):
            y = y.narrow(dimension, 0, size)
        return y


def conv_transpose(place: Place, source: _Source) -> nn.Module:
    path, layer, shape = place
    over, each = axes(layer, shape), windows(layer, shape)
    module: nn.Module = CONV_TRANSPOSE[len(over)](
        shape[-1],
        layer["out"],
        tuple(axis.kernel for axis in over),
        stride=tuple(axis.stride for axis in over),
        padding=tuple(window.low for window in each),
        output_padding=tuple(max(0, window.low - window.high) for window in each),
        dilation=tuple(axis.dilation for axis in over),
        groups=layer["groups"],
        bias=layer["bias"],
    )
    fill(module.weight, source.tensor(f"{path}/kernel").movedim((-2, -1), (0, 1)))
    if layer["bias"]:
        fill(module.bias, source.tensor(f"{path}/bias"))
    if any(window.high > window.low for window in each):
        module = Cropped(module, tuple(window.size for window in each))
    return of_image(place, module)


def norm(place: Place, source: _Source) -> nn.Module:
    path, layer, shape = place
    features, dimensions, affine = shape[-1], len(shape) - 2, layer["affine"]
    module: nn.Module
    match layer["form"]:
        case "layer":
            module = nn.LayerNorm(features, elementwise_affine=affine)
        case "rms":
            module = nn.RMSNorm(features, eps=1e-5, elementwise_affine=affine)
        case "batch":
            module = BATCH_NORM[dimensions](features, affine=affine)
        case "group":
            module = nn.GroupNorm(layer["groups"], features, affine=affine)
        case _:
            module = INSTANCE_NORM[dimensions](features, affine=affine)
    if affine:
        fill(module.weight, source.tensor(f"{path}/scale"))
        if layer["form"] != "rms":
            fill(module.bias, source.tensor(f"{path}/offset"))
    if layer["form"] in ("layer", "rms"):
        return of_features(place, module)
    return of_image(place, module)


class Attention(nn.Module):
    """Heads of queries on heads of keys that they may share, by the fused op or written out."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        path, layer, shape = place
        self.heads, self.kv_heads, self.size = layer["heads"], layer["kv_heads"], layer["size"]
        self.form, self.masked = layer["form"], layer["mask"]
        for name in ("query", "key", "value", "out"):
            kernel = source.tensor(f"{path}/{name}")
            module = nn.Linear(*kernel.shape, bias=layer["bias"])
            fill(module.weight, kernel.T)
            if layer["bias"]:
                fill(module.bias, source.tensor(f"{path}/{name}_bias"))
            self.add_module(name, module)
        self.memory = source.parameter(f"{path}/memory") if layer["memory"] else None
        mask, bias = None, None
        if self.masked == "lengths":
            mask = source.input(path)[:, None, None]
        elif self.masked == "window" or (self.masked == "causal" and self.form != "fused"):
            mask = torch.from_numpy(window(shape[1], self.masked))
        elif self.masked == "bias":
            places = torch.arange(shape[1], dtype=torch.float32)
            slopes = torch.tensor([2.0**-head for head in range(self.heads)])
            bias = -slopes[:, None, None] * (places[:, None] - places).abs()
        self.register_buffer("mask", mask)
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        source = x if self.memory is None else self.memory.to(x.dtype)
        q = self.query(x).view(batch, tokens, self.heads, self.size)
        k, v = (layer(source).unflatten(-1, (self.kv_heads, self.size)) for layer in (self.key, self.value))
        if self.memory is not None:
            k, v = k.expand(batch, -1, -1, -1), v.expand(batch, -1, -1, -1)
        y = {"fused": self.fused, "written": self.written, "einsum": self.by_einsum}[self.form](q, k, v)
        return self.out(y.reshape(batch, tokens, -1))

    def fused(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        mask = self.mask if self.bias is None else self.bias.to(q.dtype)
        y = functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=self.masked == "causal", enable_gqa=self.kv_heads != self.heads
        )
        return y.transpose(1, 2)

    def written(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        if self.kv_heads != self.heads:
            k, v = (part.repeat_interleave(self.heads // self.kv_heads, 1) for part in (k, v))
        y = self.softmax(q @ k.transpose(-2, -1)) @ v
        return y.transpose(1, 2)

    def by_einsum(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q = q.unflatten(2, (self.kv_heads, -1))
        scores = torch.einsum("btkgd,bskd->bkgts", q, k)
        probabilities = self.softmax(scores.flatten(1, 2)).unflatten(1, (self.kv_heads, -1))
        return torch.einsum("bkgts,bskd->btkgd", probabilities, v).flatten(2, 3)

    def softmax(self, scores: Tensor) -> Tensor:
        scores = scores / sqrt(self.size)
        if self.bias is not None:
            scores = scores + self.bias.to(scores.dtype)
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, float("-inf"))
        return scores.softmax(-1)


class OwnAttention(nn.Module):
    """PyTorch's module."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        path, layer, shape = place
        self.attention = nn.MultiheadAttention(shape[-1], layer["heads"], batch_first=True)
        names = ("query", "key", "value")
        fill(self.attention.in_proj_weight, torch.cat([source.tensor(f"{path}/{name}").T for name in names]))
        fill(self.attention.in_proj_bias, torch.cat([source.tensor(f"{path}/{name}_bias") for name in names]))
        fill(self.attention.out_proj.weight, source.tensor(f"{path}/out").T)
        fill(self.attention.out_proj.bias, source.tensor(f"{path}/out_bias"))
        hidden = ~torch.from_numpy(window(shape[1], "causal")) if layer["mask"] == "causal" else None
        self.register_buffer("hidden", hidden)
        self.register_buffer("padding", ~source.input(path) if layer["mask"] == "lengths" else None)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.attention(x, x, x, attn_mask=self.hidden, key_padding_mask=self.padding, need_weights=False)
        return y


def attention(place: Place, source: _Source) -> nn.Module:
    return (OwnAttention if place.layer["form"] == "module" else Attention)(place, source)


class Embedding(nn.Module):
    """Rows by their index, by a one-hot product or as the mean of a bag; and positions."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        path, layer, _ = place
        self.form, self.rows = layer["form"], layer["rows"]
        table = source.tensor(f"{path}/table")
        kind = nn.EmbeddingBag if self.form == "bag" else nn.Embedding
        self.table = kind(*table.shape)
        fill(self.table.weight, table)
        source.table = self.table.weight
        self.positions = source.parameter(f"{path}/positions") if layer["positions"] else None

    def forward(self, x: Tensor) -> Tensor:
        by_product = self.form == "onehot"
        y = functional.one_hot(x, self.rows).float() @ self.table.weight if by_product else self.table(x)
        return y if self.positions is None else y + self.positions


class Tied(nn.Module):
    """The table of the embedding as the last layer's kernel."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        assert source.table is not None
        self.table = source.table

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.table)


class Offset(nn.Module):
    """A learned array that is added."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.value = source.parameter(f"{place.path}/value")

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.value.movedim(-1, 0) if x.ndim >= 4 else self.value)


class Einsum(nn.Module):
    """An einsum with a weight, or of the input with itself."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.rule, self.joined = place.layer["rule"], place.layer["joined"]
        self.kernel = None if place.layer["itself"] else source.parameter(f"{place.path}/kernel")

    def forward(self, x: Tensor) -> Tensor:
        y = torch.einsum(self.rule, x, x if self.kernel is None else self.kernel)
        return y.flatten(self.joined) if self.joined else y


def einsum(place: Place, source: _Source) -> nn.Module:
    module = Einsum(place, source)
    back = len(after(place.layer, place.shape)) >= 4
    return ChannelsLast(module, back) if len(place.shape) >= 4 else module


def pool(place: Place, source: _Source) -> nn.Module:
    layer, dimensions = place.layer, len(place.shape) - 2
    name = "Max" if layer["by"] == "max" else "Avg"
    if layer["form"] == "adaptive":
        return of_image(place, getattr(nn, f"Adaptive{name}Pool{dimensions}d")(layer["size"]))
    return of_image(
        place, getattr(nn, f"{name}Pool{dimensions}d")(layer["kernel"], layer["stride"], padding=layer["padding"])
    )


class Recurrent(nn.Module):
    """A recurrent layer: cells in a loop, the same written out, or PyTorch's own layer."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        path, layer, shape = place
        self.cell, self.form, self.hidden, self.last = layer["cell"], layer["form"], layer["hidden"], layer["last"]
        self.ends = ("", "_back") if layer["both"] else ("",)
        self.learned = layer["state"] == "learned"
        names = ("kernel", "recurrent", *(("bias", "recurrent_bias") if layer["bias"] else ()))
        torch_names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        if self.form == "loop":
            self.module = CELLS[self.cell](shape[-1], self.hidden, bias=layer["bias"])
        elif self.form == "layer":
            self.module = LAYERS[self.cell](
                shape[-1], self.hidden, bias=layer["bias"], batch_first=True, bidirectional=layer["both"]
            )
        if self.form in ("loop", "layer"):
            for end in self.ends:
                for name, own in zip(names, torch_names, strict=False):
                    values = source.tensor(f"{path}/{name}{end}")
                    member = f"{own}_l0{'_reverse' if end else ''}" if self.form == "layer" else own
                    fill(getattr(self.module, member), values if "bias" in name else values.T)
        else:
            self.weights = nn.ParameterDict(
                {f"{name}{end}": source.parameter(f"{path}/{name}{end}") for end in self.ends for name in names}
            )
        states = ("state", *(("memory",) if self.cell == "lstm" else ()))
        self.states = nn.ParameterDict(
            {f"{name}{end}": source.parameter(f"{path}/{name}{end}") for end in self.ends for name in states}
            if self.learned
            else {}
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.form == "layer":
            return self.by_layer(x)
        ends = []
        for end in self.ends:
            steps = self.steps(x.flip(1) if end else x, end)
            y = steps[-1] if self.last else torch.stack(steps, 1)
            ends.append(y.flip(1) if end and not self.last else y)
        return torch.cat(ends, -1) if len(ends) > 1 else ends[0]

    def by_layer(self, x: Tensor) -> Tensor:
        batch = x.shape[0]
        begin = None
        if self.learned:
            kinds = ("state", "memory") if self.cell == "lstm" else ("state",)
            begin = tuple(
                torch.stack([self.states[f"{kind}{end}"].expand(batch, -1) for end in self.ends]) for kind in kinds
            )
        y, state = self.module(x, begin if self.cell == "lstm" or begin is None else begin[0])
        if not self.last:
            return y
        h = state[0] if self.cell == "lstm" else state
        return h.transpose(0, 1).flatten(1)

    def begin(self, x: Tensor, end: str) -> tuple[Tensor, ...]:
        kinds = ("state", "memory") if self.cell == "lstm" else ("state",)
        if self.learned:
            return tuple(self.states[f"{kind}{end}"].expand(x.shape[0], -1) for kind in kinds)
        return tuple(x.new_zeros(x.shape[0], self.hidden) for _ in kinds)

    def steps(self, x: Tensor, end: str) -> list[Tensor]:
        state, steps = self.begin(x, end), []
        for step in x.unbind(1):
            if self.form == "loop":
                after = self.module(step, state if self.cell == "lstm" else state[0])
                state = after if self.cell == "lstm" else (after,)
            else:
                state = self.step(step, state, end)
            steps.append(state[0])
        return steps

    def step(self, x: Tensor, state: tuple[Tensor, ...], end: str) -> tuple[Tensor, ...]:
        a = x @ self.weights[f"kernel{end}"]
        b = state[0] @ self.weights[f"recurrent{end}"]
        if f"bias{end}" in self.weights:
            a, b = a + self.weights[f"bias{end}"], b + self.weights[f"recurrent_bias{end}"]
        if self.cell == "simple":
            return (torch.tanh(a + b),)
        if self.cell == "lstm":
            i, f, g, o = (a + b).chunk(4, -1)
            c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c
        (r, z, n), (s, y, m) = a.chunk(3, -1), b.chunk(3, -1)
        reset, update = torch.sigmoid(r + s), torch.sigmoid(z + y)
        return ((1 - update) * torch.tanh(n + reset * m) + update * state[0],)


class Scan(nn.Module):
    """Layers of one shape whose weights are stacked."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.kernels, self.biases = (source.parameter(f"{place.path}/{name}") for name in ("kernels", "biases"))

    def forward(self, x: Tensor) -> Tensor:
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            x = torch.tanh(x @ kernel + bias)
        return x


class While(nn.Module):
    """One layer again and again; in inference as often as a tensor says."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.kernel = source.parameter(f"{place.path}/kernel")
        self.register_buffer("bound", source.input(place.path) if source.mode == "infer" else None)
        self.trips = place.layer["trips"]

    def forward(self, x: Tensor) -> Tensor:
        trip = 0
        while trip < (self.trips if self.bound is None else int(self.bound)):
            x = torch.tanh(x @ self.kernel)
            trip += 1
        return x


class Map(nn.Module):
    """A product for each sample of the batch."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.kernel = source.parameter(f"{place.path}/kernel")
        self.form = place.layer["form"]

    def forward(self, x: Tensor) -> Tensor:
        if self.form == "vmap":
            return torch.vmap(lambda sample: sample @ self.kernel)(x)
        return torch.stack([sample @ self.kernel for sample in x])


class Cond(nn.Module):
    """One of two branches, as a tensor says."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.short, self.up, self.down = (source.parameter(f"{place.path}/{name}") for name in ("short", "up", "down"))
        self.register_buffer("first", source.input(place.path))

    def forward(self, x: Tensor) -> Tensor:
        if bool(self.first):
            return torch.tanh(x @ self.short)
        return torch.relu(x @ self.up) @ self.down


class Experts(nn.Module):
    """Rows in groups, each with its own kernel."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.kernels = source.parameter(f"{place.path}/kernels")
        self.sizes = list(place.layer["sizes"])

    def forward(self, x: Tensor) -> Tensor:
        parts = x.reshape(-1, x.shape[-1]).split(self.sizes)
        rows = torch.cat([part @ kernel for part, kernel in zip(parts, self.kernels, strict=True)])
        return rows.view(*x.shape[:-1], -1)


class Residual(nn.Module):
    """A way around layers, added or joined to them."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.layers = nn.Sequential(*modules(place.layer.inner, place.shape, f"{place.path}.", source))
        self.by = place.layer["by"]

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x)
        return x + y if self.by == "add" else torch.cat([x, y], 1 if x.ndim >= 4 else -1)


class Checkpoint(nn.Module):
    """Layers that are computed once more in the backward pass."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.layers = nn.Sequential(*modules(place.layer.inner, place.shape, f"{place.path}.", source))
        self.form = place.layer["form"]

    def forward(self, x: Tensor) -> Tensor:
        function: Function = (lambda x: self.layers(x)) if self.form == "function" else self.layers
        y: Tensor = checkpoint(function, x, use_reentrant=self.form == "reentrant")
        return y


class Mixed(nn.Module):
    """Layers in 16 bits: weights and all, or by autocast."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.layers = nn.Sequential(*modules(place.layer.inner, place.shape, f"{place.path}.", source))
        self.type, self.by = TYPES[place.layer["to"]], place.layer["by"]
        if self.by == "cast":
            self.layers.to(self.type)

    def forward(self, x: Tensor) -> Tensor:
        if self.by == "cast":
            return self.layers(x.to(self.type)).float()
        with torch.autocast("cpu", dtype=self.type):
            y = self.layers(x)
        return y.float()


class Scatter(nn.Module):
    """Rows added up in slots."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.slots = place.layer["slots"]
        self.register_buffer("index", source.input(place.path))

    def forward(self, x: Tensor) -> Tensor:
        return x.new_zeros(x.shape[0], self.slots, x.shape[2]).index_add(1, self.index, x)


class Gather(nn.Module):
    """Rows by their index."""

    def __init__(self, place: Place, source: _Source) -> None:
        super().__init__()
        self.register_buffer("index", source.input(place.path))

    def forward(self, x: Tensor) -> Tensor:
        return x.index_select(1, self.index)


def activation(place: Place, source: _Source) -> nn.Module:
    if place.layer["function"] == "glu":
        dimension = 1 if len(place.shape) >= 4 else -1
        return Plain(lambda x: functional.glu(x, dimension))
    return Plain(ACTIVATIONS[place.layer["function"]])


def softmax(place: Place, source: _Source) -> nn.Module:
    return Plain(lambda x: x.log_softmax(-1) if place.layer["log"] else x.softmax(-1))


def resize(place: Place, source: _Source) -> nn.Module:
    layer = place.layer
    align = {"align_corners": False} if layer["form"] == "bilinear" else {}
    return Plain(lambda x: functional.interpolate(x, scale_factor=layer["factor"], mode=layer["form"], **align))


def reshape(place: Place, source: _Source) -> nn.Module:
    layer, image = place.layer, len(place.shape) >= 4
    shape = after(layer, place.shape)
    functions: dict[str, Function] = {
        "tokens": lambda x: x.flatten(2).transpose(1, 2),
        "flat": lambda x: (channels_last(x) if image else x).flatten(1),
        "mean": lambda x: x.mean(tuple(range(2, x.ndim))) if image else x.mean(1),
        "split": lambda x: x.view(shape),
        "image": lambda x: channels_first(x.reshape(shape)),
        "transpose": lambda x: x.transpose(1, 2),
        "slice": lambda x: x[:, : shape[1]],
        "join": lambda x: x.reshape(shape),
        "flip": lambda x: x.flip(2 if image else 1),
    }
    return Plain(functions[layer["form"]])


MODULES: dict[str, Callable[[Place, _Source], nn.Module]] = {
    "linear": linear,
    "conv": conv,
    "conv_transpose": conv_transpose,
    "norm": norm,
    "attention": attention,
    "embedding": Embedding,
    "tied": Tied,
    "offset": Offset,
    "einsum": einsum,
    "pool": pool,
    "rnn": Recurrent,
    "scan": Scan,
    "while": While,
    "map": Map,
    "cond": Cond,
    "experts": Experts,
    "residual": Residual,
    "checkpoint": Checkpoint,
    "mixed": Mixed,
    "scatter": Scatter,
    "gather": Gather,
    "activation": activation,
    "softmax": softmax,
    "resize": resize,
    "reshape": reshape,
    "sort": lambda place, source: Plain(lambda x: x.sort(-1).values),
    "top": lambda place, source: Plain(lambda x: x.topk(place.layer["number"], -1).values),
    "cumsum": lambda place, source: Plain(lambda x: x.cumsum(-1)),
    "dropout": lambda place, source: nn.Dropout(place.layer["rate"]),
}
