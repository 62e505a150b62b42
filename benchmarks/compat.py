"""Runs the wheel with the lowest and the newest release of each dependency: the tables of docs/reference/versions.md.

    python benchmarks/compat.py WHEEL                         base and light extras on Python 3.11, 3.12 and 3.13
    python benchmarks/compat.py WHEEL --extra jax             a framework too, with a step of it
    python benchmarks/compat.py --write                       write the page's tables from the results

Lowest: the lower bounds of pyproject.toml, taken as exact versions; what these need in turn is the newest that fits.
Each run is a line of RESULTS; what is there is not run again. Pythons that are not installed are named and left out.
Needs a package index.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "versions.md"
RESULTS = ROOT / "compat" / "results.jsonl"
MARKS = ("<!-- written by benchmarks/compat.py -->", "<!-- to here -->")
PYTHONS = ("3.11", "3.12", "3.13")
LIGHT = ("pandas", "parquet")
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
#: Tests of what calls the dependencies: protobuf and numpy (traces), msgspec (core), typer (cli), pandas and pyarrow
#: (renderers, api). Those that need a framework are skipped without it.
TESTS = (
    "core",
    "traces/xplane",
    "test_protobuf.py",
    "renderers/test_export.py",
    "renderers/numbers/test_of_exports.py",
)
TESTS += ("api/test_repr_mixin.py", "cli/test_export.py", "cli/test_import.py")
#: Of a framework: its counting rules and what records it.
FRAMEWORK_TESTS = {"jax": ("xla",)}

SLOWER, FASTER = "h100/bert-torch-infer-b32-tf32", "h100/bert-jax-buffers-on-infer-b32-tf32"


def commands(extras: Iterable[str]) -> Iterator[str]:
    """Yield the command lines that each environment must run without an error."""
    traces = ROOT / "tests" / "data"
    yield from ("--help", "profile --help", "plot --help", "doctor", "devices", "models", "backends", "show")
    for name in ("csv", "json", "latex", "markdown", "perfetto", "text"):
        yield f"show {SLOWER} --format {name}"
    for name in ("csv", "text"):
        yield f"compare {SLOWER} {FASTER} --format {name}"
    for kind, suffix in (("bound", "png"), ("roofline", "pdf"), ("timeline", "svg")):
        yield f"plot {SLOWER} --kind {kind} -o {kind}.{suffix}"
    for suffix in ("csv", "parquet", "perfetto.json", "speedscope.json"):
        yield f"export {SLOWER} -o ops.{suffix}"
    yield f"report {SLOWER} {FASTER} -o report.html"
    yield f"import {traces / 'synthetic_gpu_train.json'} --device h100-sxm -o kineto.json"
    yield f"import {traces / 'h100' / 'jax-buffers-on-infer.1.xplane.pb.gz'} --device h100-sxm -o xplane.json"
    yield "check kineto.json kineto.json"
    yield f"whatif {SLOWER} --device a100-sxm"
    yield "sweep mlp --backends torch,jax --batch 1..4 -o grid --plan-only"
    if "jax" in extras:
        for mode in ("infer", "train"):
            yield f"profile mlp --backend jax --mode {mode} -o jax-{mode}.json"


def requirements(extras: Iterable[str]) -> list[Requirement]:
    """Return what the project itself asks for, with these extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    return [Requirement(line) for lines in wanted for line in lines]


def lowest(requirement: Requirement) -> str:
    """Return NAME==VERSION of the lower bound."""
    (bound,) = (part.version for part in requirement.specifier if part.operator in (">=", "=="))
    return f"{requirement.name}=={bound}"


class Environment:
    """A fresh virtual environment with the wheel, and a folder to work in that holds no checkout."""

    def __init__(self, folder: Path, python: str, wheel: Path, extras: tuple[str, ...], bounds: str) -> None:
        self.folder, self.work = folder, folder / "work"
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
        self.work.mkdir()
        constraints = folder / "constraints.txt"
        pinned = [lowest(each) for each in requirements(extras)] if bounds == "lowest" else []
        constraints.write_text("".join(f"{line}\n" for line in pinned), encoding="utf-8")
        install = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
        done = self.run([*install, "-c", str(constraints), f"{wheel}[{','.join(extras)}]", *TOOLS])
        self.failure = "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]

    def run(self, line: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        kept = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        kept |= {"ROOFLINE_CACHE": str(self.folder / "cache"), "COLUMNS": "100", **variables}
        program = self.folder / "venv" / "bin" / line[0]
        return subprocess.run([str(program), *line[1:]], cwd=self.work, env=kept, capture_output=True, text=True)

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """Return the installed versions of these distributions."""
        code = "import sys, importlib.metadata as m; print(*(m.version(n) for n in sys.argv[1:]), sep='\\n')"
        names = list(names)
        return dict(zip(names, self.run(["python", "-c", code, *names]).stdout.split(), strict=True))

    def run_commands(self, extras: Iterable[str]) -> tuple[int, list[str]]:
        """Run the command lines; how many there are, and those that failed with the last line they wrote."""
        lines = list(commands(extras))
        failed = []
        for line in lines:
            done = self.run(["roofline", *line.split()])
            if done.returncode:
                failed.append(f"{line}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
        return len(lines), failed

    def run_tests(self, chosen: Iterable[str]) -> tuple[str, list[str]]:
        """Run tests against the wheel: pytest's last line, and the tests that failed."""
        # All but the package itself: what is imported must be the wheel's.
        names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
        for name in names.stdout.split("\0"):
            if name and not name.startswith(("roofline/", ".")) and (ROOT / name).is_file():
                (self.work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.work / name)
        options = ["-q", "-p", "no:cacheprovider", "--hypothesis-profile=few"]
        options += ["-m", "not slow and not gpu and not thorough"]
        # An old release calls what a newer one of its own dependencies calls deprecated: a user sees nothing of it.
        options += ["-W", "ignore::DeprecationWarning", "-W", "ignore::PendingDeprecationWarning"]
        done = self.run(["pytest", *options, *(f"tests/{name}" for name in chosen)], ROOFLINE_TRACES="none")
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        if done.returncode and not failed:
            failed = [f"pytest ended with {done.returncode}"]
        return (done.stdout.strip().splitlines() or [done.stderr])[-1].strip("= "), failed


def run(wheel: Path, python: str, bounds: str, extras: tuple[str, ...], with_tests: bool) -> dict[str, object]:
    """Install and run one environment."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(Path(folder), python, wheel, extras, bounds)
        if environment.failure:
            return {"failed": [environment.failure]}
        row: dict[str, object] = {"versions": environment.versions(each.name for each in requirements(extras))}
        row["commands"], failed = environment.run_commands(extras)
        if with_tests:
            chosen = tuple(name for extra in extras for name in FRAMEWORK_TESTS.get(extra, ())) or TESTS
            row["tests"], broken = environment.run_tests(chosen)
            failed += broken
        return row | {"failed": failed}


def find_python(version: str) -> str | None:
    """Return the program of this Python, from the path or from pyenv; None where there is none."""
    homes = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(homes[-1]) if homes else shutil.which(f"python{version}")


def key(row: dict[str, object]) -> tuple[object, ...]:
    """Return what a row is of."""
    return row["python"], row["bounds"], tuple(row["extras"])


def results() -> list[dict[str, object]]:
    """Return the rows that were run."""
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()] if RESULTS.is_file() else []


def write(rows: list[dict[str, object]]) -> None:
    """Write the page's tables: the versions that were run, and what each environment did."""
    rows = sorted(rows, key=lambda row: (len(row["extras"]), row["extras"], row["bounds"], row["python"]))
    titles = [f"{row['bounds']}, {row['python']}" for row in rows]
    by_title: dict[str, dict[str, str]] = {}  # with a framework the other libraries are the same
    for title, row in zip(titles, rows, strict=True):
        by_title.setdefault(title, {}).update(row.get("versions", {}))
    names = list(dict.fromkeys(name for versions in by_title.values() for name in versions))
    installed = [[f"`{name}`", *(versions.get(name, "") for versions in by_title.values())] for name in names]
    outcomes = [
        (
            f"{title}{', with ' + extra if (extra := ', '.join(row['extras'][len(LIGHT) :])) else ''}",
            f"{row.get('commands', 0)} command lines",
            row.get("tests", "no tests").partition(" in ")[0],
            "; ".join(row["failed"]) or "none",
        )
        for title, row in zip(titles, rows, strict=True)
    ]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(MARKS[0])
    tables = (_table(("releases, Python", "ran", "tests", "failed"), outcomes), _table(("", *by_title), installed))
    PAGE.write_text(f"{before}{MARKS[0]}\n\n" + "\n\n".join(tables) + f"\n\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, nargs="?")
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--bounds", nargs="+", default=("lowest", "newest"), choices=("lowest", "newest"))
    parser.add_argument("--extra", nargs="+", default=(), help="a framework, beside pandas and parquet")
    parser.add_argument("--no-tests", action="store_true", help="the command lines only")
    parser.add_argument("--write", action="store_true", help="write the page from the results")
    options = parser.parse_args()
    chosen = (*LIGHT, *options.extra)
    for version, bounds in product(options.python, options.bounds) if options.wheel else ():
        if not (interpreter := find_python(version)):
            print(f"Python {version} is not here.")
        elif not any(key(row) == (version, bounds, chosen) for row in results()):
            row = run(options.wheel.resolve(), interpreter, bounds, chosen, not options.no_tests)
            row = {"python": version, "bounds": bounds, "extras": chosen} | row
            RESULTS.parent.mkdir(exist_ok=True)
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    if options.write:
        write(results())
    sys.exit(any(row["failed"] for row in results()))
