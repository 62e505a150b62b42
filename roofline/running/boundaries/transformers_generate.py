"""`generate` of Hugging Face's models: one step of prefill and decodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import count
from typing import Any

from roofline.core.step import scope
from roofline.running.boundaries import torch_call
from roofline.running.boundaries._outermost import OUTERMOST
from roofline.running.boundary import Boundary, Watcher


def watch(watcher: Watcher) -> None:
    """Have `generate` report; the calls of modules inside of it are part of it."""
    from transformers.generation.utils import GenerationMixin

    def reporting(original: Callable[..., Any]) -> Callable[..., Any]:
        def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
            if OUTERMOST.inside or not watcher.wanted:
                return original(self, *args, **kwargs)
            OUTERMOST.inside = True
            try:
                with _phases(self):
                    result = original(self, *args, **kwargs)
            finally:
                OUTERMOST.inside = False
            prompt = next(iter(args), kwargs.get("inputs", kwargs.get("input_ids")))
            sizes = {} if self.config.is_encoder_decoder else _sizes(prompt, result)
            label, detail = f"{type(self).__name__}.generate()", tuple(sizes.values())
            watcher.ended(id(self), label, model=self, detail=detail, sizes=sizes)
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


@contextmanager
def _phases(model: Any) -> Iterator[None]:
    """Mark what runs inside as prefill, and as decode from when the inputs of the second pass are prepared."""
    prepare, passes = model.prepare_inputs_for_generation, count()
    own = vars(model).get("prepare_inputs_for_generation")
    with ExitStack() as phase:
        phase.enter_context(scope("prefill"))

        @wraps(prepare)  # its signature tells transformers what may be given
        def prepared(*args: Any, **kwargs: Any) -> Any:
            if next(passes) == 1:
                phase.pop_all().close()
                phase.enter_context(scope("decode"))
            return prepare(*args, **kwargs)

        model.prepare_inputs_for_generation = prepared
        try:
            yield
        finally:
            if own is None:
                del model.prepare_inputs_for_generation
            else:
                model.prepare_inputs_for_generation = own


BOUNDARY = Boundary(
    name="{label}",
    module="transformers.generation.utils",
    watch=watch,
    backend="torch",
    mode="generate",
    parameters=torch_call.BOUNDARY.parameters,
)
