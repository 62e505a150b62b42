"""Segment Anything, as keras_hub's SAMImageSegmenter and its ViTDetBackbone.

On the torch backend Keras transposes the image to and from PyTorch's own layout around each convolution.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import keras

from roofline.models._keras.images import segment_anything
from roofline.models.keras import _step


def encoder(dims: Mapping[str, Any]) -> keras.Model:
    """The image encoder, which training runs; (batch, image, image, 3) to (batch, patches, patches, out)."""
    return _step.library().models.ViTDetBackbone(
        image_shape=(dims["image"], dims["image"], 3),
        patch_size=dims["patch"],
        num_layers=dims["layers"],
        hidden_size=dims["hidden"],
        num_heads=dims["heads"],
        intermediate_dim=dims["ffn"],
        window_size=dims["window"],
        global_attention_layer_indices=segment_anything.everywhere(dims),
        num_output_channels=dims["out"],
    )


def network(dims: Mapping[str, Any]) -> keras.Model:
    """The whole model, which inference runs; images and prompts to masks and their quality.

    It is the model in keras_hub's task, which cannot take arrays by `predict_on_batch` itself.
    """
    library = _step.library()
    patches = dims["image"] // dims["patch"]
    prompts = library.layers.SAMPromptEncoder(
        hidden_size=dims["out"],
        image_embedding_size=(patches, patches),
        input_image_size=(dims["image"], dims["image"]),
    )
    masks = library.layers.SAMMaskDecoder(
        num_layers=dims["decoder_layers"],
        hidden_size=dims["out"],
        intermediate_dim=dims["decoder_ffn"],
        num_heads=dims["decoder_heads"],
        embedding_dim=dims["out"],
        iou_head_hidden_dim=dims["out"],
    )
    backbone = library.models.SAMBackbone(encoder(dims), prompts, masks)
    task = library.models.SAMImageSegmenter(backbone)
    return keras.Model(task.input, task.output, name="segment_anything")


build = partial(segment_anything.build, _step, network, encoder)
