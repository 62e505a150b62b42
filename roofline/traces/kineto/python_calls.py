"""Read the names of calls of Python in a trace: `file(line): function`, and `nn.Module: Name_0` of a module's call."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import NamedTuple

_CALL = re.compile(r"(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_LONGEST = 300  # characters of a name that are read
_MODULE = re.compile(r"nn\.Module: (.+)", re.DOTALL)
#: Folders of installed libraries, and of Python's own.
_INSTALLED = re.compile(r".*(?:site-packages|dist-packages|lib/python\d+\.\d+|[\\/]Lib)[\\/]", re.DOTALL)
_ABSOLUTE = re.compile(r"[\\/]|[A-Za-z]:[\\/]")
#: Packages whose functions are no lines of a program: PyTorch, what compiles for it, and this one.
_FRAMEWORK = frozenset(("torch", "functorch", "torchgen", "triton", "roofline"))


class PythonCall(NamedTuple):
    """A call.

    file: without the folder that libraries or the program lie in; line: of the function's definition. is_framework: it
    is the framework's or Python's own, and no line of a program or of a library of models.
    """

    file: str
    line: int
    function: str
    is_framework: bool

    def __str__(self) -> str:
        """Write it as "model.py:88 forward"."""
        return f"{self.file}:{self.line} {self.function}"


@lru_cache(maxsize=1 << 16)
def parsed(name: str) -> PythonCall | None:
    """Read the name of a call; None where it has no file, as a function that is built in has none."""
    match = _CALL.fullmatch(name[:_LONGEST])
    if match is None or name.startswith("<built-in"):
        return None
    file = _INSTALLED.sub("", match["file"])
    folders = re.split(r"[\\/]", file)
    if _ABSOLUTE.match(file):  # where a program lies is the machine's; its files may be called as Python's own are
        file, is_framework = folders[-1], False
    else:
        top = folders[0].removesuffix(".py")
        is_framework = top in _FRAMEWORK or top in sys.stdlib_module_names or file.startswith("<")
    return PythonCall(file, int(match["line"][:9]), match["function"], is_framework)


def module(name: str) -> str | None:
    """Read the name of a module that is called: "Linear_0" of "nn.Module: Linear_0"; None of another call."""
    match = _MODULE.fullmatch(name[:_LONGEST])
    return None if match is None else match[1]
