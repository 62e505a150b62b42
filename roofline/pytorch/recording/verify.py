"""Independent references for the counts of a torch step: PyTorch's FlopCounterMode and fvcore.

Both count contractions only, and each leaves some out. What they leave out or count otherwise is reconciled by name;
what no reference counts is said to be unchecked, and nothing passes silently.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping, Set
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from roofline.core.step import Step
from roofline.costs.calls import Call, Tensor, tensors
from roofline.costs.counted import Counted, CountedOp
from roofline.errors import reason
from roofline.pytorch.aten.engine import Engine
from roofline.pytorch.aten.flops import leaves
from roofline.pytorch.count import count
from roofline.pytorch.nodes import Nodes
from roofline.pytorch.recording import counting
from roofline.recording.recording import Check

_ATTENTION_ON_CPU = "_scaled_dot_product_flash_attention_for_cpu"


def verify(step: Step) -> list[Check]:
    """Run the step twice (once recorded, once under FlopCounterMode), trace its model, and compare."""
    step.run()
    nodes = counting.record(step)
    counted = count(nodes, Engine())
    calls = {op.node: nodes.call(op.node) for op in counted.ops if op.costed.cost.flops}
    return [*_flop_counter(step, counted, calls), *_fvcore(step, counted, calls, nodes)]


class _NoModules:
    """In place of the counter's tracker of modules, which only sorts by them, and asserts where Keras calls layers."""

    parents = frozenset(("Global",))

    def __enter__(self) -> _NoModules:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _flop_counter(step: Step, counted: Counted, calls: dict[int, Call]) -> list[Check]:
    counter: Any = FlopCounterMode(display=False, custom_mapping=_theirs_on_cpu())
    counter.mod_tracker = _NoModules()
    with counter:
        step.run()
    flop_counts = counter.get_flop_counts().get(
        "Global", {}
    )  # of a step in which it has a formula for no op, there is none
    theirs = {str(op).partition(".")[2]: float(value) for op, value in flop_counts.items()}
    ours: dict[str, float] = {}
    padded: dict[str, float] = {}
    sparse: set[str] = set()
    for row, op in enumerate(counted.ops):
        if op.costed.cost.flops:
            name = counted.names_of_ops[row].partition("::")[2]
            # Executed: the counter takes the 5 products of attention's backward, recomputation included.
            ours[name] = ours.get(name, 0.0) + float(op.costed.cost.flops)
            padded[name] = padded.get(name, 0.0) + _padded(op, calls[op.node])
            if any(tensor.stored is not None for tensor in tensors(calls[op.node].inputs)):
                sparse.add(name)
    if not ours and not theirs:
        why = "neither it nor we count a product in this step"
        return [Check("FlopCounterMode", "products", None, None, "not checked", why)]
    checks = []
    for name in sorted(ours | theirs):
        reference, note = theirs.get(name), ""
        mine = ours.get(name, 0.0 if reference == 0 else None)  # of no elements
        if reference is None or name in sparse:
            why = "it has no formula for this op" if reference is None else "it takes a sparse factor for a dense one"
            checks.append(Check("FlopCounterMode", name, mine, None, "not checked", why))
            continue
        if name.startswith(_ATTENTION_ON_CPU):
            note = "by its formula for attention, which it does not apply on CPUs"
        if padded.get(name, mine) != mine:
            mine, note = padded[name], f"{_PADDED} (ours: {ours[name]:.6g})"
        checks.append(Check("FlopCounterMode", name, mine, reference, _verdict(mine, reference), note))
    return checks


def _theirs_on_cpu() -> dict[Any, Any]:
    """PyTorch's own attention formulas, for the CPU kernels it leaves out."""

    def forward(q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
        return int(sdpa_flop_count(q, k, v))

    def backward(grad: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> int:
        return int(sdpa_backward_flop_count(grad, q, k, v))

    aten = torch.ops.aten
    return {
        aten._scaled_dot_product_flash_attention_for_cpu: forward,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: backward,
    }


#: What the references count of convolutions beside what is asked for.
_PADDED = "with padded positions, and in the weights' gradient all pairs of channels, which we leave out"


def _padded(op: CountedOp, call: Call) -> float:
    """The count as FlopCounterMode takes it: every tap of every output, and weights' gradients as of one group."""
    if not op.costed.kind.startswith("convolution"):
        return float(op.costed.cost.flops or 0.0)
    values = [value for value in call.inputs if isinstance(value, Tensor)]
    if op.costed.kind == "convolution":
        weight, out = values[1], next(tensors(call.outputs or ()))
        transposed = bool(call.inputs[6])
        positions = values[0].numel // max(1, values[0].shape[1]) if transposed else out.numel // max(1, out.shape[1])
        return 2.0 * positions * weight.numel
    grad, x, weight = values[0], values[1], values[2]
    positions = x.numel // max(1, x.shape[1]) if call.inputs[7] else grad.numel // max(1, grad.shape[1])
    of_input, of_weight, *_ = (bool(wanted) for wanted in call.inputs[10])
    return 2.0 * positions * weight.numel * (of_input + of_weight * int(call.inputs[9]))


def _fvcore(step: Step, counted: Counted, calls: dict[int, Call], nodes: Nodes) -> list[Check]:
    """Forward contractions against twice fvcore's multiply-adds, which are of padded positions too.

    All ops that it has a rule for FlopCounterMode counts, too, and by name; it adds a count by other code, of a trace
    of the model instead of what was dispatched. What it has no rule for, as attention and LSTMs, is named.
    """
    forward = {
        op.node: _padded(op, calls[op.node]) if op.costed.kind == "convolution" else float(op.costed.cost.model_flops)
        for row, op in enumerate(counted.ops)
        if counted.phase[row] == 0 and op.costed.cost.model_flops
    }
    mine = sum(forward.values())
    valid = sum(float(op.costed.cost.model_flops or 0.0) for op in counted.ops if op.node in forward)
    if not isinstance(step.model, torch.nn.Module) or step.forward is None:
        return [Check("fvcore", "forward", mine, None, "not checked", "the step names no model that can be traced")]
    try:
        from fvcore.nn import FlopCountAnalysis
        from fvcore.nn.jit_handles import einsum_flop_jit
    except ImportError:
        why = "fvcore is not installed: pip install fvcore"
        return [Check("fvcore", "forward", mine, None, "not checked", why)]
    inputs = _inputs(step)
    if inputs is None:
        return [Check("fvcore", "forward", mine, None, "not checked", "the step does not call the model that it names")]
    args, kwargs = inputs
    names = list(kwargs)

    class Positional(torch.nn.Module):
        """fvcore traces positional tensors and flat outputs."""

        def __init__(self) -> None:
            super().__init__()
            self.model = step.model

        def forward(self, *values: Any) -> Any:
            plain = values[: len(args)]
            out = self.model(*plain, **dict(zip(names, values[len(args) :], strict=True)))
            return tuple(leaves(list(out.values()) if isinstance(out, Mapping) else out))

    def einsum(inputs: list[Any], outputs: list[Any]) -> float:
        """fvcore's own multiply-adds; of one operand, which it takes for a product too, there are none."""
        operands = len(list(inputs[1].node().inputs()))
        return float(einsum_flop_jit(inputs, outputs)) if operands > 1 else 0.0

    training = step.model.training
    step.model.eval()
    logging.getLogger("fvcore").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            analysis = FlopCountAnalysis(Positional(), (*args, *kwargs.values()))
            analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
            analysis.set_op_handle("aten::einsum", einsum)
            operators, missing = dict(analysis.by_operator()), dict(analysis.unsupported_ops())
    except Exception as error:
        return [Check("fvcore", "forward", mine, None, "not checked", f"tracing failed: {reason(error)[:120]}")]
    finally:
        step.model.train(training)
    contractions = {name: value for name, value in operators.items() if name in _FVCORE}
    return _compared(nodes, forward, contractions, missing.keys(), valid)


def _compared(
    nodes: Nodes, forward: Mapping[int, float], contractions: Mapping[str, float], missing: Set[str], valid: float
) -> list[Check]:
    """Compare our forward FLOPs, by node and with padded positions, with fvcore's multiply-adds.

    missing: the ops that it met and has no rule for. valid: our FLOPs without padded positions.
    """
    left_out = _left_out(nodes, forward, missing)
    rounding = _EINSUM_DIGITS * 2.0 * contractions.get("einsum", 0.0)
    note = f"2 x multiply-adds of {', '.join(sorted(contractions)) or 'nothing'}, read off a trace of the model"
    if rounding:
        note += ", where fvcore has those of einsum to four digits"
    if sum(forward.values()) != valid:
        note += f"; with padded positions, which we leave out (ours of all of them: {valid:.6g})"
    ours, theirs = sum(forward.values()) - sum(left_out.values()), 2.0 * sum(contractions.values())
    untraced = _untraced(nodes, forward, missing)
    if untraced and _verdict(ours, theirs, rounding) == "differs":
        note = f"the step ran {untraced[0]}, and fvcore's trace has no such op, so the two sums are of unlike calls"
        return [Check("fvcore", "forward", ours, None, "not checked", note)]
    checks = [Check("fvcore", "forward", ours, theirs, _verdict(ours, theirs, rounding), note)]
    for name, flops in left_out.items():
        checks.append(Check("fvcore", name, flops, None, "not checked", f"fvcore counts {name} as nothing"))
    return checks


#: fvcore reads the count of an einsum from numpy's report, which has four digits: half of the last of 1.000.
_EINSUM_DIGITS = 5e-4
_FVCORE = ("addmm", "bmm", "conv", "einsum", "linear", "matmul", "mm", "mv", "baddbmm")


def _left_out(nodes: Nodes, forward: Mapping[int, float], missing: Set[str]) -> dict[str, float]:
    """Our forward FLOPs (by node) of the ops that fvcore met and has no rule for, by its name for them.

    It meets the op that the model calls, as `lstm`; what we count may be the products inside.
    """
    sums: dict[str, float] = {}
    for node, flops in forward.items():
        met = next((name for name in _around(nodes, node) if name in missing), None)
        if met is not None:
            name = met.partition("::")[2]
            sums[name] = sums.get(name, 0.0) + flops
    return sums


def _around(nodes: Nodes, node: int) -> list[str]:
    """Return the names of a node and of those around it, from the inside out."""
    names = []
    while node >= 0:
        names.append(nodes.names[node])
        node = int(nodes.parent[node])
    return names


def _untraced(nodes: Nodes, forward: Iterable[int], missing: Set[str]) -> list[str]:
    """Return the ops with products of which fvcore met neither these nor any op around them."""
    names = []
    for around in (_around(nodes, node) for node in forward):
        plain = {name.partition("::")[2].strip("_") for name in around}
        if missing.isdisjoint(around) and not any(name.startswith(_FVCORE) for name in plain):
            names.append(around[0].partition("::")[2])
    return names


def _inputs(step: Step) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return what the model is called with in one forward pass; None where that does not call it."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    assert step.forward is not None
    handle = step.model.register_forward_pre_hook(
        lambda _, args, kwargs: calls.append((args, kwargs)), with_kwargs=True
    )
    try:
        step.forward()
    finally:
        handle.remove()
    return calls[0] if calls else None


def _verdict(ours: float | None, reference: float | None, rounding: float = 0.0) -> str:
    if ours is None or reference is None:
        return "differs"
    allowed = max(rounding, 1e-9 * max(abs(ours), abs(reference)))
    return "agrees" if abs(ours - reference) <= allowed else "differs"
