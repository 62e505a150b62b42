"""What the name of a kernel says: its class, and the type of the elements that it works on.

Names are weaker evidence than recorded calls: they tell a class where no op is known, and never any work. The
patterns were read off the kernels of real traces (cuBLAS, cutlass, cuDNN, rocBLAS/Tensile, MIOpen, ATen, Triton,
NCCL/RCCL, flash-attention, vLLM); the first that fits wins.
"""

from __future__ import annotations

import re
from functools import lru_cache

from roofline.core.vocabulary import OpClass
from roofline.traces.aten_kinds import COLLECTIVE

_CLASSES: tuple[tuple[OpClass, re.Pattern[str]], ...] = tuple(
    (op_class, re.compile(pattern, re.IGNORECASE))
    for op_class, pattern in (
        ("transfer", r"^(mem)?copy.?(htod|dtoh|host ?to ?device|device ?to ?host)|^memcpy (htod|dtoh)"),
        ("movement", r"^memcpy|^memset"),
        ("optimizer", r"adamfunctor|fused_?adam|fusedadam|fusedsgd|lambfunctor|lamb_stage|sgdfunctor|adagradfunctor"),
        ("attention", r"attention|flash_(fwd|bwd)|fmha|attn_(fwd|bwd)|mha_(fwd|bwd)|fused_attn|ck_fmha"),
        ("contraction", r"conv(?!ert)\w*2?d?|winograd|im2col|implicit_gemm|igemm|dgrad|wgrad|fprop"),
        ("contraction", r"gemm|gemv|cutlass.*tensorop|nvjet|^cijk_|_?matmul|\bbmm_|^bmm|xmma|splitkreduce|dot_kernel"),
        ("embedding", r"embedding|index_?select|gather|scatter|indexing_backward|index_(put|copy|elementwise)|take_"),
        ("softmax", r"softmax|softmaxforward|softmaxbackward"),
        ("normalisation", r"norm|welford|gammabeta"),
        ("movement", r"copy|catarray|transpose|permute|fillfunctor|fill_|triu|tril|roll|flip|pad_|_pad|cast"),
        ("random", r"distribution_|dropout|philox|curand|randperm|bernoulli"),
        (
            "reduction",
            r"reduce_kernel|reduce_segments|triton_(red|per)_|max_pool|avg_pool|pooling|nll_loss|tensor_scan",
        ),
        ("other", r"sort|topk|scan|unique|histogram"),
        ("pointwise", r"elementwise|vectorized|triton_poi_|act_and_mul|silu|gelu|rotary|quant|multi_tensor_apply"),
    )
)


@lru_cache(maxsize=4096)
def classify(name: str) -> OpClass:
    """The class of a kernel by its name alone; "other" where the name tells nothing."""
    name = name[:2000]  # templates grow long, and the telling part comes first
    if COLLECTIVE.search(name):
        return "communication"
    return next((op_class for op_class, pattern in _CLASSES if pattern.search(name)), "other")


#: Element types as they stand in the templates of kernels, and how profilers write them.
_ELEMENTS = (
    (re.compile(r"BFloat16|bf16|bfloat16"), "c10::BFloat16"),
    (re.compile(r"c10::Half|\bHalf\b|__half|\bfp16\b|float16"), "c10::Half"),
    (re.compile(r"\bdouble\b"), "double"),
    (re.compile(r"\bfloat\b"), "float"),
    (re.compile(r"\blong\b"), "long int"),
    (re.compile(r"\bbool\b"), "bool"),
    # `unsigned int` is the type of an index, in nearly every template.
    (re.compile(r"(?<!unsigned )\bint\b"), "int"),
)
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
    return next((found for pattern, found in _ELEMENTS if pattern.search(template)), None)
