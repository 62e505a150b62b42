"""Random models: `draw(17)` is always the same one. Constants of this file were fixed before any model was counted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import prod

from closed_form import flops
from net import Layer, Model, Shape, after, count, einsum_sizes

SEED = 43
#: How often each kind is drawn where the shape at hand allows it.
WEIGHTS = {
    "linear": 10,
    "conv": 14,
    "conv_transpose": 6,
    "norm": 8,
    "attention": 9,
    "einsum": 6,
    "pool": 5,
    "rnn": 9,
    "scan": 3,
    "while": 2,
    "map": 2,
    "cond": 2,
    "checkpoint": 4,
    "residual": 5,
    "mixed": 4,
    "activation": 7,
    "softmax": 2,
    "scatter": 3,
    "gather": 2,
    "reshape": 6,
    "experts": 2,
    "resize": 2,
    "tied": 12,
    "sort": 1,
    "top": 1,
    "cumsum": 1,
    "dropout": 1,
}
#: What a net begins with: tokens that are looked up, or an array of that rank.
STARTS = {"tokens": 4, "vector": 2, "sequence": 4, "image": 6, "volume": 3}
TRAINING = 0.6
#: Layers of a net, those within others included.
FEWEST, MOST = 3, 15
#: Elements of the array between two layers: a model is to take well below a second.
LARGEST = 4000
#: Steps of a loop that is written out in full.
UNROLLED = 8

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "softplus", "elu", "leaky_relu", "glu")
#: Layers that differ in what they ask of an input that nothing trained lies behind, where loops and fused ops are one
#: thing in one framework and another in the next: they get an input with a learned offset.
WANT_LEARNED = frozenset(("attention", "rnn", "scan", "while", "checkpoint"))

Draw = Callable[["Hand", Shape], Layer | None]


class Hand(random.Random):
    """Draws of one model."""

    mode = "infer"
    #: The embedding that the net begins with.
    table: Layer | None = None

    def some(self, probability: float) -> bool:
        return self.random() < probability

    def weighted(self, weights: dict[str, int]) -> str:
        return self.choices(list(weights), list(weights.values()))[0]


def named(name: str) -> Model:
    """The model of that number, "17", or the same without some of its layers, "17~0~4".

    Raises ValueError where what remains is no model that could be drawn.
    """
    number, *left_out = map(int, name.split("~"))
    whole = draw(number)
    layers = tuple(layer for place, layer in enumerate(whole.layers) if place not in left_out)
    model = replace(whole, layers=layers) if left_out else whole
    if left_out:
        _check(model)
    return model


def _check(model: Model) -> None:
    hand = Hand()
    hand.mode = model.mode
    hand.table = model.layers[0] if model.layers and model.layers[0].kind == "embedding" else None
    shape, learned = model.shape, False
    for layer in model.layers:
        if model.trains and _wants_learned(layer) and not learned:
            raise ValueError(f"{layer.kind} wants an input that is learned")
        if not _fits(layer.kind, shape, hand) or not _modest(layer, shape):
            raise ValueError(f"{layer.kind} does not fit {shape}")
        learned = flops(layer, shape, learned, Counter(), Counter())
        shape = after(layer, shape)
    if (model.trains and not learned) or (model.loss == "entropy" and len(shape) not in (2, 3)):
        raise ValueError("nothing is learned, or there are no classes")


def draw(number: int) -> Model:
    """The model of that number."""
    hand = Hand(f"{SEED}-{number}")
    hand.mode = "train" if hand.some(TRAINING) else "infer"
    wanted = hand.randint(FEWEST, MOST)
    shape, layers = _start(hand)
    first = shape
    for layer in layers:
        shape = after(layer, shape)
    while count(tuple(layers)) < wanted:
        kinds = {kind: weight for kind, weight in WEIGHTS.items() if _fits(kind, shape, hand)}
        layer = DRAWS[hand.weighted(kinds)](hand, shape)
        if layer is None or not _modest(layer, shape) or count((*layers, layer)) > MOST:
            continue
        if hand.mode == "train" and _wants_learned(layer) and not _learned(layers, first):
            layers.append(Layer("offset"))
        layers.append(layer)
        shape = after(layer, shape)
    if hand.mode == "train" and not _learned(layers, first):
        layers.append(Layer("norm", {"form": "rms", "affine": True}))
    return _step(hand, number, first, tuple(layers), shape)


def _start(hand: Hand) -> tuple[Shape, list[Layer]]:
    batch = hand.choice((1, 2, 2, 3, 4))
    match hand.weighted(STARTS):
        case "tokens":
            shape = (batch, hand.randint(3, 9))
            form = hand.choice(("index", "index", "index", "onehot", "bag"))
            positions = form != "bag" and hand.some(0.4)
            options = {"form": form, "rows": hand.randint(5, 29), "out": _features(hand), "positions": positions}
            hand.table = Layer("embedding", options)
            return shape, [hand.table]
        case "vector":
            return (batch, _features(hand)), []
        case "sequence":
            return (batch, hand.randint(3, 12), _features(hand)), []
        case "image":
            return (batch, hand.randint(4, 12), hand.randint(4, 12), hand.randint(1, 8)), []
    return (batch, hand.randint(3, 6), hand.randint(3, 6), hand.randint(3, 6), hand.randint(1, 4)), []


def _step(hand: Hand, number: int, first: Shape, layers: tuple[Layer, ...], shape: Shape) -> Model:
    classes = len(shape) in (2, 3) and shape[-1] > 1
    return Model(
        number=number,
        mode=hand.mode,
        shape=first,
        layers=layers,
        loss="entropy" if classes and hand.some(0.4) else "square",
        update=hand.mode == "train" and hand.some(0.5),
        no_grad="" if hand.mode == "train" else hand.choice(("no_grad", "no_grad", "inference_mode", "")),
    )


def _features(hand: Hand) -> int:
    return hand.choice((2, 3, 4, 5, 6, 8, 8, 10, 12, 12, 15, 16, 18))


def _learned(layers: list[Layer], shape: Shape) -> bool:
    learned = False
    for layer in layers:
        learned = flops(layer, shape, learned, Counter(), Counter())
        shape = after(layer, shape)
    return learned


def _wants_learned(layer: Layer) -> bool:
    """PyTorch 2.13 dies of a group norm's backward pass where its input has its channels last and is not learned."""
    own = layer.kind in WANT_LEARNED or (layer.kind == "norm" and layer["form"] == "group")
    return own or any(map(_wants_learned, layer.inner))


def _modest(layer: Layer, shape: Shape) -> bool:
    """Whether no array becomes empty or large."""
    for inner in layer.inner:
        if not _modest(inner, shape):
            return False
        shape = after(inner, shape)
    if layer.inner:
        return True
    result = after(layer, shape)
    return min(result) > 0 and prod(result) <= LARGEST


def _fits(kind: str, shape: Shape, hand: Hand) -> bool:
    rank = len(shape)
    match kind:
        case "linear" | "scan" | "while" | "map" | "cond" | "experts" | "mixed":
            return rank in (2, 3)
        case "attention" | "rnn":
            return rank == 3 and shape[1] <= 24
        case "scatter" | "gather":
            return rank == 3
        case "conv" | "conv_transpose" | "pool":
            return rank >= 3
        case "einsum":
            return rank <= 4
        case "resize":
            return rank == 4
        case "tied":
            return rank == 3 and hand.table is not None and hand.table["out"] == shape[-1]
        case "softmax" | "sort" | "top" | "cumsum":
            return shape[-1] > 1 and rank <= 3
        case "dropout":
            return hand.mode == "train"
    return True


def _linear(hand: Hand, shape: Shape, out: int | None = None) -> Layer:
    frozen = hand.mode == "train" and hand.some(0.1)
    return Layer("linear", {"out": out or _features(hand), "bias": hand.some(0.7), "frozen": frozen})


def _conv(hand: Hand, shape: Shape, out: int | None = None) -> Layer | None:
    """A convolution of any kind; out: that many channels, and the shape stays."""
    dimensions, channels = len(shape) - 2, shape[-1]
    form = hand.weighted({"plain": 6, "grouped": 3, "depthwise": 3})
    groups = {"plain": 1, "depthwise": channels}.get(form) or hand.choice(_divisors(channels))
    channels_out = out or groups * hand.randint(1, max(1, 12 // groups))
    if channels_out % groups:
        return None
    same = out is not None
    stays = (1,) * dimensions
    kernel = _sizes(hand, dimensions, (1, 2, 3, 3, 3, 4))
    stride = stays if same or hand.some(0.5) else _sizes(hand, dimensions, (1, 2, 2, 3))
    dilation = stays if hand.some(0.7) else _sizes(hand, dimensions, (1, 2, 2, 3))
    if form == "depthwise":  # one stride and one dilation for all dimensions, as libraries have it
        stride, dilation = stride[:1] * dimensions, dilation[:1] * dimensions
    if max(stride) > 1 and max(dilation) > 1 and hand.some(0.9):
        dilation = stays
    padding: object = "same" if same else hand.weighted({"same": 4, "valid": 4, "numbers": 3})
    if padding == "numbers":
        reach = [(size - 1) * step for size, step in zip(kernel, dilation, strict=True)]
        padding = tuple(hand.randint(0, size // 2 + 1) for size in reach)
    return Layer(
        "conv",
        {
            "out": channels_out,
            "kernel": kernel,
            "stride": stride,
            "dilation": dilation,
            "groups": groups,
            "padding": padding,
            "pad_first": padding not in ("same", "valid") and hand.some(0.3),
            "bias": hand.some(0.6),
            "frozen": hand.mode == "train" and hand.some(0.1),
        },
    )


def _conv_transpose(hand: Hand, shape: Shape) -> Layer | None:
    dimensions, channels = len(shape) - 2, shape[-1]
    groups = 1 if hand.some(0.7) else hand.choice(_divisors(channels))
    kernel = _sizes(hand, dimensions, (1, 2, 3, 3, 4))
    stride = _sizes(hand, dimensions, (1, 2, 2, 3))
    dilation = (1,) * dimensions if hand.some(0.93) else _sizes(hand, dimensions, (1, 2))
    form = hand.weighted({"same": 3, "valid": 4, "numbers": 3})
    padding: object = form
    if form == "numbers":
        padding = tuple(hand.randint(0, (size - 1) * step // 2) for size, step in zip(kernel, dilation, strict=True))
    more = tuple(0 if form == "same" else hand.randint(0, step - 1) for step in stride)
    return Layer(
        "conv_transpose",
        {
            "out": groups * hand.randint(1, max(1, 8 // groups)),
            "kernel": kernel,
            "stride": stride,
            "dilation": dilation,
            "groups": groups,
            "padding": padding,
            "more": more,
            "bias": hand.some(0.5),
        },
    )


def _sizes(hand: Hand, dimensions: int, choice: tuple[int, ...]) -> tuple[int, ...]:
    """Mostly the same in each dimension."""
    first = hand.choice(choice)
    return (first,) * dimensions if hand.some(0.6) else tuple(hand.choice(choice) for _ in range(dimensions))


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _norm(hand: Hand, shape: Shape, running: bool = True) -> Layer | None:
    """running: also those that remember the batches that they saw."""
    forms = ["layer", "rms"]
    if running and prod(shape[:-1]) > 1:
        forms.append("batch")
    if len(shape) > 2 and prod(shape[1:-1]) > 1:
        forms += ["group", "instance"]
    form = hand.choice(forms)
    options = {"form": form, "affine": hand.some(0.8)}
    return Layer("norm", {**options, "groups": hand.choice(_divisors(shape[-1]))} if form == "group" else options)


def _attention(hand: Hand, shape: Shape) -> Layer | None:
    features = shape[-1]
    form = hand.weighted({"fused": 4, "written": 3, "einsum": 2, "module": 2})
    heads = hand.choice(_divisors(features)) if form == "module" else hand.choice((1, 2, 3, 4, 6))
    if heads > 6:
        return None
    memory = 0 if form == "module" or hand.some(0.75) else hand.randint(2, 7)
    masks = {"none": 3, "causal": 3, "lengths": 2, "window": 1, "bias": 1}
    if memory:
        masks = {"none": 3, "lengths": 1}
    elif form == "module":
        masks = {"none": 3, "causal": 2, "lengths": 1}
    return Layer(
        "attention",
        {
            "heads": heads,
            "kv_heads": heads if form == "module" or hand.some(0.5) else hand.choice(_divisors(heads)),
            "size": features // heads if form == "module" else hand.choice((2, 3, 4, 8)),
            "form": form,
            "mask": hand.weighted(masks),
            "memory": memory,
            "bias": form == "module" or hand.some(0.4),
        },
    )


#: Rules of einsum by the rank of their input, with the indices that only the weight has and how many dimensions of the
#: result stay apart (0: all). A rule without a weight takes the input for both factors.
RULES: dict[int, tuple[tuple[str, str, int, bool], ...]] = {
    2: (("bf,fg->bg", "g", 0, False), ("bf,fhd->bhd", "hd", 0, False), ("bf,hdf->bhd", "hd", 0, False)),
    3: (
        ("btf,fg->btg", "g", 0, False),
        ("btf,fhd->bthd", "hd", 2, False),
        ("btf,ts->bsf", "s", 0, False),
        ("btf,tfg->btg", "g", 0, False),
        ("btf,bsf->bts", "s", 0, True),
        ("btf,btg->bfg", "g", 0, True),
        ("btf,f->bt", "", 0, False),
        ("btf,tf->bf", "", 0, False),
    ),
    4: (("bhwc,cd->bhwd", "d", 0, False), ("bhwc,hwcd->bd", "d", 0, False), ("bhwc,wv->bhvc", "v", 0, False)),
}


def _einsum(hand: Hand, shape: Shape) -> Layer:
    rule, free, joined, itself = hand.choice(RULES[len(shape)])
    sizes = {letter: hand.randint(2, 8) for letter in free}
    if itself:
        sizes = {"s": shape[1], "g": shape[2]}
        sizes = {letter: sizes[letter] for letter in free}
    layer = Layer("einsum", {"rule": rule, "sizes": sizes, "joined": joined, "itself": itself})
    assert einsum_sizes(layer, shape)
    return layer


def _pool(hand: Hand, shape: Shape) -> Layer:
    dimensions, by = len(shape) - 2, hand.choice(("max", "avg"))
    if hand.some(0.3):
        sizes = tuple(hand.randint(1, min(3, size)) for size in shape[1:-1])
        return Layer("pool", {"form": "adaptive", "by": by, "size": sizes})
    kernel = hand.choice((2, 2, 3))
    padding = kernel // 2 if by == "max" and hand.some(0.3) else 0
    window = {"kernel": kernel, "stride": hand.choice((1, 2, kernel)), "dilation": 1, "padding": padding}
    return Layer("pool", {"form": "window", "by": by, "dimensions": dimensions, **window})


def _rnn(hand: Hand, shape: Shape) -> Layer:
    """Zeros are where loops begin in inference, and where frameworks agree on what is asked for in training, too."""
    cell = hand.choice(("lstm", "lstm", "gru", "simple"))
    form = hand.choice(("loop", "scan", "layer") if shape[1] <= UNROLLED else ("scan", "layer"))
    zero = hand.mode == "infer" or form == "loop" or (form == "layer" and cell == "lstm")
    return Layer(
        "rnn",
        {
            "cell": cell,
            "form": form,
            "hidden": hand.choice((3, 4, 5, 6, 8)),
            "state": "zero" if zero and hand.some(0.6) else "learned",
            "bias": hand.some(0.5),
            "both": form != "loop" and hand.some(0.25),
            "last": hand.some(0.4),
        },
    )


def _experts(hand: Hand, shape: Shape) -> Layer | None:
    rows = prod(shape[:-1])
    number = min(rows, hand.randint(2, 4))
    cuts = sorted(hand.sample(range(1, rows), number - 1)) if rows > 1 else []
    sizes = tuple(end - begin for begin, end in zip([0, *cuts], [*cuts, rows], strict=True))
    return Layer("experts", {"sizes": sizes, "out": _features(hand), "form": hand.choice(("ragged", "loop"))})


def _activation(hand: Hand, shape: Shape) -> Layer | None:
    function = hand.choice(ACTIVATIONS)
    halves = shape[-1] % 2 == 0 and shape[-1] > 2
    return Layer("activation", {"function": function}) if halves or function != "glu" else None


def _gather(hand: Hand, shape: Shape) -> Layer:
    return Layer("gather", {"rows": tuple(hand.randrange(shape[1]) for _ in range(hand.randint(2, 8)))})


def _reshape(hand: Hand, shape: Shape) -> Layer | None:
    rank = len(shape)
    if rank >= 4:
        form = hand.weighted({"tokens": 3, "flat": 1, "mean": 2, "flip": 1})
    elif rank == 3:
        form = hand.weighted({"flat": 1, "mean": 2, "image": 3, "transpose": 2, "slice": 1, "join": 1, "flip": 1})
    else:
        form = "split"
    options: dict[str, object] = {"form": form}
    if form == "split":
        divisors = [divisor for divisor in _divisors(shape[1]) if 1 < divisor < shape[1]]
        if not divisors:
            return None
        options["tokens"] = hand.choice(divisors)
    if form == "image":
        options["rows"] = hand.choice(_divisors(shape[1]))
    if form == "slice":
        options["size"] = hand.randint(1, shape[1])
    if form == "join" and shape[1] % 2:
        return None
    return Layer("reshape", options)


def _tied(hand: Hand, shape: Shape) -> Layer:
    """The embedding once more, as the last layer of a language model."""
    assert hand.table is not None
    return Layer("tied", {"out": hand.table["rows"]})


def _residual(hand: Hand, shape: Shape) -> Layer | None:
    """One to three layers beside a way around them."""
    by = "add" if hand.some(0.8) else "concat"
    inner: list[Layer] = []
    for _ in range(hand.randint(1, 3)):
        kinds = ["norm", "activation"]
        kinds += ["linear", "linear"] if len(shape) < 4 else ["conv", "conv"]
        kinds += ["conv", "attention", "attention"] if len(shape) == 3 and shape[1] <= 24 else []
        kind = hand.choice(kinds)
        layer = (
            {"linear": _linear, "conv": _conv}[kind](hand, shape, shape[-1])
            if kind in ("linear", "conv")
            else DRAWS[kind](hand, shape)
        )
        if layer is None or after(layer, shape) != shape:
            return None
        inner.append(layer)
    return Layer("residual", {"by": by}, tuple(inner))


def _checkpoint(hand: Hand, shape: Shape) -> Layer | None:
    """One to three layers whose results are not kept for the backward pass."""
    layers: list[Layer] = []
    inside = shape
    for _ in range(hand.randint(1, 3)):
        kinds = ["norm", "activation", *(["linear"] * 3 if len(inside) < 4 else ["conv"] * 3)]
        kinds += ["conv", "attention"] if len(inside) == 3 and inside[1] <= 24 else []
        kind = hand.choice(kinds)
        layer = _norm(hand, inside, running=False) if kind == "norm" else DRAWS[kind](hand, inside)
        if layer is None or not _modest(layer, inside):
            return None
        layers.append(layer)
        inside = after(layer, inside)
    if not any(layer.kind in ("linear", "conv", "attention") for layer in layers):
        return None
    return Layer("checkpoint", {"form": hand.choice(("function", "module", "reentrant"))}, tuple(layers))


def _mixed(hand: Hand, shape: Shape) -> Layer | None:
    """One to four layers in a type of 16 bits, by casts or by PyTorch's autocast."""
    layers: list[Layer] = []
    inside = shape
    for _ in range(hand.randint(1, 4)):
        kinds = ["linear", "linear", "activation"]
        kinds += ["conv", "attention"] if len(inside) == 3 and inside[1] <= 24 else []
        layer = DRAWS[hand.choice(kinds)](hand, inside)
        if layer is None or not _modest(layer, inside) or (layer.kind == "attention" and layer["form"] == "module"):
            return None
        layers.append(layer)
        inside = after(layer, inside)
    if not any(layer.kind in ("linear", "conv", "attention") for layer in layers):
        return None
    to = hand.choice(("bf16", "bf16", "fp16"))
    return Layer("mixed", {"to": to, "by": hand.choice(("cast", "autocast"))}, tuple(layers))


DRAWS: dict[str, Draw] = {
    "linear": _linear,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "norm": _norm,
    "attention": _attention,
    "einsum": _einsum,
    "pool": _pool,
    "rnn": _rnn,
    "scan": lambda hand, shape: Layer("scan", {"trips": hand.randint(2, 5), "form": hand.choice(("scan", "while"))}),
    "while": lambda hand, shape: Layer("while", {"trips": hand.randint(2, 6)}),
    "map": lambda hand, shape: Layer("map", {"out": _features(hand), "form": hand.choice(("map", "vmap"))}),
    "cond": lambda hand, shape: Layer("cond", {"first": hand.some(0.5), "wide": _features(hand)}),
    "checkpoint": _checkpoint,
    "residual": _residual,
    "mixed": _mixed,
    "activation": _activation,
    "softmax": lambda hand, shape: Layer("softmax", {"log": hand.some(0.3)}),
    "scatter": lambda hand, shape: Layer("scatter", {"slots": hand.randint(2, 8)}),
    "gather": _gather,
    "reshape": _reshape,
    "experts": _experts,
    "tied": _tied,
    "resize": lambda hand, shape: Layer("resize", {"form": hand.choice(("nearest", "bilinear")), "factor": 2}),
    "sort": lambda hand, shape: Layer("sort"),
    "top": lambda hand, shape: Layer("top", {"number": hand.randint(1, shape[-1])}),
    "cumsum": lambda hand, shape: Layer("cumsum"),
    "dropout": lambda hand, shape: Layer("dropout", {"rate": 0.1}),
}
