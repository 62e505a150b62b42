"""From a recorded call to an aten overload and meta tensors.

Profilers before torch's execution trace do not record the overload; it follows from the recorded arguments, because
all schema arguments are recorded, defaults included (measured: 4085 of 4085 signatures of real traces resolve, and the
16 ties are between overloads of equal cost).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from roofline.costs import custom
from roofline.costs.calls import Call, Tensor
from roofline.costs.dtypes import DTYPES, Unsaid
from roofline.pytorch.aten.tables import ALLOCATIONS, WORKLESS_CALLS, base

DTYPE: dict[str, torch.dtype] = {
    "float": torch.float32,
    "double": torch.float64,
    "c10::Half": torch.float16,
    "c10::BFloat16": torch.bfloat16,
    "long": torch.int64,
    "long int": torch.int64,
    "long long": torch.int64,
    "int": torch.int32,
    "short": torch.int16,
    "short int": torch.int16,
    "signed char": torch.int8,
    "unsigned char": torch.uint8,
    "bool": torch.bool,
    "c10::complex<float>": torch.complex64,
    "c10::complex<double>": torch.complex128,
    "c10::Float8_e4m3fn": torch.float8_e4m3fn,
    "c10::Float8_e5m2": torch.float8_e5m2,
    "c10::Float8_e4m3fnuz": torch.float8_e4m3fnuz,
    "c10::Float8_e5m2fnuz": torch.float8_e5m2fnuz,
    "unsigned short": torch.uint16,
    "unsigned int": torch.uint32,
    "unsigned long": torch.uint64,
    # Numbers of as many bits stand for them.
    "c10::qint8": torch.int8,
    "c10::quint8": torch.uint8,
    "c10::qint32": torch.int32,
}
#: Our names of the same.
NAMES = {dtype: DTYPES[name][0] for name, dtype in DTYPE.items()}
#: c10::ScalarType by number, as scalar type arguments are recorded.
_SCALAR_TYPES = (
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.float32,
    torch.float64,
    None,
    torch.complex64,
    torch.complex128,
    torch.bool,
    torch.qint8,
    torch.quint8,
    torch.qint32,
    torch.bfloat16,
)
_MEMORY_FORMATS = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)
_DIMENSION = frozenset(("dim", "dim0", "dim1", "start_dim", "end_dim", "axis"))
#: Values for arguments that were given and whose value was not recorded, where the schema's own would be the odd one.
#: A causal mask leaves the least work, and floors are to be no higher than they are.
_LIKELY: dict[str, Any] = {"p": 0.5, "train": True, "is_causal": True}
#: Masks of one's own, beside which torch takes no causal one.
_MASKS = frozenset(("attn_mask", "attn_bias"))
#: Arguments that no cost depends on: none of them is named as assumed.
_IMMATERIAL = frozenset(
    (
        "layout device pin_memory memory_format generator non_blocking keepdim eps dropout_p scale padding_idx "
        "ignore_index scale_grad_by_freq sparse sparse_grad largest sorted stable descending implicit right nan posinf "
        "neginf benchmark deterministic cudnn_enabled allow_tf32"
    ).split()
)
#: Ops that write one value everywhere: which one does not matter.
_FILLS = frozenset(("fill", "masked_fill", "index_fill", "constant_pad_nd", "full_like", "new_full"))
#: Numbers that say how large a result is.
_EXTENT = frozenset(("start", "end", "steps"))


class Unresolved(Exception):
    """Why a call cannot be costed, in a few words."""


@cache
def packet(name: str) -> Any:
    """Return the overload packet of "aten::addmm", or None where this torch has no such op."""
    namespace, _, op = name.partition("::")
    try:
        overload_packet = getattr(getattr(torch.ops, namespace, None), op, None)
    except (RuntimeError, TypeError, ValueError):  # no name that torch could have: any text can be in a trace
        return None
    return overload_packet if isinstance(overload_packet, torch._ops.OpOverloadPacket) else None


@cache
def _composites(name: str) -> dict[str, bool]:
    """Tell of each overload of an op whether it is a wrapper that dispatches to others.

    `silu_backward` can be one, for second derivatives, and has kernels of its own, which is what runs; so has
    `_fused_rms_norm` on CUDA.
    """
    overload_packet = packet(name)
    answers = {}
    for overload in [] if overload_packet is None else overload_packet.overloads():
        try:
            full = getattr(overload_packet, overload).name()
            if not _is_dispatched(full):
                continue
            has_own_kernel = any(_has_kernel(full, key) for key in ("CPU", "CUDA"))
            answers[overload] = _has_kernel(full, "CompositeImplicitAutograd") and not has_own_kernel
        except (RuntimeError, AttributeError):  # none of torch 2.13: all ops were asked
            continue
    return answers


def _has_kernel(name: str, key: str) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, key))


def _is_dispatched(name: str) -> bool:
    """Tell whether the dispatcher knows an overload: those such as to.prim_Device exist only in TorchScript.

    Asked for a key of one that it does not know, it raises an error with the C++ stack in it, to unwind which may crash
    the process in the coroutine of a recorder (`measuring/in_loop.py`).
    """
    return bool(torch._C._dispatch_has_kernel(name))


def is_composite(name: str, overload: str | None) -> bool:
    """Tell whether the op is a wrapper that dispatches to others (it has a CompositeImplicitAutograd kernel).

    With no overload recorded: whether all are that nobody gave a place for the result. An op that this torch does not
    know is not.
    """
    answers = _composites(name)
    if overload is None:
        plain = [wraps for overload_name, wraps in answers.items() if not overload_name.endswith("out")]
        return bool(plain) and all(plain)
    return answers.get(overload or "default", False)


def is_mixed(name: str) -> bool:
    """Tell whether some overloads of the op are wrappers and some are not (`linear` and `linear.out`)."""
    return len(set(_composites(name).values())) > 1


def computes(name: str, overload: str | None, has_schema: bool) -> bool:
    """Tell whether a recorded call is an op to be counted: `has_schema` and no wrapper, or given a formula."""
    if custom.registered(name) is not None:
        return True
    return has_schema and not is_composite(name, overload)


def overloads(call: Call) -> list[Any]:
    """List the overloads that accept the recorded arguments, best first. Raises Unresolved where there is none."""
    overload_packet = packet(call.name)
    if overload_packet is None:
        raise Unresolved("this torch has no such op")
    if call.overload is not None:
        overload = getattr(overload_packet, call.overload or "default", None)
        if not isinstance(overload, torch._ops.OpOverload):
            raise Unresolved(f"this torch has no overload {call.overload!r}")
        return [overload]
    scored = []
    for name in overload_packet.overloads():
        try:
            overload = getattr(overload_packet, name)
            score = _score(call.inputs, overload._schema.arguments)
        except (RuntimeError, AttributeError):
            continue
        if score is not None:
            scored.append((score, overload))
    if not scored:
        raise Unresolved("no overload accepts the recorded arguments")
    scored.sort(key=lambda pair: -pair[0])
    return [overload for _, overload in scored]


def _score(inputs: tuple[Any, ...], arguments: list[Any]) -> int | None:
    """Score how well recorded arguments fit a schema; None: they do not."""
    if len(inputs) > len(arguments) or any(not a.has_default_value() for a in arguments[len(inputs) :]):
        return None
    score = 5 if len(inputs) == len(arguments) else 0
    for value, argument in zip(inputs, arguments, strict=False):
        points = _fit(value, argument)
        if points is None:
            return None
        score += points
    return score


def _fit(value: Any, argument: Any) -> int | None:
    kind = str(argument.type)
    optional = kind.startswith("Optional[")
    kind = kind[len("Optional[") : -1] if optional else kind
    if value is Unsaid.SCALAR:
        return 2 if kind in ("bool", "int", "float", "number", "complex") else None
    if value is Unsaid.LIST:
        return 2 if kind.startswith("List[") and "Tensor" not in kind else None
    if value is None or value is Unsaid.ANY:
        return 0 if optional or kind == "Tensor" or kind in ("str", "Device", "Generator", "int", "number") else -2
    if kind == "Tensor":
        return 3 if isinstance(value, Tensor) else None
    if kind in ("List[Tensor]", "List[Optional[Tensor]]"):
        return 3 if isinstance(value, tuple) and all(isinstance(v, Tensor | None) for v in value) else None
    if isinstance(value, Tensor):
        return None
    if kind.startswith("List["):
        is_list = isinstance(value, tuple) and not any(isinstance(v, Tensor) for v in value)
        if not is_list or ("float" not in kind and any(isinstance(v, float) for v in value)):
            return None
        return 2
    if isinstance(value, tuple):
        return None
    fits = {
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "number": isinstance(value, int | float | bool | complex),
        "str": isinstance(value, str),
        "Device": isinstance(value, str),
        "Generator": False,
    }.get(kind, True)
    return 2 if fits else None


@cache
def _argument_kind(argument_type: str, real_type: str) -> str:
    kind = real_type[len("Optional[") : -1] if real_type.startswith("Optional[") else real_type
    return kind if kind in ("ScalarType", "MemoryFormat", "Layout", "Device") else argument_type


def build(overload: Any, call: Call) -> tuple[tuple[Any, ...], dict[str, Any], str]:
    """Return arguments as meta tensors: (positional, keyword, what was assumed).

    Of what was given without its value one is assumed, and named where the cost may depend on it; Unresolved is raised
    where it certainly does.
    """
    arguments = _Arguments(call)
    positional: list[Any] = []
    keyword: dict[str, Any] = {}
    for position, argument in enumerate(overload._schema.arguments):
        value = arguments.value(argument, position)
        if not argument.kwarg_only:
            positional.append(value)
        elif value is not None or not argument.has_default_value():
            keyword[argument.name] = value
    assumed, limits = arguments.assumed, [argument.name for argument in overload._schema.arguments[1:3]]
    if base(call.name) == "clamp" and limits == ["min", "max"] and positional[1] is None and positional[2] is None:
        # There is a limit, or the call could not have run: of traces without values neither is known.
        positional[1:3] = 0.0, 0.0
        assumed.append("min and max")
    immaterial = _IMMATERIAL | ({"value", "fill_value"} if base(call.name) in _FILLS else frozenset())
    return tuple(positional), keyword, ", ".join(name for name in dict.fromkeys(assumed) if name not in immaterial)


class _Arguments:
    """Makes the arguments of a call from what was recorded of them. assumed: names of those whose value was not.

    Equal recorded tensors become one meta tensor, so `x + x` is seen to read x once.
    """

    def __init__(self, call: Call) -> None:
        self.assumed: list[str] = []
        self._call = call
        self._made: dict[Tensor, torch.Tensor] = {}
        self._is_masked = False

    def value(self, argument: Any, position: int) -> Any:
        """Return the value of an argument; they are asked for in the order of the schema."""
        is_given = position < len(self._call.inputs)
        value = self._call.inputs[position] if is_given else None
        unsaid = value if isinstance(value, Unsaid) else None
        kind = _argument_kind(str(argument.type), str(getattr(argument, "real_type", argument.type)))
        if isinstance(value, Tensor):
            value = self._meta(value)
        elif isinstance(value, tuple):
            value = [self._meta(v) if isinstance(v, Tensor) else v for v in value]
        elif _is_setting(argument, kind):
            value = _setting(argument, kind, value, unsaid)
        elif value is None or unsaid:
            value = self._likely(argument, kind, unsaid, is_given)
        self._is_masked = self._is_masked or (argument.name in _MASKS and value is not None)
        return value

    def _meta(self, tensor: Tensor) -> torch.Tensor:
        if tensor in self._made and tensor.storage >= 0:
            return self._made[tensor]
        dtype = DTYPE.get(tensor.dtype)
        if dtype is None:
            raise Unresolved(f"unknown type {tensor.dtype}" if tensor.dtype else "the type of a list was not recorded")
        if tensor.stride is None:
            if len(tensor.shape) > 1:
                self.assumed.append("contiguous")
            new = torch.empty(tensor.shape, dtype=dtype, device="meta")
        else:
            new = torch.empty_strided(tensor.shape, tensor.stride, dtype=dtype, device="meta")
        self._made[tensor] = new
        return new

    def _likely(self, argument: Any, kind: str, unsaid: Unsaid | None, is_given: bool) -> Any:
        """Return a value for an argument of which none was recorded."""
        optional = str(argument.type).startswith("Optional[")
        if optional and unsaid in (None, Unsaid.ANY):
            if unsaid and kind.startswith(("Optional[List[int", "Optional[List[float", "Optional[str")):
                self.assumed.append(argument.name)
            return None
        excluded = argument.name == "is_causal" and self._is_masked
        value = _default(argument, self._call, unsaid is not None and not excluded)
        # A tensor may well be undefined, and what was recorded as nothing was the schema's own.
        if is_given and kind != "Tensor" and (unsaid or not argument.has_default_value()):
            self.assumed.append(argument.name)
        return value


def _is_setting(argument: Any, kind: str) -> bool:
    """Tell whether an argument says of which type or where a tensor is, or is an object, and no number."""
    return (
        kind in ("Device", "ScalarType", "MemoryFormat", "Layout")
        or kind.startswith("__torch__.")
        or argument.name in ("dtype", "layout", "pin_memory", "generator")
        or (argument.name == "device" and str(argument.type).startswith("Optional["))
    )


def _setting(argument: Any, kind: str, value: Any, unsaid: Unsaid | None) -> Any:
    if kind == "Device" or argument.name == "device":
        return torch.device("meta")
    if kind == "ScalarType" or argument.name == "dtype":
        if unsaid is Unsaid.SCALAR:  # the sizes of all elements hang on it
            raise Unresolved(f"the value of {argument.name} was not recorded")
        is_number = isinstance(value, int) and 0 <= value < len(_SCALAR_TYPES)
        return _SCALAR_TYPES[value] if is_number else None if unsaid else value
    if kind == "MemoryFormat" and isinstance(value, int) and 0 <= value < len(_MEMORY_FORMATS):
        return _MEMORY_FORMATS[value]
    return None  # of an object, such as packed weights, nothing was recorded


def _default(argument: Any, call: Call, was_given: bool) -> Any:
    """A value for an argument that was not recorded: a likely one, the schema's, or one of little weight.

    was_given: it is known that there was one, and nothing excludes the likely one.
    """
    if was_given and argument.name in _LIKELY:
        return _LIKELY[argument.name]
    if argument.has_default_value() and (argument.default_value is not None or not was_given):
        return argument.default_value
    kind = str(argument.type)
    optional = kind.startswith("Optional[")
    kind = kind[len("Optional[") : -1] if optional else kind
    if kind == "Tensor":
        return None  # an undefined tensor
    if argument.name in _EXTENT:
        raise Unresolved(f"the value of {argument.name} was not recorded")
    if kind in ("float", "number"):
        return 1.0
    if kind == "int" and argument.name in _DIMENSION:
        return _largest(call)
    if optional:
        return None
    if kind == "bool":
        return False
    if kind == "str":
        return ""
    if kind == "List[bool]":
        return [True] * 3
    if argument.name == "normalized_shape":
        return [call.inputs[0].shape[-1]]
    raise Unresolved(f"the value of {argument.name} was not recorded")


def _largest(call: Call) -> int:
    """The dimension along which a reduction leaves least: what is not known is not to raise a floor."""
    first = call.inputs[0] if call.inputs else None
    return first.shape.index(max(first.shape)) if isinstance(first, Tensor) and first.shape else -1


@cache
def moves_nothing(name: str) -> bool:
    """Tell whether an op is a view, an allocation or a question whatever its arguments, which need not be known."""
    overload_packet = packet(name)
    if overload_packet is None or is_composite(name, None):
        return False
    if base(name) in ALLOCATIONS or base(name) in WORKLESS_CALLS:
        return True  # not even run: some of them warn
    kinds = [
        getattr(overload_packet, overload_name)
        for overload_name in overload_packet.overloads()
        if not overload_name.endswith("out")
    ]
    return bool(kinds) and all(isinstance(kind, torch._ops.OpOverload) and is_view(kind) for kind in kinds)


def is_view(overload: Any) -> bool:
    """Tell whether an op gives a tensor other sizes, strides or no history, and touches no element, in place or not."""
    return overload.is_view or torch.Tag.inplace_view in overload.tags
