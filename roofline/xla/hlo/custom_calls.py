"""The work of custom calls: library kernels that XLA puts in place of instructions, known by target and configuration.

cuBLAS, cuBLASLt and cuDNN calls keep the dimension numbers of what they replace; their configuration is JSON in
`backend_config` (xla/service/gpu/backend_configs.proto). ROCm's libraries are called by the same targets, oneDNN's by
`__onednn$`. A target without a rule is unknown and named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import isqrt, prod
from typing import Any

import msgspec

from roofline.core.cost import Cost, unknown
from roofline.core.decoding import UndecodableError, undecodable
from roofline.core.vocabulary import OpClass
from roofline.costs import formulas
from roofline.xla.hlo import linear_algebra
from roofline.xla.hlo.module import Instruction, Shape

#: Targets by what they are; the first that matches decides. The work is that of the rule, or unknown.
_CLASSES: tuple[tuple[str, OpClass], ...] = (
    (r"f[mh]{2}a|attn|attention|flash", "attention"),
    (r"gemm|matmul|conv|cublas\$lt|_dot", "contraction"),
    (r"norm", "normalisation"),
    (r"softmax", "softmax"),
    (r"threefry|rng|philox|random", "random"),
    (r"nccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|collective", "communication"),
    (r"slicetodynamic|padtostatic", "movement"),
    (r"movetohost|movetodevice|host_?transfer|annotate_device_placement|pintodevice", "transfer"),
)
#: In the configuration of a Triton call, be it JSON or MLIR attributes.
_KERNEL_NAME = re.compile(r'\bname"?\s*[=:]\s*"([^"]+)"')
#: Marks that compile to nothing.
_MARKS = frozenset(
    "Sharding SPMDFullToShardShape SPMDShardToFullShape LayoutConstraint annotate_device_placement MoveToHost "
    "MoveToDevice AllocateBuffer PinToDevice PinToDeviceSram CreateBuffer Pin Unpin AssumeGatherIndicesInBound "
    "__xla_internal_assume".split()
)
#: They compare and move; a comparison is no FLOP. The last two move what has fewer rows than it has room for.
_SORTS = (
    *("__cub$DeviceRadixSort", "TopK", "__gpu$TopK", "xla.gpu.ext.cub_sort"),
    *("cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation", "SliceToDynamic", "PadToStatic"),
)

#: (FLOP, functions) per output element of the activations that a product may end with, on their definitions:
#: relu max(x, 0); sigmoid; gelu x/2 (1 + tanh(k (x + c x^3))), 8 and one tanh; silu x sigmoid(x); elu by select.
_ACTIVATIONS: dict[str, tuple[float, dict[str, float]]] = {
    "RELU": (1.0, {}),
    "RELU6": (2.0, {}),
    "GELU": (8.0, {"tanh": 1.0}),
    "SIGMOID": (0.0, {"sigmoid": 1.0}),
    "SILU": (1.0, {"sigmoid": 1.0}),
    "SWISH": (1.0, {"sigmoid": 1.0}),
    "TANH": (0.0, {"tanh": 1.0}),
    "ELU": (2.0, {"expm1": 1.0}),
    "LEAKYRELU": (1.0, {}),
}


class _Dimensions(msgspec.Struct):
    """Hold the dimension numbers of a product."""

    lhs_contracting_dimensions: list[int] = []
    rhs_contracting_dimensions: list[int] = []
    lhs_batch_dimensions: list[int] = []


class _Precision(msgspec.Struct):
    """Hold what a product asks of its arithmetic. algorithm: its name, or number."""

    operand_precision: list[str] = []
    algorithm: str | int = ""


class _Gemm(msgspec.Struct):
    """Hold the configuration of a product of cuBLAS."""

    dot_dimension_numbers: _Dimensions | None = None
    precision_config: _Precision | None = None
    alpha_real: float = 1.0
    beta: float = 0.0
    epilogue: str = "DEFAULT"


class _Convolution(msgspec.Struct):
    """Hold the configuration of a convolution of cuDNN."""

    conv_result_scale: float = 1.0
    side_input_scale: float = 0.0
    activation_mode: str = "kNone"


class _Dims(msgspec.Struct):
    """Hold the dimensions of an array."""

    dimensions: list[int]


class _Attention(msgspec.Struct):
    """Hold the configuration of cuDNN's attention. intermediate_tensor_shape: of the scores."""

    intermediate_tensor_shape: _Dims
    mask_type: str = "NO_MASK"
    sliding_window_length: int | None = None


class _Norm(msgspec.Struct):
    """Hold the configuration of cuDNN's layer norm."""

    kind: str = ""


class _Fusions(msgspec.Struct):
    """Hold the ops that oneDNN fuses into a product."""

    ops: list[str] = []


class _OneDnn(msgspec.Struct):
    """Hold the configuration of a product of oneDNN."""

    fusions: _Fusions = msgspec.field(default_factory=_Fusions)


class _Configuration(_Gemm):
    """Hold the backend configuration of a call; programs before 2024 have that of a product at its top level."""

    gemm_backend_config: _Gemm | None = None
    cudnn_conv_backend_config: _Convolution = msgspec.field(default_factory=_Convolution)
    cudnn_fmha_backend_config: _Attention | None = None
    cudnn_norm_backend_config: _Norm | None = None
    onednn_matmul_config: _OneDnn = msgspec.field(default_factory=_OneDnn)


def op_class(instruction: Instruction) -> OpClass:
    """The class of a custom call by its target, or by the name of the kernel that a Triton call carries."""
    kernel = _KERNEL_NAME.search(instruction.backend_config)
    for name in (instruction.custom_call_target, kernel.group(1) if kernel else ""):
        for pattern, matched_class in _CLASSES:
            if re.search(pattern, name, re.IGNORECASE):
                return matched_class
    return "other"


def is_mark(instruction: Instruction) -> bool:
    """Tell whether a call is an annotation that compiles to nothing."""
    return instruction.custom_call_target in _MARKS


def results(instruction: Instruction) -> list[tuple[tuple[int, ...], Shape]]:
    """The arrays that a custom call is for, with their index paths: scratch memory at the end of them is none."""
    leaves = instruction.shape.leaves()
    while len(leaves) > 1 and leaves[-1][1].dtype in ("int8", "uint8") and len(leaves[-1][1].dims) == 1:
        leaves = leaves[:-1]
    return leaves


def _configuration(instruction: Instruction) -> _Configuration:
    """Read the JSON of its backend configuration, where numbers may be texts. UndecodableError for another form."""
    with undecodable():
        return msgspec.json.decode(instruction.backend_config or "{}", type=_Configuration, strict=False)


def _gemm_configuration(instruction: Instruction) -> _Gemm:
    settings = _configuration(instruction)
    return settings.gemm_backend_config or settings


def asked_precision(instruction: Instruction) -> tuple[int, int | str]:
    """(highest precision that a product asks of its operands, algorithm), as XLA numbers or names them.

    A call of a library keeps them in its configuration, everything else in the instruction.
    """
    precision, noted = instruction.message.precision_config, None
    if instruction.custom_call_target:
        with suppress(UndecodableError):  # not of a library, but of Triton or of somebody else
            noted = _gemm_configuration(instruction).precision_config
    if noted is None:
        return max(precision.operand_precision, default=0), precision.algorithm
    order = ("DEFAULT", "HIGH", "HIGHEST")
    return max((order.index(name) for name in noted.operand_precision if name in order), default=0), noted.algorithm


def work(instruction: Instruction) -> Cost:
    """Count the work of one execution of a custom call, without bytes."""
    target = instruction.custom_call_target
    if target in _MARKS or target in _SORTS:
        return Cost()
    for pattern, rule in _RULES:
        if re.match(pattern, target):
            return rule(instruction)
    if linear_algebra.takes_rounds(target):
        return unknown(f"{target}: how much it computes depends on its numbers")
    return unknown(f"no rule for the custom call {target}")


def product_dimensions(
    left: Shape,
    right: Shape,
    left_contracted: Sequence[int],
    right_contracted: Sequence[int],
    left_batch: Sequence[int],
) -> tuple[int, int, int, int]:
    """(m, n, k, batch) of a product of two arrays. IndexError for dimensions that they do not have."""
    k = prod(left.dims[d] for d in left_contracted)
    batch = prod(left.dims[d] for d in left_batch)
    right_inner = prod(right.dims[d] for d in right_contracted)
    m, n = left.elements, right.elements
    if not (k and batch and right_inner):
        return 0, 0, 0, 0
    return m // (k * batch), n // (right_inner * batch), k, batch


def convolution(message: Any, inputs: Shape, kernel: Shape, outputs: Shape) -> Cost:
    """A convolution by its window and dimension numbers; ValueError for a form that has more dimensions than those."""
    numbers, spatial = message.convolution_dimension_numbers, message.window.dimensions
    if len(inputs.dims) != len(spatial) + 2:
        raise ValueError("a convolution with vectorised channels")
    return formulas.dilated_convolution(
        # Of a batch in groups, each output channel sees one group.
        inputs.dims[numbers.input_batch_dimension] // (message.batch_group_count or 1),
        inputs.dims[numbers.input_feature_dimension],
        outputs.dims[numbers.output_feature_dimension],
        message.feature_group_count or 1,
        [inputs.dims[d] for d in numbers.input_spatial_dimensions],
        [kernel.dims[d] for d in numbers.kernel_spatial_dimensions],
        [dimension.stride or 1 for dimension in spatial],
        [dimension.padding_low for dimension in spatial],
        [dimension.window_dilation or 1 for dimension in spatial],
        [outputs.dims[d] for d in numbers.output_spatial_dimensions],
        [dimension.base_dilation or 1 for dimension in spatial],
    )


def convolution_by_kind(message: Any, first: Shape, second: Shape, result: Shape) -> Cost:
    """A convolution that is marked as one of the gradients: it may keep the window and numbers of the forward one, with
    the arrays in other places. The places in which its window fits the arrays are taken; ValueError where none are.
    """
    for arrays in ((first, second, result), (result, second, first), (first, result, second)):
        if _fits(message, *arrays):
            return convolution(message, *arrays)
    raise ValueError("a convolution whose window fits its arrays in no order")


def _fits(message: Any, inputs: Shape, kernel: Shape, outputs: Shape) -> bool:
    numbers = message.convolution_dimension_numbers
    places = zip(
        message.window.dimensions,
        numbers.input_spatial_dimensions,
        numbers.kernel_spatial_dimensions,
        numbers.output_spatial_dimensions,
        strict=True,
    )
    for window, i, k, o in places:
        spread = (inputs.dims[i] - 1) * (window.base_dilation or 1) + 1 + window.padding_low + window.padding_high
        taps = (kernel.dims[k] - 1) * (window.window_dilation or 1) + 1
        if kernel.dims[k] != window.size or outputs.dims[o] != (spread - taps) // (window.stride or 1) + 1:
            return False
    return True


def _activation(name: str, number: float) -> Cost:
    """Count the work that an activation adds to a product of `number` results. KeyError for an undefined one."""
    flops, functions = _ACTIVATIONS[name]
    return Cost(vector_flops=flops * number, functions={key: count * number for key, count in functions.items()})


def _gemm(instruction: Instruction) -> Cost:
    """cuBLAS and cuBLASLt: D = alpha A B + beta C, and an epilogue."""
    config = _gemm_configuration(instruction)
    numbers = config.dot_dimension_numbers
    if numbers is None:
        raise ValueError("a product without dimension numbers")
    product = formulas.matmul(
        *product_dimensions(
            instruction.operands[0].shape,
            instruction.operands[1].shape,
            numbers.lhs_contracting_dimensions,
            numbers.rhs_contracting_dimensions,
            numbers.lhs_batch_dimensions,
        )
    )
    number, beta = float(results(instruction)[0][1].elements), config.beta
    extra = (config.alpha_real != 1) + (beta != 0) + (beta not in (0, 1))
    cost = product + Cost(vector_flops=extra * number)
    for name in config.epilogue.removesuffix("_AUX").split("_"):
        if name == "BIAS":
            cost = cost + Cost(vector_flops=number)
        elif name != "DEFAULT":
            cost = cost + _activation(name, number)
    return cost


def _cudnn_convolution(instruction: Instruction) -> Cost:
    """Window and dimension numbers are always those of the forward convolution; who is operand and who is result
    changes: forward (input, filter) -> output, input gradient (output, filter) -> input, filter gradient
    (input, output) -> filter (`GetGpuConvParams` in XLA).
    """
    first, second = instruction.operands[0].shape, instruction.operands[1].shape
    result = results(instruction)[0][1]
    target = instruction.custom_call_target
    if "BackwardInput" in target:
        return convolution(instruction.message, result, second, first)
    if "BackwardFilter" in target:
        return convolution(instruction.message, first, result, second)
    cost = convolution(instruction.message, first, second, result)
    config = _configuration(instruction).cudnn_conv_backend_config
    number = float(result.elements)
    if "Graph" in target:
        return cost + Cost(quality="assumed", note=f"the element-wise work fused into {target} is not counted")
    if "BiasActivation" in target:
        cost = cost + Cost(vector_flops=number)
        if config.side_input_scale:
            cost = cost + Cost(vector_flops=2 * number)
    if config.conv_result_scale != 1:
        cost = cost + Cost(vector_flops=number)
    mode = config.activation_mode.removeprefix("k").upper()
    return cost if mode in ("NONE", "") else cost + _activation(mode, number)


def _attention(instruction: Instruction) -> Cost:
    """cuDNN's fused attention. The configuration holds the shape of the scores, [batch, heads, queries, keys].

    Widths come from the arrays' sizes, whatever their layout: Q is batch x heads x queries x width; K and V share
    their heads, fewer than Q's in grouped-query attention, so that V's width is V / K times K's.
    """
    target = instruction.custom_call_target
    config = _configuration(instruction).cudnn_fmha_backend_config
    if config is None:
        raise ValueError("an attention without the shape of its scores")
    batch, heads, queries, keys = config.intermediate_tensor_shape.dimensions
    q, k, v = (operand.shape.elements for operand in instruction.operands[:3])
    width = q // (batch * heads * queries)
    width_v = v * width // k
    mask, window = config.mask_type, config.sliding_window_length or 0
    backward = "Backward" in target
    formula = formulas.attention_backward if backward else formulas.attention
    cost = formula(batch, heads, queries, keys, width, width_v, causal="CAUSAL" in mask)
    scores = float(batch * heads * queries * keys)
    if "ScaleBias" in target:
        cost = cost + Cost(vector_flops=scores)
    if "Dropout" in target and not backward:
        cost = cost + formulas.random(scores) + Cost(vector_flops=2 * scores)
    if window > 0 or "PADDING" in mask:
        # What the window or the lengths leave is not counted as less, so the useful work is at most this.
        return cost + Cost(quality="assumed", note="useful work of windowed or padded attention not told apart")
    return cost


def _layer_norm(instruction: Instruction) -> Cost:
    """cuDNN's layer norm; the rows are those of the scale's complement: x has rows x scale elements.

    Per element: mean and variance (two sums, subtract, square), subtract, scale by the root, gamma, beta.
    """
    config = _configuration(instruction).cudnn_norm_backend_config
    if config is None:
        raise ValueError("a norm without its direction")
    x, scale = instruction.operands[0].shape.elements, instruction.operands[1].shape.elements
    if "BWD" in config.kind:
        return unknown("the backward pass of the custom call __cudnn$norm")
    rows = x // max(1, scale)
    return formulas.variance(x, rows) + Cost(vector_flops=4.0 * x + rows, functions={"rsqrt": float(rows)})


def _onednn_matmul(instruction: Instruction) -> Cost:
    """oneDNN's product: [..., m, k] x [..., k, n] with either side transposed, so k from the sizes:
    (b m k)(b k n) / (b m n) = b k^2. What is fused into it is not read.
    """
    left, right, result = instruction.operands[0].shape, instruction.operands[1].shape, results(instruction)[0][1]
    batch = prod(right.dims[:-2])
    square, remainder = divmod(left.elements * right.elements, max(1, result.elements * batch))
    k = isqrt(square)
    if remainder or k * k != square or not k:
        raise ValueError("sizes that are no product")
    cost = formulas.matmul(left.elements // k // batch, right.elements // k // batch, k, batch)
    fused = _configuration(instruction).onednn_matmul_config.fusions.ops
    if fused:
        return cost + Cost(quality="assumed", note=f"oneDNN's fused {', '.join(fused)} not counted")
    return cost


_RULES: tuple[tuple[str, Callable[[Instruction], Cost]], ...] = (
    (r"__cublas\$(gemm|lt\$matmul)", _gemm),
    (r"__cudnn\$conv(?!.*f8)", _cudnn_convolution),
    (r"__cudnn\$f[mh]{2}a", _attention),
    (r"__cudnn\$norm", _layer_norm),
    (r"__onednn\$matmul", _onednn_matmul),
)
