"""Makes the .parquet files beside this one as other programs write them. Needs pyarrow; made with pyarrow 26.

All hold the rows of grid(): row i is (i, i + 0.5, -i), under the key "n<i>"."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))


def grid(n):
    return [[i, i + 0.5, -i] for i in range(n)]


def write(name, columns, **options):
    pq.write_table(pa.table(columns), os.path.join(HERE, name + ".parquet"), **options)


keys = lambda n: pa.array([f"n{i}" for i in range(n)])
for name, kind in [("float", pa.list_(pa.float32())), ("double", pa.list_(pa.float64())), ("fixed", pa.list_(pa.float32(), 3))]:
    write(name, {"key": keys(4), "embedding": pa.array(grid(4), kind)})
write("half", {"key": keys(4), "embedding": pa.array([np.array(r, np.float16) for r in grid(4)], pa.list_(pa.float16()))})
write("large", {"key": keys(4).cast(pa.large_string()), "embedding": pa.array(grid(4), pa.large_list(pa.float32()))})
write("full", {
    "title": pa.array(["zero", None, "two", ""]),
    "vec": pa.array(grid(4), pa.list_(pa.float32())),
    "other": pa.array(grid(4), pa.list_(pa.float32())),
    "node": pa.array([10, 11, 12, 13], pa.int64()),
    "labels": pa.array([["a", "b"], [], None, ["c"]], pa.list_(pa.string())),
    "joined": pa.array(["a; b", "", None, '["x;y"]']),
})
# Rows over several pages and row groups, dictionary and plain, the older page format.
for name, options in [("pages", {"data_page_size": 100, "row_group_size": 70, "use_dictionary": False}),
                      ("pages-v2", {"data_page_size": 100, "row_group_size": 70, "data_page_version": "2.0", "compression": "zstd"}),
                      ("gzip", {"compression": "gzip", "write_page_checksum": True})]:
    write(name, {"key": keys(200), "embedding": pa.array(grid(200), pa.list_(pa.float32()))}, **options)
write("edges", {"source": pa.array(["n0", "n1", "n1"]), "weight": pa.array([1.0, 2.0, 3.0]), "target": pa.array(["n1", "n2", "n3"])})
write("ragged", {"embedding": pa.array([[1, 2], [3]], pa.list_(pa.float32()))})
write("nulls", {"key": pa.array(["a", None]), "embedding": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32()))})
write("null-value", {"embedding": pa.array([[1, 2], [3, None]], pa.list_(pa.float32()))})
write("null-row", {"embedding": pa.array([[1, 2], None], pa.list_(pa.float32()))})
write("empty", {"embedding": pa.array([], pa.list_(pa.float32()))})
write("scalars", {"x": pa.array([1.0, 2.0]), "key": pa.array(["a", "b"])})
