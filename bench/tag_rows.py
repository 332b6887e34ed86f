"""Writes the rows of an embeddings.npy with tags of several widths, to measure filters on.

    python tag_rows.py embeddings.npy FIRST OUT.parquet

FIRST is the first row to write; keys are row numbers in decimal. A row has the tags r50, r10, r1 and r01 at random, each
with the probability that its name says in percent (r01: 0.1), and p50, p10, p1 and p01 when it is among that share of
the rows that lie farthest to one side of a random plane. It also has the attributes hash, a random number from 0 to 1,
and side, the share of the rows that lie farther to the other side. Needs numpy and pyarrow.
"""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WIDTHS = {"50": 0.5, "10": 0.1, "1": 0.01, "01": 0.001}


def main():
    source, first, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    rows = np.load(source)[first:].astype(np.float32)
    rng = np.random.default_rng(1)
    side = rows @ rng.standard_normal(rows.shape[1]).astype(np.float32)
    tags = [[] for _ in rows]
    for name, share in WIDTHS.items():
        for i in np.flatnonzero(rng.random(len(rows)) < share):
            tags[i].append("r" + name)
        for i in np.flatnonzero(side >= np.quantile(side, 1 - share)):
            tags[i].append("p" + name)
    table = pa.table({
        "id": [str(first + i) for i in range(len(rows))],
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1]),
        "tags": tags,
        "hash": rng.random(len(rows)),
        "side": side.argsort().argsort() / len(rows),
    })
    pq.write_table(table, out)


if __name__ == "__main__":
    main()
