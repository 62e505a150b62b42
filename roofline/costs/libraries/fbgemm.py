"""fbgemm_gpu: table-batched embeddings (TBE) and the ops around them in a recommender.

Sources: pytorch/FBGEMM, fbgemm_gpu/codegen/embedding_backward_split_host_template.cpp (2022) for the arguments of the
lookup, docs "Table Batched Embedding (TBE)", and fbgemm_gpu/codegen/embedding_forward_split_template.cu and
embedding_backward_split_template.cu for what the kernels do:

    split_embedding_codegen_lookup_<optimizer>_function(
        0 placeholder, 1 dev_weights, 2 uvm_weights, 3 lxu_cache_weights, 4 weights_placements, 5 weights_offsets,
        6 D_offsets [T + 1], 7 total_D, 8 max_D, 9 hash_size_cumsum, 10 total_hash_size_bits, 11 indices [L],
        12 offsets [T B + 1], 13 pooling_mode, 14 indice_weights, 15 feature_requires_grad, 16 lxu_cache_locations,
        17 gradient_clipping, 18 max_gradient, 19 stochastic_rounding, 20 first state of the optimizer, ...)

T tables, B samples, L indices. Each index picks one row of its table, of D_t numbers; the rows of one sample and table
are added up (pooling by sum or mean), to an output of [B, total_D]. How the L indices are spread over the tables and
how many of them are equal is data: a row is taken to be of the mean width total_D / T, every index to pick another row
as far as there are rows. That is an upper end of the compulsory traffic; real lookups repeat rows.
"""

from __future__ import annotations

from typing import Any

from roofline.core.cost import Cost
from roofline.costs.calls import Tensor, size
from roofline.costs.custom import formula
from roofline.costs.dtypes import DTYPES

_NOTE = "which rows are picked depends on data: mean row width, no row twice while there are others"
#: FLOP per element of a row that the optimizer updates, and numbers of state per row or (elementwise) per element:
#: rowwise Adagrad adds up g^2 (2), divides by the root per row, w -= lr g (2); Adagrad m += g^2 (2), w -= lr g / sqrt
#: (3); SGD w -= lr g (2).
_UPDATE: dict[str, tuple[float, str]] = {
    "sgd": (2.0, ""),
    "approx_sgd": (2.0, ""),
    "adagrad": (5.0, "element"),
    "approx_rowwise_adagrad": (4.0, "row"),
    "rowwise_adagrad": (4.0, "row"),
}


class _Lookup:
    """Read the arguments of a lookup. Raises where they are not those of a lookup."""

    def __init__(self, inputs: tuple[Any, ...], total: int | None = None) -> None:
        stores = [inputs[position] for position in (1, 2) if isinstance(inputs[position], Tensor)]
        self.indices, self.offsets, d_offsets = inputs[11], inputs[12], inputs[6]
        self.tables = d_offsets.numel - 1
        self.samples = (self.offsets.numel - 1) // max(1, self.tables)
        self.picked = self.indices.numel
        self.weighted = isinstance(inputs[14], Tensor) and inputs[14].numel == self.picked
        self.per_sample = inputs[14] if self.weighted else None
        self.parameters = sum(store.numel for store in stores)
        self.element = DTYPES[max(stores, key=lambda store: store.numel).dtype][1]
        if total is None and type(inputs[7]) is int:
            total = inputs[7]
        state = inputs[20] if len(inputs) > 20 and isinstance(inputs[20], Tensor) else None
        if total is None:
            # Rowwise optimizers keep one number per row.
            rows = state.numel if state is not None else 0
            if not 0 < rows < self.parameters:
                raise ValueError("neither the width of the output nor the number of rows was recorded")
            total = round(self.parameters / rows * self.tables)
        self.total = total
        self.width = total / max(1, self.tables)
        #: numbers of the tables that are touched: no more than there are
        self.touched = min(self.picked * self.width, float(self.parameters))


def _lookup(*inputs: Any) -> Cost:
    """Gather and pool: L D additions less one per output, a multiplication each where indices are weighted."""
    lookup = _Lookup(inputs)
    outputs = lookup.samples * lookup.total
    gathered = lookup.picked * lookup.width
    read = lookup.touched * lookup.element + size(lookup.indices) + size(lookup.offsets)
    return Cost(
        vector_flops=max(0.0, gathered - outputs) + (gathered if lookup.weighted else 0.0),
        bytes_read=read + (size(lookup.per_sample) if lookup.per_sample is not None else 0.0),
        bytes_written=4.0 * outputs,
        quality="assumed",
        note=f"{_NOTE}; fp32 output",
    )


def _update(optimizer: str) -> Any:
    flops, state = _UPDATE[optimizer]

    def update(gradient: Tensor, *inputs: Any) -> Cost:
        """Add up the gradients of equal rows, then update the rows in place, with the optimizer's state.

        Sorting the indices needs only workspaces; they are read once.
        """
        lookup = _Lookup(inputs, gradient.shape[-1])
        rows = lookup.touched / max(1.0, lookup.width)
        states = 4.0 * {"row": rows, "element": lookup.touched, "": 0.0}[state]
        moved = lookup.touched * lookup.element + states
        summed = max(0.0, lookup.picked * lookup.width - lookup.touched)
        return Cost(
            vector_flops=summed + (lookup.picked * lookup.width if lookup.weighted else 0.0) + flops * lookup.touched,
            functions={} if not state else {"sqrt": rows if state == "row" else lookup.touched},
            bytes_read=size(gradient) + size(lookup.indices) + size(lookup.offsets) + moved,
            bytes_written=moved,
            quality="assumed",
            note=_NOTE,
        )

    return update


for _optimizer in _UPDATE:
    _op = f"fbgemm::split_embedding_codegen_lookup_{_optimizer}_function"
    formula(_op, "embedding")(_lookup)
    # Beside the gradients its node records nothing: the rest is that of the lookup which made it.
    formula(f"torch::autograd::CppNode<SplitLookupFunction_{_optimizer}_Op>", "embedding", forward=_op)(
        _update(_optimizer)
    )


@formula("fbgemm::permute_pooled_embs", "movement")
@formula("fbgemm::permute_pooled_embs_auto_grad", "movement")
@formula(
    "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&fbgemm_gpu::permute_pooled_embs_gpu> >", "movement"
)
@formula("fbgemm::recat_embedding_grad_output_mixed_D_batch", "movement")
@formula("fbgemm::recat_embedding_grad_output_mixed_D", "movement")
def rearranged(values: Tensor, *tables: Any) -> Cost:
    """Columns of a matrix in another order: every element is read once and written once."""
    lists = sum(size(table) for table in tables if isinstance(table, Tensor))
    return Cost(bytes_read=size(values) + lists, bytes_written=size(values))


@formula("fbgemm::bounds_check_indices", "other")
def checked(rows: Tensor, indices: Tensor, offsets: Tensor, *options: Any) -> Cost:
    """Indices and offsets are read; they are written only where they are wrong, as good data never is."""
    return Cost(
        int_ops=2.0 * indices.numel,
        bytes_read=size(rows) + size(indices) + size(offsets),
        quality="assumed",
        note="no index out of bounds",
    )


@formula("fbgemm::permute_sparse_features", "embedding")
@formula("fbgemm::permute_2D_sparse_data", "embedding")
def permuted(order: Tensor, lengths: Tensor, indices: Tensor, weights: Any = None, *options: Any) -> Cost:
    """Bags of indices in another order, some of them several times or not at all.

    lengths: [features, samples]. How long the chosen bags are is data: taken to be as long as the others.
    """
    share = order.numel / max(1, lengths.shape[0])
    moved = size(indices) + (size(weights) if isinstance(weights, Tensor) else 0.0)
    return Cost(
        bytes_read=size(order) + min(1.0, share) * (size(lengths) + moved),
        bytes_written=share * (size(lengths) + moved),
        quality="assumed",
        note="the bags chosen are as long as the others",
    )


@formula("fbgemm::asynchronous_complete_cumsum", "reduction")
def cumulated(values: Tensor, *options: Any) -> Cost:
    """A running sum of integers."""
    return Cost(int_ops=float(values.numel), bytes_read=size(values), bytes_written=size(values))
