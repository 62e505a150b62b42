"""Whether turns in fresh processes settle what differs and nothing else: `make settled`. See docs/comparing.md.

Ten pairs planted with 15 % or more must be settled, nine at least and in the right direction; of ten nulls none, on a
quiet machine and beside a busy process. The pairs are of benchmarks/planted, by the names of their manifests; the steps
that were recorded there say how many of them a process takes. It takes 20 to 25 minutes and stops after --minutes.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import stdev

from plants import MEMORY, MODELS, Pair, pairs

from roofline.cli.options.request import make_request
from roofline.comparison.headline import in_turns
from roofline.comparison.turns import Paired
from roofline.errors import RooflineError
from roofline.measuring.turns import Form, form_of, judge_forms, take_turns

#: By the set of their manifest. Of the planted ones one costs 1.2 to 1.8 times the other.
PLANTED = (
    ("first", "transposes"),
    ("first", "sleep"),
    ("first", "eager-attention"),
    ("first", "unfused-norm-train"),
    ("first", "optimizer-loop"),
    ("first", "cnn-channels-last-copies"),
    ("second", "decoder-rotary-slices"),
    ("fifth", "words-wide-norm"),
    ("sixth", "gpt-scaled-and-smoothing-train"),
    ("sixth", "lru-merging"),
)
#: The same function twice; the last two the same work under other names.
NULLS = (
    ("first", "null-encoder"),
    ("first", "null-tiny"),
    ("first", "null-train"),
    ("first", "null-dense"),
    ("second", "null-towers-train"),
    ("second", "null-jax-unet"),
    ("third", "null-graph-train"),
    ("fifth", "null-seasons-train"),
    ("fourth", "rotary-renamed"),
    ("fourth", "forecast-renamed"),
)
#: Of the nulls, those that are run beside a busy process too.
BESIDE = NULLS[::2]
#: Planted pairs that must be settled.
LEAST = 9
_NUMBERS = ("batch", "seq", "layers", "threads", "steps")


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a pair. paired: None where it was not run, or failed. spread: between processes, in percent."""

    pair: Pair
    paired: Paired | None
    spread: float | None
    seconds: float

    @property
    def sentence(self) -> str:
        return "not run" if self.paired is None else in_turns(self.paired, ("a", "b")).text

    @property
    def busy(self) -> bool:
        """Whether other programs used the cores in too many turns, so that a null is not settled whatever it is."""
        return self.paired is not None and any(self.paired.busy)

    @property
    def right(self) -> bool:
        """Whether a planted pair is settled, the run that has the cause being the slower one; a null is not."""
        if self.paired is None:
            return False
        if self.pair.kind == "null":
            return not self.paired.settled and "slower" not in self.sentence
        slower = "a" if self.paired.a > self.paired.b else "b"
        return self.paired.settled and slower == self.pair.causes[0].slower


def run(pair: Pair) -> Result:
    """Let both steps of a pair take turns."""
    begin = time.monotonic()
    a, b = forms = [_form(pair, side) for side in "ab"]
    try:
        take_turns(forms, [(a, b)], _quiet)
    except RooflineError as error:
        print(f"{pair.name}: {error}", file=sys.stderr)
    paired = None if a.why or b.why else judge_forms(a, b)
    for form in forms:
        if form.why:
            print(f"{form.name}: {form.why}", file=sys.stderr)
    return Result(pair, paired, _spread(forms), time.monotonic() - begin)


def _form(pair: Pair, side: str) -> Form:
    """The step of one side, as its manifest says; its profile tells how long it takes."""
    words = iter(("--backend", pair.backend, "--threads", "1", *pair.arguments[side]))
    asked: dict[str, object] = {}
    for word in words:
        name = word.removeprefix("--").replace("-", "_")
        asked[name] = int(next(words)) if name in _NUMBERS else next(words)
    backend = str(asked.pop("backend"))
    asked.pop("steps", None)
    request = make_request(str(MODELS / pair.steps[side]), backend, device="cpu", **asked)  # type: ignore[arg-type]
    variables = {"OMP_WAIT_POLICY": "PASSIVE", **MEMORY[pair.memory[side]]}
    return form_of(f"{pair.name} {side}", pair.profiles()["ab".index(side)], request, variables)


def _spread(forms: list[Form]) -> float | None:
    """The standard deviation between processes of one step, the larger of both [%]."""
    logs = [[math.log(median) for median in form.medians if median] for form in forms]
    return max((100 * stdev(each) for each in logs if len(each) > 1), default=None)


def _quiet(text: str) -> None:
    """Nothing is said between the lines of the report."""


@contextmanager
def _busy() -> Iterator[None]:
    """While active, another process wants a core for itself."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        try:
            yield
        finally:
            other.kill()


def judge(part: str, results: list[Result]) -> tuple[str, bool]:
    """Say how many results of a part are right, and whether it fails: too few are, or none says anything.

    A null says nothing of a quiet machine where other programs used the cores.
    """
    told = [result for result in results if result.paired is not None and not (part == "nulls" and result.busy)]
    right, ran = sum(result.right for result in told), sum(result.paired is not None for result in results)
    busy = sum(result.busy for result in results)
    settled = sum(result.paired is not None and result.paired.settled for result in results)
    least = min(LEAST, len(results)) if part == "planted" else max(1, len(told))
    words = f"{right} of {len(told)} right, {settled} settled; {busy} of {ran} busy, {len(results) - ran} not run"
    return words, right < least


def line(result: Result) -> str:
    spread = "" if result.spread is None else f", processes {result.spread:.1f} % apart"
    mark = "-    " if result.paired is None else "busy " if result.busy else "ok   " if result.right else "WRONG"
    return f"{mark} {result.pair.name:32s} {result.sentence} [{result.seconds:.0f} s{spread}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="pairs; all by default")
    parser.add_argument("--part", choices=("planted", "nulls", "beside"), help="one part (default: all three)")
    parser.add_argument("--minutes", type=float, default=24.0, help="start no pair after so long (default: 24)")
    asked = parser.parse_args()
    known = {name: pairs(name) for name in {of for of, _ in (*PLANTED, *NULLS)}}
    begin = time.monotonic()
    wrong = 0
    for part, some in (("planted", PLANTED), ("nulls", NULLS), ("beside", BESIDE)):
        some = [(of, name) for of, name in some if not asked.names or name in asked.names]
        if asked.part not in (None, part) or not some:
            continue
        print({"planted": "Planted", "nulls": "Nulls", "beside": "Nulls beside a busy process"}[part], flush=True)
        results = []
        for of, name in some:
            if time.monotonic() - begin > 60 * asked.minutes:
                results.append(Result(known[of][name], None, None, 0.0))
            elif part == "beside":
                with _busy():
                    results.append(run(known[of][name]))
            else:
                results.append(run(known[of][name]))
            print(line(results[-1]), flush=True)
        words, failed = judge(part, results)
        print(f"{words}\n", flush=True)
        wrong += failed
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
