"""A step that generates text: the own `generate` of keras_hub or KerasNLP, greedily, with a cache of keys and values.

The cache is made in the phase of prefill by a pass over the prompt and all of the room for new tokens behind it, since
both pad a prompt to the length of the result. Every new token is a turn of the sampler's loop in the phase of
decode, also the first one. Nothing ends a text early.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from roofline.core.step import Step, Workload, scope
from roofline.models._keras.prepare import generator
from roofline.models._keras.step import own_step
from roofline.models._keras.version import Version
from roofline.models._step import generation_switches, transformer_switches


def generation(version: Version, workload: Workload, dims: Mapping[str, Any], model: Any, attention: str) -> Step:
    """One call of `generate`: `new_tokens` for each of `batch` prompts of `seq` tokens.

    attention: the form that the model computes it in.
    """
    batch, seq, new = dims["batch"], dims["seq"], dims["new_tokens"]
    prompt = generator().integers(dims["vocabulary"], size=(batch, seq), dtype=np.int32)
    room = np.zeros((batch, new), np.int32)
    inputs = {
        "token_ids": np.concatenate([prompt, room], axis=1),
        "padding_mask": np.concatenate([np.ones_like(prompt), room], axis=1),
    }

    def called(arrived: Any) -> object:
        return version.generated(model, arrived)

    step = own_step(
        version,
        workload,
        dims,
        model,
        inputs,
        called,
        switches=transformer_switches(workload, dims, attention=attention, mask="all ones, causal")
        | generation_switches(kv_cache="static", passes=new),
    )
    _generates_greedily(version, model)
    return step


def _generates_greedily(version: Version, model: Any) -> None:
    """Gives a compiled language model the greedy sampler, whose loop is decode; all before it is prefill.

    Compiling has given it the library's default sampler, which draws.
    """

    class Decoding(version.library().samplers.GreedySampler):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            with scope("decode"):
                return super().__call__(*args, **kwargs)

    generate_step = model.generate_step

    def marked(*args: Any, **kwargs: Any) -> Any:
        with scope("prefill"):
            return generate_step(*args, **kwargs)

    model.generate_step = marked
    version.samples(model, Decoding())
