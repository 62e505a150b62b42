"""The driver of `make gpu` is no package: its files import one another as scripts do."""

from __future__ import annotations

import sys
from pathlib import Path

GPU = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"
sys.path.append(str(GPU))
