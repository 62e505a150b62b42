"""The driver of `make gpu`, the claims and the cells are no packages: their files import one another as scripts do."""

from __future__ import annotations

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path += [str(BENCHMARKS / "gpu"), str(BENCHMARKS / "published"), str(BENCHMARKS / "cells")]
