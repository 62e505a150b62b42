"""Counts calls of functions on one backend: `worker.py BACKEND FUNCTION...` writes a line of JSON for each, in order.

Whoever starts it has set the environment that the backend asks for. It ends after a call that fails, with status 0 and
without the remaining ones.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import json
import os
import sys
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from arguments import arrays, calls

from roofline.core.step import Step
from roofline.errors import MeasurementError
from roofline.recording.backend import load
from roofline.recording.recording import Plan, Recording
from roofline.recording.step_recorder import NO_WORK

CALLS = Path(__file__).with_name("calls.toml")
#: What a call is written with besides our arrays.
LIBRARIES = {
    "torch": {"torch": "torch"},
    "jax": {"jax": "jax", "jnp": "jax.numpy", "lax": "jax.lax"},
    "tensorflow": {"tf": "tensorflow"},
}
NONE: Mapping[str, str] = MappingProxyType({})


def main() -> None:
    backend, names = sys.argv[1], sys.argv[2:]
    results = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries print where they like
    written = tomllib.loads(CALLS.read_text(encoding="utf-8"))[backend]
    for name in names:
        result = count(backend, name, written.get(name))
        print(json.dumps({"function": name, **result}), file=results)
        if "error" in result:
            return
        gc.collect()


def count(backend: str, name: str, written: str | Mapping[str, str] | None) -> dict[str, Any]:
    """Count a call of a function.

    written: the call; with it what is made before the step, by name; or by kind why it is not called.
    """
    made = dict(written) if isinstance(written, Mapping) else {}
    call = made.pop("call", None) if made else written
    if made and call is None:
        return made
    try:
        function = resolve(name)
        call = call or search(backend, function)
        if call is None:
            return {"error": "no call was found that it takes"}
        run = prepared(backend, function, call, made)
        plan = Plan(device="cpu", threads=1, count_only=True)
        recording = load(backend).recorder.record(Step(run=run, mode="infer"), plan, lambda text: None)
    except MeasurementError as error:
        if str(error) != NO_WORK:
            return {"call": call, "error": str(error)}
        return {"call": call, "ops": {}, "unknown": {}}
    except Exception as error:
        traceback.print_exc()
        return {"call": call, "error": f"{type(error).__name__}: {' '.join(str(error).split())[-400:]}"}
    return {"call": call, **summary(recording)}


def resolve(name: str) -> Callable[..., Any]:
    path, _, attribute = name.rpartition(".")
    function: Callable[..., Any] = getattr(importlib.import_module(path), attribute)
    return function


def search(backend: str, function: Callable[..., Any]) -> str | None:
    """The first call that gives arrays, else the first one that the framework takes."""
    taken = None
    for call in calls():
        try:
            results = prepared(backend, function, call, traced=False)()
        except Exception:
            continue
        if holds_arrays(results):
            return call
        taken = taken or call
    return taken


def holds_arrays(results: Any) -> bool:
    if isinstance(results, (tuple, list)):
        return any(map(holds_arrays, results))
    return hasattr(results, "dtype") and hasattr(results, "shape")


def prepared(
    backend: str, function: Callable[..., Any], call: str, made: Mapping[str, str] = NONE, traced: bool = True
) -> Callable[[], Any]:
    """What makes the call. traced: with the arrays as arguments of a compiled function, where the backend has these."""
    code = compile(call, "<call>", "eval")
    scope = {"f": function, "np": np}
    scope |= {name: importlib.import_module(path) for name, path in LIBRARIES[backend].items()}
    convert = eval({"torch": "torch.tensor", "jax": "jnp.array", "tensorflow": "tf.constant"}[backend], scope)
    named = {name: convert(value) for name, value in arrays().items()}
    for name, expression in made.items():
        scope[name] = eval(expression, scope | named)
    given = {name: value for name, value in named.items() if name in names_in(code) and name not in made}

    def body(**values: Any) -> Any:
        return eval(code, {**scope, **values})

    compiled: Callable[..., Any] = body
    if traced and backend == "jax":
        compiled = scope["jax"].jit(body)
    elif traced and backend == "tensorflow":
        tf = scope["tf"]

        def arrays_of(**values: Any) -> Any:
            results = tf.nest.flatten(body(**values), expand_composites=True)
            return [result for result in results if tf.is_tensor(result)]

        compiled = tf.function(arrays_of, autograph=False)
    return lambda: compiled(**given)


def names_in(code: Any) -> set[str]:
    """All names in a piece of code, functions within it included."""
    inner = [names_in(constant) for constant in code.co_consts if hasattr(constant, "co_names")]
    return set(code.co_names).union(*inner) - set(dir(builtins))


def summary(recording: Recording) -> dict[str, Any]:
    """The work of all ops together, how many there are of each name, and what is not known of them."""
    whole, functions, unknown = Counter[str](), Counter[str](), {}
    for op in recording.ops:
        signature = recording.signatures[op.signature]
        cost = signature.cost
        missing = [field for field in (*FIELDS, "functions") if getattr(cost, field) is None]
        if missing:
            unknown[signature.name] = f"{', '.join(missing)}: {cost.note}"
        for field in FIELDS:
            whole[field] += getattr(cost, field) or 0.0
        functions.update(cost.functions or {})
    names = Counter(recording.signatures[op.signature].name for op in recording.ops)
    work = {field: whole[field] for field in FIELDS}
    return {"ops": dict(names), **work, "functions": dict(functions), "unknown": unknown}


FIELDS = ("model_flops", "flops", "vector_flops", "int_ops", "bytes_read", "bytes_written")

if __name__ == "__main__":
    main()
