"""The work of an op, as a value that adds and multiplies.

    >>> Cost(flops=2.0, bytes_read=8.0) + Cost(flops=1.0, bytes_read=4.0)   # flops=3, bytes_read=12
    >>> 3 * cost                                                            # three times the work

Unknown is None. A sum with an unknown part is unknown: `a + b` never turns "not known" into 0. Totals over many
ops, which skip the unknown and say how much they skipped, are made by the analysis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from roofline.core.vocabulary import Quality

#: The note of a product with a one-hot matrix, which an index does without a product: it runs, and nobody asks for it.
BY_INDEX = "one factor is one-hot: it picks rows, or adds them up, by their index, and no product is asked for"

#: The note of a product by which a framework interpolates, as when it resizes an image: others do that without one.
INTERPOLATES = "it interpolates between pixels, which takes no product, and none is asked for"

#: How the note of a product begins that a call of fused attention is carried out by, as no fused kernel takes what it
#: is given; then why, where that is known.
NOT_FUSED = "in a call of fused attention that no fused kernel carries out"


def _add(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _scale(a: float | None, factor: float) -> float | None:
    return None if a is None else a * factor


class Cost(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The work of one execution of an op. The default is no work at all; None is unknown.

    model_flops   what the program asks for: 2 M N K per product, attention 2 products forward and 4 backward, full
                  mask [FLOP, matrix work]
    flops         what ran: recomputation and padding included [FLOP, matrix work]
    useful_flops  what ran, without the masked-out part of causal or windowed attention [FLOP, matrix work]
    vector_flops  floating add, subtract, multiply, divide, negate, abs, min, max [FLOP]
    functions     evaluations of exp, log, erf, tanh, sqrt, ..., and numbers drawn ("random"), by name
    int_ops       integer and bit operations
    bytes_read    compulsory reads of main memory: each distinct element once [byte]
    bytes_written compulsory writes [byte]
    quality       exact, assumed (`note` says what) or unknown (`note` says why)
    note          besides, what else there is to know of it (`BY_INDEX`, `INTERPOLATES`, `NOT_FUSED`)

    >>> roofline.Cost(flops=2.0 * 64**3, bytes_read=2 * 4.0 * 64**2, bytes_written=4.0 * 64**2)
    """

    model_flops: float | None = 0.0
    flops: float | None = 0.0
    useful_flops: float | None = 0.0
    vector_flops: float | None = 0.0
    functions: Mapping[str, float] | None = msgspec.field(default_factory=dict)
    int_ops: float | None = 0.0
    bytes_read: float | None = 0.0
    bytes_written: float | None = 0.0
    quality: Quality = "exact"
    note: str = ""

    def __add__(self, other: Cost) -> Cost:
        """Add the work of both; unknown where either is unknown; the worse quality of the two."""
        if self.functions is None or other.functions is None:
            functions = None
        else:
            functions = dict(self.functions)
            for name, number in other.functions.items():
                functions[name] = functions.get(name, 0.0) + number
        worse = max(self.quality, other.quality, key=("exact", "assumed", "unknown").index)
        notes = [note for note in dict.fromkeys((self.note, other.note)) if note]
        return Cost(
            model_flops=_add(self.model_flops, other.model_flops),
            flops=_add(self.flops, other.flops),
            useful_flops=_add(self.useful_flops, other.useful_flops),
            vector_flops=_add(self.vector_flops, other.vector_flops),
            functions=functions,
            int_ops=_add(self.int_ops, other.int_ops),
            bytes_read=_add(self.bytes_read, other.bytes_read),
            bytes_written=_add(self.bytes_written, other.bytes_written),
            quality=worse,
            note="; ".join(notes),
        )

    def __mul__(self, factor: float) -> Cost:
        """Return `factor` executions of the same work."""
        functions = None if self.functions is None else {k: v * factor for k, v in self.functions.items()}
        return msgspec.structs.replace(
            self,
            model_flops=_scale(self.model_flops, factor),
            flops=_scale(self.flops, factor),
            useful_flops=_scale(self.useful_flops, factor),
            vector_flops=_scale(self.vector_flops, factor),
            functions=functions,
            int_ops=_scale(self.int_ops, factor),
            bytes_read=_scale(self.bytes_read, factor),
            bytes_written=_scale(self.bytes_written, factor),
        )

    __rmul__ = __mul__

    @property
    def bytes(self) -> float | None:
        """Return all compulsory traffic [byte]."""
        return _add(self.bytes_read, self.bytes_written)

    @property
    def flops_known(self) -> bool:
        """Return whether both the matrix and the vector work are known."""
        return self.flops is not None and self.vector_flops is not None and self.functions is not None

    @property
    def is_partly_known(self) -> bool:
        """Return whether the matrix work is only that of the known parts of the op (`partly_known`)."""
        return self.quality == "unknown" and self.flops is not None and not self.flops_known

    @property
    def intensity(self) -> float | None:
        """Matrix and vector FLOP per byte of compulsory main-memory traffic; None where unknown or no traffic."""
        work, traffic = _add(self.flops, self.vector_flops), self.bytes
        return None if work is None or not traffic else work / traffic


def matrix(model: float, executed: float | None = None, useful: float | None = None) -> Cost:
    """Return the matrix work of a contraction [FLOP]; what ran and what was of use default to what was asked for."""
    ran = model if executed is None else executed
    return Cost(model_flops=model, flops=ran, useful_flops=ran if useful is None else useful)


def by_index(cost: Cost, why: str = BY_INDEX) -> Cost:
    """Return the work of a product that runs where the program asks for none. why: `BY_INDEX` or `INTERPOLATES`."""
    return msgspec.structs.replace(cost, model_flops=0.0, note=why)


def not_fused(why: str = "") -> str:
    """Write the note of a product in such a call (`NOT_FUSED`); why: what keeps fused kernels out, "" if unknown."""
    return f"{NOT_FUSED}: {why}" if why else NOT_FUSED


#: How the note of an op begins of which a part is known; what is not known follows.
PARTLY_KNOWN = "known in part, without "


def partly_known(parts: Iterable[Cost], unknown_part: str) -> Cost:
    """Return an op of which some parts are known: their products count, and nothing says that these are all."""
    known_parts = [part for part in parts if part.flops is not None]
    names = ("model_flops", "flops", "useful_flops")
    sums = {name: float(sum(getattr(part, name) or 0.0 for part in known_parts)) for name in names}
    return msgspec.structs.replace(unknown(PARTLY_KNOWN + unknown_part), **sums)


def unknown(why: str) -> Cost:
    """Return an op whose work is not known."""
    return Cost(
        model_flops=None,
        flops=None,
        useful_flops=None,
        vector_flops=None,
        functions=None,
        int_ops=None,
        bytes_read=None,
        bytes_written=None,
        quality="unknown",
        note=why,
    )
