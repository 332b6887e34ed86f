"""Arguments, measurement and output that all peers share."""

import argparse
import json
import time

import numpy as np

from graph import K

WARM_UP = 5  # sources asked before the clock counts

# The fastest setting that reaches one of these mean recalls is one of the peer's
# results, and so is the one of highest recall; the others are marked "grid".
TARGETS = (0.9, 0.95, 0.98, 0.99, 0.999)


def parse_arguments(doc, sources=None, extend=lambda parser: None):
    """The arguments every peer takes; sources is the default number of them."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of graphs")
    parser.add_argument("--graph", required=True, help="debian, go-stdlib or genes")
    parser.add_argument("--out", required=True, help="file to append JSON lines to")
    parser.add_argument("--sources", type=int, default=sources, help="how many (default: %(default)s; None is all)")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1, help="of a query")
    extend(parser)
    return parser.parse_args()


class Report:
    """Collects the results of one peer on one graph."""

    def __init__(self, peer, version, graph, threads):
        self.peer = peer if threads == 1 else f"{peer}, {threads} threads"
        self.version, self.graph, self.threads = version, graph, threads
        self.results = []

    def measure(self, setting, search, sources, **more):
        """Asks search(source), which returns positions, of each source in turn."""
        for source in sources[:WARM_UP]:
            search(source)
        seconds, found = [], []
        for source in sources:
            start = time.perf_counter()
            found.append(search(source))
            seconds.append(time.perf_counter() - start)
        return self.add(setting, sources, found, np.array(seconds) * 1e3, **more)

    def add(self, setting, sources, found, milliseconds, **more):
        """Adds a setting by what it found for each source, and how fast."""
        recalls = [self.graph.recall(source, hits[:K]) for source, hits in zip(sources, found)]
        self.results.append(
            {
                "peer": self.peer,
                "graph": self.graph.name,
                "setting": setting,
                "threads": self.threads,
                "recall_mean": float(np.mean(recalls)),
                "recall_p5": float(np.percentile(recalls, 5)),
                "recall_worst": min(recalls),
                "ms_p50": float(np.percentile(milliseconds, 50)),
                "ms_p99": float(np.percentile(milliseconds, 99)),
                "qps1": 1e3 / float(np.mean(milliseconds)),
                "sources": len(sources),
                "k": K,
                "version": self.version,
                **more,
            }
        )
        return self.results[-1]

    def write(self, path):
        """Prints the table and appends the results to the file."""
        chosen = self._chosen()
        print(f"\n{self.graph.name}, {self.peer}, version {self.version}; * fastest at recall {TARGETS}")
        print(f"  {'setting':72} {'recall':>7} {'p5':>5} {'worst':>5} {'p50 ms':>9} {'p99 ms':>9} {'q/s':>9}")
        for i, r in enumerate(self.results):
            print(
                f"{'*' if i in chosen else ' '} {r['setting']:72} {r['recall_mean']:7.4f} {r['recall_p5']:5.2f} "
                f"{r['recall_worst']:5.2f} {r['ms_p50']:9.3f} {r['ms_p99']:9.3f} {r['qps1']:9.1f}"
            )
        append_lines(path, [r if i in chosen else {**r, "grid": True} for i, r in enumerate(self.results)])

    def _chosen(self):
        """Which results are the fastest at a target; at least the best recall."""
        chosen = {max(range(len(self.results)), key=lambda i: (self.results[i]["recall_mean"], self.results[i]["qps1"]))}
        for target in TARGETS:
            good = [i for i, r in enumerate(self.results) if r["recall_mean"] >= target]
            if good:
                chosen.add(max(good, key=lambda i: self.results[i]["qps1"]))
        return chosen


def append_lines(path, records):
    with open(path, "a") as out:
        for record in records:
            out.write(json.dumps(record) + "\n")
