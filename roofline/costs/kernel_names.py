"""Read the name of a kernel: its class, and the type of the elements that it works on.

Names are weaker evidence than recorded calls: they tell a class where no op is known, and never any work. The
patterns were read off the kernels of real traces (cuBLAS, cutlass, cuDNN, rocBLAS/Tensile, MIOpen, ATen, Triton,
NCCL/RCCL, flash-attention, vLLM); the first that fits wins.
"""

from __future__ import annotations

import re
from functools import lru_cache

from roofline.core.copies import CROSSING
from roofline.core.vocabulary import PRODUCTS, OpClass
from roofline.costs.dtypes import COLLECTIVE

_PATTERNS: tuple[tuple[OpClass, str], ...] = (
    ("transfer", CROSSING),
    ("movement", r"^memcpy|^memset|^__amd_rocclr_(fill|copy)"),
    ("optimizer", r"adamfunctor|fused_?adam|fusedadam|fusedsgd|lambfunctor|lamb_stage|sgdfunctor|adagradfunctor"),
    ("attention", r"attention|flash_(fwd|bwd)|fmha|attn_?(fwd|bwd)|mha_(fwd|bwd)|fused_attn|ck_fmha"),
    ("contraction", r"conv(?!er[ts])\w*2?d?|winograd|im2col|implicit_gemm|igemm|dgrad|wgrad|fprop"),
    ("contraction", r"gemm|gemv|cutlass.*tensorop|nvjet|^cijk_|_?matmul|\bbmm_|^bmm|xmma|splitkreduce|dot_kernel"),
    ("contraction", r"fused_moe_kernel|^triton_tem_"),
    ("embedding", r"embedding|index_?select|gather|scatter|indexing_backward|index_(put|copy|elementwise)|take_"),
    ("softmax", r"softmax|softmaxforward|softmaxbackward"),
    ("normalisation", r"norm(?!al_(?:and|kernel|fill|dist))|welford|gammabeta|\bbn_(fw|bw)"),
    # Not "unrolled" nor "nocast": how a kernel of ATen walks through its elements says nothing of what it does to them.
    ("movement", r"copy|catarray|transpose|permute|fillfunctor|fill_|triu|tril|(?<!un)roll|flip|pad_|_pad|(?<!no)cast"),
    ("random", r"distribution_|dropout|philox|curand|randperm|bernoulli"),
    (
        "reduction",
        r"reduce_kernel|reduce_segments|triton_(red|per)_|max_pool|avg_pool|pooling|nll_loss|tensor_scan",
    ),
    ("other", r"sort|topk|scan|unique|histogram"),
    ("pointwise", r"elementwise|vectorized|triton_poi_|act_and_mul|silu|gelu|rotary|quant|multi_tensor_apply"),
)
_CLASSES = tuple((op_class, re.compile(pattern, re.IGNORECASE)) for op_class, pattern in _PATTERNS)


#: Longer numbers than the patterns know: compilers number their kernels, so that all names of a trace may differ.
_NUMBER = re.compile(r"\d\d+")


def classify(name: str) -> OpClass:
    """The class of a kernel by its name alone; "other" where the name tells nothing."""
    return _classify(_NUMBER.sub("00", name[:2000]))  # templates grow long, and the telling part comes first


@lru_cache(maxsize=1 << 16)  # asked several times of each of a trace's kernels
def _classify(name: str) -> OpClass:
    if COLLECTIVE.search(name):
        return "communication"
    # Kernels of torch's compiler that are no template are named after products too: they hold what follows these.
    never = PRODUCTS if name.startswith(("triton_poi_", "triton_red_", "triton_per_")) else ()
    return next((op_class for op_class, pattern in _CLASSES if op_class not in never and pattern.search(name)), "other")


#: Element types as they stand in the templates of kernels, and how profilers write them.
_ELEMENTS = (
    (re.compile(r"c10::complex<float>"), "c10::complex<float>"),
    (re.compile(r"c10::complex<double>"), "c10::complex<double>"),
    (re.compile(r"BFloat16|bf16|bfloat16"), "c10::BFloat16"),
    (re.compile(r"c10::Half|\bHalf\b|__half|\bfp16\b|float16"), "c10::Half"),
    (re.compile(r"\bdouble\b"), "double"),
    (re.compile(r"\bfloat\b"), "float"),
    (re.compile(r"\blong\b"), "long int"),
    (re.compile(r"\bbool\b"), "bool"),
    # `unsigned int` is the type of an index, in nearly every template.
    (re.compile(r"(?<!unsigned )\bint\b"), "int"),
)
#: What a functor works on is its first argument; numbers of other types, such as learning rates, are around it.
_FUNCTOR = re.compile(r"\w*(?:Functor\w*|Op)<\s*([^,<>]+(?:<\w+>)?)")
_OPAQUE = re.compile(r"OpaqueType<(\d+)")
_BY_SIZE = {1: "unsigned char", 4: "float", 8: "long int"}


def element(name: str, short: str = "c10::BFloat16") -> str | None:
    """The type of the elements of a kernel, as profilers write types; None where the name says nothing.

    Copies are compiled for a size of elements, not a type (`OpaqueType<2u>`): the size is certain and the type is not.
    short: the type of two bytes that the rest of the trace uses.
    """
    name = name[:2000]
    opaque = _OPAQUE.search(name)
    if opaque:
        return short if opaque[1] == "2" else _BY_SIZE.get(int(opaque[1][:4]))
    _, _, template = name.partition("<")
    functor = _FUNCTOR.search(template)
    return (_first_element(functor[1]) if functor else None) or _first_element(template)


def _first_element(text: str) -> str | None:
    """The type that is named first; of those at one place the longest."""
    named = ((match.start(), -len(match[0]), kind) for pattern, kind in _ELEMENTS if (match := pattern.search(text)))
    return min(named, default=(0, 0, None))[2]
