"""Our FLOPs of a step beside XLA's own: each executed product alone in a module, given to XLA's cost analysis.

XLA's analysis of a whole program counts a loop once and a GPU library's product as nothing; of one product it is exact.
It comes with jaxlib, whichever framework ran the program.
"""

from __future__ import annotations

from typing import Any

from roofline.backends import Check
from roofline.backends._executor_record import STEP, Framework, profiled_step
from roofline.core.step import Step, scopes_through
from roofline.traces import hlo, xla
from roofline.traces.counted import PHASES
from roofline.traces.hlo_schedule import inside
from roofline.traces.hlo_schema import HloModuleProto
from roofline.traces.hlo_work import work
from roofline.traces.xplane import XTrace

NAME = "XLA"


def verify(step: Step, framework: Framework) -> list[Check]:
    """One check per executed program, and what the step asked for and executed by phase."""
    with scopes_through(framework.scope):
        framework.first(lambda: _run(step, framework))
        trace = profiled_step(step, framework, 1)
    counted = framework.read([trace], STEP).counted
    checks = _programs(trace)
    for number, phase in enumerate(PHASES):
        costs = [op.costed.cost for op, at in zip(counted.ops, counted.phase.tolist(), strict=True) if at == number]
        model, executed = (sum(getattr(cost, name) or 0.0 for cost in costs) for name in ("model_flops", "flops"))
        if model or executed:
            ratio = f"executed / model = {executed / model:.6g}" if model else "nothing was asked for"
            checks.append(Check("-", f"{phase}, all products", model, None, "not checked", ratio))
    return checks


def _run(step: Step, framework: Framework) -> float:
    framework.wait(step.run())
    return 0.0


def _programs(trace: XTrace) -> list[Check]:
    ran = xla.executed_instructions(trace, STEP)
    if not ran:
        return [Check(NAME, "all products", None, None, "not checked", "no program of the step is compiled by XLA")]
    analyse = _analysis()
    checks = []
    for program, names in ran.items():
        module = hlo.read(trace.modules[program][1])
        products = [one for name in names for one in _products(module, module.instructions[name])]
        if not products:
            continue
        ours = sum(flops for _, flops in products)
        what = f"{len(products)} products of {module.name}"
        if analyse is None:
            checks.append(Check(NAME, what, ours, None, "not checked", "XLA's analysis comes with jaxlib: install jax"))
            continue
        theirs = sum(analyse(_alone(instruction)) for instruction, _ in products)
        verdict = "agrees" if abs(ours - theirs) <= 1e-9 * max(ours, theirs) else "differs"
        checks.append(Check(NAME, what, ours, theirs, verdict, "each executed product once, loops not multiplied"))
    return checks


def _products(module: hlo.Module, instruction: hlo.Instruction) -> list[tuple[hlo.Instruction, float]]:
    """The products that XLA itself does in an instruction, and our FLOPs of each."""
    found = [each for each in inside(instruction) if each.opcode in ("dot", "convolution")]
    return [(each, work(module, each).flops or 0.0) for each in found]


def _analysis() -> Any:
    """From a serialised HloModuleProto to XLA's FLOPs; None where there is no jaxlib, or one that hides it."""
    try:
        import jax
        from jaxlib import _hlo, _jax

        client = jax.devices("cpu")[0].client
        read = _hlo.HloModule.from_serialized_hlo_module_proto
        return lambda data: float(_jax.hlo_module_cost_analysis(client, read(data)).get("flops", 0.0))
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
    del only.operand_ids[:], only.control_predecessor_ids[:]
    only.operand_ids.extend(range(1, len(instruction.operands) + 1))
    shape = entry.program_shape
    for number, operand in enumerate(instruction.operands):
        shape.parameters.add().CopyFrom(operand.message.shape)
        shape.parameter_names.append(f"p{number}")
    shape.result.CopyFrom(instruction.message.shape)
    module.host_program_shape.CopyFrom(shape)
    return bytes(module.SerializeToString())
