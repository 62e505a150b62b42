"""What the page on Keras 3 says of its table, version of April 2024."""

from __future__ import annotations

from collections.abc import Callable

from roofline.published.claims import _keras_backends, _keras_keras2, _keras_pytorch
from roofline.published.claims._claim import Claim
from roofline.published.claims._keras_table import Figures
from roofline.published.publication import Publication


def claims(publication: Publication) -> tuple[Claim, ...]:
    """In the order of the page's findings."""
    figures = Figures(publication)
    made: tuple[Callable[[Figures], Claim], ...] = (
        _keras_backends.no_best_backend,
        _keras_backends.jax_first,
        _keras_pytorch.faster_everywhere,
        _keras_pytorch.twice_as_fast,
        _keras_pytorch.slower_where_compiled,
        _keras_pytorch.faster_than_compiled,
        _keras_keras2.faster_than_keras2,
        _keras_keras2.sam_predict,
        _keras_keras2.sd_fit,
        _keras_keras2.bert_fit,
        _keras_keras2.only_upgraded,
        _keras_keras2.because_of_fused_ops,
        _keras_backends.generate,
    )
    return tuple(one(figures) for one in made)
