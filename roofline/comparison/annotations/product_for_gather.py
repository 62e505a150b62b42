"""A matrix product in the place of a gather or scatter of rows."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

_PRODUCTS = "dot\\w*|(add|ba?d?d?b?)?mm|matmul|batchmatmul\\w*|einsum"
_BY_INDEX = "\\w*(gather|scatter|index_add|index_select|embedding|segmentsum|segment_sum)\\w*"

ANNOTATION = Annotation(
    rule="more-work",
    says="{more} multiplies matrices where {less} gathers or scatters rows.",
    patterns=(Pattern(more=(_PRODUCTS,), less=(_BY_INDEX,), absent=_PRODUCTS, share="most"),),
    pairs={"jax": "sixth/molecules-by-product-train"},
    advice={"jax": "use indices (x[index], jax.ops.segment_sum) in the place of a product with one-hot rows"},
)
