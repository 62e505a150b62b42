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
#: Packages whose functions are no lines of a program: PyTorch, what compiles for it, and this one.
_FRAMEWORK = frozenset(("torch", "functorch", "torchgen", "triton", "roofline"))


class PythonCall(NamedTuple):
    """A call. file: without the folder that libraries or the program lie in; line: of the function's definition."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        """Write it as "model.py:88 forward"."""
        return f"{self.file}:{self.line} {self.function}"

    @property
    def is_framework(self) -> bool:
        """Return whether it is the framework's or Python's own, and no line of a program or of a library of models."""
        top = re.split(r"[\\/]", self.file)[0].removesuffix(".py")
        return top in _FRAMEWORK or top in sys.stdlib_module_names or self.file.startswith("<")


@lru_cache(maxsize=1 << 16)
def parsed(name: str) -> PythonCall | None:
    """Read the name of a call; None where it has no file, as a function that is built in has none."""
    match = _CALL.fullmatch(name[:_LONGEST])
    if match is None or name.startswith("<built-in"):
        return None
    file = _INSTALLED.sub("", match["file"])
    if file.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", file):
        file = re.split(r"[\\/]", file)[-1]  # where a program lies is the machine's
    return PythonCall(file, int(match["line"][:9]), match["function"])


def module(name: str) -> str | None:
    """Read the name of a module that is called: "Linear_0" of "nn.Module: Linear_0"; None of another call."""
    match = _MODULE.fullmatch(name[:_LONGEST])
    return None if match is None else match[1]
