"""One thing that the driver does: a command with a time limit, and what it leaves in the results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One command of a piece.

    command: its words. The first one may be `roofline` (the installed one), `script` (then a file of this folder) or
    `pytest`; in the others {out} is the folder of the piece and {root} the checkout.
    seconds: what it takes on an H100, roughly: it is not begun where less is left. limit: it is ended after so long.
    stdout: the file that its standard output goes to; the log has the rest. outputs: files it must leave, in {out}.
    needs: items of the same piece that must have ended well. each: repeated in every run of the driver, because it
    belongs to the machine of that run. machine: what a machine must have for it ("gpu", "ncu", "module:keras").
    """

    name: str
    command: tuple[str, ...]
    seconds: float
    limit: float
    stdout: str = ""
    outputs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    each: bool = False
    machine: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """All that has to be there and not empty when it has ended well."""
        return (*self.outputs, self.stdout) if self.stdout else self.outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the plan is made for: the GPU and the published sizes, or a rehearsal (`cpu`, `tiny`)."""

    device: str = "cuda"
    size: str = "base"

    @property
    def rehearsal(self) -> bool:
        """Whether no GPU is used."""
        return self.device == "cpu"

    def precision(self, name: str) -> str:
        """A CPU has no TF32."""
        return "fp32" if self.rehearsal and name == "tf32" else name

    def backend(self, name: str) -> str:
        """XLA has command buffers on GPUs only."""
        return name.partition(":command_buffers")[0] if self.rehearsal else name

    def batch(self, number: int) -> int:
        """Small ones on a CPU: the rehearsal shows that it runs."""
        return min(number, 2) if self.rehearsal else number

    def seq(self, number: int) -> int:
        """Short ones on a CPU."""
        return min(number, 32) if self.rehearsal else number
