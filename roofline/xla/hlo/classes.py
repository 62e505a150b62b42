"""The class of an HLO instruction: by what it is, by the scope it came from, by the pattern it is part of.

A contraction is one whatever it became: a product that the compiler turned into multiply and reduce says so in its
op_name. Norms and softmaxes are recognised by scope ("layer_norm", "log_softmax", "LayerNorm/moments") and, where a
model is written out without scopes, by their dataflow (`patterns`); what merely moves data in them is
movement, as it is everywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache

from roofline.core.vocabulary import OpClass
from roofline.xla.hlo import custom_calls
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.opcodes import ARITHMETIC, BITS, CHOICES, COLLECTIVES, EXCHANGES, FUNCTIONS, base, ends_pair
from roofline.xla.hlo.patterns import patterns

#: The last name of an op_name, or TensorFlow's op type, of products and convolutions.
_PRODUCT = re.compile(
    r"(ragged_)?dot_general|conv_general_dilated|(sparse)?(batch)?_?mat_?mul(v\d)?|einsum|tensordot|"
    r"(depthwise)?conv[123]d(native)?(backprop(input|filter)(v2)?)?|xlaconv(v2)?|xladot(v2)?|bmm|mm|addmm",
    re.IGNORECASE,
)
_SOFTMAX = re.compile(r"softmax|logsumexp|cross_?entropy", re.IGNORECASE)
_NORM = re.compile(
    r"(layer|batch|group|instance|rms|l2|weight|spectral|unit|sync|root_mean_square|local_response)_?norm|"
    r"batchnorm|^moments$|^(ln|norm)_?(\d+|f|final|\w?out|in)?$|_(ln|norm)_?\d*$|fusedbatchnorm",
    re.IGNORECASE,
)
_RANDOM = re.compile(
    r"random_bits|random_seed|random_fold_in|threefry|philox|bernoulli|rng_bit|rng_uniform|"
    r"stateless(random|truncated)|random_?uniform|random_?normal|"
    r"^_(normal|uniform|bernoulli|randint|gumbel|truncated_normal|exponential|laplace|gamma|categorical)(_real)?$",
    re.IGNORECASE,
)
#: Names within an op_name: parts between slashes, without the transformations around them.
_NAMES = re.compile(r"[^/()\[\],;]+")
#: Part of a semantic op where they compute; instructions that only move data stay movement.
_COMPUTING = frozenset(["pointwise", "reduction"])


@lru_cache(maxsize=100_000)
def scope_class(op_name: str, op_type: str) -> OpClass | None:
    """The semantic class that a scope names; None for a scope that names none."""
    names = _NAMES.findall(op_name)
    for place in range(len(names) - 1, -1, -1):  # the innermost decides
        name, called = names[place], place > 0 and names[place - 1] in ("jit", "pjit")
        if _SOFTMAX.search(name):
            return "softmax"
        if _RANDOM.search(name):
            return "random"
        if _NORM.search(name) and not (called and name == "norm"):  # jnp.linalg.norm is a reduction
            return "normalisation"
    if _SOFTMAX.search(op_type):
        return "softmax"
    return "normalisation" if _NORM.search(op_type) else None


@lru_cache(maxsize=100_000)
def names_product(op_name: str, op_type: str) -> bool:
    """Tell whether an instruction came from a product or convolution of the program."""
    last = op_name.rstrip(")").rpartition("/")[2]
    return bool(_PRODUCT.fullmatch(last) or (op_type and _PRODUCT.fullmatch(op_type)))


def instruction_class(module: Module, instruction: Instruction) -> OpClass:
    """The class of an instruction that stands for itself (of a fusion, see `cost`)."""
    plain = _plain_class(instruction)
    if plain in _COMPUTING:
        if instruction.opcode in ("multiply", "add", "reduce") and names_product(
            instruction.op_name, instruction.op_type
        ):
            return "contraction"
        named = scope_class(instruction.op_name, instruction.op_type)
        return named or patterns(module).get(instruction, plain)
    if plain == "movement" and scope_class(instruction.op_name, instruction.op_type) == "random":
        return "random"  # the constants and halves of a counter-based generator
    return plain


def _plain_class(instruction: Instruction) -> OpClass:
    """By opcode alone."""
    opcode = base(instruction.opcode)
    op_class = _BY_OPCODE.get(opcode)
    if op_class is not None:
        return op_class
    if opcode == "custom-call":
        return custom_calls.op_class(instruction)
    if opcode == "copy" and instruction.operands:
        # Between the host's memory and the device's.
        values = (instruction, *instruction.operands)
        spaces = {shape.space for value in values for _, shape in value.shape.leaves()}
        return "transfer" if len(spaces) > 1 and 5 in spaces else "movement"
    return "movement" if ends_pair(opcode) else "other"


_BY_OPCODE: dict[str, OpClass] = {
    **dict.fromkeys(ARITHMETIC, "pointwise"),
    **dict.fromkeys(FUNCTIONS, "pointwise"),
    **dict.fromkeys(BITS, "pointwise"),
    **dict.fromkeys(CHOICES, "pointwise"),
    **dict.fromkeys(COLLECTIVES, "communication"),
    **dict.fromkeys(("send", "recv"), "communication"),
    **dict.fromkeys(sorted(EXCHANGES - {"send", "recv"}), "transfer"),
    **dict.fromkeys(("dot", "ragged-dot", "convolution"), "contraction"),
    **dict.fromkeys(("reduce", "reduce-window", "select-and-scatter"), "reduction"),
    **dict.fromkeys(("gather", "scatter"), "embedding"),
    **dict.fromkeys(("rng", "rng-bit-generator", "rng-get-and-update-state"), "random"),
    **dict.fromkeys(("batch-norm-training", "batch-norm-inference", "batch-norm-grad"), "normalisation"),
    **dict.fromkeys(
        (
            "transpose reshape reverse concatenate slice dynamic-slice dynamic-update-slice pad broadcast iota convert "
            "bitcast-convert dynamic-reshape set-dimension-size get-dimension-size"
        ).split(),
        "movement",
    ),
    **dict.fromkeys(("sort", "topk", "fft", "cholesky", "triangular-solve"), "other"),
    "map": "pointwise",
    "async": "movement",
}
