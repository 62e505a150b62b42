"""Where code may lie and what it may import.

The rooms of roofline/ are held by the contracts of import-linter in pyproject.toml ([tool.importlinter]). What these
cannot see is read from the source here: models/, which installs as roofline.models and lies elsewhere, imports by a
text, and what runs when a module is imported.
"""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest
from importlinter import Contract
from importlinter.api import read_configuration
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.contracts.protected import ProtectedContract

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS: dict[str, type[Contract]] = {
    "layers": LayersContract,
    "acyclic_siblings": AcyclicSiblingsContract,
    "independence": IndependenceContract,
    "forbidden": ForbiddenContract,
    "protected": ProtectedContract,
}
CONFIGURATION = read_configuration(str(ROOT / "pyproject.toml"))
NO_FRAMEWORK = "No framework and nothing of the terminal: pure rooms and renderers"
FRAMEWORKS = {
    module
    for options in CONFIGURATION["contracts_options"]
    if options["name"] == NO_FRAMEWORK
    for module in options["forbidden_modules"]
} - {"typer", "rich"}
#: folder of models/ -> what its files may import beside the standard library, roofline.models and PLAIN.
MODELS: dict[str, set[str]] = {
    "models": set(),
    "models/float32": {"torch", "jax", "tensorflow"},
    # Keras itself is an argument here; its backends are not.
    "models/_keras": {"torch", "jax", "tensorflow", "numpy"},
    "models/torch": {"torch", "transformers", "diffusers", "roofline.core.generate_phases"},
    "models/jax": {"jax", "flax", "optax", "numpy"},
    "models/keras": {"keras", "keras_hub", "tensorflow", "numpy"},
    "models/keras2": {"tf_keras", "keras_nlp", "keras_cv", "tensorflow", "numpy"},
    "models/tensorflow": {"tensorflow", "numpy"},
}
PLAIN = {"roofline.core.step", "roofline.errors", "roofline.units"}


# ------------------------------------------------------------------------------------------------ the rooms


@cache
def built() -> grimp.ImportGraph:
    """Every import of roofline/, those in functions and for type checkers included."""
    return grimp.build_graph("roofline", include_external_packages=True, cache_dir=None)


def broken(*additions: tuple[str, str], of: tuple[str, ...] = ("",)) -> set[str]:
    """The names of the contracts that do not hold, were `additions` (importer, imported) imports as well.

    of: beginnings of the names of those that are looked at.
    """
    graph = copy.deepcopy(built())
    for importer, imported in additions:
        for module in (importer, imported):
            if module not in graph.modules:
                graph.add_module(module, is_squashed=not module.startswith("roofline"))
        graph.add_import(importer=importer, imported=imported)
    found = set()
    for options in CONFIGURATION["contracts_options"]:
        if not options["name"].startswith(of):
            continue
        kind = CONTRACTS[options["type"]]
        contract = kind(options["name"], CONFIGURATION["session_options"], options)
        if not contract.check(copy.deepcopy(graph), verbose=False).kept:
            found.add(options["name"])
    return found


def test_the_contracts_hold() -> None:
    """`lint-imports`, which `make check` runs, says why one does not."""
    assert broken() == set()


DOWN, CIRCLE, PURE = "The rooms import downwards", "No circle, in no room", "Pure rooms"
INSIDE = "Inside comparison"


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        # upwards
        ("roofline.core.cost", "roofline.backends", {DOWN}),
        ("roofline.core.cost", "roofline.measuring.session", {DOWN}),
        ("roofline.core.cost", "roofline.plugins", set()),
        ("roofline.traces.kineto.reader", "roofline.measuring.session", {DOWN}),
        ("roofline.renderers.text", "roofline.cli", {DOWN}),
        ("roofline.backends.torch", "roofline.renderers.text", {DOWN}),
        ("roofline.measuring.session", "roofline.cli", {DOWN}),
        ("roofline.measuring.rounds", "roofline.cli.compare", {DOWN}),
        ("roofline.errors", "roofline.units", {DOWN}),
        ("roofline.regression.check", "roofline.projection.project", {DOWN}),
        ("roofline.comparison.terms", "roofline.comparison.account.row", {INSIDE}),
        ("roofline.comparison.proof.proof", "roofline.comparison.ranking", {INSIDE}),
        # circles inside a room
        ("roofline.analysis.floors", "roofline.analysis.analysis", {CIRCLE}),
        ("roofline.xla.executed", "roofline.xla.count", {CIRCLE}),
        # one plugin by another
        ("roofline.backends.jax", "roofline.backends.torch", {"No backend imports another"}),
        ("roofline.renderers.csv", "roofline.renderers.json", {"No format imports another"}),
        ("roofline.renderers.csv", "roofline.renderers.figures.bound", {"No format imports another"}),
        ("roofline.renderers.csv", "roofline.content.terminal", set()),
        (
            "roofline.renderers.comparison.text",
            "roofline.renderers.comparison.markdown",
            {"No format of compare imports another"},
        ),
        ("roofline.renderers.check.github", "roofline.renderers.check.text", {"No format of check imports another"}),
        ("roofline.renderers.whatif.text", "roofline.renderers.whatif.json", {"No format of whatif imports another"}),
        (
            "roofline.renderers.published.text",
            "roofline.renderers.published.json",
            {"No format of published imports another"},
        ),
        ("roofline.published.implied", "roofline.projection.project", {DOWN}),
        ("roofline.renderers.figures.bound", "roofline.renderers.figures.devices", {"No figure imports another"}),
        ("roofline.renderers.figures.bound", "roofline.renderers.figures._bars", set()),
        # from outside
        ("roofline.core.cost", "torch", {NO_FRAMEWORK}),
        ("roofline.core.cost", "rich", {NO_FRAMEWORK}),
        ("roofline.core.cost", "psutil", {PURE}),
        ("roofline.costs.libraries.vllm", "jax", {NO_FRAMEWORK}),
        ("roofline.traces.kineto.reader", "torch", {NO_FRAMEWORK}),
        ("roofline.renderers.text", "torch", {NO_FRAMEWORK}),
        ("roofline.renderers.text", "matplotlib", {"Only figures"}),
        ("roofline.measuring.session", "typer", {"Only the command line"}),
    ],
)
def test_a_wrong_import_is_found(importer: str, imported: str, expected: set[str]) -> None:
    found = broken((importer, imported), of=tuple(expected) or ("",))
    for wanted in expected:
        assert any(name.startswith(wanted) for name in found), found
    if not expected:
        assert found == set()


def test_every_module_is_in_the_graph() -> None:
    """Of what the contracts read nothing is left out: a folder without `__init__.py` would be."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "roofline").rglob("*.py")}
    inside = {name for name in built().modules if name.partition(".")[0] == "roofline"}
    assert {name.removesuffix(".__init__") for name in names} == inside


# ------------------------------------------------------------------------------------------------ the source


class Import(NamedTuple):
    """One imported name, absolute; whether its line runs when the module is imported; whether it is given as a text."""

    line: int
    name: str
    at_once: bool
    text: bool = False


def dotted(node: ast.AST) -> str:
    """Return a name as it stands in the source, as "os.path.join"; of an attribute of anything else, ".join"."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def imports(source: str) -> Iterator[Import]:
    """All imports of a source: in functions, for type checkers and by `import_module("...")` too."""
    # Without those, none is inside of an expression.
    by_text = "import_module" in source or "__import__" in source
    waiting: deque[tuple[ast.AST, bool]] = deque([(ast.parse(source), True)])
    while waiting:
        node, at_once = waiting.popleft()
        if isinstance(node, ast.If) and dotted(node.test).endswith("TYPE_CHECKING"):
            at_once = False
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            at_once = False
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, at_once)
        elif isinstance(node, ast.ImportFrom):
            # `from roofline.core import step` may name a module or something in one: the longer name is checked.
            for alias in node.names:
                yield Import(node.lineno, "." * node.level + f"{node.module or ''}.{alias.name}", at_once)
        elif isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("import_module", "__import__"):
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Import(node.lineno, first.value, at_once, text=True)
        waiting.extend(
            (child, at_once) for child in ast.iter_child_nodes(node) if by_text or not isinstance(child, ast.expr)
        )


def files(*folders: str) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*.py"))


def source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


@cache
def found_in(file: str) -> tuple[Import, ...]:
    return tuple(imports(source(file)))


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def foreign(file: str, text: str) -> list[str]:
    """The imports of a file of models/ that the table does not allow: other frameworks, and their models."""
    folder = file.rpartition("/")[0]
    top = "/".join(folder.split("/")[:2])  # below it, models lie by kind
    framework = f"roofline.{top.replace('/', '.')}"
    allowed = MODELS[top] | PLAIN
    found = []
    for one in imports(text):
        if one.name.partition(".")[0] in sys.stdlib_module_names:
            continue
        shared = below(one.name, "roofline.models") and (one.name.count(".") <= 2 or "models._" in one.name)
        own = shared or any(below(one.name, folder) for folder in (framework, "roofline.models.float32"))
        if not own and not any(below(one.name, package) for package in allowed):
            found.append(f"{file}:{one.line} imports {one.name}")
    return found


def test_every_folder_of_models_has_a_rule() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "models").rglob("__init__.py")}
    assert {"/".join(folder.parts[:2]) for folder in folders} == set(MODELS)


def test_a_model_imports_its_framework_and_little_else() -> None:
    assert [line for file in files("models") for line in foreign(file, source(file))] == []


@pytest.mark.parametrize(
    ("file", "text", "count"),
    [
        ("models/torch/encoders/bert.py", "from models import geometry", 1),
        ("models/torch/encoders/bert.py", "from . import _step", 1),
        ("models/torch/encoders/bert.py", "from roofline.models.jax.encoders import bert", 1),
        ("models/torch/encoders/bert.py", "def f():\n    import jax", 1),
        ("models/torch/encoders/bert.py", "from importlib import import_module\nimport_module('tensorflow')", 1),
        ("models/torch/encoders/bert.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import jax", 1),
        ("models/torch/encoders/bert.py", "from roofline.core import schema", 1),
        (
            "models/torch/encoders/bert.py",
            "import torchvision",
            1,
        ),  # a name may begin like an allowed one and be another
        ("models/__init__.py", "import torch", 1),
        ("models/torch/encoders/bert.py", "import json\nimport torch\nfrom roofline.core.step import Step", 0),
        (
            "models/torch/encoders/bert.py",
            "from roofline.models import geometry\nfrom roofline.models.torch import _step",
            0,
        ),
    ],
)
def test_a_wrong_import_of_a_model_is_found(file: str, text: str, count: int) -> None:
    assert len(foreign(file, text)) == count


def test_profiles_hold_no_code() -> None:
    assert [found_in(file) for file in files("profiles")] == [()]


def test_models_are_found_by_name() -> None:
    """roofline.models is no part of the graph: what records and measures may read its geometry, the verbs list it."""
    # The float32 switches are set for a model and read for a profile by one file.
    allowed = ("roofline/recording/", "roofline/measuring/", "roofline/cli/", "roofline/pytorch/recording/process.py")
    users = [file for file in files("roofline") if any(below(one.name, "roofline.models") for one in found_in(file))]
    assert [file for file in users if not file.startswith(allowed)] == []


def test_no_import_is_hidden_in_a_text() -> None:
    """The contracts do not see it. What has no stubs to check by may be: a module of a framework, in its own room."""
    hidden = [(file, one.name) for file in files("roofline") for one in found_in(file) if one.text]
    rooms = {"roofline/pytorch/": "torch", "roofline/xla/": "jaxlib"}
    assert [
        (file, name)
        for file, name in hidden
        if not any(file.startswith(room) and below(name, package) for room, package in rooms.items())
    ] == []


def test_frameworks_are_imported_in_functions_only() -> None:
    rooms = files("roofline/backends", "roofline/devices", "roofline/cli", "roofline/measuring")
    for file in ["models/__init__.py", *rooms]:
        at_once = {found.name.partition(".")[0] for found in found_in(file) if found.at_once}
        assert not at_once & FRAMEWORKS, file
        if file.startswith("roofline/cli/"):
            assert at_once <= {"typer", "roofline", *sys.stdlib_module_names}, file


def test_no_private_module_is_imported_from_outside_its_folder() -> None:
    """An underscore says that. A test belongs to the folder that it tests and may import from it."""
    checked = files("roofline", "models", "benchmarks", "docs")
    modules = {installed(file).removesuffix(".py").removesuffix("/__init__").replace("/", ".") for file in checked}
    found = [
        f"{file}:{one.line} imports {module}"
        for file in checked
        for one in found_in(file)
        for module in private(one.name, modules)
        if not below(installed(file).rpartition("/")[0].replace("/", "."), module.rpartition(".")[0])
    ]
    assert found == []


def installed(file: str) -> str:
    """Where a file is installed: models/ as roofline/models/."""
    return f"roofline/{file}" if file.startswith("models/") else file


def private(name: str, modules: set[str]) -> list[str]:
    """The modules on the way to an imported name that have an underscore."""
    parts = name.split(".")
    ways = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return [way for way in ways if way in modules and way.rpartition(".")[2].startswith("_")]


def test_a_private_module_is_told_from_a_private_name() -> None:
    modules = {"roofline.api._run", "roofline.renderers._latex"}
    assert private("roofline.api._run.profile", modules) == ["roofline.api._run"]
    assert private("roofline.renderers._latex.table.Column", modules) == ["roofline.renderers._latex"]
    assert private("roofline.content.wording._size", modules) == []


def test_what_runs_a_step_knows_no_framework() -> None:
    for file in files("roofline/recording"):
        assert not {found.name.partition(".")[0] for found in found_in(file)} & FRAMEWORKS, file


def test_a_type_checkers_import_counts_but_is_not_at_once() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n"
    assert [(found.name, found.at_once) for found in imports(text)] == [
        ("typing.TYPE_CHECKING", True),
        ("torch", False),
    ]


@pytest.mark.parametrize("top", ["roofline", "models", "profiles", "tests", "benchmarks"])
def test_nothing_imports_models_by_its_place(top: str) -> None:
    """`import models` works in the checkout, and gives every module a second time."""
    may = re.compile(r"""(from|import|import_module\(|__import__\()[\s"']*(\.|models|profiles)""")
    for file in files(top):
        if not may.search(source(file)):
            continue
        for found in found_in(file):
            assert found.name.partition(".")[0] not in ("models", "profiles"), f"{file}:{found.line}"
            assert not found.name.startswith("."), f"{file}:{found.line} is relative"


def test_only_the_command_line_prints_and_exits() -> None:
    """Elsewhere, progress goes to standard error, and only a module run as a process of its own exits, or a fork."""
    for file in files("roofline", "models"):
        # The measuring process ends at once when its result is written, whatever its step left running.
        if file.startswith(("roofline/cli/", "roofline/__main__", "roofline/recording/leaving.py")):
            continue
        text = source(file)
        if not re.search(r"print\(|exit\(", text):
            continue
        tree = ast.parse(text)
        processes = [
            *(
                block
                for block in tree.body
                if isinstance(block, ast.If) and any(dotted(name) == "__name__" for name in ast.walk(block.test))
            ),
            *(
                function
                for function in ast.walk(tree)
                if isinstance(function, ast.FunctionDef) and any(dotted(c.func) == "os.fork" for c in calls(function))
            ),
        ]
        allowed = {id(call) for process in processes for call in calls(process)}
        for call in calls(tree):
            name, place = dotted(call.func), f"{file}:{call.lineno}"
            if name == "print":
                assert any(keyword.arg == "file" for keyword in call.keywords), f"{place} prints"
            assert name not in ("sys.exit", "exit", "os._exit") or id(call) in allowed, f"{place} exits"
