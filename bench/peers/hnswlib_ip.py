"""hnswlib, re-scored by the decoder.

    pip install hnswlib torch numpy zstandard

The query is Flashlight's seed; the N best that the graph search finds are scored by the
decoder. Two indexes:

    ip    hnswlib's own inner product, which is no metric: the links lead to the longest
          rows, and the search ends among them
    l2    the usual reduction to L2: a further dimension sqrt(M^2 - |x|^2), M the longest
          row's length, so that the nearest rows are those of highest inner product
"""

import importlib.metadata
import time

import hnswlib
import numpy as np
import torch

from decoder import Decoder
from graph import K, Graph
from report import Report, parse_arguments

LINKS = 16
CONSTRUCTION = {"debian": 200, "go-stdlib": 200, "genes": 100}  # ef while building
FOUND = {"ip": (500, 1000, 2000, 4000, 8000), "l2": (300, 500, 700, 1000, 1500, 2000, 3000, 4000)}  # ef, all re-scored
SEED = 1


def augmented(rows):
    squares = (rows * rows).sum(1)
    return np.hstack([rows, np.sqrt(squares.max() - squares)[:, None]])


def build(space, rows, construction):
    index = hnswlib.Index(space, rows.shape[1])
    index.init_index(len(rows), M=LINKS, ef_construction=construction, random_seed=SEED)
    index.set_num_threads(2)
    index.add_items(rows)
    return index


def searcher(graph, decoder, index, count):
    index.set_ef(count)
    further = np.zeros(index.dim - graph.dim, np.float32)

    def search(source):
        found, _ = index.knn_query(np.concatenate([graph.seed(source), further]), count)
        return decoder.best(source, found[0].astype(np.int64), K)

    return search


def spaces(parser):
    parser.add_argument("--space", choices=("ip", "l2"), help="one index (default: both)")


def main():
    args = parse_arguments(__doc__, extend=spaces)
    torch.set_num_threads(args.threads)
    graph = Graph(args.data, args.graph)
    decoder = Decoder(graph)
    report = Report("hnswlib", importlib.metadata.version("hnswlib"), graph, args.threads)
    for space in [args.space] if args.space else ["ip", "l2"]:
        start = time.perf_counter()
        rows = graph.candidates if space == "ip" else augmented(graph.candidates)
        index = build(space, rows, CONSTRUCTION[graph.name])
        seconds = time.perf_counter() - start
        print(f"{graph.name}: {space} index built in {seconds:.1f} s", flush=True)
        index.set_num_threads(args.threads)
        for count in FOUND[space]:
            setting = f"{space} M={LINKS} efc={CONSTRUCTION[graph.name]}, ef {count}, {count} re-scored"
            search = searcher(graph, decoder, index, count)
            report.measure(setting, search, graph.sources(args.sources), build_s=seconds)
    report.write(args.out)


if __name__ == "__main__":
    main()
