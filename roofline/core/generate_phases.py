"""Mark the phases of a call of transformers' `generate`: prefill, and decode. Imports no framework."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from itertools import count
from typing import Any

from roofline.core.step import scope


@contextmanager
def generate_phases(model: Any) -> Iterator[None]:
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
