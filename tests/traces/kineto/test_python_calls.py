"""What names of calls of Python say."""

from __future__ import annotations

import pytest

from roofline.traces.kineto import python_calls


@pytest.mark.parametrize(
    ("name", "text", "framework"),
    [
        ("train.py(12): main", "train.py:12 main", False),
        ("/home/me/work/train.py(12): <module>", "train.py:12 <module>", False),
        ("/opt/lib/python3.12/site-packages/scipy/ndimage/a.py(5): zoom", "scipy/ndimage/a.py:5 zoom", False),
        ("transformers/models/bert.py(364): forward", "transformers/models/bert.py:364 forward", False),
        ("/usr/lib/python3.10/threading.py(973): _bootstrap", "threading.py:973 _bootstrap", True),
        ("torch/nn/modules/linear.py(125): forward", "torch/nn/modules/linear.py:125 forward", True),
        ("torchvision/models/resnet.py(89): forward", "torchvision/models/resnet.py:89 forward", False),
        ("C:\\work\\train (1).py(7): f", "train (1).py:7 f", False),
        # A program's file may have the name of one of Python's; where the folder is not recorded, it is Python's.
        ("/home/me/work/profile.py(3): main", "profile.py:3 main", False),
        ("C:\\work\\trace.py(3): main", "trace.py:3 main", False),
        ("C:\\Python312\\Lib\\trace.py(3): main", "trace.py:3 main", True),
        ("/usr/lib/python3.10/code.py(3): main", "code.py:3 main", True),
        ("code.py(3): main", "code.py:3 main", True),
        ("<string>(2): __init__", "<string>:2 __init__", True),
    ],
)  # fmt: skip
def test_a_call_has_a_file_a_line_and_a_function(name: str, text: str, framework: bool) -> None:
    call = python_calls.parsed(name)
    assert call is not None
    assert (str(call), call.is_framework) == (text, framework)


@pytest.mark.parametrize("name", ["<built-in method mm of type object at 0x1>", "nn.Module: Linear_0", "", "(1): f"])
def test_other_names_are_no_calls_of_a_file(name: str) -> None:
    assert python_calls.parsed(name) is None


def test_a_module_has_a_name() -> None:
    assert python_calls.module("nn.Module: Linear_0") == "Linear_0"
    assert python_calls.module("aten::linear") is None
