"""Try each target on its seeds and on a few changes of them, always the same, without atheris: `few.py [TARGET...]`.

What the tests run, and who has no wheel of atheris. Prints each find, and exits with 1 if there was one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "data")]

import targets  # noqa: E402 - the table alone
from target import Target  # noqa: E402

#: Changes of each seed. Each changes what the last accepted one left.
_CHANGES = 10
#: What shows a profile most often, and what looks at profiles that no framework would write.
_RENDERERS = ("show-text", "show-csv", "check", "random-profile")


def main(names: list[str], changes: int = _CHANGES) -> None:
    """Try the targets of these names, or all readers and the usual renderers."""
    targets.hide_frameworks()
    finds = 0
    with tempfile.TemporaryDirectory() as scratch:
        os.environ |= {"ROOFLINE_FUZZ_SCRATCH": scratch, "ROOFLINE_CACHE": scratch, "HOME": scratch}
        for name in names or (*targets.READERS, *_RENDERERS):
            target = targets.load(name)
            for accepted in target.seeds():
                data = accepted
                for seed in range(changes + 1):
                    answer = _answer(name, target, data)
                    finds += answer is None
                    accepted = data if answer else accepted
                    data = target.mutate(accepted, Random(seed)) or accepted if target.mutate else accepted
    sys.exit(1 if finds else 0)


def _answer(name: str, target: Target, data: bytes) -> bool | None:
    """Return whether a target accepted an input; None, and print why, where it must not answer so."""
    from roofline.errors import DefectError, RooflineError

    try:
        target.run(data)
    except Exception as error:
        if isinstance(error, RooflineError) and not isinstance(error, DefectError):
            return False
        print(f"{name}: {data[:500]!r}\n{traceback.format_exc()}", flush=True)
        return None
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
