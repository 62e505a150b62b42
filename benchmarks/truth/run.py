"""Random models built alike in PyTorch, JAX and TensorFlow, counted and held to their closed form: `make truth N=2000`.

Each model is drawn by its number (draw.py), its model FLOPs and parameters follow from its description by hand-written
arithmetic (closed_form.py), and each backend's count of one step has to equal both to the last FLOP, with nothing
unknown. What does not is printed with the number of the model: `make truth ONLY=17` repeats it, and SMALL=1 leaves out
the layers that do not matter. OUTPUT=FILE gets each result as it comes, with the commit that counted it. What the same
commit counted without an error is not counted again: a run that was broken off goes on. Of a checkout with changes that
are in no commit, all is counted again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from closed_form import closed_form
from draw import draw, named
from net import Model, places
from smaller import smaller

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from workers import Result, ask  # noqa: E402

ROOT = HERE.parents[1]
CHANGED = "-changed"
#: All models, and a tenth of them.
BACKENDS = ("torch", "jax", "tensorflow", "tensorflow-xla")
TENTH = ("torch-compile", "torchscript")
#: Models of one process: imports are paid once, and what frameworks keep does not pile up.
MODELS_OF_A_PROCESS = 40
#: Seconds that one model may take.
PATIENCE = {"torch-compile": 460.0}
#: XLA makes the same instructions and leaves them to LLVM unoptimised: a third of the time to compile. On a CPU it
#: would make one kernel of a loop over less than a kilobyte, in which nobody sees how often it goes round.
COMPILED_FAST = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=0"
)


class Miss(NamedTuple):
    """A model whose count on a backend is not the closed form's, and how."""

    name: str
    backend: str
    sort: str
    words: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=100, help="count models 0 to N - 1")
    parser.add_argument("--only", nargs="+", help="count these models, and print what they are")
    parser.add_argument("--small", action="store_true", help="with --only: leave out layers that do not matter")
    parser.add_argument("--backends", nargs="+", default=[*BACKENDS, *TENTH])
    parser.add_argument("--output", type=Path, help="append each result to this file, and count only what it lacks")
    asked = parser.parse_args()
    names = asked.only or [str(number) for number in range(asked.models)]
    os.environ.setdefault("XLA_FLAGS", COMPILED_FAST)
    misses: list[Miss] = []
    results: list[Result] = []
    if asked.only:
        for name in names:
            describe(name, named(name))
    for backend in asked.backends:
        chosen = names if asked.only or backend in BACKENDS else [name for name in names if tenth(int(name))]
        begin = time.monotonic()
        own = list(count_missing(backend, chosen, asked.output))
        results += own
        missed = [miss for result in own for miss in compare(backend, result)]
        for miss in missed:
            print(f"model {miss.name} on {miss.backend}: {miss.words}")
            if asked.small and asked.only:
                describe_smaller(miss)
        misses += missed
        counted = [result for result in own if "flops" in result]
        absent = sum("absent" in result for result in own)
        right = len(counted) - len({miss.name for miss in missed} & {result["model"] for result in counted})
        print(
            f"{backend}: {right} of {len(own)} models as in the closed form, {absent} cannot be expressed, "
            f"{time.monotonic() - begin:.0f} s",
            flush=True,
        )
    if not asked.only:
        print(summary(asked.models, results, misses))
    sys.exit(1 if misses else 0)


def count_missing(backend: str, names: Sequence[str], output: Path | None) -> Iterator[Result]:
    """Yield the results of models on a backend: those that the file holds, then the others, appended as they come."""
    code = "" if output is None else commit()
    known = {} if output is None else written(output, backend, code)
    yield from (known[name] for name in names if name in known)
    for result in count(backend, [name for name in names if name not in known]):
        whole = {"backend": backend, "commit": code, **result}
        if output is not None:
            with output.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(whole)}\n")
        yield whole


def written(output: Path, backend: str, code: str) -> dict[str, Result]:
    """Read the results of a backend that a commit without changes counted, by the names of their models; no errors."""
    if code.endswith(CHANGED) or not output.exists():
        return {}
    results = map(json.loads, output.read_text(encoding="utf-8").splitlines())
    wanted = (backend, code)
    counted = (one for one in results if "error" not in one and (one["backend"], one.get("commit")) == wanted)
    return {result["model"]: result for result in counted}


def commit() -> str:
    """Return the commit of this checkout, which ends in CHANGED where files of it differ from that."""
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", f"--dirty={CHANGED}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def tenth(number: int) -> bool:
    """Whether the backends that take long count that model."""
    return number % 10 == 3


def describe(name: str, model: Model) -> None:
    form = closed_form(model)
    print(f"{name}: {model}")
    print(f"  closed form: {form.flops:,} FLOP, forward {dict(form.forward)}, backward {dict(form.backward)}")
    print(f"  {form.parameters:,} parameters", flush=True)


def describe_smaller(miss: Miss) -> None:
    """Print the smallest model that is found to be counted as wrongly as a whole one."""

    def wrong(names: Sequence[str]) -> list[bool]:
        results = {result["model"]: result for result in count(miss.backend, names)}
        return [any(other.sort == miss.sort for other in compare(miss.backend, results[name])) for name in names]

    name = smaller(miss.name, wrong)
    describe(name, named(name))
    for result in count(miss.backend, [name]):
        for other in compare(miss.backend, result):
            print(f"  {other.backend}: {other.words}", flush=True)


def count(backend: str, names: Sequence[str]) -> Iterator[Result]:
    """The results of all models on a backend, in processes of a few each."""
    patience = PATIENCE.get(backend, 180.0)
    yield from ask(HERE / "worker.py", backend, names, what="model", patience=patience, most=MODELS_OF_A_PROCESS)


def compare(backend: str, result: Result) -> Iterator[Miss]:
    """What of a result is not the closed form."""
    name = result["model"]
    if "error" in result:
        yield Miss(name, backend, "error", result["error"])
    if "flops" not in result:
        return
    form = closed_form(named(name))
    if round(result["flops"]) != form.flops:  # what is divided over instructions adds up to a whole number but for bits
        words = f"{result['flops']:,.0f} model FLOP, not {form.flops:,} ({result['flops'] - form.flops:+,.0f}"
        passes = f"forward {form.forward.total():,}, backward {form.backward.total():,}"
        yield Miss(name, backend, "flops", f"{words}; {result['phases']}, closed form {passes})")
    if result["parameters"] != form.parameters:
        yield Miss(name, backend, "parameters", f"{result['parameters']} parameters, not {form.parameters}")
    if result["unknown"]:
        yield Miss(name, backend, "unknown", f"unknown: {'; '.join(result['unknown'])}"[:400])


def summary(many: int, results: Sequence[Result], misses: Sequence[Miss]) -> str:
    """Models by kind of layer: how many hold it, and how many of these are counted otherwise on some backend."""
    wrong = {int(miss.name) for miss in misses}
    holding: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for number in range(many):
        kinds = {place.layer.kind for place in places(draw(number))}
        holding.update(kinds)
        missed.update(kinds if number in wrong else ())
    lines = ["", f"{'kind':16}{'models':>8}{'missed':>8}"]
    lines += [f"{kind:16}{models:8}{missed[kind]:8}" for kind, models in holding.most_common()]
    reasons = Counter(result["absent"] for result in results if "absent" in result)
    lines += ["", *(f"{times} times: {reason}" for reason, times in reasons.most_common())]
    sorts = Counter((miss.backend, miss.sort) for miss in misses)
    lines += ["", *(f"{backend}: {sort} {times}" for (backend, sort), times in sorted(sorts.items()))]
    lines.append(f"{many - len(wrong)} of {many} models equal their closed form wherever they were counted")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
