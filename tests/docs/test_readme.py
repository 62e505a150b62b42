"""The numbers of README.md are those of the code, of the profiles that ship and of what was counted on an H100."""

from __future__ import annotations

import json
import re
from pathlib import Path

from roofline import plugins
from roofline.analysis.analysis import Analysis, analyze
from roofline.analysis.caches.traffic import cold_traffic
from roofline.core import shipped
from roofline.core.schema import load

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
COUNTED = ROOT / "docs" / "measured" / "h100"


def h100(name: str) -> Analysis:
    return analyze(load(shipped.paths()[f"h100/bert-{name}-infer-b32-tf32"]))


def test_lists_are_as_long_as_it_says() -> None:
    assert f"lists {len(plugins.names('roofline.models._geometry', '.toml', sorted_by_kind=True))} models" in PAGE
    assert len(plugins.names("roofline.backends")) == 10
    assert "all ten backends" in PAGE
    runs = [name for name in shipped.paths() if name.startswith("h100/")]
    assert f"[all {len(runs)} runs](docs/h100.md)" in PAGE
    tools = re.findall(
        r"^## (?!Comparison|What roofline|Side by side)", _page("reference/other-tools.md"), re.MULTILINE
    )
    assert len(tools) == 9
    assert "what nine tools do better" in PAGE


def test_the_picture_says_what_the_text_does() -> None:
    """Busy time of five backends in TF32, and the idle time of the one that idles most and of JAX."""
    names = ("torch", "torch-compile-default", "torchscript", "jax-buffers-on", "keras-jax")
    runs = {name: h100(name) for name in names}
    busy = sorted(run.busy * 1e3 for run in runs.values())
    assert f"the ops of all five backends take {busy[0]:.1f} to {busy[-1]:.1f} ms" in PAGE
    torch, jax = runs["torch"], runs["jax-buffers-on"]
    assert f"{100 * torch.gap / torch.wall:.0f} % of the step in eager PyTorch" in PAGE
    assert abs(jax.gap) < 0.01 * jax.wall
    assert "in JAX too little to be measured" in PAGE


def test_bytes_are_the_share_of_the_counted_that_it_says() -> None:
    """By the rule at its upper end, read and written, of the whole inference and training steps."""
    shares = []
    for mode in ("infer", "train"):
        profile = load(COUNTED / f"ncu-{mode}-profile.json")
        cold = cold_traffic(profile, profile.device)
        written = cold.written if cold.high is None else cold.high - cold.read
        sums = json.loads((COUNTED / f"ncu-{mode}-none.json").read_text(encoding="utf-8"))["all kernels"]
        shares += [cold.read.sum() / sums["dram_read"], written.sum() / sums["dram_written"]]
    assert f"{100 * min(shares):.0f} to {100 * max(shares):.0f} % of what [counters of an H100]" in PAGE


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")
