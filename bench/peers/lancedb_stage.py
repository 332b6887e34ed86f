"""What lancedb_ivfpq.mjs has done in Python; it runs this by itself.

dump writes the candidates and the queries, float32, row-major, to a folder; score reads
the positions found and the time of each search, scores them with the decoder, and reports
the sum of both times.
"""

import json
import pathlib
import time

import numpy as np
import torch

from decoder import Decoder
from graph import K, Graph
from report import WARM_UP, Report, parse_arguments

FURTHER = 8  # dimensions of space l2; Lance likes multiples of 8


def dump(graph, sources, space, folder):
    """In space l2 rows have eight more dimensions: one with which the nearest rows are
    those of highest inner product (see hnswlib_ip.py), the rest zero. Queries are as long
    as the rows: the order is the same for any length, but 4-bit tables are not."""
    rows = graph.candidates
    queries = np.stack([graph.seed(source) for source in sources])
    if space == "l2":
        squares = (rows * rows).sum(1)
        queries *= np.sqrt(squares.mean()) / np.linalg.norm(queries, axis=1, keepdims=True)
        further = np.zeros((len(rows), FURTHER), np.float32)
        further[:, 0] = np.sqrt(squares.max() - squares)
        rows = np.hstack([rows, further])
        queries = np.hstack([queries, np.zeros((len(queries), FURTHER), np.float32)])
    rows.tofile(folder / "rows.f32")
    queries.tofile(folder / "queries.f32")
    (folder / "shape.json").write_text(json.dumps({"dim": rows.shape[1]}))


def score(graph, sources, folder, threads, out):
    decoder = Decoder(graph)
    report = None
    for line in open(folder / "hits.jsonl"):
        hits = json.loads(line)
        report = report or Report("LanceDB", hits["version"], graph, threads)
        found, milliseconds = [], []
        positions = [np.array(ids, np.int64) for ids in hits["ids"]]
        for source, ids in list(zip(sources, positions))[:WARM_UP]:
            decoder.best(source, ids, K)
        for source, ids, searched in zip(sources, positions, hits["ms"]):
            start = time.perf_counter()
            found.append(decoder.best(source, ids, K))
            milliseconds.append(searched + (time.perf_counter() - start) * 1e3)
        more = {"build_s": hits["build_s"], "ms_search_p50": float(np.median(hits["ms"]))}
        report.add(hits["setting"], sources, found, np.array(milliseconds), **more)
    report.write(out)


def stage_arguments(parser):
    parser.add_argument("verb", choices=("dump", "score"))
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="shared with lancedb_ivfpq.mjs")
    parser.add_argument("--space", choices=("dot", "l2"), required=True)


def main():
    args = parse_arguments(__doc__, extend=stage_arguments)
    torch.set_num_threads(args.threads)
    graph = Graph(args.data, args.graph)
    sources = graph.sources(args.sources)
    if args.verb == "dump":
        dump(graph, sources, args.space, args.folder)
    else:
        score(graph, sources, args.folder, args.threads, args.out)


if __name__ == "__main__":
    main()
