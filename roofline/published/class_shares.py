"""Shares by class of operator as they were published: what the wall chart of a step stands beside."""

from __future__ import annotations

from dataclasses import dataclass

from roofline import published


@dataclass(frozen=True, slots=True)
class ClassShares:
    """A published table of shares.

    name, step, stated, hardware: who published it, what was run, in which arithmetic, on what. flops, time: shares by
    group of ops, of FLOP and of the time of the three together; None where the table has none. citable: whether
    somebody read the figures in the source that is named.
    """

    name: str
    step: str
    stated: str
    hardware: str
    flops: dict[str, float | None]
    time: dict[str, float | None]
    citable: bool
    source: str

    def slower(self, group: str) -> float | None:
        """Compute FLOP/s of the matmuls over FLOP/s of a group, which follows from the shares; None where unknown."""
        work, time = self.flops.get(group), self.time.get(group)
        product_work, product_time = self.flops.get("matmul"), self.time.get("matmul")
        return (
            (product_work / product_time) / (work / time) if work and time and product_work and product_time else None
        )


def class_shares(model: str, mode: str) -> tuple[ClassShares, ...]:
    """Find the published tables that the step of a model in a mode may stand beside."""
    tables = []
    for name in published.names():
        publication = published.load(name)
        classes = publication.classes
        if classes is None or model not in classes.models or mode not in classes.modes:
            continue
        cells = {
            column: {group: publication.find(task, column) for group, task in classes.tasks.items()}
            for column in (classes.flops, classes.time)
        }
        shares = {
            column: {group: None if cell.value is None else cell.value / 100 for group, cell in row.items()}
            for column, row in cells.items()
        }
        first = next(iter(cells[classes.time].values()))
        tables.append(
            ClassShares(
                name=classes.name,
                step=classes.step,
                stated=classes.stated,
                hardware=first.hardware,
                flops=shares[classes.flops],
                time=shares[classes.time],
                citable=all(cell.citable for row in cells.values() for cell in row.values()),
                source=first.source,
            )
        )
    return tuple(tables)
