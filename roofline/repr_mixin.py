"""Let results show themselves: as text where they are printed, as a table and a figure in a notebook.

The plugin of `roofline.renderers.notebook` with the name of the result's class, or of one that it derives from, writes
them, and is imported only then.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

from roofline import plugins

if TYPE_CHECKING:
    import pandas

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ReprMixin:
    """Give a result of the Python interface its text, HTML, dictionary and data frame, by deriving from this class."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        text: str = _renderer(self).text(self)
        return text.rstrip("\n")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the result in IPython's terminal."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """Write the HTML for Jupyter: under 100 kB, whatever the names in it."""
        html: str = _renderer(self).html(self)
        return html

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of `--format json` as plain dictionaries: seconds, FLOP, bytes; None is unknown."""
        document: dict[str, Any] = _renderer(self).document(self)
        return document

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a data frame: seconds, FLOP, bytes; NaN is unknown. Raises MissingError without pandas."""
        from roofline.errors import MissingError

        if not plugins.importable("pandas"):
            raise MissingError(
                "A data frame needs pandas, which is not installed: run `pip install 'roofline[pandas]'`."
            )
        import pandas

        return pandas.DataFrame(_renderer(self).columns(self))


def _renderer(result: object) -> ModuleType:
    classes = [_CAPITAL.sub("-", its_class.__name__).lower() for its_class in type(result).__mro__]
    known = plugins.names("roofline.renderers.notebook")
    name = next((name for name in classes if name in known), classes[0])
    return plugins.load("roofline.renderers.notebook", name, "result")
