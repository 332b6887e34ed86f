"""ScaNN by inner product, re-scored by the decoder: the engine of the Flashlight paper.

    pip install scann torch numpy zstandard

A k-means tree and anisotropic hashing of 2 dimensions per block (threshold 0.2), as ScaNN's
own documentation recommends for inner products. ScaNN ranks the candidates of its hashing by exact inner products itself
("reordered"); the N best of those are scored by the decoder. Also Flashlight's three rounds
on ScaNN, as on FAISS.
"""

import importlib.metadata
import time

import numpy as np
import scann
import torch

from decoder import Decoder
from graph import Graph
from report import Report, parse_arguments
from rounds import ROUNDS, flashlight, one_round

LEAVES = {"debian": 994, "go-stdlib": 522, "genes": 4096}
SHARES = {  # of the leaves, searched
    "debian": (0.1, 0.3, 0.6, 1.0),
    "go-stdlib": (0.1, 0.3, 0.6, 1.0),
    "genes": (0.01, 0.02, 0.05, 0.1, 0.3, 1.0),
}
SCORED = (500, 1000, 2000)
PER_ROUND = (200, 400)
REORDERED = 3  # times as many as are fetched
DIMENSIONS, THRESHOLD = 2, 0.2


def build(graph, leaves):
    builder = scann.scann_ops_pybind.builder(graph.candidates, max(SCORED), "dot_product").set_n_training_threads(2)
    tree = builder.tree(num_leaves=leaves, num_leaves_to_search=leaves, training_sample_size=min(len(graph.candidates), 64 * leaves))
    hashing = tree.score_ah(DIMENSIONS, anisotropic_quantization_threshold=THRESHOLD)
    return hashing.reorder(REORDERED * max(SCORED)).build()


def fetcher(searcher, leaves):
    """What asks the searcher in so many leaves, one query at a time on one thread."""

    def fetch(queries, count):
        return [
            searcher.search(query, final_num_neighbors=count, pre_reorder_num_neighbors=REORDERED * count, leaves_to_search=leaves)[0].astype(np.int64)
            for query in queries
        ]

    return fetch


def main():
    args = parse_arguments(__doc__)
    if args.threads > 1:
        raise SystemExit("a search of one query by ScaNN takes one thread")
    torch.set_num_threads(args.threads)
    graph = Graph(args.data, args.graph)
    decoder = Decoder(graph)
    report = Report("ScaNN", importlib.metadata.version("scann"), graph, args.threads)
    leaves = LEAVES[graph.name]
    start = time.perf_counter()
    searcher = build(graph, leaves)
    seconds = time.perf_counter() - start
    print(f"{graph.name}: built in {seconds:.1f} s", flush=True)
    sources = graph.sources(args.sources)
    for share in SHARES[graph.name]:
        probed = max(1, round(leaves * share))
        fetch = fetcher(searcher, probed)
        plans = {f"{n} re-scored": one_round(graph, decoder, fetch, n, n) for n in SCORED}
        plans |= {f"Flashlight {ROUNDS} x {n}": flashlight(graph, decoder, fetch, n) for n in PER_ROUND}
        for plan, search in plans.items():
            report.measure(f"tree {leaves}, AH {DIMENSIONS}, {probed} leaves, {plan}", search, sources, build_s=seconds)
    report.write(args.out)


if __name__ == "__main__":
    main()
