#!/usr/bin/env python3
"""Makes the knowledge graph WordNet of docs/train.md: python3 wordnet_triples.py DIR OUT

DIR holds data.noun, data.verb, data.adj and data.adv of WordNet 3.0. A triple is a pointer from a
synset to another. Of two pointers that are inverse to each other, as hypernym and hyponym, one is
left out, as in WN18RR; a symmetric pointer is there in both directions. Synsets of fewer than three
triples are left out. It writes OUT.tsv, and OUT.test.tsv with 5% of the triples.
"""

import collections
import pathlib
import random
import sys

POINTERS = {
    "@": "hypernym",
    "@i": "instance_hypernym",
    "%m": "member_holonym_of",
    "%p": "has_part",
    "%s": "has_substance",
    "+": "derivationally_related",
    "^": "also_see",
    "&": "similar_to",
    "$": "verb_group",
    ";c": "domain_topic",
    ";r": "domain_region",
    ";u": "domain_usage",
    "!": "antonym",
    "=": "attribute",
    "*": "entails",
    ">": "causes",
    "<": "participle",
    "\\": "pertains_to",
}


def pointers(folder):
    """All triples. Satellite adjectives (s) are in the file of adjectives (a)."""
    triples = set()
    for part in ("noun", "verb", "adj", "adv"):
        for line in open(folder / f"data.{part}", encoding="latin-1"):
            if line.startswith("  "):  # the licence
                continue
            fields = line.split("|")[0].split()
            head = fields[2].replace("s", "a") + fields[0]
            at = 4 + 2 * int(fields[3], 16)
            for i in range(int(fields[at])):
                symbol, offset, kind, _ = fields[at + 1 + 4 * i : at + 5 + 4 * i]
                tail = kind.replace("s", "a") + offset
                if symbol in POINTERS and head != tail:
                    triples.add((head, POINTERS[symbol], tail))
    return triples


def main():
    folder, out = pathlib.Path(sys.argv[1]), sys.argv[2]
    triples, before = pointers(folder), 0
    while len(triples) != before:
        before = len(triples)
        degree = collections.Counter(node for t in triples for node in (t[0], t[2]))
        triples = {t for t in triples if degree[t[0]] >= 3 and degree[t[2]] >= 3}
    triples = sorted(triples)
    random.Random(1).shuffle(triples)
    n = len(triples) // 20
    for name, part in ((".test.tsv", triples[:n]), (".tsv", triples[n:])):
        with open(out + name, "w") as f:
            f.writelines("\t".join(t) + "\n" for t in part)


if __name__ == "__main__":
    main()
