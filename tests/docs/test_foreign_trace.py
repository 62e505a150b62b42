"""What docs/guides/foreign-trace.md prints of a public trace, where that is at hand."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))
from pages import ROOT, flat

PAGE = (ROOT / "docs" / "guides" / "foreign-trace.md").read_text(encoding="utf-8")


def test_the_trace_that_is_not_kept(
    recorded: Callable[[str], Path], tmp_path: Path, measuring: Callable[..., Any]
) -> None:
    (block,) = re.findall(r"^```sh\n\$ roofline import (\S+) -o \S+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    name, shown = block
    printed = flat(measuring("import", str(recorded(name)), "-o", str(tmp_path / "theirs.json")).out)
    (part,) = (part for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE) if part)
    assert flat(part) in printed
