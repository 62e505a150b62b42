"""How wide the ranges of imported traces are, and what narrowed them: the table of docs/imports.md.

python benchmarks/ranges.py [TRACES]     write the table anew

TRACES: the folder of the public traces that the page names; without it ../shared/traces. They are not kept here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from roofline import units
from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.caches.traffic import handed_over
from roofline.content import wording
from roofline.core.executor import executor_of
from roofline.core.rows import rows
from roofline.importing import read

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "imports.md"
TRACES = ROOT.parent / "shared" / "traces"
MARKS = ("<!-- written by benchmarks/ranges.py -->", "<!-- to here -->")
COLUMNS = ("trace", "device", "of roof", "cache", "handed over", "launch floor", "time without a minimum time")

#: What each trace is, its file, and the device that it does not name.
RECORDED = (
    ("a small BERT", "h100_bert_small_infer.json.gz", None),
    ("the same", "mi300x_bert_small_infer.json.gz", None),
    ("Qwen 0.5B", "h100_qwen_0.5b_infer.json.gz", None),
    ("the same", "mi300x_qwen_0.5b_infer.json.gz", None),
    ("a recommender's training", "a100_recsys_train.json.gz", None),
    ("the same", "v100_recsys_train.json.gz", None),
    ("eager PyTorch", "b200_eager.json.gz", None),
    ("kernels of torch.compile", "mi300x_torch_compile_triton.json.gz", None),
    ("a decode step of vLLM, replayed as a graph", "mi300x_vllm_decode_graph.json.gz", "mi300x"),
    ("convolutions in JAX", "mi300x_jax_conv.xplane.pb", "mi300x"),
)


def lines(traces: Path) -> Iterator[tuple[str, ...]]:
    """The cells of each trace."""
    for what, name, device in RECORDED:
        (profile,) = read([traces / name], device=device)
        run = analyze(profile)
        total = run.total
        named = run.device.name if device is None else f"{run.device.name}, as `--device {device}`"
        unknown = units.percent(total.uncosted / total.own_seconds, 0)
        yield what, named, wording.attained(total), *_cache(run), _launch(run), unknown


def _cache(run: Analysis) -> tuple[str, str]:
    """The cache's bandwidth, and what share of the traffic it handed over from one op to the next."""
    size = run.device.serves
    if size is None:
        return "–", "–"
    moved = np.asarray([sum((*one.reads, *one.writes)) for one in run.profile.signatures])[rows(run.profile).signature]
    share = float(handed_over(run.profile, size).sum() / moved.sum())
    return f"{run.device.rate(f'cache.{run.device.caches[-1].level}') / 1e12:.1f} TB/s", units.percent(share)


def _launch(run: Analysis) -> str:
    ceiling = run.device.ceilings.get(f"launch.{executor_of(run.profile)}")
    if ceiling is None:
        return "–"
    own = ceiling.source.startswith("the trace")
    most = "" if ceiling.high is None else f"–{ceiling.high * 1e6:.2f}"
    return f"{ceiling.value * 1e6:.2f}{most} µs, {'this trace' if own else 'known of the device'}"


def table(traces: Path) -> str:
    """One line per trace."""
    head = ["| " + " | ".join(COLUMNS) + " |", "|---|---|---:|---:|---:|---|---:|"]
    return "\n".join([*head, *("| " + " | ".join(cells) + " |" for cells in lines(traces))])


def page(text: str, written: str) -> str:
    """The page with the table between its marks written anew."""
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n\n{written}\n\n{MARKS[1]}{after}"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else TRACES
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), table(folder)), encoding="utf-8")
