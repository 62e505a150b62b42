"""`generate` of Hugging Face's models: one step of prefill and decodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from roofline.core.generate_phases import generate_phases
from roofline.running.boundaries import torch_call
from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have `generate` report; the calls of modules inside of it are part of it."""
    from transformers.generation.utils import GenerationMixin

    def reporting(original: Callable[..., Any]) -> Callable[..., Any]:
        def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
            outermost = OUTERMOST.own
            if outermost.inside or not watcher.wanted:
                return original(self, *args, **kwargs)
            outermost.inside = True
            try:
                with generate_phases(self):
                    result = original(self, *args, **kwargs)
            finally:
                outermost.inside = False
            prompt = next(iter(args), kwargs.get("inputs", kwargs.get("input_ids")))
            sizes = {} if self.config.is_encoder_decoder else _sizes(prompt, result)
            label, detail = f"{type(self).__name__}.generate()", tuple(sizes.values())
            watcher.ended(
                watcher.source(self, torch_call.kind_of_module), label, model=self, detail=detail, sizes=sizes
            )
            return result

        return generate

    watcher.wrap(GenerationMixin, "generate", reporting)


def _sizes(prompt: Any, result: Any) -> Mapping[str, int]:
    """Return the numbers of samples, tokens of a prompt and new tokens, where the tensors tell them."""
    given, made = (tuple(getattr(value, "shape", ())) for value in (prompt, getattr(result, "sequences", result)))
    if len(given) != 2 or len(made) != 2:
        return {}
    (batch, seq), (_, length) = given, made
    return {"batch": batch, "samples": batch, "seq": seq, "new_tokens": length - seq}


BOUNDARY = Boundary(
    name="{label}",
    module="transformers.generation.utils",
    watch=watch,
    backend="torch",
    mode="generate",
    parameters=torch_call.BOUNDARY.parameters,
)
