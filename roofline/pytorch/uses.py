"""Finds what later calls of a step take of a result: nobody asked for the products of a gradient that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofline.costs.calls import Call, Tensor, tensors
from roofline.costs.counted import Access
from roofline.pytorch.aten.tables import FROM_OUTSIDE, base
from roofline.pytorch.nodes import Costing, Nodes
from roofline.traces import nesting


class Uses:
    """Knows of each storage which calls take it and which make it anew, in order; looked up when first asked."""

    def __init__(self, nodes: Nodes, is_op: NDArray[np.bool_], returned: NDArray[np.bool_], engine: Costing) -> None:
        """is_op: which calls are ops, whether or not inside of others. returned: which take what the step returns."""
        self._nodes, self._is_op, self._returned, self._engine = nodes, is_op, returned, engine
        self._around = np.append(nesting.nearest(nodes.parent, is_op), -1)[nodes.parent]
        self._known: dict[int, list[tuple[int, bool, Call]]] | None = None

    def after(self, root: int, storage: int) -> Iterator[tuple[int, Call]]:
        """Yield the calls that take a storage after the op `root` made it, until another call makes it anew.

        What happens inside of an op is no use of its results.
        """
        if self._known is None:
            self._known = self._by_storage()
        for node, is_taken, call in self._known.get(storage, ()):
            if node <= root or self._lies_in(node, root):
                continue
            if not is_taken:
                return
            yield node, call

    def readers(self, root: int, call: Call) -> Iterator[tuple[int, Call, Tensor]]:
        """List the later ops that read the first result of the op `root`, and what each reads; a view reads nothing.

        call: that of the op. Later ones are those beside it, also where all are inside of an op, and those beside the
        ops around it. Whoever runs the step reads the tensors that it returns. Where nobody reads anything, the step
        hands out the last views of the result in an object.
        """
        result = next(tensors(call.outputs or ()), None)
        if result is None or result.storage < 0:
            return
        is_read, views = False, list[tuple[int, Call, Tensor]]()
        for node, reader in self.after(root, result.storage):
            if self._returned[node]:
                is_read = True
                inputs = tensors(reader.inputs)
                yield from ((node, reader, tensor) for tensor in inputs if tensor.storage == result.storage)
                continue
            around = int(self._around[node])
            if not self._is_op[node] or not (around < 0 or self._lies_in(root, around)):
                continue
            costed = self._engine.cost(reader)
            arguments = [tensor for tensor in tensors(reader.inputs) if tensor.storage == result.storage]
            if costed.view:
                results = [tensor for tensor in tensors(reader.outputs or ()) if tensor.storage == result.storage]
                views = [view for view in views if view[2] not in arguments]
                views += [(node, reader, tensor) for tensor in results]
                continue
            is_known = costed.cost.bytes_read is not None
            read = {number for of_arguments, number, _ in costed.reads if of_arguments}
            for number, tensor in enumerate(tensors(reader.inputs)):
                if tensor.storage == result.storage and (number in read or not is_known):
                    is_read = True
                    yield node, reader, tensor
        if not is_read:
            yield from views

    def written(self, node: int, call: Call) -> set[int]:
        """Return the storages that a call writes: results that are no views, and what an op changes in place or fills.

        An op of unknown work may write all that it takes.
        """
        arguments, results = list(tensors(call.inputs)), list(tensors(call.outputs or ()))
        argument_storages = {tensor.storage for tensor in arguments}
        fresh = {tensor.storage for tensor in results} - argument_storages
        if not self._is_op[node]:
            return fresh
        costed = self._engine.cost(call)
        if costed.cost.quality == "unknown" and not costed.view:
            return fresh | argument_storages
        return fresh | set(storages_of(costed.writes, arguments, results))

    def is_read(self, root: int, result: Any) -> bool:
        """Tell whether any call takes a result of the op `root`; True of one whose storage was not recorded."""
        if not isinstance(result, Tensor) or result.storage < 0:
            return result is not None
        return any(True for _ in self.after(root, result.storage))

    def _lies_in(self, node: int, op: int) -> bool:
        while node > op:
            node = int(self._around[node])
        return node == op

    def _by_storage(self) -> dict[int, list[tuple[int, bool, Call]]]:
        calls: dict[int, list[tuple[int, bool, Call]]] = {}
        for node in range(len(self._nodes)):
            call = self._nodes.call(node)
            inputs = {tensor.storage for tensor in tensors(call.inputs) if tensor.storage >= 0}
            if base(call.name) == FROM_OUTSIDE:  # in memory that PyTorch may have given back before
                inputs = set()
            outputs = {tensor.storage for tensor in tensors(call.outputs or ()) if tensor.storage >= 0} - inputs
            for storage in inputs | outputs:
                calls.setdefault(storage, []).append((node, storage in inputs, call))
        return calls


def storages_of(accesses: Sequence[Access], arguments: Sequence[Tensor], results: Sequence[Tensor]) -> tuple[int, ...]:
    """Return the storage of each access; -1 where it was not recorded, as results are not in a Chrome trace."""
    return tuple(
        many[number].storage if number < len(many) else -1
        for many, number in ((arguments if is_input else results, number) for is_input, number, _ in accesses)
    )
