"""Name a row of the account in a few words, for a table or a figure."""

from __future__ import annotations

from roofline.comparison.account.row import Row
from roofline.comparison.account.words import class_name, last_parts, op_name
from roofline.units import plain


def label(row: Row) -> str:
    """Name a row: by its annotation, if it has one, and where it is."""
    match row.kind:
        case "setting":
            where = "settings"
        case "rate":
            where = f"the same {class_name(row.op_class)} ops"
        case "gap":
            where = row.place or ""
        case "only":
            first = last_parts((row.place or "").partition(", ")[0])
            ops = op_name(row.ops[0].name) if row.ops else ""
            where = ", ".join(dict.fromkeys(filter(None, (first or ops, row.phase))))
    return f"{row.annotations[0]}: {plain(where)}" if row.annotations else plain(where)
