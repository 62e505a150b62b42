from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from roofline.pytorch.inductor.scopes import line_of, path_of

NAMES = frozenset(
    [
        *("transformer", "transformer.attentions", "transformer.norm", "head", "head.norm", "head.summary"),
        *(f"transformer.attentions.{layer}{part}" for layer in (0, 1) for part in ("", ".query", ".ffn")),
    ]
)


@pytest.mark.parametrize(
    ("stack", "path"),
    [
        (["L['self']"], ""),
        (["L['self'].head", "L['self'].head.summary"], "head/summary"),
        (
            ["L['self'].transformer", "L['self'].transformer.attentions._modules['1']"],
            "transformer/attentions.1",
        ),
        # A class that looks its attributes up by itself, as diffusers' models do.
        (
            ["L['self'].transformer", "L['self'].transformer.__dict__['_modules']['attentions'].0.query"],
            "transformer/attentions.0.query",
        ),
        # After a graph break in `transformer`, whose caller is not in the stack.
        (["L['self'].attentions.0", "L['self'].attentions.0.query"], "transformer/attentions.0/query"),
        # After one in a layer: either could be it. Nor does `norm` say whose it is, nor a module that is none of these.
        (["L['self'].ffn"], ""),
        (["L['self'].norm"], ""),
        (["L['self'].other"], ""),
    ],
)
def test_a_path_is_that_of_the_modules_in_eager_mode(stack: list[str], path: str) -> None:
    assert path_of(stack, NAMES) == path


def test_a_layer_after_a_graph_break_keeps_its_number() -> None:
    names = frozenset(["bert", "bert.layer", "bert.layer.0", "bert.layer.0.core", "bert.layer.0.core.softmax"])
    assert path_of(["L['self'].softmax"], names) == "bert/layer.0/core/softmax"


def test_the_innermost_line_of_the_user() -> None:
    library = f'  File "{pytest.__file__}", line 9, in linear\n    return linear(x)\n'
    called = ("train.py", 3, "step", "y = model(x)"), ("net.py", 41, "forward", "return self.inner(x)")
    frames = [
        f'  File "/home/someone/{file}", line {line}, in {name}\n    {text}\n' for file, line, name, text in called
    ]
    mine = "".join(frames)
    nodes = [SimpleNamespace(meta=meta) for meta in ({}, {"stack_trace": library}, {"stack_trace": mine + library})]
    assert line_of(nodes) == "net.py:41"
    assert line_of(nodes[:2]) is None
