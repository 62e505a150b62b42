"""`import roofline`, the help and the verbs that only list load no framework and nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import pytest

HEAVY = {
    *("torch", "transformers", "jax", "tensorflow", "keras", "tf_keras"),
    *("numpy", "matplotlib", "msgspec", "psutil", "pynvml", "rich", "asyncio", "multiprocessing"),
}
#: What a verb that lists may need: reading a calibration takes msgspec, looking at the machine psutil.
FRAMEWORKS = {"torch", "transformers", "jax", "tensorflow", "keras", "tf_keras", "matplotlib"}


@cache
def loaded(*codes: str) -> dict[str, set[str]]:
    """The top-level modules that a fresh interpreter has loaded after each of `codes`, run one after the other.

    What it loads by itself is left out.
    """
    probe = (
        "import json, sys\nbefore = set(sys.modules)\n"
        "for code in sys.argv[1:]:\n"
        "    try:\n        exec(code, {})\n"
        "    except SystemExit as left:\n        assert not left.code, left.code\n"
        "    after = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "    print('\\n#' + json.dumps(sorted(after)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *codes], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    lists = [set(json.loads(line[1:])) for line in done.stdout.splitlines() if line.startswith("#[")]
    return dict(zip(codes, lists, strict=True))


#: The lightest first: a module that one of them loads shows in it and in all behind it.
LIGHT = (
    "import roofline",
    "import roofline.cli",
    *(
        f"from roofline.cli import main; main({words!r})"
        for words in (["--version"], ["--help"], ["profile", "--help"])
    ),
)
#: Of the profiles that ship, one is enough to see what they are read with.
ONE = "from roofline.core import shipped\nfew = dict([*shipped.paths().items()][:1])\nshipped.paths = lambda: few\n"
LISTS = (["models"], ["backends"], ["devices"], ["published", "keras-benchmark"], ["show"])


@pytest.mark.parametrize("code", LIGHT)
def test_nothing_heavy_is_loaded(code: str) -> None:
    modules = loaded(*LIGHT)[code]
    assert "roofline" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_listing_loads_no_framework(words: list[str]) -> None:
    codes = {" ".join(verb): f"from roofline.cli import main; main({verb!r})" for verb in LISTS}
    assert not loaded(ONE, *codes.values())[codes[" ".join(words)]] & FRAMEWORKS


def test_the_probe_sees_what_is_loaded() -> None:
    code = "import roofline, matplotlib\nroofline.load"
    assert {"msgspec", "numpy", "matplotlib"} <= loaded(code)[code]
