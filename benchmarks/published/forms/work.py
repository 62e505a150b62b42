"""The work of the published rows, each from a closed form of its shapes; no model is built for it.

The forms were checked against the published classes, built without weights on PyTorch's meta device, whose count
(FlopCounterMode) is the same to the last FLOP, but for products with the zeros of padding, which do not count here
(docs/counting.md): transformers 5.23 for BERT, SAM, Gemma and Mistral, diffusers 0.39 for Stable Diffusion. The tests
repeat it where these are installed. Keras's form of adapters was checked against small models of keras_hub 0.32.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TypedDict

from forms.networks import denoiser, dense, image_encoder, lenet5
from forms.products import Products, forward, training
from forms.transformers import bert, decoder_with_adapters, encoder_layer, generation, vision_encoder
from roofline import published
from roofline.published.publication import Work

#: Passes of decode in one call of `generate`, a token each. Keras: 44 or 45 (50 tokens in all, of which a prompt of
#: five words takes five or, with a mark of its beginning, six). transformers: 45 new ones, one of them from prefill.
PASSES = 44
#: Tokens of the prompt in transformers, at least; all that Keras's cache has room for, and that its prefill reads.
PROMPT, ROOM = 5, 50
BF16 = 2  # bytes
#: Parameters that every pass reads; Gemma's table of words is its head too, Mistral's is only looked up.
GEMMA, MISTRAL = 8_537_680_896, 7_241_732_096 - 32_000 * 4_096

THREE = "3 x forward: each product has two gradients"
FROZEN = "frozen weights: one gradient per product, two for attention and the adapters of rank 4"
MERGED = f"{FROZEN}, which are added to the weights of query and value, that need one more for it"


class _Decoder(TypedDict):
    """Dimensions of a decoder: see `transformers.generation`."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    width: int
    ffn: int
    words: int


_GEMMA = _Decoder(layers=28, hidden=3072, heads=16, kv_heads=16, width=256, ffn=24_576, words=256_000)
_MISTRAL = _Decoder(layers=32, hidden=4096, heads=32, kv_heads=8, width=128, ffn=14_336, words=32_000)


def _bert(batch: int) -> Products:
    return bert(batch, seq=512, layers=12, hidden=768, heads=12, ffn=3072, classes=2)


def _sam(batch: int) -> Products:
    return vision_encoder(batch, side=64, hidden=1280, heads=16, ffn=5120, layers=32, everywhere=4, window=14, out=256)


def _gemma(batch: int, merged: bool = False) -> Products:
    return decoder_with_adapters(batch, 128, **_GEMMA, rank=4, merged=merged)


def _mistral(batch: int, merged: bool = False) -> Products:
    return decoder_with_adapters(batch, 128, **_MISTRAL, rank=4, merged=merged)


def _layer(batch: int, seq: int) -> Work:
    products = encoder_layer(batch, seq, hidden=1024, heads=16, ffn=4096)
    return Work(flops=training(products), form=f"{THREE}, that of the layer's input too")


def _generate(batch: int, dims: _Decoder, parameters: int) -> Work:
    """Return the work in transformers: the cache grows, and the head runs for the last token of the prompt alone."""
    return _read(
        generation(batch, PROMPT, PASSES, **dims, grows=True, logits=1),
        parameters,
        f"prefill of a prompt of {PROMPT} tokens and {PASSES} passes of decode, whose cache grows",
    )


def _generate_padded(batch: int, dims: _Decoder, parameters: int, logits: int) -> Work:
    """Return the work in Keras: the cache has room for all tokens, which prefill and every pass attend to."""
    head = "with the head for each of them" if logits else "without the head, which nobody needs there"
    return _read(
        generation(batch, ROOM, PASSES, **dims, grows=False, logits=logits),
        parameters,
        f"prefill of all {ROOM} tokens, padding included, {head}, and {PASSES} passes of decode over as many",
    )


def _read(products: Products, parameters: int, form: str) -> Work:
    return Work(
        flops=forward(products),
        bytes=float(PASSES * BF16 * parameters),
        form=form,
        bytes_form=f"weights in bf16, read once for each of {PASSES} tokens",
        assumed=f"{PASSES} tokens a call, of the 44 to 45 that a limit of 50 leaves",
    )


#: By the name that roofline/published/NAME.toml gives: the batch of a row -> its work.
WORKS: Mapping[str, Callable[[int], Work]] = {
    "bert-fit": lambda batch: Work(flops=training(_bert(batch)), form=THREE),
    "bert-predict": lambda batch: Work(flops=forward(_bert(batch)), form="forward"),
    "sam-fit": lambda batch: Work(
        flops=training(_sam(batch)), form=f"{THREE}, but for the first layer's, whose input needs none"
    ),
    "sam-predict": lambda batch: Work(flops=forward(_sam(batch)), form="forward of the image encoder"),
    "sd-fit": lambda batch: Work(
        flops=training(image_encoder(batch)), form=f"{THREE}, but for the first layer's, whose input needs none"
    ),
    "sd-predict": lambda batch: Work(
        flops=forward(denoiser(2 * batch)), form="forward of the UNet, with the text and without it"
    ),
    "gemma-fit": lambda batch: Work(flops=training(_gemma(batch)), form=FROZEN),
    "mistral-fit": lambda batch: Work(flops=training(_mistral(batch)), form=FROZEN),
    "gemma-fit-keras": lambda batch: Work(flops=training(_gemma(batch, merged=True)), form=MERGED),
    "mistral-fit-keras": lambda batch: Work(flops=training(_mistral(batch, merged=True)), form=MERGED),
    "gemma-generate": lambda batch: _generate(batch, _GEMMA, GEMMA),
    "mistral-generate": lambda batch: _generate(batch, _MISTRAL, MISTRAL),
    "gemma-generate-keras": lambda batch: _generate_padded(batch, _GEMMA, GEMMA, logits=0),
    "mistral-generate-keras": lambda batch: _generate_padded(batch, _MISTRAL, MISTRAL, logits=0),
    "gemma-generate-keras-eager": lambda batch: _generate_padded(batch, _GEMMA, GEMMA, logits=ROOM),
    "mistral-generate-keras-eager": lambda batch: _generate_padded(batch, _MISTRAL, MISTRAL, logits=ROOM),
    "mlp-training": lambda batch: Work(
        flops=10_000 * training(dense(batch, (4, 32, 16, 4))),
        form=f"{THREE}, but for the first layer's, whose input needs none; 10,000 steps",
    ),
    "lenet5-training": lambda batch: Work(
        flops=10 * training(lenet5(60_000)),
        form=f"{THREE}, but for the first layer's, whose input needs none; 10 x 60,000 images, whatever the batch",
    ),
    "layer-512": lambda batch: _layer(batch, 512),
    "layer-128": lambda batch: _layer(batch, 128),
}


def work(name: str, batch: str) -> Work:
    """Return the work of a row by its name in `WORKS`; batch: as published, "" where the work does not depend on it."""
    return WORKS[name](int(batch) if batch else 0)


def entries(name: str) -> Iterator[str]:
    """Write the `[[work]]` of each row of a publication for roofline/published/NAME.toml."""
    publication = published.load(name)
    batches: dict[str, dict[str, int]] = {}
    for cell in publication.cells:
        if (row := publication.row(cell)).work:
            batches.setdefault(row.work, {})[cell.batch] = 0
    for form, numbers in batches.items():
        works = {batch: work(form, batch) for batch in numbers}
        flops = ", ".join(f"{json.dumps(batch)} = {counted.flops:.0f}" for batch, counted in works.items())
        first = next(iter(works.values()))
        yield f'\n[[work]]\nname = "{form}"\nflops = {{ {flops} }}\nform = {json.dumps(first.form)}'
        if first.bytes is not None:
            yield f"bytes = {first.bytes:.0f}\nbytes_form = {json.dumps(first.bytes_form)}"
        if first.assumed:
            yield f"assumed = {json.dumps(first.assumed)}"


if __name__ == "__main__":
    print("\n".join(entries(sys.argv[1])))
