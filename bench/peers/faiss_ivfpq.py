"""FAISS IVF-PQ FastScan by inner product, re-scored by the decoder.

    pip install faiss-cpu torch numpy zstandard

IVFx,PQ(d/2)x4fs, METRIC_INNER_PRODUCT: 4 bits for every 2 dimensions. Two indexes:

    factory   as faiss.index_factory makes it: spherical k-means, vectors coded as they are
    residual  k-means by L2, lists assigned by L2, residuals coded; probed by inner
              product all the same. Not a string of the factory, but what serves these
              queries best.

One round: the query is Flashlight's seed, and the N best by code are scored by the
decoder. On the residual index also: of the 3 N best by code ("refined") the N best by
exact inner product are scored; and Flashlight, three rounds on FAISS, later queries being
mean gradients of the decoder at the 20 best of the round and of all rounds, half of N
each, refined likewise.

The FastScan by itself, index.search without any decoder, goes to a file beside --out
(x.jsonl: x.scan.jsonl), one line per setting with the codes it scans per second, for this
number of lists and for the one that flashdb has by default ("bench scan" does the same).
"""

import pathlib
import time

import faiss
import numpy as np
import torch

from decoder import Decoder
from graph import Graph
from report import WARM_UP, Report, append_lines, parse_arguments
from rounds import ROUNDS, flashlight, one_round

LISTS = {"debian": 994, "go-stdlib": 522, "genes": 4096}
SCAN_LISTS = {"debian": 3979, "go-stdlib": 2090, "genes": 13901}  # as many as flashdb has by default
SHARES = {  # of the lists, probed
    "debian": (0.1, 0.3, 0.6, 1.0),
    "go-stdlib": (0.1, 0.3, 0.6, 1.0),
    "genes": (0.01, 0.02, 0.05, 0.1, 0.3, 1.0),
}
SCORED = (500, 1000, 2000, 4000)  # by the decoder, of one round
REFINED = (500, 1000, 2000)  # the same, of three times as many ranked exactly first
PER_ROUND = (200, 400)
SCAN_SHARES, SCAN_KEEPS = (0.1, 0.3, 1.0), (10, 2000)
SEED = 1


class Timer:
    def __enter__(self):
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.start


def code(graph):
    return f"PQ{graph.dim // 2}x4fs"


def factory_index(graph, lists):
    index = faiss.index_factory(graph.dim, f"IVF{lists},{code(graph)}", faiss.METRIC_INNER_PRODUCT)
    index.cp.max_points_per_centroid = 64  # of 256: k-means of genes would take minutes
    index.cp.seed = SEED
    index.train(graph.candidates)
    index.add(graph.candidates)
    return index


def residual_index(graph, lists, points=64, iterations=10):
    """Lists are made and filled by L2, then a quantizer by inner product of the same
    centroids takes over for the queries."""
    clustering = faiss.Clustering(graph.dim, lists)
    clustering.max_points_per_centroid = points
    clustering.min_points_per_centroid = 1
    clustering.niter, clustering.seed = iterations, SEED
    by_l2, by_product = faiss.IndexFlatL2(graph.dim), faiss.IndexFlatIP(graph.dim)
    clustering.train(graph.candidates, by_l2)
    index = faiss.IndexIVFPQFastScan(by_l2, graph.dim, lists, graph.dim // 2, 4, faiss.METRIC_INNER_PRODUCT)
    index.by_residual = True
    index.train(graph.candidates)
    index.add(graph.candidates)
    by_product.add(by_l2.reconstruct_n(0, lists))
    index.quantizer = by_product
    index.referenced_objects = [by_l2, by_product]  # else freed with this function
    return index


def fetcher(index):
    def fetch(queries, count):
        return index.search(queries, count)[1]

    return fetch


def measure_retrieval(graph, decoder, report, name, index, build, sources):
    fetch = fetcher(index)
    for share in SHARES[graph.name]:
        index.nprobe = max(1, round(index.nlist * share))
        plans = {f"{n} re-scored": one_round(graph, decoder, fetch, n, n) for n in SCORED}
        if index.by_residual:
            plans |= {f"{3 * n} refined, {n} re-scored": one_round(graph, decoder, fetch, n, 3 * n) for n in REFINED}
            plans |= {f"Flashlight {ROUNDS} x {n}": flashlight(graph, decoder, fetch, n) for n in PER_ROUND}
        for plan, search in plans.items():
            setting = f"{name} IVF{index.nlist},{code(graph)}, {index.nprobe} probes, {plan}"
            report.measure(setting, search, sources, build_s=build)


def measure_scan(graph, index, sources, threads):
    """Codes per second of index.search alone, and of its scan of given lists alone."""
    sizes = np.array([index.invlists.list_size(i) for i in range(index.nlist)])
    queries = [graph.seed(source)[None] for source in sources]
    records = []
    for share in SCAN_SHARES:
        index.nprobe = max(1, round(index.nlist * share))
        probed = [index.quantizer.search(query, index.nprobe) for query in queries]
        codes = sum(int(sizes[lists[0]].sum()) for _, lists in probed)
        for keep in SCAN_KEEPS:
            for query in queries[:WARM_UP]:
                index.search(query, keep)
            with Timer() as whole:
                for query in queries:
                    index.search(query, keep)
            with Timer() as scan:
                for query, (products, lists) in zip(queries, probed):
                    index.search_preassigned(query, keep, lists, products)
            records.append(
                {
                    "peer": "FAISS FastScan",
                    "graph": graph.name,
                    "setting": f"IVF{index.nlist},{code(graph)}, {index.nprobe} probes, best {keep}",
                    "threads": threads,
                    "lists": index.nlist,
                    "probes": index.nprobe,
                    "codes": codes / len(queries),
                    "ms": whole.seconds * 1e3 / len(queries),
                    "ms_scan": scan.seconds * 1e3 / len(queries),
                    "codes_per_s": codes / whole.seconds,
                    "codes_per_s_scan": codes / scan.seconds,
                    "version": faiss.__version__,
                }
            )
    return records


def print_scan(records):
    print(f"\n{'FAISS FastScan alone':48} {'codes':>9} {'search ms':>10} {'M codes/s':>10}", end=" ")
    print(f"{'scan ms':>9} {'M codes/s':>10}")
    for r in records:
        print(
            f"{r['graph'] + ' ' + r['setting']:48} {r['codes']:9.0f} {r['ms']:10.3f} {r['codes_per_s'] / 1e6:10.1f} "
            f"{r['ms_scan']:9.3f} {r['codes_per_s_scan'] / 1e6:10.1f}"
        )


def main():
    args = parse_arguments(__doc__)
    torch.set_num_threads(args.threads)
    graph = Graph(args.data, args.graph)
    decoder = Decoder(graph)
    report = Report("FAISS", faiss.__version__, graph, args.threads)
    sources = graph.sources(args.sources)
    for name, make in (("factory", factory_index), ("residual", residual_index)):
        faiss.omp_set_num_threads(2)
        with Timer() as build:
            index = make(graph, LISTS[args.graph])
        print(f"{graph.name}: {name} index built in {build.seconds:.1f} s", flush=True)
        faiss.omp_set_num_threads(args.threads)
        measure_retrieval(graph, decoder, report, name, index, build.seconds, sources)
    report.write(args.out)

    records = measure_scan(graph, index, sources, args.threads)
    faiss.omp_set_num_threads(2)
    index = residual_index(graph, SCAN_LISTS[args.graph], points=16, iterations=4)
    faiss.omp_set_num_threads(args.threads)
    records += measure_scan(graph, index, sources, args.threads)
    print_scan(records)
    append_lines(pathlib.Path(args.out).with_suffix(".scan.jsonl"), records)


if __name__ == "__main__":
    main()
