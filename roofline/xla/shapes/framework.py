"""JAX as the recorder sees it where arrays have no data: programs are compiled, and nothing runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.stages

from roofline.recording.xspace.framework import Read
from roofline.traces.xplane.reader import XTrace
from roofline.xla import flags as xla_flags
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.proto import HloModuleProto
from roofline.xla.jax import Jax
from roofline.xla.shapes import executor
from roofline.xla.shapes.arrays import Shapes


class JaxWithoutData(Jax):
    """See `recording.xspace.framework.Framework`."""

    def __init__(self, shapes: Shapes, optimizers: tuple[str, ...], libraries: tuple[str, ...]) -> None:
        """shapes: what makes the arrays of the step."""
        super().__init__(optimizers, libraries)
        self._shapes = shapes
        self._started: list[jax.stages.Compiled] = []

    def first(self, run: Callable[[], float]) -> float:
        """The first step, which builds what the model has not built yet."""
        with self._shapes.step():
            return run()

    def wait(self, outputs: object) -> None:
        """Nothing runs."""

    def profiled(self, run: Callable[[], None]) -> bytes:
        """XSpace bytes without events, but with the programs that a step starts: XLA tells its profiler of them."""

        def compiled() -> None:
            with self._shapes.step() as programs:
                run()
            compiled_program = {program: program.compiled() for program in dict.fromkeys(programs)}
            self._started = [compiled_program[program] for program in programs]

        return super().profiled(compiled)

    def read(self, traces: list[XTrace], prefix: str) -> Read:
        """The instructions that the step would execute."""
        started = [_number(program) for program in self._started]
        modules = {number: module for trace in traces for number, module in trace.modules.items()}
        read = {number: hlo.read(modules[number][1], f"the program {modules[number][0]}") for number in set(started)}
        before = xla_flags.before_optimizations()
        counted = executor.counted(read, started, before, self._optimizers)
        return Read(replace(counted, updates=self._updates), ())


def _number(program: jax.stages.Compiled) -> int:
    """Return the number by which a trace knows the program."""
    executable: Any = program.runtime_executable()
    (module,) = executable.hlo_modules()
    return int(HloModuleProto.FromString(module.as_serialized_hlo_module_proto()).id)
