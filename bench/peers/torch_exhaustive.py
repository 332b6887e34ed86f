"""PyTorch on the CPU, scoring every candidate.

    pip install torch numpy zstandard

The source is folded into the first weight; the candidates go through the network in
blocks, float32, and torch.topk takes the best 100. Several sizes of block are tried on a
few sources, and the best is measured. Of layer functions (decoder.py) all are measured
on one thread, and the fused one on two: with PyTorch's own threads inside every
operation, and with two workers that score half the candidates each.
torch.compile is not used.
"""

import concurrent.futures
import time

import torch

from decoder import Decoder, layers
from graph import K, Graph
from report import Report, parse_arguments

BLOCKS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
TRIALS = 2  # sources a size of block is tried on; the fastest counts


class Exhaustive:
    """Scores every candidate in blocks, by workers with a share each."""

    def __init__(self, graph, layer, workers):
        self.decoder = Decoder(graph, layer)
        self.scores = torch.empty(len(graph.candidates))
        self.block = BLOCKS[0]
        share = -(-len(self.scores) // workers)
        self.shares = [range(len(self.scores))[start : start + share] for start in range(0, len(self.scores), share)]
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))

    def search(self, source):
        """The positions of the best K of all candidates."""
        bound = self.decoder.bind(source)
        if len(self.shares) == 1:
            self._score(bound, self.shares[0])
        else:
            list(self.pool.map(lambda share: self._score(bound, share), self.shares))
        own = source - self.decoder.graph.first
        if own >= 0:
            self.scores[own] = -torch.inf
        return torch.topk(self.scores, K).indices.numpy()

    def _score(self, bound, share):
        for start in range(share.start, share.stop, self.block):
            stop = min(start + self.block, share.stop)
            self.scores[start:stop] = bound.score(self.decoder.candidates[start:stop])

    def choose_block(self, sources):
        """Keeps the block that some source was scored fastest with."""
        best = {}
        for self.block in BLOCKS:
            for source in sources:
                start = time.perf_counter()
                self.search(source)
                best[self.block] = min(best.get(self.block, torch.inf), time.perf_counter() - start)
        print("   ".join(f"{block}: {seconds * 1e3:.1f}" for block, seconds in best.items()), flush=True)
        self.block = min(best, key=best.get)


def ways(threads):
    """Names, layer functions and numbers of workers to measure."""
    if threads == 1:
        return [(name, layer, 1) for name, layer in layers().items()]
    name, layer = list(layers().items())[-1]
    return [(f"{name}, PyTorch's threads", layer, 1), (f"{name}, two workers", layer, 2)]


def main():
    args = parse_arguments(__doc__, sources=20)
    graph = Graph(args.data, args.graph)
    report = Report("PyTorch", torch.__version__, graph, args.threads)
    sources = graph.sources(args.sources)
    for name, layer, workers in ways(args.threads):
        torch.set_num_threads(args.threads // workers)
        exhaustive = Exhaustive(graph, layer, workers)
        print(f"{graph.name}, {name}, ms by size of block:", end=" ", flush=True)
        exhaustive.choose_block(sources[:TRIALS])
        report.measure(f"exhaustive, {name}, blocks of {exhaustive.block}", exhaustive.search, sources)
    report.write(args.out)


if __name__ == "__main__":
    main()
