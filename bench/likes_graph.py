#!/usr/bin/env python3
"""Generates the graphs of likes of docs/train.md: python3 likes_graph.py places|films OUT

It writes OUT.tsv, a user and an item on each line, and OUT.test.tsv with a tenth of the likes.
Needs NumPy. Users have a taste, items are in communities, and few items have most likes.
"""

import sys

import numpy as np

rng = np.random.default_rng(0)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def likes(users, items, total, groups, width, steep, sharp, popular):
    """Each user likes the items of highest taste + popularity + chance."""
    centre = unit(rng.normal(size=(groups, width)))
    size = rng.pareto(1.2, groups) + 0.2
    size /= size.sum()
    own = rng.choice(groups, items, p=size)
    item = unit(centre[own] + 0.7 / np.sqrt(width) * rng.normal(size=(items, width)))
    first, second = rng.choice(groups, (2, users), p=size)
    both = centre[first] + rng.random((users, 1)) * centre[second]
    user = unit(both + 0.5 / np.sqrt(width) * rng.normal(size=(users, width)))
    fame = popular * np.log(rng.pareto(steep, items) + 0.1)
    count = rng.lognormal(0, 0.9, users)
    count = np.clip(count * total / count.sum(), 8, items // 8).astype(int)
    pairs = []
    for i in range(0, users, 500):
        score = sharp * (user[i : i + 500] @ item.T) + fame
        score += rng.gumbel(size=score.shape)
        for u, row in enumerate(score, i):
            best = np.argpartition(-row, count[u])[: count[u]]
            pairs.append(np.stack([np.full(count[u], u), best], 1))
    return np.concatenate(pairs)


def main():
    kind, out = sys.argv[1:]
    if kind == "places":  # in the manner of Gowalla
        pairs = likes(10_000, 14_000, 330_000, 150, 32, 1.4, 9, 0.7)
    else:  # in the manner of MovieLens
        pairs = likes(4_000, 2_000, 300_000, 30, 12, 1.0, 4, 1.0)
    pairs = pairs[rng.permutation(len(pairs))]
    test = len(pairs) // 10
    for name, part in ((".tsv", pairs[test:]), (".test.tsv", pairs[:test])):
        with open(out + name, "w") as f:
            f.writelines(f"u{u}\ti{i}\n" for u, i in part)


if __name__ == "__main__":
    main()
