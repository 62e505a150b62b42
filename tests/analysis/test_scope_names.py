"""Scopes named in few words, in sentences and as labels of documents."""

from __future__ import annotations

import pytest

from roofline.analysis.scope_names import label_scopes, name_scopes

#: Of the five after the first, layer.* has 3 x 3 parts, its attention 2 x 4, bert 5 x 1; then embeddings 2 x 2.
LAYERS = [f"bert/encoder/layer.*/{part}" for part in ("output", "attention/self", "dense", "attention/output")]
MANY = [*LAYERS, "bert/embeddings/word", "bert/embeddings"]
TOWERS = [f"{tower}/encoder/layer.*/attention" for tower in ("text", "image")]
INSIDE = [f"{tower}/{part}" for tower in TOWERS for part in ("self", "output")]


@pytest.mark.parametrize(
    ("scopes", "name", "label"),
    [
        (
            MANY,
            "encoder/layer.*/output, 3 places in bert/encoder/layer.*, 2 places in bert/embeddings",
            "encoder/layer.*/output, 3 more in bert/encoder/layer.*, 2 more in bert/embeddings",
        ),
        (
            [*MANY, "head", "loss"],
            "encoder/layer.*/output, 3 places in bert/encoder/layer.*, 2 places in bert/embeddings, 2 more places",
            "encoder/layer.*/output, 3 more in bert/encoder/layer.*, 2 more in bert/embeddings and 2 more places",
        ),
        (["up*", "down*", "middle*"], "up*, down*, middle*", "up*, down*, middle*"),
        ([], "", ""),
        # Names whose last parts are equal are counted.
        (
            [*(f"{tower}/self" for tower in TOWERS), "head"],
            "2 places in layer.*/attention/self, head",
            "layer.*/attention/self (2 places), head",
        ),
        (
            ["head", *INSIDE],
            "head, 4 places in encoder/layer.*/attention",
            "head, 4 more in encoder/layer.*/attention",
        ),
        # The first one counts with those that are called as it is.
        (
            [TOWERS[0], *INSIDE[2:], "head"],
            "3 places in encoder/layer.*/attention, head",
            "encoder/layer.*/attention, 2 more in encoder/layer.*/attention, head",
        ),
    ],
)
def test_scopes_are_named_by_the_prefixes_that_say_most(scopes: list[str], name: str, label: str) -> None:
    assert name_scopes(scopes) == name
    assert label_scopes(scopes) == label
