"""Sweeps functions of PyTorch, JAX and TensorFlow, every k-th of their own index: `make functions`.

Each is called with small arrays and counted as a step of its own. What of it is unknown is printed with why.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from index import SWEPT, every_kth, index

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from workers import Result, ask  # noqa: E402

#: Seconds that one call may take, its compilation and the search for its arguments included.
PATIENCE = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frameworks", nargs="+", default=list(SWEPT), choices=list(SWEPT))
    parser.add_argument("--only", nargs="+", help="these functions, by their full names")
    parser.add_argument("--output", type=Path, help="write every result to this file, a line of JSON each")
    asked = parser.parse_args()
    indices = {framework: index(framework) for framework in asked.frameworks}
    absent = [name for name in asked.only or () if not any(name in names for names in indices.values())]
    if absent:
        parser.error(f"no function of {', '.join(indices)} that is swept: {', '.join(absent)}")
    results = [result for framework, names in indices.items() for result in sweep(framework, names, asked.only)]
    if asked.output is not None:
        asked.output.write_text("".join(f"{json.dumps(result)}\n" for result in results), encoding="utf-8")
    sys.exit(any(result["kind"] in ("error", "wrong") for result in results))


def sweep(framework: str, names: Sequence[str], only: Sequence[str] | None) -> list[Result]:
    """Count functions of a framework, of its index `names`, and print the results: `only` these, or every k-th."""
    chosen = [name for name in only if name in names] if only else every_kth(names, SWEPT[framework])
    hand = tomllib.loads((HERE / "by_hand.toml").read_text(encoding="utf-8"))[framework]
    results = []
    for counted in ask(HERE / "worker.py", framework, chosen, what="function", patience=PATIENCE, most=len(names)):
        result = {"framework": framework, **counted}
        result["by hand"] = list(otherwise(hand.get(result["function"], {}), result))
        result["kind"] = kind(result)
        print(line(result), flush=True)
        results.append(result)
    kinds = Counter(result["kind"] for result in results)
    words = ", ".join(f"{number} {what}" for what, number in kinds.most_common())
    print(f"{framework}: {len(results)} of {len(names)} functions: {words}", flush=True)
    return results


def kind(result: Result) -> str:
    """Sort a result: error, host, absent, wrong, unknown, no op (nothing of it computes or moves anything) or known."""
    for why in ("error", "host", "absent"):
        if why in result:
            return why
    if result["by hand"]:
        return "wrong"
    return "unknown" if result["unknown"] else "known" if result["ops"] else "no op"


def otherwise(hand: Mapping[str, str], result: Result) -> Iterator[str]:
    """What of a call is not as counted by hand: by the names of its fields there."""
    counted = {
        "asked": result.get("model_flops"),
        "executed": result.get("flops"),
        "vector": result.get("vector_flops"),
        "functions": sum(result.get("functions", {}).values()),
    }
    for field, arithmetic in hand.items():
        number = float(eval(arithmetic, {"np": np}))
        if counted[field] is None or not math.isclose(counted[field], number, rel_tol=1e-12):
            yield f"{field} {number:,.2f} ({arithmetic}), and not {counted[field]}"


def line(result: Result) -> str:
    head = f"{result['kind']:8}{result['function']}"
    if "ops" not in result:
        return f"{head}: {result.get(result['kind'])}"
    head = f"{head}: {result['call']}"
    if result["by hand"]:
        return f"{head}: by hand {'; '.join(result['by hand'])}"
    if result["unknown"]:
        return f"{head}: {'; '.join(f'{op} ({why})' for op, why in result['unknown'].items())}"
    if not result["ops"]:
        return head
    work = f"{result['model_flops']:,.0f} asked, {result['flops']:,.0f} + {result['vector_flops']:,.0f} FLOP"
    counts = f"{sum(result['functions'].values()):,.0f} functions, {result['int_ops']:,.0f} integer"
    return f"{head}: {work}, {counts}, {result['bytes_read']:,.0f} B read, {result['bytes_written']:,.0f} B written"


if __name__ == "__main__":
    main()
