"""What the results say: each row's evidence, its least time as predicted beside what was measured, and published rows.

python benchmarks/gpu/report.py FOLDER...        archives (PIECE.tar.gz) or unpacked pieces; later ones count
"""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import results
from evidence import ceilings, counted_bytes
from predictions import COUNTED, predict, rows
from published import told

from roofline.analysis.analysis import Analysis, analyze
from roofline.core.schema import load
from roofline.devices import datasheet
from roofline.errors import RooflineError

COLUMNS = (
    *("row", "wall ms", "predicted ms", "attained", "joined", "known FLOPs", "known bytes", "unknown ops"),
    *("opaque", "unattributed", "gap", "compute", "memory", "launch", "no verdict", "above", "flags"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = pieces(asked.folders, Path(scratch))
        if not folders:
            print("Nothing was measured yet.")
            return 1
        profiles, states = gathered(folders)
        evidence = [*ceilings(folders), *counted_bytes(folders)]
        published = told.measured(profiles.values())
        print("\n".join([*evidence, *table(profiles), *published, "", *left_out(folders), *ended(states)]))
    return 0


def pieces(folders: list[Path], scratch: Path) -> list[Path]:
    """The folders of all pieces, the archived ones unpacked into `scratch`; of one piece the last one counts."""
    places: list[Path] = []
    for number, folder in enumerate(folders):
        for archive in sorted(folder.glob("*.tar.gz")):
            with tarfile.open(archive) as file:
                file.extractall(scratch / str(number), filter="data")
        places += sorted((scratch / str(number)).glob("*/state.json")) + sorted(folder.glob("*/state.json"))
    return [place.parent for place in places]


def gathered(folders: list[Path]) -> tuple[dict[str, Path], dict[str, Any]]:
    """The profiles by their rows, and the entries of all items by PIECE/ITEM. A row of a second piece names that."""
    profiles: dict[str, Path] = {}
    states: dict[str, Any] = {}
    for folder in folders:
        kept = json.loads((folder / "state.json").read_text(encoding="utf-8"))["items"]
        states |= {f"{folder.name}/{name}": entry for name, entry in kept.items()}
        for name, entry in kept.items():
            file = folder / f"{name}.json"
            if entry["how"] == "well" and entry["command"][:2] == ["roofline", "profile"] and file.is_file():
                profiles[f"{name} ({folder.name})" if name in profiles else name] = file
    return profiles, states


def table(profiles: dict[str, Path]) -> list[str]:
    """A Markdown table, one line per profile."""
    counted = json.loads(COUNTED.read_text(encoding="utf-8"))
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for name, file in profiles.items():
        try:
            cells = row(name, analyze(load(file)), counted)
        except RooflineError as error:
            cells = [name, str(error)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def row(name: str, analysis: Analysis, counted: dict[str, Any]) -> list[str]:
    """The cells of one profile; what is not known is a dash."""
    profile, total = analysis.profile, analysis.total
    unknown = sum(profile.signatures[op.signature].cost.quality == "unknown" for op in profile.ops)
    compilation = profile.compilation
    lost = [flag for flag in analysis.flags if "unattributed" in flag]
    coverage = analysis.coverage
    bounds = {bound: seconds / analysis.busy for bound, seconds in total.bounds.items()} if analysis.busy else {}
    least = least_time(name, analysis, counted)
    return [
        name,
        f"{analysis.wall * 1e3:.3f}",
        "–" if least is None else f"{least * 1e3:.3f}",
        share(total.attained),
        share(coverage["time"], 2),
        share(coverage["flops"]),
        share(coverage["bytes"]),
        str(unknown),
        "–" if compilation is None else str(compilation.opaque),
        ", ".join(lost) or "0",
        share(analysis.gap / analysis.wall),
        *(share(bounds.get(bound, 0.0)) for bound in ("compute", "memory", "overhead", "unknown")),
        str(analysis.above_ceiling),
        ", ".join(flag for flag in analysis.flags if flag not in lost) or "none",
    ]


def least_time(name: str, analysis: Analysis, counted: dict[str, Any]) -> float | None:
    """What was predicted for the row on the device that it ran on [s]; None where nothing was."""
    sheet = datasheet(analysis.device.name, analysis.device.memory, analysis.device.kind)
    asked = rows().get(name.partition(" ")[0])
    found = predict(asked, sheet, counted) if sheet is not None and asked is not None else None
    return None if found is None else found.least


def left_out(folders: list[Path]) -> list[str]:
    """What made an archive too large: it is where it was measured."""
    files = [folder / results.LEFT_OUT for folder in folders]
    return [
        f"{file.parent.name}/{name}: left out of the archive, for which it is too large"
        for file in files
        if file.is_file()
        for name in file.read_text(encoding="utf-8").splitlines()
        if not (file.parent / name).is_file()
    ]


def ended(states: dict[str, Any]) -> list[str]:
    """What did not end well, and what all of it took."""
    lines = [f"{name}: {entry['how']}, {entry['why']}" for name, entry in states.items() if entry["how"] != "well"]
    seconds = sum(entry["seconds"] for entry in states.values())
    well = sum(entry["how"] == "well" for entry in states.values())
    return [f"{well} of {len(states)} items ended well; together they took {seconds / 60:.1f} min.", *lines]


def share(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"


if __name__ == "__main__":
    sys.exit(main())
