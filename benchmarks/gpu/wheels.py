"""The project and what it needs as wheels, for a machine without a network: made here, installed there.

    python benchmarks/gpu/wheels.py FOLDER        make them (`make gpu-wheels`)

The list holds what is imported by roofline, Keras, KerasHub and the native Stable Diffusion, and is missing on the
machine that this was made for, which has PyTorch, JAX, transformers, accelerate and the test tools. Neither Keras nor
KerasHub needs TensorFlow on the other backends: KerasHub imports it if it can, for preprocessing, which no model here
has.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    *("msgspec", "keras", "keras-hub", "diffusers"),  # versions from constraints.txt
    *("namex==0.1.0", "optree==0.20.0", "rich==15.0.0", "kagglehub==1.0.2", "kagglesdk==0.1.28"),
)
#: pip compares these names with those of the files one by one.
PLATFORMS = ("2_28", "2_17", "2_27", "2_24", "2_34")
#: Folders of the checkout and what they install as.
INSTALLED = {"roofline": "roofline", "models": "roofline/models", "profiles": "roofline/profiles"}
#: What is read to build the wheel.
SOURCES = ("roofline", "models", "profiles", "pyproject.toml", "setup.py", "README.md", "LICENSE")


def make(folder: Path) -> None:
    """Build the project's wheel and download the others; what was in the folder is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as copy:
        # From a copy: setuptools leaves a folder behind whose files go into the next wheel, deleted ones too.
        for name in SOURCES:
            source, target = ROOT / name, Path(copy) / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, target)
        build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), copy]
        subprocess.run(build, check=True)
    download = [*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12"]
    download += ["--implementation", "cp"]
    for platform in (*(f"manylinux_{one}_x86_64" for one in PLATFORMS), "manylinux2014_x86_64"):
        download += ["--platform", platform]
    subprocess.run([*download, "--dest", str(folder), *requirements()], check=True)


def requirements() -> list[str]:
    """NAME==VERSION of each wheel beside ours."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return [name if "==" in name else f"{name}=={pinned[name]}" for name in NEEDED]


def install(folder: Path, site: Path) -> None:
    """Put the wheels into `site`, which goes on PYTHONPATH, unless they are there.

    Raises ValueError where they are not those of this tree.
    """
    wheels = sorted(folder.glob("*.whl"))
    ours = [path for path in wheels if path.name.startswith("roofline-")]
    if len(ours) != 1:
        raise ValueError(f"{folder} holds {len(ours)} wheels of roofline: run `make gpu-wheels`.")
    if changed := differences(ours[0]):
        few = ", ".join(changed[:3])
        raise ValueError(f"{ours[0].name} is not made of this checkout ({few} differ): run `make gpu-wheels`.")
    known = site / "installed.txt"
    digests = "".join(f"{sha256(path.read_bytes()).hexdigest()} {path.name}\n" for path in wheels)
    if known.is_file() and known.read_text(encoding="utf-8") == digests:
        return
    shutil.rmtree(site, ignore_errors=True)
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    words += ["--no-cache-dir", "--disable-pip-version-check", "--root-user-action=ignore"]
    subprocess.run([*words, "--target", str(site), *map(str, wheels)], check=True)
    known.write_text(digests, encoding="utf-8")


def differences(wheel: Path) -> list[str]:
    """Files of the checkout that are not in the wheel as they are, or the other way round."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {
            name: archive.read(name)
            for name in archive.namelist()
            if name.startswith("roofline/") and name.endswith((".py", ".toml"))
        }
    here = {
        f"{target}/{path.relative_to(ROOT / source).as_posix()}": path.read_bytes()
        for source, target in INSTALLED.items()
        for path in (ROOT / source).rglob("*")
        if path.suffix in (".py", ".toml") and "__pycache__" not in path.parts
    }
    return sorted(name for name in packed.keys() | here.keys() if packed.get(name) != here.get(name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    make(parser.parse_args().folder)
