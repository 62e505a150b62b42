"""Puts the programs and the oracle that all tests of HLO share on the path: `import hlo_programs`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))
