"""Telling prefill from decode leaves the model as it was, and its functions like themselves."""

from __future__ import annotations

import inspect

from roofline.core.generate_phases import generate_phases


class Model:
    def prepare_inputs_for_generation(self, input_ids: object, inputs_embeds: object = None) -> object:
        return input_ids


def test_what_prepares_inputs_keeps_its_signature() -> None:
    """Transformers reads in it whether `inputs_embeds` may be given."""
    model = Model()
    with generate_phases(model):
        assert list(inspect.signature(model.prepare_inputs_for_generation).parameters) == ["input_ids", "inputs_embeds"]
        assert model.prepare_inputs_for_generation(1) == 1
    assert vars(model) == {}


def test_a_models_own_function_is_there_again() -> None:
    model, own = Model(), lambda input_ids: input_ids
    model.prepare_inputs_for_generation = own  # type: ignore[method-assign,assignment]
    with generate_phases(model):
        assert model.prepare_inputs_for_generation is not own
    assert model.prepare_inputs_for_generation is own
