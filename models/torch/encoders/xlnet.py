"""XLNet with a two-class head (Hugging Face), random weights, one sequence of full length per sample.

Yang et al. 2019. Size base is xlnet-base-cased: 116,718,336 parameters, and 592,130 in the head (768 x 768 + 768 before
tanh, 768 x 2 + 2 after it). Attention adds to each score one for the distance of the two tokens, from a product with
keys of all 2 x seq distances, made for every sample; it is written out in inference too. As for one segment and a
classification, there are no segments, no second stream and no memory, so that 3 x hidden parameters of each layer and
one embedding get no gradient. The mask of ones becomes one of tokens against tokens, taken from the scores of every
layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from torch import nn

from roofline.core.step import Step, Workload
from roofline.models.torch._step import prepare, transformers
from roofline.models.torch._transformers import GELU, classifier, refuse_fused_attention


def network(dims: Mapping[str, Any]) -> nn.Module:
    """XLNetForSequenceClassification; (batch, seq) token numbers to (batch, classes)."""
    library = transformers()
    config = library.XLNetConfig(
        vocab_size=dims["vocabulary"],
        d_model=dims["hidden"],
        n_layer=dims["layers"],
        n_head=dims["heads"],
        d_inner=dims["ffn"],
        ff_activation=GELU[dims["gelu"]],
        dropout=dims["dropout"],
        summary_last_dropout=dims["head_dropout"],
        use_mems_eval=False,
        num_labels=dims["classes"],
    )
    model = library.XLNetForSequenceClassification(config)
    for layer in model.transformer.layer:
        layer.rel_attn.core = Core()
        layer.rel_attn.__class__ = _in_two_modules(type(layer.rel_attn))
    return model


class Core(nn.Module):
    """What mixes tokens, as a module: the library's one holds the matrices too, and its scope would not tell which."""

    def forward(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Whatever the library's method answers."""
        return method(*args, **kwargs)


@cache
def _in_two_modules(kind: type[nn.Module]) -> type[nn.Module]:
    """The library's attention, whose core is run by its module `core`."""

    class Attention(kind):  # type: ignore[misc, valid-type]
        def rel_attn_core(self, *args: Any, **kwargs: Any) -> Any:
            return self.core(super().rel_attn_core, *args, **kwargs)

    return Attention


def build(workload: Workload) -> Step:
    """One forward pass or one training step (cross entropy, AdamW) of XLNet."""
    refuse_fused_attention(workload)
    dims = prepare(workload)
    return classifier(workload, dims, network(dims))
