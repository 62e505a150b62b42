"""The products of the published transformers, by shape."""

from __future__ import annotations

from typing import NamedTuple

from forms.products import BOTH, NONE, ONE, Product, Products, attention, same


class Decoder(NamedTuple):
    """Dimensions of Gemma or Mistral. width: of a head; ffn: of the gated dense layers, three matrices."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    width: int
    ffn: int
    words: int

    @property
    def queries(self) -> int:
        """Return the width of the queries of all heads together."""
        return self.heads * self.width

    @property
    def keys(self) -> int:
        """Return the width of the keys of all heads together, and of the values."""
        return self.kv_heads * self.width


def encoder_layer(batch: int, seq: int, hidden: int, heads: int, ffn: int) -> Products:
    """Return an encoder layer of BERT: four projections, attention, two dense layers.

    Forward: tokens · (8 hidden² + 4 hidden · ffn + 4 seq · hidden) FLOP.
    """
    tokens = batch * seq
    return (
        *[Product(tokens, hidden, hidden)] * 4,
        *attention(seq, seq, heads, hidden // heads, times=batch),
        Product(tokens, hidden, ffn),
        Product(tokens, ffn, hidden),
    )


def bert(batch: int, seq: int, layers: int, hidden: int, heads: int, ffn: int, classes: int) -> Products:
    """BERT with pooler and classifier on the first token. The embeddings are learnt, so every input has a gradient."""
    return (
        *encoder_layer(batch, seq, hidden, heads, ffn) * layers,
        Product(batch, hidden, hidden),
        Product(batch, hidden, classes),
    )


def decoder_with_adapters(batch: int, seq: int, dims: Decoder, rank: int, merged: bool = False) -> Products:
    """Return a frozen decoder with low-rank adapters on query and value, and logits for every token.

    Frozen weights have no gradient. In the first layer nothing before the adapters has one either: not the inputs of
    query, key and value, and not the keys.

    merged: as Keras does it, the product of an adapter's two matrices is added to the frozen weights, head by head, and
    tokens are multiplied with the sum, of which a gradient as large as the weights is needed. Otherwise tokens are
    multiplied with one after the other, and only their gradients are.
    """
    tokens, hidden, queries, keys = batch * seq, dims.hidden, dims.queries, dims.keys
    products: Products = ()
    for number in range(dims.layers):
        first = number == 0
        inputs = NONE if first else ONE
        if merged:
            adapters: Products = (
                Product(hidden * dims.heads, rank, dims.width),
                Product(hidden * dims.kv_heads, rank, dims.width),
            )
        else:
            adapters = (
                *[Product(tokens, hidden, rank, gradients=inputs + 1)] * 2,
                Product(tokens, rank, queries),
                Product(tokens, rank, keys),
            )
        products += (
            Product(tokens, hidden, queries, gradients=inputs + merged),
            Product(tokens, hidden, keys, gradients=inputs),
            Product(tokens, hidden, keys, gradients=inputs + merged),
            *adapters,
            *attention(seq, seq, dims.heads, dims.width, times=batch, gradients=(ONE if first else BOTH, BOTH)),
            Product(tokens, queries, hidden, gradients=ONE),
            *[Product(tokens, hidden, dims.ffn, gradients=ONE)] * 2,
            Product(tokens, dims.ffn, hidden, gradients=ONE),
        )
    return (*products, Product(tokens, hidden, dims.words, gradients=ONE))


def generation(batch: int, read: int, passes: int, dims: Decoder, *, grows: bool, logits: int) -> Products:
    """Return a call of `generate` of a decoder: prefill of `read` tokens, then `passes` of decode, a token each.

    grows: each pass attends to one token more than the one before, the first one to `read` + 1; else the cache has room
    for all tokens, which `read` then counts, and every pass attends to all of it. logits: for how many of the tokens
    that are read the head runs.
    """

    def run(tokens: int, length: int, predicted: int) -> Products:
        layer = (
            Product(batch * tokens, dims.hidden, dims.queries),
            *[Product(batch * tokens, dims.hidden, dims.keys)] * 2,
            *attention(tokens, length, dims.heads, dims.width, times=batch),
            Product(batch * tokens, dims.queries, dims.hidden),
            *[Product(batch * tokens, dims.hidden, dims.ffn)] * 2,
            Product(batch * tokens, dims.ffn, dims.hidden),
        )
        return (*layer * dims.layers, Product(batch * predicted, dims.hidden, dims.words))

    products = run(read, read, logits)
    for number in range(passes):
        products += run(1, read + number + 1 if grows else read, 1)
    return products


def vision_encoder(
    batch: int, side: int, hidden: int, heads: int, ffn: int, layers: int, everywhere: int, window: int, out: int
) -> Products:
    """Return the image encoder of Segment Anything: `side` x `side` patches of 16 x 16 x 3, windowed attention, a neck.

    everywhere: in how many layers attention reaches over the whole image. In the others the image is padded to whole
    windows before the projections, as Meta's code does it. Positions are two further products of every query with
    `window` (or `side`) learnt vectors, for rows and for columns.
    """
    patches, width = side * side, hidden // heads
    across = -(-side // window)

    def layer(windows: int, length: int) -> Products:
        tokens = length * length
        return (
            Product(batch * windows * tokens, hidden, 3 * hidden),
            *attention(tokens, tokens, heads, width, times=batch * windows),
            *[Product(tokens, width, length, times=batch * windows * heads)] * 2,
            Product(batch * windows * tokens, hidden, hidden),
            Product(batch * patches, hidden, ffn),
            Product(batch * patches, ffn, hidden),
        )

    return (
        Product(batch * patches, 16 * 16 * 3, hidden, gradients=ONE),
        *layer(across * across, window) * (layers - everywhere),
        *layer(1, side) * everywhere,
        Product(batch * patches, hidden, out),
        same(side, out, out, times=batch),
    )
