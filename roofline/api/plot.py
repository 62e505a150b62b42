"""Draw figures: `roofline.plot`."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from roofline.analysis.analysis import WorkAnalysis, analyze
from roofline.api._run import Run, profile
from roofline.core.device import Device
from roofline.renderers import figures
from roofline.renderers.notebook import plot as cell
from roofline.sweeping import folder, grid


@dataclass(frozen=True, slots=True, repr=False)
class Plot:
    """Hold a figure of some runs, drawn when it is shown or saved.

    width: in inches; caption: the text under it; by: what its rows are, None: what is usual.
    """

    kind: str
    items: tuple[figures.Item, ...]
    width: float
    by: str | None = None

    def __repr__(self) -> str:
        return f"<Plot {self.kind!r} of {len(self.items)} runs, {self.width:g} in wide: save it with .save(path)>"

    def _repr_html_(self) -> str:
        return cell.html(*figures.render(self.kind, self.items, ".svg", self.width, by=self.by))

    @property
    def caption(self) -> str:
        """The text under the figure: device, versions, number of steps and spread."""
        return figures.render(self.kind, self.items, ".svg", self.width, by=self.by)[1]

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the figure to a .svg, .pdf or .png, over an existing file. Raises InputError for any other suffix."""
        file = Path(fspath(path))
        figures.draw(self.kind, self.items, file, self.width, by=self.by)
        return file


def plot(
    *runs: Run | WorkAnalysis | Device, kind: str = "bound", width: float = figures.WIDTH, by: str | None = None
) -> Plot:
    """Draw a figure of one or more runs.

    runs: profiles, paths of saved ones, or analyses; for kind "devices" also a Device; for kind "sweep" the folder of a
    sweep. kind: one of those of `roofline plot --kind`. width: in inches, 3.3 for one column of a paper and 7 for two.
    by: what the rows of a breakdown are, as `roofline plot --by`.

    Returns a Plot, which shows itself in a notebook and is written by `save`. Raises InputError for an unknown kind, no
    runs, and runs of which the kind has nothing to draw.

    >>> roofline.plot("torch.json", "jax.json", kind="waterfall", width=7).save("waterfall.pdf")
    """
    items = tuple(map(_item, runs))
    figures.build(kind, items, width, by)  # an impossible figure is refused here, not where it is shown
    return Plot(kind, items, width, by)


def _item(run: Run | WorkAnalysis | Device) -> figures.Item:
    if isinstance(run, WorkAnalysis | Device):
        return run
    if isinstance(run, str | PathLike) and folder.is_folder(Path(run)):
        return grid.read(Path(run))
    return analyze(profile(run))
