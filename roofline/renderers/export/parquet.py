"""Write the table of ops as Parquet: a row per op, in order of dispatch, for polars, pandas, DuckDB and others."""

from __future__ import annotations

import io
import json

from roofline import plugins
from roofline.analysis.analysis import WorkAnalysis
from roofline.content import wording
from roofline.content.ops import columns
from roofline.errors import MissingError

SUFFIX = ".parquet"
WORDS = "the same, typed and compressed"


def written(analysis: WorkAnalysis) -> bytes:
    """Write numbers in seconds, FLOP and bytes; unknown is null. The file's metadata describe the measurement.

    Raises MissingError without pyarrow.
    """
    if not plugins.importable("pyarrow"):
        raise MissingError(
            "A Parquet file needs pyarrow, which is not installed: run `pip install 'roofline[parquet]'`."
        )
    import pyarrow
    from pyarrow import parquet

    arrays = {name: pyarrow.array(column, from_pandas=True) for name, column in columns(analysis).items()}
    about = {
        "verdict": wording.verdict(analysis),
        "provenance": wording.provenance(analysis),
        "wall": analysis.wall,
        "gap": analysis.gap,
    }
    table = pyarrow.table(arrays).replace_schema_metadata({"roofline": json.dumps(about)})
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()
