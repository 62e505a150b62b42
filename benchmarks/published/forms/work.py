"""The work of the published rows, each from a closed form of its shapes; no model is built for it.

The forms were checked against the published classes, built without weights on PyTorch's meta device, whose count
(FlopCounterMode) is the same to the last FLOP, but for products with the zeros of padding, which do not count here
(docs/counting.md): transformers 5.23 for BERT, SAM, Gemma and Mistral, diffusers 0.39 for Stable Diffusion. The tests
repeat it where these are installed. Keras's form of adapters was checked against small models of keras_hub 0.32.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from forms.networks import denoiser, dense, image_encoder, lenet5
from forms.products import Products, forward, training
from forms.transformers import Decoder, bert, decoder_with_adapters, encoder_layer, generation, vision_encoder
from roofline import published

#: Passes of decode in one call of `generate`, a token each. Keras: 44 or 45 (50 tokens in all, of which a prompt of
#: five words takes five or, with a mark of its beginning, six). transformers: 45 new ones, one of them from prefill.
PASSES = 44
#: Tokens of the prompt in transformers, at least; all that Keras's cache has room for, and that its prefill reads.
PROMPT, ROOM = 5, 50
BF16 = 2  # bytes
#: Parameters that every pass reads; Gemma's table of words is its head too, Mistral's is only looked up.
GEMMA, MISTRAL = 8_537_680_896, 7_241_732_096 - 32_000 * 4_096


_GEMMA = Decoder(layers=28, hidden=3072, heads=16, kv_heads=16, width=256, ffn=24_576, words=256_000)
_MISTRAL = Decoder(layers=32, hidden=4096, heads=32, kv_heads=8, width=128, ffn=14_336, words=32_000)


def _bert(batch: int) -> Products:
    return bert(batch, seq=512, layers=12, hidden=768, heads=12, ffn=3072, classes=2)


def _sam(batch: int) -> Products:
    return vision_encoder(batch, side=64, hidden=1280, heads=16, ffn=5120, layers=32, everywhere=4, window=14, out=256)


def _gemma(batch: int, merged: bool = False) -> Products:
    return decoder_with_adapters(batch, 128, _GEMMA, rank=4, merged=merged)


def _mistral(batch: int, merged: bool = False) -> Products:
    return decoder_with_adapters(batch, 128, _MISTRAL, rank=4, merged=merged)


def _layer(batch: int, seq: int) -> float:
    return training(encoder_layer(batch, seq, hidden=1024, heads=16, ffn=4096))


def _generate(batch: int, dims: Decoder) -> float:
    """Count what transformers does: the cache grows, and the head runs for the last token of the prompt alone."""
    return forward(generation(batch, PROMPT, PASSES, dims, grows=True, logits=1))


def _generate_padded(batch: int, dims: Decoder, logits: int) -> float:
    """Count what Keras does: the cache has room for all tokens, which prefill and every pass attend to.

    logits: for how many tokens of prefill the head runs, where nobody needs it.
    """
    return forward(generation(batch, ROOM, PASSES, dims, grows=False, logits=logits))


#: By the name that roofline/published/NAME.toml gives: the batch of a row -> FLOPs of its contractions.
FLOPS: Mapping[str, Callable[[int], float]] = {
    "bert-fit": lambda batch: training(_bert(batch)),
    "bert-predict": lambda batch: forward(_bert(batch)),
    "sam-fit": lambda batch: training(_sam(batch)),
    "sam-predict": lambda batch: forward(_sam(batch)),
    "sd-fit": lambda batch: training(image_encoder(batch)),
    "sd-predict": lambda batch: forward(denoiser(2 * batch)),
    "gemma-fit": lambda batch: training(_gemma(batch)),
    "mistral-fit": lambda batch: training(_mistral(batch)),
    "gemma-fit-keras": lambda batch: training(_gemma(batch, merged=True)),
    "mistral-fit-keras": lambda batch: training(_mistral(batch, merged=True)),
    "gemma-generate": lambda batch: _generate(batch, _GEMMA),
    "mistral-generate": lambda batch: _generate(batch, _MISTRAL),
    "gemma-generate-keras": lambda batch: _generate_padded(batch, _GEMMA, logits=0),
    "mistral-generate-keras": lambda batch: _generate_padded(batch, _MISTRAL, logits=0),
    "gemma-generate-keras-eager": lambda batch: _generate_padded(batch, _GEMMA, logits=ROOM),
    "mistral-generate-keras-eager": lambda batch: _generate_padded(batch, _MISTRAL, logits=ROOM),
    "mlp-training": lambda batch: 10_000 * training(dense(batch, (4, 32, 16, 4))),
    "lenet5-training": lambda batch: 10 * training(lenet5(60_000)),
    "layer-512": lambda batch: _layer(batch, 512),
    "layer-128": lambda batch: _layer(batch, 128),
}


def flops(name: str, batch: str) -> float:
    """Count a row by its name in `FLOPS`; batch: as published, "" where the work does not depend on it."""
    return FLOPS[name](int(batch) if batch else 0)


def read(name: str) -> float | None:
    """Return the bytes that a row reads at least: its weights, once for each pass; None where that is not known."""
    parameters = {"gemma-generate": GEMMA, "mistral-generate": MISTRAL}.get(name.partition("-keras")[0])
    return None if parameters is None else float(PASSES * BF16 * parameters)


def main(publication_name: str) -> None:
    """Print what each row of a publication asks for."""
    publication = published.load(publication_name)
    rows = {(publication.row(cell).work, cell.batch) for cell in publication.cells}
    for name, batch in sorted(row for row in rows if row[0]):
        print(f"{name:28} batch {batch or '-':6} {flops(name, batch):20.0f} FLOP  bytes: {read(name)}")


if __name__ == "__main__":
    main(sys.argv[1])
