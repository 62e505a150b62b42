"""Save the JSON of every profile, import and comparison at hand, to hold a change of words to it.

    python benchmarks/saved_json.py FOLDER             before the change
    python benchmarks/saved_json.py FOLDER --against   after it: exits with 1 and names what differs

Profiles are those that ship and those of docs/measured, imports those of the recorded traces beside the checkout,
comparisons those of planted pairs and of neighbours among the profiles that ship. Sentences may differ: `text` and
`advice` are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import plants

from roofline import importing
from roofline.analysis.analysis import analyze
from roofline.comparison.ranking import rank
from roofline.content import json_document
from roofline.core import shipped
from roofline.core.schema import load
from roofline.errors import RooflineError
from roofline.renderers.comparison import json as comparison_json

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT.parent / "shared" / "traces"
MEASURED = ("bert-infer-1-thread", "bert-infer-in-turns", "mlp-infer-1-thread", "mlp-train-1-thread", "threads")
#: Keys whose values are sentences.
SENTENCES = frozenset(("text", "advice"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", action="store_true", help="compare with what the folder holds")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    differing = []
    for name, document in documents():
        path = asked.folder / f"{name.replace('/', '__')}.json"
        text = json.dumps(without_sentences(document), indent=1)
        if not asked.against:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            differing.append(name)
    print(*differing, sep="\n")
    sys.exit(1 if differing else 0)


def documents() -> Iterator[tuple[str, Any]]:
    """Yield the name and the JSON of each."""
    measured = sorted(path for folder in MEASURED for path in (ROOT / "docs" / "measured" / folder).glob("*.json"))
    for name, path in {**shipped.paths(), **{str(path.relative_to(ROOT)): path for path in measured}}.items():
        yield f"show/{name}", of_profile(load(path))
    for trace in sorted(TRACES.glob("*.*")):
        if trace.suffix in (".gz", ".pb"):
            yield f"import/{trace.name}", imported(trace)
    for (first, a), (second, b) in pairwise(shipped.paths().items()):
        yield f"compare/{first}-{second}", compared(load(a), load(b))
    for kind, folder in plants.SETS.items():
        for file in sorted(folder.glob("*-a.json*")):
            other = file.with_name(file.name.replace("-a.json", "-b.json"))
            if other.exists():
                yield f"compare/{kind}-{file.name.partition('.')[0]}", compared(*map(plants.load_kept, (file, other)))


def of_profile(profile: Any) -> Any:
    return json_document.document(analyze(profile), "op")


def imported(trace: Path) -> Any:
    try:
        return [of_profile(profile) for profile in importing.read([str(trace)])]
    except RooflineError as error:
        return type(error).__name__


def compared(*profiles: Any) -> Any:
    try:
        return json.loads(comparison_json.render(rank(profiles)))
    except RooflineError as error:
        return type(error).__name__


def without_sentences(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_sentences(each) for key, each in value.items() if key not in SENTENCES}
    if isinstance(value, (list, tuple)):
        return [without_sentences(each) for each in value]
    return value


if __name__ == "__main__":
    main()
