#!/usr/bin/env python3
"""Generates the social graphs of docs/train.md: python3 social_graph.py social|page|hub OUT

It writes OUT.tsv, an edge on each line, and OUT.test.tsv with 5% of the edges. Needs NumPy.
"""

import sys

import numpy as np

rng = np.random.default_rng(0)


def once(edges):
    """The edges without directions, self loops and repeats."""
    edges = np.sort(np.asarray(edges), axis=1)
    return np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)


def close(n, edges, m):
    """The edges and m more, each between a node and a neighbour of one of its neighbours."""
    a = np.concatenate([edges[:, 0], edges[:, 1]])
    b = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.argsort(a, kind="stable")
    a, b = a[order], b[order]
    start = np.searchsorted(a, np.arange(n + 1))
    i = rng.integers(0, len(a), m)
    x, y = a[i], b[i]
    z = b[start[y] + (rng.random(m) * (start[y + 1] - start[y])).astype(np.int64)]
    return np.concatenate([edges, np.stack([x, z], 1)])


def anywhere(p, m):
    """m edges whose ends are drawn in proportion to p."""
    n = len(p)
    return np.stack([rng.choice(n, m, p=p), rng.choice(n, m, p=p)], 1)


def communities(n, shares, smallest, largest, power, inside):
    """Edges within communities: shares of the nodes are in one, two and three of them. Their sizes
    follow a power law; one of 28 nodes or more has `inside` edges per node. Active nodes have more.
    """
    active = rng.pareto(2.2, n) + 0.4
    slots = np.repeat(np.arange(n), rng.choice([1, 2, 3], n, p=shares))
    rng.shuffle(slots)
    parts, i = [], 0
    while i < len(slots):
        size = int(min(largest, smallest * (1 - rng.random()) ** (-1 / (power - 1))))
        members = np.unique(slots[i : i + size])
        i += size
        if len(members) > 1:
            p = active[members] / active[members].sum()
            m = int(inside * len(members) * min(1, len(members) / 40 + 0.3))
            parts.append(np.stack([rng.choice(members, m, p=p), rng.choice(members, m, p=p)], 1))
    return np.concatenate(parts), active / active.sum()


def page():
    n = 40_000
    edges, p = communities(n, [0.6, 0.3, 0.1], 10, 400, 2.0, 4.2)
    edges = once(np.concatenate([edges, anywhere(p, 32_000)]))
    return n, once(close(n, edges, 60_000))


def hub():
    n = 37_700
    p = rng.pareto(1.3, n) + 0.1
    p /= p.sum()
    edges, _ = communities(n, [0.7, 0.2, 0.1], 30, 3000, 1.8, 2.5)
    edges = once(np.concatenate([edges, anywhere(p, 90_000)]))
    return n, once(close(n, edges, 110_000))


def groups(n, k):
    weight = rng.pareto(1.3, k) + 0.3
    return rng.choice(k, n, p=weight / weight.sum())


def pick(group, weight, wanted):
    """For each wanted group a member in proportion to its weight; -1 where the group is empty."""
    order = np.argsort(group, kind="stable")
    member, sums = group[order], np.cumsum(weight[order])
    first = np.searchsorted(member, wanted, "left")
    end = np.searchsorted(member, wanted, "right")
    below = np.where(first > 0, sums[first - 1], 0)
    at = below + rng.random(len(wanted)) * (sums[np.maximum(end - 1, 0)] - below)
    i = np.clip(np.searchsorted(sums, at), first, np.maximum(end - 1, first))
    return np.where(end > first, order[np.minimum(i, len(order) - 1)], -1)


def social():
    """Two levels of communities, of which a node likes a second one too, hubs, and triangles."""
    n, m, large, small = 8_000, 50_000, 30, 400
    own = groups(n, small)
    parent = rng.integers(0, large, small)[own]
    out, into = rng.pareto(1.8, n) + 0.2, rng.pareto(1.3, n) + 0.05
    source, kind = rng.choice(n, m, p=out / out.sum()), rng.random(m)
    second = groups(n, small)
    like = np.where(rng.random(m) < 0.25, second[source], own[source])
    near, far = pick(own, into, like), pick(parent, into, parent[source])
    any_node = rng.choice(n, m, p=into / into.sum())
    target = np.where(kind < 0.6, near, np.where(kind < 0.85, far, any_node))
    keep = (target >= 0) & (source != target)
    edges = np.stack([source[keep], target[keep]], 1)
    return n, once(close(n, edges, 45_000))


def main():
    kind, out = sys.argv[1:]
    n, edges = {"social": social, "page": page, "hub": hub}[kind]()
    edges = once(rng.permutation(n)[edges])
    edges = edges[rng.permutation(len(edges))]
    test = len(edges) // 20
    np.savetxt(out + ".test.tsv", edges[:test], fmt="%d", delimiter="\t")
    np.savetxt(out + ".tsv", edges[test:], fmt="%d", delimiter="\t")


if __name__ == "__main__":
    main()
