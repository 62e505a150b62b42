"""What is installed: every package and data file, in a wheel that works without the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import roofline

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: Folder at the top of the repository -> package it installs as.
TOPS = {"roofline": "roofline", "models": "roofline.models", "profiles": "roofline.profiles"}


def packages() -> dict[str, Path]:
    """Every folder with an `__init__.py`, by the name it installs as."""
    found = {}
    for top, package in TOPS.items():
        for init in (ROOT / top).rglob("__init__.py"):
            below = init.parent.relative_to(ROOT / top).parts
            found[".".join((package, *below))] = init.parent
    return found


def test_the_places_of_the_packages_are_said() -> None:
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {package: top for top, package in TOPS.items()}


def test_no_module_lies_outside_a_package() -> None:
    """setuptools does not find a folder that lacks its `__init__.py`."""
    known = {folder.resolve() for folder in packages().values()}
    for top in TOPS:
        for module in (ROOT / top).rglob("*.py"):
            assert module.parent.resolve() in known, f"{module.relative_to(ROOT)} is in no package"


def test_the_version_is_said_once_and_cited() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "roofline.version.__version__"}
    assert f"\nversion: {roofline.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: building leaves folders behind in the tree it builds from."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "setup.py", PROJECT["project"]["readme"], *PROJECT["project"]["license-files"]):
        shutil.copy(ROOT / name, copy / name)
    for top in TOPS:
        shutil.copytree(ROOT / top, copy / top, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".*"))
    _run(["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(copy)], folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content and nothing else, to put on the path."""
    target = tmp_path_factory.mktemp("installed")
    _run(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", str(target), str(wheel)], target)
    return target


def _run(arguments: list[str], cwd: Path, **variables: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PIP_CONSTRAINT")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**environment, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_holds_every_module_and_data_file(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        dist_info = set(archive.namelist()) - inside
    wanted = {
        f"{TOPS[top].replace('.', '/')}/{path.relative_to(ROOT / top).as_posix()}"
        for top in TOPS
        for path in (ROOT / top).rglob("*")
        if path.suffix in (".py", ".toml", ".json", ".csv", ".css", ".js", ".typed")
        and not path.name.startswith(".")
        and path.is_file()
    }
    assert inside == wanted
    # The same by name: a package is what holds an `__init__.py`, wherever it lies in the repository.
    markers = [name for name in inside if name.endswith("/__init__.py")]
    assert {name.removesuffix("/__init__.py").replace("/", ".") for name in markers} == {*packages()}
    (metadata,) = (name for name in dist_info if name.endswith("/METADATA"))
    assert metadata.startswith(f"roofline-{roofline.__version__}.dist-info/")
    # What the folders are for: were one of the globs empty, the equality above would not notice.
    assert "roofline/comparison/annotations/norm-written-out.toml" in inside
    assert "roofline/devices/h100-sxm.toml" in inside
    assert "roofline/models/_geometry/encoders/bert.toml" in inside
    assert "roofline/models/torch/encoders/bert.py" in inside
    assert "roofline/profiles/__init__.py" in inside
    assert "roofline/profiles/h100/bert-torch-infer-b32-tf32.json" in inside
    assert "roofline/published/keras_benchmark.csv" in inside
    assert "roofline/py.typed" in inside
    assert "roofline/published/keras_benchmark.toml" in inside
    assert "roofline/renderers/report/assets/report.css" in inside


#: Runs commands in one process, and prints a line behind each.
COMMANDS = """
import sys
import roofline, roofline.models, roofline.profiles, roofline.devices
from roofline.cli import main
from roofline.core import shipped

print(*(module.__file__ for module in (roofline, roofline.models, roofline.profiles, roofline.devices)), sep="\\n")
print("#", *shipped.paths(), sep="\\n")
for words in sys.argv[1:]:
    print("#")
    try:
        main(words.split())
    except SystemExit as left:
        assert not left.code, words
"""


def test_the_wheel_works_without_the_checkout(installed: Path, tmp_path: Path) -> None:
    variables = {"PYTHONPATH": str(installed), "ROOFLINE_CACHE": str(tmp_path / "cache")}
    name = "h100/bert-torch-infer-b32-tf32"
    words = ("models", "devices", "backends", "--version", f"show {name}")
    places, names, models, devices, backends, version, shown = _run(
        ["-c", COMMANDS, *words], tmp_path, **variables
    ).split("\n#\n")
    for place in places.splitlines():
        assert Path(place).is_relative_to(installed), f"{place} is not the installed one"
    for geometry in (ROOT / "models" / "_geometry").glob("*/*.toml"):
        assert f"\n{geometry.stem.replace('_', '-')} " in f"\n{models}"
    assert "in torch" in models
    for sheet in (ROOT / "roofline" / "devices").glob("*/*.toml"):
        assert sheet.stem in devices
    assert "torch" in backends
    assert f"roofline {roofline.__version__}" in version
    there = [path.relative_to(ROOT / "profiles") for path in (ROOT / "profiles").rglob("*.json")]
    assert names.splitlines() == sorted(path.with_suffix("").as_posix() for path in there)
    assert shown.startswith("bert · inference · batch 32 x 128 tokens")


def test_it_starts_as_a_module(installed: Path, tmp_path: Path) -> None:
    told = _run(["-m", "roofline", "--version"], tmp_path, PYTHONPATH=str(installed))
    assert told == f"roofline {roofline.__version__}\n"
