"""Results that show themselves: as text where they are printed, as a table and a figure in a notebook.

What they show is written by the plugin of `roofline.renderers.notebook` that is called like the result's class, so that
nothing of it is imported before somebody looks.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

from roofline import plugins

if TYPE_CHECKING:
    import pandas

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Shown:
    """What a result of the Python interface can do; a class that is one derives from it and has nothing to add."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        text: str = _renderer(self).text(self)
        return text.rstrip("\n")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython prints in a terminal."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """What Jupyter shows: under 100 kB, whatever the names in it."""
        html: str = _renderer(self).html(self)
        return html

    def to_dict(self) -> dict[str, Any]:
        """The same numbers as `--format json` writes, as plain dictionaries: seconds, FLOP, bytes; None is unknown."""
        document: dict[str, Any] = _renderer(self).document(self)
        return document

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame: seconds, FLOP, bytes; NaN is unknown. Raises MissingError without pandas."""
        from roofline.errors import MissingError

        if not plugins.importable("pandas"):
            raise MissingError(
                "A data frame needs pandas, which is not installed: run `pip install 'roofline[pandas]'`."
            )
        import pandas

        return pandas.DataFrame(_renderer(self).columns(self))


def _renderer(result: object) -> ModuleType:
    name = _CAPITAL.sub("-", type(result).__name__).lower()
    return plugins.load("roofline.renderers.notebook", name, "result")
