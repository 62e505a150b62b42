"""Our FLOPs of a step beside XLA's own: each executed product alone in a module, given to XLA's cost analysis.

XLA's analysis of a whole program counts a loop once and a GPU library's product as nothing; of one product it is exact.
It comes with jaxlib, whichever framework ran the program.

A step that XLA did not compile has another reference: the same tf.function, compiled by XLA here and not run. It holds
TensorFlow's own lowering of every op, so that its products are what the step asks for, counted by somebody else.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from roofline.core.step import Step, scopes_through
from roofline.costs.counted import PHASES
from roofline.costs.linear_algebra import KIND
from roofline.recording.recording import Check
from roofline.recording.xspace.framework import Framework
from roofline.recording.xspace.recorder import profiled_step
from roofline.traces.annotations import STEP
from roofline.traces.xplane.reader import XTrace
from roofline.xla import count
from roofline.xla.hlo import linear_algebra
from roofline.xla.hlo import module as hlo
from roofline.xla.hlo.flops import work
from roofline.xla.hlo.live import live
from roofline.xla.hlo.proto import HloModuleProto
from roofline.xla.hlo.schedule import inside

NAME = "XLA"
NO_ANALYSIS = "XLA's analysis comes with jaxlib: install jax"


def verify(step: Step, framework: Framework) -> list[Check]:
    """Check each executed program, and what the step asked for and executed by phase."""
    with scopes_through(framework.scope):
        framework.first(lambda: _run(step, framework))
        framework.watch_memory(lambda: framework.wait(step.run()))  # which tells shapes that only a run knows
        trace = profiled_step(step, framework, 1)
    counted = framework.read([trace], STEP).counted
    checks = _programs(trace)
    if not checks:
        products = (op.costed.cost for op in counted.ops if op.costed.kind != KIND)
        checks = [_lowered(step, sum(cost.model_flops or 0.0 for cost in products))]
    for number, phase in enumerate(PHASES):
        in_phase = (op.costed for op, at in zip(counted.ops, counted.phase.tolist(), strict=True) if at == number)
        costs = [costed.cost for costed in in_phase if costed.kind != KIND]
        model, executed = (sum(getattr(cost, name) or 0.0 for cost in costs) for name in ("model_flops", "flops"))
        if model or executed:
            ratio = f"executed / model = {executed / model:.6g}" if model else "nothing was asked for"
            uncounted = sum(cost.flops is None for cost in costs)
            ratio += f"; {uncounted} ops of unknown work are left out" if uncounted else ""
            checks.append(Check("-", f"{phase}, all products", model, None, "not checked", ratio))
    return checks


def _run(step: Step, framework: Framework) -> float:
    framework.wait(step.run())
    return 0.0


def _programs(trace: XTrace) -> list[Check]:
    """The products of each program that XLA compiled; none where the step ran no such program with products."""
    analyse = _analysis()
    checks = []
    for program, names in count.executed_instructions(trace, STEP).items():
        module = hlo.read(trace.modules[program][1])
        # A loop is executed and so are the instructions in it: by name, each is there once.
        by_name = {
            product[0].name: product for name in names for product in _products(module, module.instructions[name])
        }
        products = list(by_name.values())
        if not products:
            continue
        ours = sum(flops for _, flops in products)
        description = f"{len(products)} products of {module.name.partition('__XlaMustCompile')[0]}"
        if analyse is None:
            checks.append(Check(NAME, description, ours, None, "not checked", NO_ANALYSIS))
            continue
        theirs = sum(analyse(_alone(instruction)) for instruction, _ in products)
        checks.append(_compared(description, ours, theirs, "each executed product once, loops not multiplied"))
    return checks


def _compared(description: str, ours: float, theirs: float, note: str) -> Check:
    verdict = "agrees" if abs(ours - theirs) <= 1e-9 * max(ours, theirs) else "differs"
    return Check(NAME, description, ours, theirs, verdict, note)


def _lowered(step: Step, ours: float) -> Check:
    """Check what a step of TensorFlow's graph mode asks for against the products of the function lowered to HLO."""
    description = "all products asked for"

    def unchecked(why: str) -> Check:
        return Check(NAME, description, ours, None, "not checked", why)

    # A step of ours is a function and its arguments; a user's may be the function itself.
    function: Any = getattr(step.run, "function", step.run)
    arguments = getattr(step.run, "arguments", ())
    if not hasattr(function, "experimental_get_compiler_ir"):
        return unchecked("XLA compiles no product of the step, which is no tf.function to give to it")
    import tensorflow as tf

    try:
        compiled = tf.function(function.python_function, jit_compile=True)
        module = hlo.read(compiled.experimental_get_compiler_ir(*arguments)(stage="hlo_serialized"))
    except Exception as error:  # whatever XLA cannot compile: strings, ops without a kernel, shapes that depend on data
        return unchecked(f"XLA cannot compile the function ({type(error).__name__})")
    analyse = _analysis()
    if analyse is None:
        return unchecked(NO_ANALYSIS)
    theirs = 0.0
    alive = live(module)
    times = _times(module, alive)
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction not in alive or linear_algebra.is_part(instruction):
                continue
            if instruction.opcode == "set-dimension-size":
                return unchecked("a shape depends on numbers, and XLA computes with the largest that it can be")
            if instruction.opcode in ("dot", "convolution"):
                often = times[computation]
                if often is None:
                    return unchecked("a product lies in a loop or a branch, of which only the run says how often")
                theirs += often * analyse(_alone(instruction))
    return _compared(description, ours, theirs, "the same function lowered by TensorFlow to XLA's language, not run")


def _times(module: hlo.Module, alive: Set[hlo.Instruction]) -> dict[hlo.Computation, int | None]:
    """Count how often a run of the module runs each computation; None where that depends on its data."""
    home = {instruction: computation for computation in module.computations for instruction in computation.instructions}
    executions: dict[hlo.Computation, int | None] = {}
    for computation in reversed(module.computations):  # callers first
        times: int | None = int(computation is module.entry)
        for caller in module.callers.get(computation, ()):
            if caller in alive:
                above = executions[home[caller]]
                if times is None or above is None or caller.opcode not in ("call", "fusion"):
                    times = None
                else:
                    times += above
        executions[computation] = times
    return executions


def _products(module: hlo.Module, instruction: hlo.Instruction) -> list[tuple[hlo.Instruction, float]]:
    """The products that XLA itself does in an instruction, and our FLOPs of each."""
    inner_products = [inner for inner in inside(instruction) if inner.opcode in ("dot", "convolution")]
    return [(product, work(module, product).flops or 0.0) for product in inner_products]


def _analysis() -> Callable[[bytes], float] | None:
    """From a serialised HloModuleProto to XLA's FLOPs; None where there is no jaxlib, or one that hides it."""
    try:
        import jax

        inside: Any = import_module("jaxlib._jax")
        client = jax.devices("cpu")[0].client
        library = import_module("jaxlib._hlo" if find_spec("jaxlib._hlo") else "jaxlib._jax")  # of 0.10.0
        read = library.HloModule.from_serialized_hlo_module_proto
        return lambda data: float(inside.hlo_module_cost_analysis(client, read(data)).get("flops", 0.0))
    except (ImportError, AttributeError, RuntimeError):
        return None


def _alone(instruction: hlo.Instruction) -> bytes:
    """A module whose entry is this instruction and parameters of its operands' shapes."""
    module = HloModuleProto(name="alone", entry_computation_name="main", entry_computation_id=1, id=1)
    entry = module.computations.add(name="main", id=1, root_id=100)
    for number, operand in enumerate(instruction.operands):
        entry.instructions.add(
            name=f"p{number}", opcode="parameter", id=number + 1, parameter_number=number, shape=operand.message.shape
        )
    only = entry.instructions.add()
    only.CopyFrom(instruction.message)
    only.id, only.name = 100, "only"
    only.ClearField("metadata")  # it refers to tables that stay behind
    del only.operand_ids[:], only.control_predecessor_ids[:]
    only.operand_ids.extend(range(1, len(instruction.operands) + 1))
    shape = entry.program_shape
    for number, operand in enumerate(instruction.operands):
        shape.parameters.add().CopyFrom(operand.message.shape)
        shape.parameter_names.append(f"p{number}")
    shape.result.CopyFrom(instruction.message.shape)
    module.host_program_shape.CopyFrom(shape)
    return bytes(module.SerializeToString())
