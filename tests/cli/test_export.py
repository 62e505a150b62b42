"""`roofline export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import handmade

from roofline.core.schema import save

Run = Callable[..., Any]


def test_the_suffix_says_the_format(tmp_path: Path, roofline: Run) -> None:
    save(handmade.profile(), tmp_path / "p.json")
    for suffix, begin in ((".csv", b"name,kind"), (".parquet", b"PAR1"), (".speedscope.json", b'{"$schema"')):
        assert roofline("export", "p.json", "-o", f"ops{suffix}").code == 0
        assert (tmp_path / f"ops{suffix}").read_bytes().startswith(begin)
    assert roofline("export", "p.json", "-o", "ops.csv").code == 2
    assert roofline("export", "p.json", "-o", "ops.csv", "--force").code == 0
    refused = roofline("export", "p.json", "-o", "ops.xlsx")
    assert refused.code == 2
    assert ".parquet or .perfetto.json or .speedscope.json" in refused.err
    assert roofline("export", "p.json", "-o", "p.json", "--force").code == 2
