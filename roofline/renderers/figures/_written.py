"""Write a figure to a file with its title and caption: SVG with text as text, PDF with its fonts, PNG."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

from roofline.content.wording import plain
from roofline.renderers.figures import _light, _measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What must not be in a file for it to be the same when drawn again: dates, and the versions of what drew it.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
SUFFIXES = tuple(_METADATA)

#: For readers of an SVG that lack our font: one of nearly the same widths, and anything.
_FAMILY = re.compile(rf"(style=\"[^\"]*font-family: )'{_measure.FONT}'")


class Caption(NamedTuple):
    """A caption. title: of the figure; short: needed to read it; long: with the measurement.

    long says all that short says.
    """

    title: str
    short: str
    long: str

    def text(self, long: bool) -> str:
        """Write the caption as text."""
        return plain(f"{self.title}. {self.long if long else self.short}")


def write(figure: Figure, suffix: str, title: str, caption: str) -> bytes:
    """Return the bytes of a file with `suffix`. Save a figure under `_style.applied()`."""
    metadata = dict(_METADATA[suffix])
    if suffix == ".pdf":
        metadata |= {"Title": title, "Subject": caption}
    elif suffix == ".png":
        metadata |= {"Title": title, "Description": caption}
    stream = io.BytesIO()
    figure.savefig(stream, format=suffix[1:], metadata=metadata)
    if suffix != ".svg":
        return stream.getvalue()
    svg = _FAMILY.sub(rf"\1'{_measure.FONT}', Verdana, sans-serif", _light.lighten(stream.getvalue().decode()))
    about = f'<title id="title">{escape(title)}</title>\n <desc id="caption">{escape(caption)}</desc>'
    return re.sub(
        r"<svg([^>]*)>",
        lambda opening: f'<svg{opening[1]} role="img" aria-labelledby="title caption">\n {about}',
        svg,
        count=1,
    ).encode()
