"""Hold what one step of a serving engine works on: a batch of sequences, and sums over their lengths."""

from __future__ import annotations

from dataclasses import dataclass

from roofline.core.vocabulary import Phase


@dataclass(frozen=True, slots=True)
class Sequences:
    """Sums over some sequences of a batch.

    queries: new tokens. keys: all tokens that these see, the new ones included. squares: queries^2 of each. products:
    queries x keys of each. None: not recorded.
    """

    number: int
    queries: int
    keys: int | None = None
    squares: int | None = None
    products: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The sequences of one step of a serving engine: those whose prompt it reads, and those that it continues."""

    prefill: Sequences
    decode: Sequences

    @property
    def phase(self) -> Phase | None:
        """The phase of the step, "mixed" where it reads prompts and continues others; None of a step of no sequence."""
        if self.prefill.number and self.decode.number:
            return "mixed"
        return "prefill" if self.prefill.number else "decode" if self.decode.number else None

    @property
    def sequences(self) -> int:
        """How many sequences."""
        return self.prefill.number + self.decode.number

    @property
    def tokens(self) -> int:
        """How many new tokens of all sequences."""
        return self.prefill.queries + self.decode.queries
