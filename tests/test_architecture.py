"""Who may import whom (DESIGN section 6): one way, no arrow back. Read from the source, functions included."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]

FRAMEWORKS = {
    *("torch", "transformers", "fvcore", "jax", "jaxlib", "flax", "optax", "tensorflow"),
    *("keras", "keras_hub", "tf_keras", "keras_nlp"),
}
PLAIN = {"roofline.errors", "roofline.units"}

#: folder -> what its files may import, a name and everything below it; the standard library is free for all.
ALLOWED: dict[str, set[str]] = {
    "roofline/core": {"numpy", "msgspec", "roofline.core", *PLAIN},
    "roofline/traces": {"numpy", "msgspec", "torch", "google.protobuf", "roofline.core", "roofline.traces", *PLAIN},
    "roofline/formulas": {"msgspec", "roofline.core", "roofline.traces", *PLAIN},
    "roofline/devices": {
        *("numpy", "msgspec", "psutil", "pynvml", "torch", "roofline.core", "roofline.devices", "roofline.plugins"),
        *PLAIN,
    },
    "roofline/importing": {
        *("msgspec", "numpy", "roofline.__version__", "roofline.core", "roofline.devices", "roofline.traces"),
        *("roofline.importing", *PLAIN),
    },
    "roofline/renderers": {"numpy", "msgspec", "roofline.core", "roofline.plugins", "roofline.renderers", *PLAIN},
    "roofline/renderers/comparison": {"msgspec", "roofline.core", "roofline.renderers", *PLAIN},
    "roofline/renderers/figures": {
        *("numpy", "matplotlib", "roofline.core", "roofline.plugins", "roofline.renderers"),
        *PLAIN,
    },
    "roofline/backends": {
        *("numpy", "msgspec", "psutil", "roofline.core", "roofline.traces", "roofline.devices", "roofline.plugins"),
        *("roofline.__version__", "roofline.backends", *FRAMEWORKS),
        *PLAIN,
    },
    "models": {"roofline.core.step", "roofline.models", *PLAIN},
    "models/_float32": {"torch", "jax", "tensorflow", "roofline.models", *PLAIN},
    # Keras itself is an argument here; its backends are not.
    "models/_keras": {"torch", "jax", "tensorflow", "numpy", "roofline.core.step", "roofline.models", *PLAIN},
    "models/torch": {"torch", "transformers", "roofline.core.step", "roofline.models", *PLAIN},
    "models/jax": {*("jax", "flax", "optax", "numpy", "roofline.core.step", "roofline.models"), *PLAIN},
    "models/keras": {"keras", "keras_hub", "tensorflow", "numpy", "roofline.models", *PLAIN},
    "models/keras2": {"tf_keras", "keras_nlp", "tensorflow", "numpy", "roofline.models", *PLAIN},
    "models/tensorflow": {*("tensorflow", "numpy", "roofline.core.step", "roofline.models"), *PLAIN},
    "profiles": set(),
    "roofline/cli": {
        *("typer", "msgspec", "roofline.__version__", "roofline.cli", "roofline.measuring.session", "roofline.plugins"),
        *("roofline.measuring.rounds", "roofline.importing", "roofline.measuring.experiments"),
        *("roofline.core", "roofline.devices", "roofline.models", "roofline.renderers", "roofline.recording.request"),
        *PLAIN,
    },
}
#: The same for the files that lie in roofline/ itself.
ALLOWED_FILES: dict[str, set[str]] = {
    "roofline/__init__.py": {"roofline.core", "roofline.measuring.session", "roofline.costs.custom"},
    "roofline/__main__.py": {"roofline.cli"},
    "roofline/errors.py": set(),
    "roofline/units.py": set(),
    "roofline/plugins.py": {"roofline.errors"},
    "roofline/comparing.py": {
        *("msgspec", "roofline.measuring.session", "roofline.recording.request", "roofline.core"),
        *PLAIN,
    },
    "roofline/proving.py": {
        *("msgspec", "roofline.measuring.session", "roofline.backends", "roofline.core", "roofline.devices"),
        *("roofline.plugins", "roofline.models", *PLAIN),
    },
    "roofline/session.py": {
        *("msgspec", "roofline.__version__", "roofline.backends", "roofline.core", "roofline.devices"),
        *("roofline.plugins", "roofline.models", *PLAIN),
    },
}
#: Traces that may use torch begin like this: they cost aten calls with its meta tensors. All others read bytes.
TORCH_TRACES = "aten"


class Import(NamedTuple):
    """One imported name, absolute; whether its line runs when the module is imported."""

    line: int
    name: str
    at_once: bool


def files(folder: str) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob("*.py"))


def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def imports(text: str) -> Iterator[Import]:
    """All imports of a source text: in functions, for type checkers and by `import_module("...")` too."""

    def walk(node: ast.AST, at_once: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            at_once = False
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_once = False
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, at_once)
        elif isinstance(node, ast.ImportFrom):
            # `from roofline.core import profile` may name a module or something in one: the longer name is checked.
            for alias in node.names:
                yield Import(node.lineno, "." * node.level + f"{node.module or ''}.{alias.name}", at_once)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Import(node.lineno, first.value, at_once)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, at_once)

    yield from walk(ast.parse(text), True)


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def foreign(file: str, text: str) -> list[str]:
    """The imports of a file that the table does not allow."""
    folder = file.rpartition("/")[0]
    allowed = ALLOWED_FILES[file] if folder == "roofline" else ALLOWED[folder]
    return [
        f"{file}:{found.line} imports {found.name}"
        for found in imports(text)
        if found.name.partition(".")[0] not in sys.stdlib_module_names
        and not any(below(found.name, package) for package in allowed)
    ]


def siblings(file: str, text: str) -> list[str]:
    """The imports of one plugin by another: backends and renderers share only modules with an underscore.

    A helper belongs to the backends that its name begins with: `_torch_record` may import `torch`.
    """
    folder, _, name = file.rpartition("/")
    package = folder.replace("/", ".")
    plugins = {Path(other).stem for other in files(folder)} | {path.name for path in (ROOT / folder).glob("[a-z]*/")}
    plugins = {plugin for plugin in plugins if not plugin.startswith("_")}
    found = []
    for one in imports(text):
        other = one.name.removeprefix(f"{package}.").partition(".")[0] if below(one.name, package) else ""
        if other in plugins and other != Path(name).stem and not name.startswith(f"_{other}"):
            found.append(f"{file}:{one.line} imports {one.name}")
    return found


ALL_FILES = [file for folder in ("roofline", *ALLOWED) for file in files(folder)]


def test_every_folder_has_a_rule() -> None:
    packages = {
        path.parent.relative_to(ROOT).as_posix()
        for top in ("roofline", "models", "profiles")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert packages == {"roofline", *ALLOWED}
    assert set(files("roofline")) == set(ALLOWED_FILES)


@pytest.mark.parametrize("file", ALL_FILES)
def test_imports_go_one_way(file: str) -> None:
    assert foreign(file, source(file)) == []


@pytest.mark.parametrize(
    "folder",
    ["roofline/backends", "roofline/renderers", "roofline/renderers/comparison", "roofline/renderers/figures"],
)
def test_plugins_do_not_import_each_other(folder: str) -> None:
    assert [line for file in files(folder) for line in siblings(file, source(file))] == []


def test_models_of_one_framework_do_not_import_another() -> None:
    """What they share stands in the folders and files with an underscore, which import no framework's models."""
    folders = {path.name for path in (ROOT / "models").glob("[a-z]*/")}
    for path in (ROOT / "models").glob("*/*.py"):
        file = path.relative_to(ROOT).as_posix()
        for found in imports(source(file)):
            if below(found.name, "roofline.models") and found.name.count(".") > 1:
                folder = found.name.split(".")[2]
                assert folder not in folders - {path.parent.name}, f"{file}:{found.line} imports {found.name}"


def test_torch_is_only_where_aten_calls_are_costed() -> None:
    users = {
        Path(file).stem
        for file in files("roofline/traces")
        if any(below(found.name, "torch") for found in imports(source(file)))
    }
    assert all(name.startswith(TORCH_TRACES) for name in users), users


@pytest.mark.parametrize(
    "file",
    [
        file
        for folder in ("roofline/backends", "roofline/devices", "roofline/cli", "models")
        for file in files(folder)
        if not Path(file).name.startswith(
            ("_torch_", "_torchscript", "_jax_framework", "_jax_verify", "_tensorflow_", "_keras_")
        )
    ],
)
def test_frameworks_are_imported_in_functions_only(file: str) -> None:
    at_once = {found.name.partition(".")[0] for found in imports(source(file)) if found.at_once}
    assert not at_once & FRAMEWORKS
    if file.startswith("roofline/cli/"):
        assert at_once <= {"typer", "roofline", *sys.stdlib_module_names}


@pytest.mark.parametrize("top", ["roofline", "models", "profiles", "tests", "benchmarks"])
def test_nothing_imports_models_by_its_place(top: str) -> None:
    """`import models` works in the checkout, and gives every module a second time."""
    for path in sorted((ROOT / top).rglob("*.py")):
        for found in imports(path.read_text(encoding="utf-8")):
            assert found.name.partition(".")[0] not in ("models", "profiles"), f"{path.name}:{found.line}"
            assert not found.name.startswith("."), f"{path.name}:{found.line} is relative"


@pytest.mark.parametrize("file", [file for file in ALL_FILES if not file.startswith("roofline/cli/")])
def test_only_the_command_line_prints_and_exits(file: str) -> None:
    """Elsewhere, progress goes to standard error, and only a module run as a process of its own exits."""
    tree = ast.parse(source(file))
    as_process = {
        id(node)
        for block in tree.body
        if isinstance(block, ast.If) and "__main__" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called == "print":
            assert any(k.arg == "file" for k in node.keywords), f"{file}:{node.lineno} prints"
        assert called not in ("sys.exit", "exit", "os._exit") or id(node) in as_process, f"{file}:{node.lineno} exits"


# ------------------------------------------------------------------------------------- the rules can be broken


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("roofline/core/cost.py", "import torch"),
        ("roofline/core/cost.py", "def f():\n    from roofline.backends import Plan"),
        ("roofline/core/cost.py", "from importlib import import_module\nimport_module('roofline.measuring.session')"),
        ("roofline/core/cost.py", "from roofline import plugins"),
        ("roofline/core/cost.py", "import rich"),
        ("roofline/traces/kineto.py", "from roofline import session"),
        ("roofline/renderers/text.py", "import matplotlib.pyplot as plt"),
        ("roofline/renderers/text.py", "from roofline.models import geometry"),
        ("roofline/renderers/text.py", "from roofline.backends import _launch"),
        ("roofline/backends/torch.py", "from roofline import renderers"),
        ("roofline/backends/torch.py", "from roofline.models.torch import bert"),
        ("models/torch/bert.py", "from models import geometry"),
        ("models/torch/bert.py", "from . import _step"),
        ("models/__init__.py", "import torch"),
        ("roofline/session.py", "from roofline.cli import main"),
        ("roofline/comparing.py", "from roofline.cli import compare"),
        ("roofline/errors.py", "import numpy"),
    ],
)
def test_a_wrong_import_is_found(file: str, text: str) -> None:
    assert len(foreign(file, text)) == 1


def test_a_right_import_is_not() -> None:
    assert foreign("roofline/core/cost.py", "import json\nimport numpy as np\nfrom roofline.core import step") == []
    # A name may begin like an allowed one and be another.
    assert foreign("roofline/core/cost.py", "import numpydoc") != []


@pytest.mark.parametrize(
    ("file", "text", "count"),
    [
        ("roofline/renderers/csv.py", "from roofline.renderers import json", 1),
        ("roofline/renderers/csv.py", "from roofline.renderers.figures import bound", 1),
        ("roofline/renderers/csv.py", "import json\nfrom roofline.renderers import _tables", 0),
        ("roofline/renderers/comparison/text.py", "from roofline.renderers.comparison import markdown", 1),
        ("roofline/renderers/figures/bound.py", "from roofline.renderers.figures import devices", 1),
        ("roofline/renderers/figures/bound.py", "from roofline.renderers.figures import _style", 0),
        ("roofline/backends/jax.py", "def f():\n    from roofline.backends.torch import devices", 1),
        ("roofline/backends/jax.py", "from roofline.backends import _torch_running, torch", 1),
        ("roofline/backends/_torch_record.py", "from roofline.backends import torch as backend", 0),
        ("roofline/backends/_child.py", "from roofline.backends import torch", 1),
    ],
)
def test_a_plugin_that_imports_another_is_found(file: str, text: str, count: int) -> None:
    assert len(siblings(file, text)) == count


def test_a_type_checkers_import_counts_but_is_not_at_once() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n"
    assert [(found.name, found.at_once) for found in imports(text)] == [
        ("typing.TYPE_CHECKING", True),
        ("torch", False),
    ]
    assert foreign("roofline/core/cost.py", text)
