"""Count the lines of the code that each target is to reach which its corpus runs: `lines.py SECONDS FOLDER TARGET...`.

Writes "reached/all" to FOLDER/TARGET/lines.json. What importing runs counts for each. SECONDS: for each, at most.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import coverage

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "data")]

import targets  # noqa: E402 - the table alone


def main(seconds: str, folder: str, *names: str) -> None:
    """Run the corpora, and write the numbers."""
    places = {name: [ROOT / "roofline" / place for place in targets.CODE[name].reaches] for name in names}
    include = [str(place / "*") if place.is_dir() else str(place) for several in places.values() for place in several]
    measured = coverage.Coverage(data_file=None, include=include)
    targets.hide_frameworks()
    measured.start()
    scratch = Path(os.environ["ROOFLINE_FUZZ_SCRATCH"])
    for name in names:
        os.environ["ROOFLINE_FUZZ_SCRATCH"] = os.environ["ROOFLINE_CACHE"] = str(scratch / name)
        (scratch / name).mkdir(exist_ok=True)
        measured.switch_context("")
        target = targets.load(name)
        measured.switch_context(name)
        begin = time.process_time()
        for file in sorted(file for part in ("seeds", "corpus") for file in Path(folder, name, part).glob("*")):
            if time.process_time() - begin > float(seconds):
                break
            with suppress(BaseException):
                target.run(file.read_bytes())
    measured.stop()
    taken = measured.get_data()
    for name, of in places.items():
        reached = total = 0
        taken.set_query_contexts(["^$", f"^{name}$"])
        for file in taken.measured_files():
            if any(Path(file) == place or place in Path(file).parents for place in of):
                statements = set(measured.analysis(file)[1])
                reached, total = reached + len(statements & set(taken.lines(file) or ())), total + len(statements)
        Path(folder, name, "lines.json").write_text(json.dumps(f"{reached}/{total}"))


if __name__ == "__main__":
    main(*sys.argv[1:])
