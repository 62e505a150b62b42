"""The products of the published transformers, by shape."""

from __future__ import annotations

from forms.products import BOTH, NONE, ONE, Product, Products, attention, same


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


def decoder_with_adapters(
    batch: int,
    seq: int,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    width: int,
    ffn: int,
    words: int,
    rank: int,
    merged: bool = False,
) -> Products:
    """Gemma or Mistral, frozen, with low-rank adapters on query and value, and logits for every token.

    width: of a head; ffn: of the gated dense layers, three matrices. Frozen weights have no gradient. In the first
    layer nothing before the adapters has one either: not the inputs of query, key and value, and not the keys.

    merged: as Keras does it, the product of an adapter's two matrices is added to the frozen weights, head by head, and
    tokens are multiplied with the sum, of which a gradient as large as the weights is needed. Otherwise tokens are
    multiplied with one after the other, and only their gradients are.
    """
    tokens, queries, keys = batch * seq, heads * width, kv_heads * width
    products: Products = ()
    for number in range(layers):
        first = number == 0
        inputs = NONE if first else ONE
        if merged:
            adapters: Products = (
                Product(hidden * heads, rank, width),
                Product(hidden * kv_heads, rank, width),
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
            *attention(seq, seq, heads, width, times=batch, gradients=(ONE if first else BOTH, BOTH)),
            Product(tokens, queries, hidden, gradients=ONE),
            *[Product(tokens, hidden, ffn, gradients=ONE)] * 2,
            Product(tokens, ffn, hidden, gradients=ONE),
        )
    return (*products, Product(tokens, hidden, words, gradients=ONE))


def generation(
    batch: int,
    read: int,
    passes: int,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    width: int,
    ffn: int,
    words: int,
    *,
    grows: bool,
    logits: int,
) -> Products:
    """Return a call of `generate` of Gemma or Mistral: prefill of `read` tokens, then `passes` of decode, a token each.

    grows: each pass attends to one token more than the one before, the first one to `read` + 1; else the cache has room
    for all tokens, which `read` then counts, and every pass attends to all of it. logits: for how many of the tokens
    that are read the head runs.
    """
    queries, keys = heads * width, kv_heads * width

    def run(tokens: int, length: int, predicted: int) -> Products:
        layer = (
            Product(batch * tokens, hidden, queries),
            *[Product(batch * tokens, hidden, keys)] * 2,
            *attention(tokens, length, heads, width, times=batch),
            Product(batch * tokens, queries, hidden),
            *[Product(batch * tokens, hidden, ffn)] * 2,
            Product(batch * tokens, ffn, hidden),
        )
        return (*layer * layers, Product(batch * predicted, hidden, words))

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
