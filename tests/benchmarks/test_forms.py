"""The closed forms of published steps: arithmetic by hand, the models of this repository, and the published classes.

The classes are built on the meta device, without weights; PyTorch's counter counts products with the zeros of padding,
which our rules leave out, so `padded` adds them here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from typing import Any

import pytest
from forms.networks import denoiser, dense, image_encoder, lenet5
from forms.products import BOTH, NONE, ONE, Convolution, Product, Products, forward, training
from forms.transformers import (
    Decoder,
    bert,
    decoder_with_adapters,
    encoder_layer,
    generation,
    vision_encoder,
)
from forms.work import FLOPS, flops, read

from roofline import published


def padded(products: Iterable[Product | Convolution], train: bool = False) -> float:
    """The count of PyTorch's FlopCounterMode: every tap of a convolution, those on padding too."""
    total = 0.0
    for one in products:
        flops = one.flops
        if isinstance(one, Convolution):
            flops = 2.0 * one.times * one.filters * one.channels * one.outputs**2 * one.kernel**2
        total += flops * (1 + one.gradients * train)
    return total


# ------------------------------------------------------------------------------------------------ by hand


def test_a_product_and_its_gradients() -> None:
    """(2 x 3)(3 x 5): 30 multiply-adds, 60 FLOP; a training step does it once more per gradient."""
    assert Product(2, 3, 5).flops == 60
    for gradients, whole in ((NONE, 60), (ONE, 120), (BOTH, 180)):
        assert training((Product(2, 3, 5, gradients=gradients),)) == whole
    assert Product(2, 3, 5, times=7).flops == 420


def test_a_convolution_has_no_products_with_padding() -> None:
    """3 x 3 on 4 x 4: of 4 positions and 3 taps a side 2 fall outside, 10 · 10 pairs remain of 144."""
    one = Convolution(4, 2, 5, 3, outputs=4, padding=1)
    assert one.flops == 2 * 2 * 5 * 100
    assert padded((one,)) == 2 * 2 * 5 * 144


def test_the_bert_step_of_the_benchmark() -> None:
    """Per token and layer 8 · 768² + 4 · 768 · 3072 + 4 · 512 · 768; 12 layers; pooler and classifier per sequence."""
    layer = 8 * 768**2 + 4 * 768 * 3072 + 4 * 512 * 768
    sequence = 512 * 12 * layer + 2 * 768**2 + 2 * 768 * 2
    assert flops("bert-predict", "256") == 256 * sequence
    assert flops("bert-fit", "32") == 3 * 32 * sequence
    assert flops("bert-fit", "32") == pytest.approx(9.277e12, rel=1e-4)


def test_the_encoder_layer() -> None:
    """12 hidden² weights, 2 FLOP each, and attention 4 · length · hidden, per token; three times that."""
    for name, batch, seq in (("layer-512", 8, 512), ("layer-128", 96, 128)):
        per_token = 2 * 12 * 1024**2 + 4 * seq * 1024
        assert flops(name, str(batch)) == 3 * batch * seq * per_token


def test_the_small_networks() -> None:
    """MLP: 4·32 + 32·16 + 16·4 = 704 weights; 3 passes, but the first layer 2; 10,000 samples, 10,000 steps.

    LeNet5: 24²·6·25 + 8²·16·150 + 256·120 + 120·84 + 84·10 multiply-adds an image, the first convolution twice.
    """
    assert flops("mlp-training", "10000") == 10_000 * 10_000 * 2 * (3 * 704 - 128)
    first, rest = 24**2 * 6 * 25, 8**2 * 16 * 150 + 256 * 120 + 120 * 84 + 84 * 10
    assert flops("lenet5-training", "") == 10 * 60_000 * 2 * (2 * first + 3 * rest)


def test_a_pass_reads_the_weights_once() -> None:
    """bf16: 2 bytes for each of Gemma's 8,537,680,896 parameters; Mistral's 32,000 x 4,096 words are only looked up."""
    assert read("gemma-generate") == 44 * 2 * 8_537_680_896
    assert read("mistral-generate-keras") == 44 * 2 * (7_241_732_096 - 32_000 * 4_096)
    assert "44 tokens" in published.load("keras-benchmark").work("gemma-generate", "1").assumed


#: layers, hidden, heads, heads of keys, width of a head, ffn, words; parameters in products of one layer follow.
DECODERS = {"gemma": (28, 3072, 16, 16, 256, 24_576, 256_000), "mistral": (32, 4096, 32, 8, 128, 14_336, 32_000)}


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("batch", [1, 32])
def test_a_call_of_generate(name: str, batch: int) -> None:
    """A token takes 2 FLOP for each weight of a layer, and for each token that it attends to 4 per head and its width.

    transformers: 5 + 44 tokens; the prompt attends to 5, the passes to 6, 7, ... 49; the head runs 45 times. Keras:
    50 + 44 tokens attend to 50 each; the head runs 44 times, op by op in prefill too, 50 times more.
    """
    layers, hidden, heads, kv_heads, width, ffn, words = DECODERS[name]
    weights = hidden * width * (2 * heads + 2 * kv_heads) + 3 * hidden * ffn
    attended, head = 4 * heads * width, 2 * hidden * words
    grown = 5 * 5 + sum(range(6, 50))
    native = layers * (2 * (5 + 44) * weights + attended * grown) + 45 * head
    padded = layers * (50 + 44) * (2 * weights + attended * 50) + 44 * head
    assert flops(f"{name}-generate", str(batch)) == batch * native
    assert flops(f"{name}-generate-keras", str(batch)) == batch * padded
    assert flops(f"{name}-generate-keras-eager", str(batch)) == batch * (padded + 50 * head)


#: What PyTorch counts for one sample of the published classes on the meta device: forward, and forward with backward.
COUNTED: dict[str, tuple[Products, float, float | None]] = {
    # transformers 5.23: SamVisionEncoder, 637,026,048 parameters
    "SAM": (vision_encoder(1, 64, 1280, 16, 5120, 32, 4, 14, 256), 5_961_082_830_848, 17_875_195_428_864),
    # transformers 5.23, 8 x 128 tokens, adapters of rank 4 on query and value, everything else frozen
    "Gemma": (
        decoder_with_adapters(8, 128, Decoder(28, 3072, 16, 16, 256, 24_576, 256_000), 4),
        17_548_229_738_496,
        35_081_443_868_672,
    ),
    "Mistral": (
        decoder_with_adapters(8, 128, Decoder(32, 4096, 32, 8, 128, 14_336, 32_000), 4),
        14_634_295_754_752,
        29_288_120_188_928,
    ),
    # diffusers 0.39: AutoencoderKL(...).encoder, 34,163,592 parameters; UNet2DConditionModel, 859,520,964
    "VAE encoder": (image_encoder(1), 1_116_657_942_528, 3_348_161_888_256),
    "UNet": (denoiser(1), 803_273_441_280, None),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_published_sizes_are_as_they_were_counted(name: str) -> None:
    products, once, both = COUNTED[name]
    assert padded(products) == once
    assert both is None or padded(products, train=True) == both
    if not any(isinstance(one, Convolution) for one in products):
        assert (forward(products), training(products)) == (once, both)


@pytest.mark.parametrize(
    ("name", "layers", "hidden", "queries", "keys"),
    [("gemma", 28, 3072, 16 * 256, 16 * 256), ("mistral", 32, 4096, 32 * 128, 8 * 128)],
)
def test_adapters_that_keras_adds_to_the_weights(name: str, layers: int, hidden: int, queries: int, keys: int) -> None:
    """Per layer: gradients of the weights of query and value, 1024 tokens, and the adapters' product thrice (rank 4).

    What it does not do is multiply 1024 tokens with the adapters, three times each, in the first layer the input's two.
    """
    both, rank, tokens = queries + keys, 4, 8 * 128
    more = 2 * tokens * hidden * both + 3 * 2 * hidden * rank * both
    less = 3 * 2 * tokens * rank * (2 * hidden + both)
    extra = layers * (more - less) + 2 * 2 * tokens * rank * hidden
    apart = [flops(f"{name}-fit{form}", "8") for form in ("", "-keras")]
    assert apart[1] - apart[0] == extra


def test_the_publications_have_what_the_forms_count() -> None:
    """`python -m forms.work NAME`, in benchmarks/published, prints these numbers for roofline/published/NAME.toml."""
    names = set()
    for name in published.names():
        publication = published.load(name)
        counted = {(row.work, cell.batch) for cell in publication.cells if (row := publication.row(cell)).work}
        for form, batch in counted:
            work = publication.work(form, batch)
            assert (work.flops, work.bytes) == (flops(form, batch), read(form)), (name, form, batch)
        assert {(form.name, batch) for form in publication.forms for batch in form.flops} == counted
        names |= {form for form, _ in counted}
    assert names == set(FLOPS)


def test_rows_scale_with_their_batch() -> None:
    for name in ("bert-fit", "bert-predict", "sam-fit", "sam-predict", "sd-fit", "sd-predict", "gemma-fit"):
        one, eight = flops(name, "1"), flops(name, "8")
        assert eight == 8 * one
    assert flops("sam-predict", "1") == forward(COUNTED["SAM"][0])
    assert flops("sam-fit", "1") == training(COUNTED["SAM"][0])
    assert flops("sd-fit", "1") == training(COUNTED["VAE encoder"][0])
    assert flops("sd-predict", "13") == 26 * forward(COUNTED["UNet"][0])  # with the text, and without
    assert flops("gemma-fit", "8") == COUNTED["Gemma"][2]
    assert flops("mistral-fit", "8") == COUNTED["Mistral"][2]


# ------------------------------------------------------------------------------------------------ the classes


def counted(run: Callable[[], Any]) -> float:
    """What PyTorch's counter counts in `run`."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        run()
    return float(counter.get_total_flops())


def both(run: Callable[[], Any]) -> tuple[float, float]:
    """The count of a forward pass and of forward and backward."""
    return counted(run), counted(lambda: run().float().sum().backward())


@pytest.mark.slow  # it loads transformers
def test_the_models_of_this_repository_ask_for_the_same() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from roofline import models
    from roofline.models.torch.basic import mlp
    from roofline.models.torch.encoders import bert as bert_model
    from roofline.models.torch.encoders import bert_layer
    from roofline.models.torch.images import lenet5 as lenet5_model

    with torch.device("meta"):
        dims = {**models.geometry("bert").sizes["base"], "layers": 2}
        model, tokens = bert_model.network(dims), torch.zeros(3, 64, dtype=torch.long)
        layer = bert_layer.network(models.geometry("bert-layer").sizes["base"])
        states = torch.zeros(2, 64, 1024, requires_grad=True)
        small, samples = mlp.network(models.geometry("mlp").sizes["base"]), torch.zeros(100, 4)
        images = torch.zeros(5, 1, 28, 28)
        convolutional = lenet5_model.network(models.geometry("lenet5").sizes["base"])

    form = bert(3, 64, 2, 768, 12, 3072, 2)
    assert both(lambda: model(input_ids=tokens).logits) == (forward(form), training(form))
    form = encoder_layer(2, 64, 1024, 16, 4096)

    def one_layer() -> Any:
        out = layer(states)
        return out[0] if isinstance(out, tuple) else out

    assert both(one_layer) == (forward(form), training(form))
    form = dense(100, (4, 32, 16, 4))
    assert both(lambda: small(samples)) == (forward(form), training(form))
    form = lenet5(5)  # no padding, so every tap is valid
    assert both(lambda: convolutional(images)) == (forward(form), training(form))


def test_the_dimensions_are_those_of_the_geometry_files() -> None:
    from roofline import models

    base = models.geometry("bert").sizes["base"]
    wanted = (base["layers"], base["hidden"], base["heads"], base["ffn"], base["classes"])
    assert flops("bert-predict", "1") == forward(bert(1, 512, *wanted))
    base = models.geometry("bert-layer").sizes["base"]
    assert flops("layer-512", "1") == training(encoder_layer(1, 512, base["hidden"], base["heads"], base["ffn"]))
    assert models.geometry("mlp").sizes["base"]["widths"] == [4, 32, 16, 4]
    base = models.geometry("lenet5").sizes["base"]
    assert (base["image"], base["kernel"], base["channels"], base["dense"]) == (28, 5, [6, 16], [120, 84, 10])


@pytest.mark.slow
def test_the_image_encoder_of_sam() -> None:
    """Three layers, one of them with attention over the whole image; 640 x 640 pixels, 40 patches a side."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers")
    from transformers.models.sam.modeling_sam import SamVisionEncoder

    config = library.SamVisionConfig(
        hidden_size=320, num_hidden_layers=3, num_attention_heads=4, global_attn_indexes=[1], mlp_dim=1280,
        image_size=640,
    )  # fmt: skip
    with torch.device("meta"):
        model, image = SamVisionEncoder(config), torch.zeros(1, 3, 640, 640)
    form = vision_encoder(1, 40, 320, 4, 1280, 3, 1, 14, 256)
    assert both(lambda: model(image).last_hidden_state) == (padded(form), padded(form, train=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Gemma", "Mistral"])
def test_language_models_with_adapters(name: str) -> None:
    """Two layers at full width: the first has fewer gradients than the others."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers")

    class Adapted(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, base: Any) -> None:
            super().__init__()
            self.base = base
            self.down = torch.nn.Linear(base.in_features, 4, bias=False)
            self.up = torch.nn.Linear(4, base.out_features, bias=False)

        def forward(self, x: Any) -> Any:
            return self.base(x) + self.up(self.down(x))

    config = getattr(library, f"{name}Config")(num_hidden_layers=2)
    with torch.device("meta"):
        model = getattr(library, f"{name}ForCausalLM")(config).requires_grad_(False)
        for layer in model.model.layers:
            attention = layer.self_attn
            attention.q_proj, attention.v_proj = Adapted(attention.q_proj), Adapted(attention.v_proj)
        tokens = torch.zeros(2, 32, dtype=torch.long)
        # Given, since a model that makes its own mask looks at values, of which there are none.
        given = {"attention_mask": torch.zeros(2, 1, 32, 32), "position_ids": tokens, "use_cache": False}
    dims = Decoder(
        2, config.hidden_size, config.num_attention_heads, config.num_key_value_heads, config.head_dim,
        config.intermediate_size, config.vocab_size,
    )  # fmt: skip
    form = decoder_with_adapters(2, 32, dims, 4)
    assert both(lambda: model(input_ids=tokens, **given).logits) == (forward(form), training(form))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Gemma", "Mistral"])
def test_generate_of_the_published_classes(name: str) -> None:
    """Two small layers, 3 prompts of 5 tokens, 6 new ones: 5 passes behind the prompt's own."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("transformers")
    dims = Decoder(layers=2, hidden=24, heads=4, kv_heads=2, width=8, ffn=48, words=50)
    config = getattr(library, f"{name}Config")(
        num_hidden_layers=2, hidden_size=24, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
        intermediate_size=48, vocab_size=50, pad_token_id=0, bos_token_id=None, eos_token_id=None,
        attn_implementation="eager",
    )  # fmt: skip
    model = getattr(library, f"{name}ForCausalLM")(config).eval()
    tokens = torch.full((3, 5), 7)  # none that ends a text
    asked = library.GenerationConfig(max_new_tokens=6, do_sample=False, eos_token_id=None, pad_token_id=0)
    given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "generation_config": asked}
    with torch.no_grad():
        found = counted(lambda: model.generate(**given))
    assert found == forward(generation(3, 5, 5, dims, grows=True, logits=1))


#: Two layers in Keras on PyTorch; its counter does not know PyTorch's attention on CPUs, which Mistral calls.
KERAS = """
import numpy, keras_hub
from torch.utils.flop_counter import FlopCounterMode
hub = keras_hub.models
form = dict(vocabulary_size=50, num_layers=2, num_query_heads=4, hidden_dim=24, dtype="float32")
gemma = hub.GemmaBackbone(num_key_value_heads=4, intermediate_dim=96, head_dim=8, **form)
mistral = hub.MistralBackbone(num_key_value_heads=2, intermediate_dim=48, sliding_window=512, **form)
inputs = {"token_ids": numpy.ones((3, 16), "int32"), "padding_mask": numpy.ones((3, 16), bool)}
for backbone, task in ((gemma, hub.GemmaCausalLM), (mistral, hub.MistralCausalLM)):
    model = task(backbone=backbone, preprocessor=None)
    backbone.enable_lora(rank=4)
    with FlopCounterMode(display=False) as counter:
        out = model(inputs, training=True)
    print("counted", counter.get_total_flops())
    with counter:
        model(inputs, training=True).sum().backward()
    print("counted", counter.get_total_flops())
model = hub.GemmaCausalLM(backbone=hub.GemmaBackbone(num_key_value_heads=4, intermediate_dim=96, head_dim=8, **form),
                          preprocessor=None)
model.compile(sampler="greedy")
inputs["padding_mask"] = numpy.arange(16)[None] < numpy.full((3, 1), 5)
with FlopCounterMode(display=False) as counter:
    model.generate(inputs, stop_token_ids=None)
print("generated", counter.get_total_flops())
"""


@pytest.mark.slow
@pytest.mark.thorough
def test_keras_adapters_are_merged() -> None:
    if not (find_spec("torch") and find_spec("keras_hub")):
        pytest.skip("needs torch and keras_hub")
    done = subprocess.run(
        [sys.executable, "-c", KERAS],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("counted")]
    dims = Decoder(2, 24, 4, 4, 8, 48, 50)
    gemma = decoder_with_adapters(3, 16, dims, 4, merged=True)
    mistral = decoder_with_adapters(3, 16, Decoder(2, 24, 4, 2, 6, 48, 50), 4, merged=True)
    once = 2 * 3 * 4 * 16 * 16 * 6  # one product of attention: 3 samples, 4 heads of 6, 16 x 16
    # Room for 16 tokens, of which 5 are the prompt: 11 passes, and the head for all that prefill reads.
    (generated,) = (float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("generated"))
    assert generated == forward(generation(3, 16, 11, dims, grows=False, logits=16))
    # 2 layers of 2 products forward; backward 4, but in the first layer 3, since its keys need no gradient.
    assert found == [forward(gemma), training(gemma), forward(mistral) - 4 * once, training(mistral) - 11 * once]


@pytest.mark.slow
def test_stable_diffusion() -> None:
    """At full size; skipped without diffusers, which roofline needs for nothing else."""
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("diffusers")
    channels = (128, 256, 512, 512)
    with torch.device("meta"):
        encoder = library.AutoencoderKL(
            down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
            block_out_channels=channels, layers_per_block=2, latent_channels=4,
        ).encoder  # fmt: skip
        unet = library.UNet2DConditionModel(
            in_channels=4, out_channels=4, cross_attention_dim=768, block_out_channels=(320, 640, 1280, 1280),
            down_block_types=(*("CrossAttnDownBlock2D",) * 3, "DownBlock2D"),
            up_block_types=("UpBlock2D", *("CrossAttnUpBlock2D",) * 3),
        )  # fmt: skip
        image, latent = torch.zeros(1, 3, 512, 512), torch.zeros(1, 4, 64, 64)
        time, words = torch.zeros(1), torch.zeros(1, 77, 768)
    form = image_encoder(1)
    assert both(lambda: encoder(image)) == (padded(form), padded(form, train=True))
    assert counted(lambda: unet(latent, time, words).sample) == padded(denoiser(1))
