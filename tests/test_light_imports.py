"""`import roofline`, the help and the verbs that only list load no framework and nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    *("torch", "transformers", "jax", "tensorflow", "keras", "tf_keras"),
    *("numpy", "matplotlib", "msgspec", "psutil", "pynvml", "rich", "asyncio", "multiprocessing"),
}
#: What a verb that lists may need: reading a calibration takes msgspec, looking at the machine psutil.
FRAMEWORKS = {"torch", "transformers", "jax", "tensorflow", "keras", "tf_keras", "matplotlib"}


def loaded(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after `code`, what it loads by itself left out."""
    probe = (
        "import sys\nbefore = set(sys.modules)\ntry:\n"
        + "".join(f"    {line}\n" for line in code.splitlines())
        + "except SystemExit as left:\n    assert not left.code, left.code\n"
        "after = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "import json\nprint('\\n' + json.dumps(sorted(after)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import roofline",
        "import roofline.cli",
        "from roofline.cli import main; main(['--help'])",
        "from roofline.cli import main; main(['--version'])",
        "from roofline.cli import main; main(['profile', '--help'])",
    ],
)
def test_nothing_heavy_is_loaded(code: str) -> None:
    modules = loaded(code)
    assert "roofline" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    "words", [["models"], ["backends"], ["devices"], ["published", "keras-benchmark"], ["show"]], ids=" ".join
)
def test_listing_loads_no_framework(words: list[str]) -> None:
    """Of the profiles that ship, one is enough to see what they are read with."""
    one = "from roofline.core import shipped\nfew = dict([*shipped.paths().items()][:1])\nshipped.paths = lambda: few\n"
    assert not loaded(f"{one}from roofline.cli import main; main({words!r})") & FRAMEWORKS


def test_the_probe_sees_what_is_loaded() -> None:
    assert {"msgspec", "numpy", "matplotlib"} <= loaded("import roofline, matplotlib\nroofline.load")
