"""A callback into Python from a compiled step."""

from __future__ import annotations

from roofline.comparison.account.annotation import Annotation, Pattern

ANNOTATION = Annotation(
    rule="host-idle",
    says="{more} calls Python back from its step.",
    patterns=(Pattern(unlike=True, more=("xla_(ffi_)?python_\\w*callback|(eager)?pyfunc(:.*)?|numpyfunction",)),),
    pairs={"jax": "fifth/clusters-shares-by-numpy", "tensorflow": "third/tf-mixer-gelu-in-numpy"},
    advice={
        "jax": "write it in jax.numpy in the place of pure_callback or debug.callback",
        "tensorflow": "write it in TensorFlow's ops in the place of py_function or numpy_function",
    },
)
