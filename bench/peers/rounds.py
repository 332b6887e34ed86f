"""One round and Flashlight's three rounds over somebody else's index, for the peers
that take a query vector and return positions.

A fetch is a function of queries, q x d, and a count: it returns a list of q arrays of
positions, best first by the index's own estimate. A position of -1 is a filler.
"""

import numpy as np
import torch

from graph import K

ROUNDS, ANCHORS = 3, 20


def best(scores, k):
    return torch.topk(scores, min(k, len(scores))).indices


def refine(decoder, query, positions, count):
    """The count of positions with the highest exact inner product."""
    products = torch.mv(decoder.candidates[torch.from_numpy(positions)], torch.from_numpy(query))
    return positions[best(products, count).numpy()]


def one_round(graph, decoder, fetch, count, fetched):
    """Scores the best count of fetched rows."""

    def search(source):
        query = graph.seed(source)
        positions = graph.without_source(source, fetch(query[None], fetched)[0])
        if fetched > count:
            positions = refine(decoder, query, positions, count)
        return decoder.best(source, positions, K)

    return search


def flashlight(graph, decoder, fetch, per_round):
    """Algorithm 1 of the paper with the mean of ANCHORS gradients, twice per round.
    No index here excludes rows, so a round fetches as many more as are known."""

    def search(source):
        bound = decoder.bind(source)
        queries, positions, scores = graph.seed(source)[None], np.empty(0, np.int64), torch.empty(0)
        for _ in range(ROUNDS):
            share = per_round // len(queries)
            found = fetch(queries, 3 * share + len(positions))
            unseen = (np.setdiff1d(graph.without_source(source, row), positions, assume_unique=True) for row in found)
            refined = [refine(decoder, query, row, share) for query, row in zip(queries, unseen)]
            fresh = np.unique(np.concatenate(refined))
            new = bound.score(decoder.candidates[torch.from_numpy(fresh)])
            positions, scores = np.concatenate([positions, fresh]), torch.cat([scores, new])
            anchors = fresh[best(new, ANCHORS).numpy()], positions[best(scores, ANCHORS).numpy()]
            rows = [decoder.candidates[torch.from_numpy(of)] for of in anchors]
            queries = torch.stack([bound.gradient(of) for of in rows]).numpy()
        return positions[best(scores, K).numpy()]

    return search
