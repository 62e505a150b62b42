"""Call a function right after the program has imported a module, without importing it first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from roofline.errors import reason
from roofline.recording.recording import Say


class AfterImport(MetaPathFinder):
    """Wait for the import of some modules; a finder in front of all others, which finds nothing itself.

    Where a library has changed, so that a function fails, a line says so, and the program's import goes on.
    """

    def __init__(self, say: Say) -> None:
        self._say = say
        self._waiting: dict[str, list[Callable[[], None]]] = {}

    def call(self, module: str, function: Callable[[], None]) -> None:
        """Call a function when a module has been imported, or at once where it has."""
        if module in sys.modules:
            self._try(module, function)
        else:
            self._waiting.setdefault(module, []).append(function)

    def install(self) -> None:
        """Begin to look at imports."""
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Look at no further import."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the spec of a module that is waited for by the other finders, and put a loader around its own."""
        if fullname not in self._waiting:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, partial(self._imported, fullname))
                return spec
        return None

    def _imported(self, module: str) -> None:
        """Call what waits for a module; a spec alone, which some ask for to know whether it is there, calls nothing."""
        for function in self._waiting.pop(module, ()):
            self._try(module, function)

    def _try(self, module: str, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:
            version = getattr(sys.modules.get(module.partition(".")[0]), "__version__", "?")
            self._say(f"{module} {version} cannot be watched ({reason(error)})")


class _Loader(Loader):
    """Load a module by its own loader, which it also has again while it is executed, and then call a function."""

    def __init__(self, loader: Any, imported: Callable[[], None]) -> None:
        self._loader, self._imported = loader, imported

    def __getattr__(self, name: str) -> Any:
        """Ask the module's own loader, as who found the spec may."""
        return getattr(vars(self)["_loader"], name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._imported()
