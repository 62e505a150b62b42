"""Name lines of the user's program: "model.py:88", without the folder that it lies in, which is the machine's."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from roofline import plugins

#: Folders of installed libraries.
INSTALLED = frozenset(("site-packages", "dist-packages"))


class SourceFiles(dict[str, str | None]):
    """Map the path of a source file to its name in the program; None: a library's, Python's or roofline's.

    A file is named below the folder that it was imported from, as "models/layers.py" is for the module `models.layers`;
    one that is no module, as a script, by its own name, and a cell of a notebook by its number, "In[3]".
    """

    def __init__(self) -> None:
        """Find the folders whose files are not the user's."""
        super().__init__()
        python = {path for name in ("stdlib", "platstdlib") if (path := sysconfig.get_path(name))}
        ours = {str(plugins.folder(package)) for package in ("roofline", "roofline.models")}
        self._others = tuple(os.path.join(os.path.realpath(folder), "") for folder in (*python, *ours))

    def __missing__(self, file: str) -> str | None:
        """Name a file that is asked for the first time."""
        self[file] = name = self._name(file)
        return name

    def line(self, file: str, number: int) -> str | None:
        """Name a line of a file; None where the file is not the user's."""
        name = self[file]
        return None if name is None else f"{name}:{number}"

    def _name(self, file: str) -> str | None:
        cell = _cell(file)
        if cell is not None:
            return cell
        path = os.path.realpath(file)
        if file.startswith("<") or path.startswith(self._others) or INSTALLED.intersection(Path(path).parts):
            return None
        module = _module(path)
        parts = module.count(".") + 1 + (Path(path).name == "__init__.py") if module else 1
        return "/".join(Path(path).parts[-parts:])


def _module(path: str) -> str | None:
    """Find the name of the module that was made of a file; None for a script, or where there is none."""
    for name, module in tuple(sys.modules.items()):
        file = None if name == "__main__" else getattr(module, "__file__", None)
        if (
            isinstance(file, str)
            and os.path.basename(file) == os.path.basename(path)
            and os.path.realpath(file) == path
        ):
            return name
    return None


def _cell(file: str) -> str | None:
    """Name the cell of a notebook that IPython compiled under the name of a file; None for other files."""
    python = sys.modules.get("IPython")
    shell = None if python is None else python.get_ipython()
    named = None if shell is None else shell.compile.format_code_name(file)
    return None if named is None else str(named[1])
