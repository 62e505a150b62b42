"""Mixtures of experts in one op of vLLM and SGLang, whose weights are arguments or views that the op makes of them.

    vllm::inplace_fused_experts, vllm::outplace_fused_experts, sglang::... (hidden, w1, w2, topk_weights, topk_ids, ...)

(vllm/model_executor/layers/fused_moe/fused_moe.py, python/sglang/srt/layers/moe/fused_moe_triton/fused_moe.py): w1 is
[experts, 2 x intermediate, hidden] where the activation is gated, w2 [experts, hidden, intermediate]. Of experts on
several devices these are the local ones, and the picks are those of all: of them each device works on its share. vLLM
hands over a map from all experts to the local ones, int[all]; SGLang a flag `filter_expert`, that some are elsewhere.

    aiter::fmoe_g1u1, aiter::fmoe_fp8_blockscale_g1u1(out, hidden, w1, w2, sorted_token_ids, sorted_weights,
        sorted_expert_ids, num_valid_ids, topk, ...)
    aiter::ck_moe_stage1, aiter::ck_moe_stage2(hidden, w1, w2, sorted_token_ids, sorted_expert_ids, num_valid_ids,
        out, topk, ...)

(aiter/ops/moe_op.py): the same weights, the first product gated; the two stages are ops of their own. Picks are sorted
into blocks of one expert each, in lists as long as there may be of all experts, tokens x topk + experts x block - topk,
and a number per block (`moe_sorting`, aiter/fused_moe.py): their lengths tell how many experts there are.

`vllm::moe_forward(hidden, router_logits, ...)` gets its weights from the layer. With Triton's kernels for mxfp4
(triton_kernels/matmul_ogs.py) each product is a kernel `_matmul_ogs_<layouts>_<out>x<in>x<weights>_<blocks>`, right
before which the op makes views of what goes in, [rows, inner], and of the weights, [experts, inner, columns]; of mxfp4
two numbers lie in a byte, and 32 share a scale of one byte (OCP Microscaling Formats 1.0).

Compulsory traffic of the whole op: tokens in and out once, and the weights of the experts that are picked. What its
kernels hand to each other is left out, as with any op of several kernels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

from roofline.core.cost import Cost, unknown
from roofline.costs import experts
from roofline.costs.calls import Call, Tensor, size
from roofline.costs.context import Context
from roofline.costs.custom import Work, formula
from roofline.costs.dtypes import DTYPES

#: Bytes of a number of the weights, with its share of a scale, and how many lie in a byte, by Triton's name.
_WEIGHTS = {"bf16": (2.0, 1), "fp16": (2.0, 1), "fp8": (1.0, 1), "mxfp8": (1 + 1 / 32, 1), "mxfp4": (0.5 + 1 / 32, 2)}
_TYPE = r"((?:mx)?(?:bf16|fp16|fp32|fp4|fp8))(?:e\d\w*?)?"
_MATMUL = re.compile(rf"_(?:p_)?matmul_ogs_[A-Z]+_{_TYPE}x{_TYPE}x{_TYPE}_")
#: What a product of such inputs computes in, whatever its weights were widened from.
_COMPUTED = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8"}
_WHOLE = ("int", "long int")
_ELSEWHERE = "some experts may be on other devices, and the trace does not say how many there are in all"
_GATE = 2.0  # FLOP per number of a gated activation: a product and that of the sigmoid; the sigmoid has its own column


@formula("vllm::inplace_fused_experts", "contraction")
@formula("vllm::outplace_fused_experts", "contraction")
def fused_experts(x: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, picked: Tensor, *options: Any) -> Work:
    """Cost both products of each token with its experts, by the weights; activations have ops of their own inside.

    Weights of fp8 are multiplied with tokens of fp8.
    """
    local = w1.shape[0]
    maps = [option.shape[0] for option in options if isinstance(option, Tensor) and _is_map(option)]
    return _fused(x, w1, w2, weights, picked, max([local, *maps]))


def _is_map(option: Tensor) -> bool:
    return len(option.shape) == 1 and option.dtype in _WHOLE


@formula("sglang::inplace_fused_experts", "contraction")
def inplace_fused_experts(x: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, picked: Tensor, *options: Any) -> Work:
    """Cost `fused_experts` of SGLang; of the options behind its flags one is a flag: filter_expert."""
    return _fused(x, w1, w2, weights, picked, w1.shape[0]) if _all_local(options, 1) else unknown(_ELSEWHERE)


@formula("sglang::outplace_fused_experts", "contraction")
def outplace_fused_experts(x: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, picked: Tensor, *options: Any) -> Work:
    """Cost `fused_experts` of SGLang; of the options behind its flags two are flags: no_combine, filter_expert."""
    return _fused(x, w1, w2, weights, picked, w1.shape[0]) if _all_local(options, 2) else unknown(_ELSEWHERE)


def _all_local(options: Sequence[Any], number: int) -> bool:
    """Tell whether the last of `number` flags behind the first stretch of flags says that no expert is elsewhere."""
    behind = dropwhile(_is_flag, dropwhile(lambda option: not _is_flag(option), options))
    flags = [option for option in behind if _is_flag(option)]
    return len(flags) == number and not flags[-1]


def _is_flag(option: Any) -> bool:
    return type(option) is bool


def _fused(x: Tensor, w1: Tensor, w2: Tensor, weights: Tensor, picked: Tensor, everywhere: int) -> Work:
    """Cost both products. everywhere: how many experts all devices have together."""
    (tokens, hidden), picks = x.shape, picked.shape[1]
    if w1.shape[2] != hidden or w2.shape[1] != hidden or w1.shape[1] not in (w2.shape[2], 2 * w2.shape[2]):
        return unknown("weights that are packed or of another layout")
    if (arithmetic := DTYPES[w1.dtype][0]) not in ("bf16", "fp16", "fp32", "fp8"):
        return unknown("weights of whole numbers: what they are multiplied with is not in the trace")
    routed = _Routed(tokens, picks, w1.shape[0], everywhere)
    up = routed.products((hidden, w1.shape[1]), DTYPES[w1.dtype][1])
    down = routed.products((w2.shape[2], hidden), DTYPES[w2.dtype][1])
    moved = Cost(bytes_read=size(x) + size(weights) + size(picked), bytes_written=size(x))
    return up + down + routed.weighted(hidden) + moved, arithmetic


@dataclass(frozen=True, slots=True)
class _Routed:
    """Tokens that pick `picks` of all experts each, `everywhere`, of which `local` are on this device."""

    tokens: int
    picks: int
    local: int
    everywhere: int

    @property
    def share(self) -> float:
        """The share of all picks that are of this device's experts, in the mean."""
        return self.local / self.everywhere

    @property
    def rows(self) -> float:
        """Picks of this device's experts."""
        return self.tokens * self.picks * self.share

    def products(self, weight: tuple[int, int], width: float) -> Cost:
        """Cost a product of each row with [inner, columns] of its expert, of `width` bytes a number."""
        return experts.products(self.rows, self.local, self.picks * self.share, self.tokens, weight, width)

    def weighted(self, hidden: int) -> Cost:
        """Cost the weighted sum of each token's rows."""
        return Cost(vector_flops=(self.rows + max(0.0, self.rows - self.tokens)) * hidden)


@formula("aiter::fmoe_g1u1", "contraction")
@formula("aiter::fmoe_fp8_blockscale_g1u1", "contraction")
def gated_experts(out: Tensor, x: Tensor, w1: Tensor, w2: Tensor, *options: Any) -> Work:
    """Cost both products and the gate between them; options: the tokens sorted by expert (4), picks per token, ..."""
    routed = _sorted(x.shape[0], w2, options[0], options[2], options[4])
    up, gate, arithmetic = _first_stage(x, w1, w2, routed)
    down, _ = _second_stage(out, w2, routed)
    return up + gate + down + Cost(bytes_read=size(x), bytes_written=size(out)), arithmetic


@formula("aiter::ck_moe_stage1", "contraction")
def first_stage(x: Tensor, w1: Tensor, w2: Tensor, tokens: Any, expert: Any, valid: Any, out: Tensor, *o: Any) -> Work:
    """Cost the first product and its gate, to a row for each token and expert; o: picks per token, ..."""
    routed = _sorted(x.shape[0], w2, tokens, expert, o[0])
    up, gate, arithmetic = _first_stage(x, w1, w2, routed)
    return up + gate + Cost(bytes_read=size(x), bytes_written=size(out) * routed.share), arithmetic


@formula("aiter::ck_moe_stage2", "contraction")
def second_stage(x: Tensor, w1: Tensor, w2: Tensor, tokens: Any, expert: Any, valid: Any, out: Tensor, *o: Any) -> Work:
    """Cost the second product, of a row for each token and expert, and their weighted sum; o: picks per token, ..."""
    routed = _sorted(out.shape[0], w2, tokens, expert, o[0])
    down, arithmetic = _second_stage(out, w2, routed)
    return down + Cost(bytes_read=size(x) * routed.share, bytes_written=size(out)), arithmetic


def _first_stage(x: Tensor, w1: Tensor, w2: Tensor, routed: _Routed) -> tuple[Cost, Cost, str]:
    hidden, inner = x.shape[1], w2.shape[2]
    if w1.shape[1:] != (2 * inner, hidden) or w2.shape[1] != hidden or x.dtype != w1.dtype:
        raise ValueError("weights that are packed or of another layout or type")
    up = routed.products((hidden, 2 * inner), DTYPES[w1.dtype][1])
    return up, _gate(routed.rows * inner), DTYPES[w1.dtype][0]


def _second_stage(out: Tensor, w2: Tensor, routed: _Routed) -> tuple[Cost, str]:
    _, hidden, inner = w2.shape
    if out.shape[-1] != hidden:
        raise ValueError("weights that are packed or of another layout")
    return routed.products((inner, hidden), DTYPES[w2.dtype][1]) + routed.weighted(hidden), DTYPES[w2.dtype][0]


def _gate(results: float) -> Cost:
    return Cost(vector_flops=_GATE * results, functions={"sigmoid": results})


def _sorted(tokens: int, w2: Tensor, sorted_tokens: Any, sorted_experts: Any, picks: Any) -> _Routed:
    """Read how many experts there are off the lists of sorted picks. Raises ValueError where they do not tell it."""
    local, picks = w2.shape[0], _picks(picks)
    if not isinstance(sorted_tokens, Tensor) or not isinstance(sorted_experts, Tensor):
        raise ValueError(_ELSEWHERE)
    length, blocks = sorted_tokens.shape[0], sorted_experts.shape[0]
    padding = length + picks - tokens * picks  # a block for each expert
    sizes = range(-(-length // blocks), (length - 1) // (blocks - 1) + 1) if blocks > 1 else ()
    numbers = {padding // block for block in sizes if block and padding % block == 0 and padding // block >= local}
    if len(numbers) != 1:
        raise ValueError(_ELSEWHERE)
    return _Routed(tokens, picks, local, numbers.pop())


def _picks(picks: Any) -> int:
    if type(picks) is not int or picks < 1:
        raise ValueError("how many experts each token picks was not recorded")
    return picks


@formula("vllm::moe_forward", "contraction", context=True)
@formula("vllm::moe_forward_shared", "contraction", context=True)
def moe_forward(context: Context, x: Tensor, logits: Tensor, *_: Any) -> Work:
    """Cost the kernels of a layer of experts that the op launches itself."""
    matmuls = _matmuls(context)
    if not matmuls:
        return unknown("a mixture of experts whose weights are not in the trace")
    tokens, number, rows = x.shape[0], logits.shape[-1], max(matmul.rows for matmul in matmuls)
    if rows % tokens or not 1 <= rows // tokens <= number:
        return unknown(f"{rows} rows for {tokens} tokens and {number} experts")
    # Of experts on several devices each keeps some, and gets the tokens that pick these.
    routed = _Routed(tokens, rows // tokens, matmuls[0].experts, number)
    cost = Cost(bytes_read=size(x) + size(logits), bytes_written=size(x)) + routed.weighted(x.shape[-1])
    for matmul in matmuls:
        cost += routed.products((matmul.inner, matmul.columns), matmul.bytes_per_weight)
        cost += _gate(routed.rows * matmul.columns / 2) if matmul.gated else Cost()
    return cost, matmuls[0].arithmetic


@dataclass(frozen=True, slots=True)
class _Matmul:
    """A product of rows with the weights of their experts. arithmetic: the type it computes in."""

    rows: int
    experts: int
    inner: int
    columns: int
    bytes_per_weight: float
    arithmetic: str
    gated: bool


def _matmuls(context: Context) -> list[_Matmul]:
    """The products of a layer. Raises where views before a kernel do not fit it, or the numbers of experts differ."""
    views: list[Tensor] = []
    matmuls = []
    for event in context.inside:
        if isinstance(event, Call):
            views += [event.inputs[0]] if event.name == "aten::view" and isinstance(event.inputs[0], Tensor) else []
        elif match := _MATMUL.match(event.name):
            (rows, inner), (number, stored, columns) = views[-2].shape, views[-1].shape
            width, packed = _WEIGHTS[match[3]]
            if stored * packed != inner:
                raise ValueError(f"weights of {stored} times {packed} rows for inputs of {inner} numbers")
            matmuls.append(_Matmul(rows, number, inner, columns, width, _COMPUTED[match[2]], "swiglu" in event.name))
    if len({matmul.experts for matmul in matmuls}) > 1:
        raise ValueError("products of different numbers of experts")
    return matmuls
