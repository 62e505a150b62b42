"""List which HLO opcode is which kind of work: tables, no code to speak of."""

from __future__ import annotations

#: Arithmetic per output element: the primitive of costs/formulas.py. Floating: 1 FLOP each; else 1 integer operation.
ARITHMETIC: dict[str, str] = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "negate": "neg",
    "abs": "abs",
    "minimum": "minimum",
    "maximum": "maximum",
    "remainder": "remainder",
    "mulhi": "mul",  # the upper half of a product of integers
}
#: Functions per output element, by our name.
FUNCTIONS: dict[str, str] = {
    "exponential": "exp",
    "exponential-minus-one": "expm1",
    "log": "log",
    "log-plus-one": "log1p",
    "logistic": "sigmoid",
    "tanh": "tanh",
    "tan": "tan",
    "sine": "sin",
    "cosine": "cos",
    "sinh": "sinh",
    "cosh": "cosh",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "atan2": "atan2",
    "erf": "erf",
    "power": "pow",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "cbrt": "cbrt",
}
#: Integer and bit operations per output element, on truth values too.
BITS = frozenset(
    "and or xor not shift-left shift-right-logical shift-right-arithmetic popcnt count-leading-zeros".split()
)
#: Per element, but no work by our table: elements are compared, chosen, cast or rounded. XLA counts 1 for each.
CHOICES = frozenset(
    "compare select clamp convert floor ceil sign round-nearest-afz round-nearest-even is-finite real imag complex "
    "reduce-precision stochastic-convert".split()
)
#: One result element per element of each operand of that shape.
ELEMENTWISE = frozenset(ARITHMETIC) | frozenset(FUNCTIONS) | BITS | CHOICES | {"copy", "map", "bitcast-convert"}
#: The same elements in another place or order.
REORDERED = frozenset("bitcast reshape transpose reverse dynamic-reshape".split())
#: Elements move, nothing is computed.
MOVES = REORDERED | frozenset(
    "copy broadcast slice dynamic-slice dynamic-update-slice concatenate pad gather iota bitcast-convert "
    "set-dimension-size get-dimension-size sort topk copy-start".split()
)
#: Neither work nor traffic, and nothing for an executor to run: names and views of values.
FREE = frozenset(
    "parameter constant tuple get-tuple-element bitcast after-all add-dependency opt-barrier domain "
    "partition-id replica-id".split()
)
#: Runs other computations as units of their own.
CONTROL = frozenset(["while", "conditional", "call"])
#: Values pass through these as they are.
TRANSPARENT = frozenset(["opt-barrier", "add-dependency", "domain"])

#: Exchange between devices; each may also come as "-start" and "-done".
COLLECTIVES = frozenset(
    "all-reduce all-gather reduce-scatter all-to-all collective-permute collective-broadcast ragged-all-to-all".split()
)
#: Collectives that apply a computation to what they exchange.
REDUCING = frozenset(["all-reduce", "reduce-scatter"])
#: Between devices or with the host, point to point.
EXCHANGES = frozenset(["send", "recv", "infeed", "outfeed"])

#: What ends an asynchronous pair: the work is on its start.
DONE = ("-done", "-update")

#: (operands, called computations) that an instruction has at least; others are not relied upon.
ARITY: dict[str, tuple[int, int]] = {
    **dict.fromkeys([*FUNCTIONS, *REORDERED, *TRANSPARENT], (1, 0)),
    **dict.fromkeys(
        "copy convert negate abs not get-tuple-element slice broadcast concatenate sort fft cholesky".split(), (1, 0)
    ),
    **dict.fromkeys("dynamic-slice all-reduce-done all-gather-done copy-done async-update async-done".split(), (1, 0)),
    **dict.fromkeys(
        "add subtract multiply divide remainder maximum minimum compare power atan2 triangular-solve".split(), (2, 0)
    ),
    **dict.fromkeys("dot convolution gather dynamic-update-slice pad".split(), (2, 0)),
    **dict.fromkeys(("fusion", "call", "async-start"), (0, 1)),
    **dict.fromkeys(("map", "conditional"), (1, 1)),
    **dict.fromkeys(("reduce", "reduce-window"), (2, 1)),
    "scatter": (3, 1),
    "select-and-scatter": (3, 2),
    "while": (1, 2),
}


def base(opcode: str) -> str:
    """ "all-reduce-start" is "all-reduce": the opcode of what an asynchronous pair does."""
    return opcode.removesuffix("-start")


def ends_pair(opcode: str) -> bool:
    """Tell whether an opcode waits for what another instruction started."""
    return opcode.endswith(DONE)
