"""The results as one Parquet file, with types."""

from ldprecover_cli.reproduce.results import Results

__all__ = ["parquet_bytes"]

_TEXT = ("data", "digest", "protocol", "attack", "model", "door")
_WHOLE = ("n", "trial", "seed")


def parquet_bytes(results: Results) -> bytes:
    """Return every row of a results file: text, 64-bit integers and doubles, null where a method has no number."""
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, list[object]] = {}
    for key, outcome in results.rows():
        for name, text in key.items():
            columns.setdefault(name, []).append(text if name in _TEXT else int(text) if name in _WHOLE else float(text))
        for name in ("method", "mse", "fg", "malicious_mse", "seconds"):
            columns.setdefault(name, []).append(getattr(outcome, name))
    kinds = {
        name: pa.string() if name in (*_TEXT, "method") else pa.int64() if name in _WHOLE else pa.float64()
        for name in columns
    }
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns, schema=pa.schema(list(kinds.items()))), sink)
    return bytes(sink.getvalue())
