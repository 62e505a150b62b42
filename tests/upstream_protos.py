"""Messages as XLA defines them, out of the files that TensorFlow installs, without importing TensorFlow."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2


def file_descriptor(path):
    """The FileDescriptorProto that lies serialized in a generated module; skips where it is not installed."""
    spec = importlib.util.find_spec("tensorflow")
    # Without TensorFlow the name finds tests/tensorflow, a folder of ours without an `__init__.py`.
    if spec is None or spec.origin is None:
        pytest.skip("tensorflow, whose copy of the messages is compared with, is not installed")
    tree = ast.parse((Path(spec.submodule_search_locations[0]) / path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
            return descriptor_pb2.FileDescriptorProto.FromString(ast.literal_eval(node.args[0]))
    raise AssertionError(f"no serialized descriptor in {path}")
