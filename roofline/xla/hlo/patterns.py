"""Softmaxes and norms that a program writes out, found in its dataflow, through fusions and copies.

Softmax: exp(x - max(x)), its sum, and the division by it or the logarithm of it. Norm: 1 / sqrt(mean of squares + eps),
the mean and the squares it came from, and the products with it. Their gradients are the instructions of a backward
pass ("transpose(jvp" in the scope) that take these values directly, and the reductions of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roofline.core.vocabulary import OpClass
from roofline.xla.hlo.module import Instruction, Module
from roofline.xla.hlo.opcodes import ARITHMETIC, REORDERED, TRANSPARENT
from roofline.xla.scopes import is_gradient

_PASSED = (REORDERED | TRANSPARENT | frozenset("copy convert broadcast reduce-precision".split())) - {"reverse"}
#: A chain of views longer than this is damage.
_MAX_CHAIN = 1000
_COMPUTES = frozenset(ARITHMETIC) | frozenset("select clamp reduce".split())


def patterns(module: Module) -> Mapping[Instruction, OpClass]:
    """The class of each instruction that is part of a written out softmax or norm."""
    if "patterns" not in module.memo:
        module.memo["patterns"] = _Finder(module).find()
    classes: Mapping[Instruction, OpClass] = module.memo["patterns"]
    return classes


class _Finder:
    """Values as the program means them: without the fusions, copies and views in between."""

    def __init__(self, module: Module) -> None:
        self._around = {
            parameter: sites[0]
            for computation, sites in module.callers.items()
            if sites[0].opcode in ("fusion", "call") and len(sites) == 1
            for parameter in computation.parameters.values()
        }
        self._sources: dict[Instruction, Instruction] = {}
        self._takers: dict[Instruction, list[Instruction]] = {}
        self._all = [i for computation in module.computations for i in computation.instructions]
        for instruction in self._all:
            if instruction.opcode in _COMPUTES or instruction.opcode in ("exponential", "log", "rsqrt", "dot"):
                for operand in instruction.operands:
                    self._takers.setdefault(self._source(operand), []).append(instruction)
        self._found: dict[Instruction, OpClass] = {}

    def find(self) -> Mapping[Instruction, OpClass]:
        for instruction in self._all:
            if instruction.opcode == "exponential":
                self._softmax(instruction)
            elif instruction.opcode == "rsqrt":
                self._norm(instruction)
        return self._found

    def _source(self, value: Instruction) -> Instruction:
        """The instruction that computed a value."""
        start = value
        if start in self._sources:
            return self._sources[start]
        index: list[int] = []
        for _ in range(_MAX_CHAIN):
            if value.opcode == "get-tuple-element":
                index.append(value.number)
                value = value.operands[0]
            elif value.opcode == "tuple" and index and index[-1] < len(value.operands):
                value = value.operands[index.pop()]
            elif value.opcode in _PASSED and value.operands:
                value = value.operands[0]
            elif value.opcode in ("fusion", "call") and value.called:
                value = value.called[0].root
            elif value in self._around and value.number < len(self._around[value].operands):
                value = self._around[value].operands[value.number]
            else:
                break
        self._sources[start] = value
        return value

    def _operands(self, instruction: Instruction) -> list[Instruction]:
        return [self._source(operand) for operand in instruction.operands]

    def _mark(self, op_class: OpClass, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            self._found.setdefault(instruction, op_class)

    def _reduces(self, instruction: Instruction, body: str) -> bool:
        return (
            instruction.opcode == "reduce"
            and bool(instruction.called)
            and instruction.called[0].root.opcode == body
            and len(instruction.operands) == 2
        )

    def _softmax(self, exponential: Instruction) -> None:
        """exp(x - m), m from a reduction by maximum (through max(m, -inf) and the choice of finite ones)."""
        shifted = self._source(exponential.operands[0])
        if shifted.opcode != "subtract":
            return
        largest = self._behind(self._operands(shifted)[1], "maximum", ("maximum", "select"))
        if largest is None:
            return
        sums = [taker for taker in self._takers.get(exponential, []) if self._reduces(taker, "add")]
        if not sums:
            return
        logs = [log for total in sums for log in self._takers.get(total, []) if log.opcode == "log"]
        parts = [exponential, shifted, *largest, *sums, *logs]
        seeds = [exponential, *sums, *logs]
        for total in (*sums, *logs):
            for taker in self._takers.get(total, []):
                if taker.opcode == "divide" or (taker.opcode == "subtract" and total in logs):
                    parts.append(taker)
                    seeds.append(taker)
                    if taker.opcode == "divide" and self._operands(taker)[0] is not exponential:
                        # exp(x) * (1 / sum)
                        products = [i for i in self._takers.get(taker, []) if i.opcode == "multiply"]
                        forward = [i for i in products if exponential in self._operands(i)]
                        parts += forward
                        seeds += forward
        self._mark("softmax", parts)
        self._mark("softmax", self._gradient(seeds))

    def _behind(self, value: Instruction, body: str, through: tuple[str, ...]) -> list[Instruction] | None:
        """The instructions from a value back to a reduction by `body`; None where there is none."""
        chain = []
        for _ in range(5):
            chain.append(value)
            if self._reduces(value, body):
                return chain
            if value.opcode not in through:
                return None
            candidates = [operand for operand in self._operands(value) if operand.opcode in (*through, "reduce")]
            if not candidates:
                return None
            value = candidates[0]
        return None

    def _norm(self, root: Instruction) -> None:
        """rsqrt(mean(d * d) + eps)."""
        chain = self._behind(
            self._source(root.operands[0]), "add", ("add", "divide", "multiply", "maximum", "subtract")
        )
        if chain is None or len(chain) < 2:
            return
        squares = self._operands(chain[-1])[0]
        parts = [root, *chain]
        seeds = [root]
        if squares.opcode == "multiply":
            parts.append(squares)
            centred = self._operands(squares)[0]
            if centred.opcode == "subtract":
                parts.append(centred)
                parts += self._behind(self._operands(centred)[1], "add", ("divide", "multiply")) or []
                seeds.append(centred)
        for taker in self._takers.get(root, []):
            if taker.opcode == "multiply":
                parts.append(taker)
                seeds.append(taker)
        backward = self._gradient(seeds)
        forward = [part for part in parts if part not in backward]
        # (x - mean) where it is computed again beside the root; gamma and beta.
        for scaled in [i for i in forward if i.opcode == "multiply" and root in self._operands(i)]:
            factors = [i for i in self._operands(scaled) if i is not root]
            forward += [i for i in factors if i.opcode == "subtract"]
            for gained in self._takers.get(scaled, []):
                if gained.opcode in ("multiply", "add") and not is_backward(gained):
                    forward.append(gained)
                    if gained.opcode == "multiply":
                        forward += [i for i in self._takers.get(gained, []) if i.opcode == "add" and not is_backward(i)]
        self._mark("normalisation", forward)
        self._mark("normalisation", backward)

    def _gradient(self, seeds: list[Instruction]) -> list[Instruction]:
        """Instructions of the backward pass that take these values, and the reductions of those."""
        taking = [
            taker
            for seed in seeds
            for taker in self._takers.get(seed, [])
            if taker.opcode in _COMPUTES and is_backward(taker)
        ]
        sums = [
            taker for seed_taker in taking for taker in self._takers.get(seed_taker, []) if taker.opcode == "reduce"
        ]
        return [*taking, *sums]


def is_backward(instruction: Instruction) -> bool:
    """Tell whether an instruction is of the backward pass, by the name that the framework gave it."""
    return "transpose(" in instruction.op_name or is_gradient(instruction.op_name)
