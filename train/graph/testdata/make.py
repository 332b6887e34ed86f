"""Makes ogbl_citation2/ beside this file: a small data set in the layout of ogbl-citation2, whose
held-out edges have negatives of their own. Beside it stand embeddings of its nodes, the negatives
of its test edges as .npy, and what OGB's evaluator finds for the inner products of the embeddings.
Needs PyTorch and NumPy."""

import gzip
import json
import os

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
NODES, DIM, NEGATIVES = 40, 4, 12
rng = np.random.default_rng(14)
split_dir = os.path.join(HERE, "ogbl_citation2", "split", "time")
raw_dir = os.path.join(HERE, "ogbl_citation2", "raw")
os.makedirs(split_dir, exist_ok=True)
os.makedirs(raw_dir, exist_ok=True)

# A paper cites earlier ones of its field, which is its number modulo 4.
edges = [(s, t) for s in range(NODES) for t in range(s) if (s - t) % 4 == 0 and rng.random() < 0.7]
edges += [(int(s), int(t)) for s, t in zip(rng.integers(20, NODES, 12), rng.integers(0, 20, 12))]
edges = np.array(sorted(set(edges)))
rng.shuffle(edges)
test, valid, train = edges[:8], edges[8:14], edges[14:]
cited = {(int(s), int(t)) for s, t in edges}


def negatives(part):
    """NEGATIVES nodes for each edge that its source does not cite."""
    rows = [rng.choice([n for n in range(NODES) if n != s and (int(s), n) not in cited], NEGATIVES, replace=False) for s, _ in part]
    return np.array(rows, dtype=np.int64)


def arrays(part, with_negatives=True):
    split = {"source_node": part[:, 0].copy(), "target_node": part[:, 1].copy()}
    if with_negatives:
        split["target_node_neg"] = negatives(part)
    return split


held = arrays(test)
held["target_node_neg"][3, 5] = held["target_node"][3]  # an edge's own target: a tie with itself
# NumPy arrays as OGB saves them, in both formats of torch.save, and tensors.
torch.save(held, os.path.join(split_dir, "test.pt"), pickle_protocol=4)
torch.save(arrays(valid), os.path.join(split_dir, "valid.pt"), _use_new_zipfile_serialization=False)
torch.save({k: torch.from_numpy(v) for k, v in arrays(train, False).items()}, os.path.join(split_dir, "train.pt"))
with open(os.path.join(raw_dir, "num-node-list.csv.gz"), "wb") as f:
    f.write(gzip.compress(f"{NODES}\n".encode(), mtime=0))
np.save(os.path.join(HERE, "citation_negatives.npy"), held["target_node_neg"])

# Whole numbers, so that scores are exact and there are ties.
embeddings = (rng.integers(-2, 3, (NODES, DIM)) + 2 * np.eye(DIM)[np.arange(NODES) % 4]).astype(np.float32)
np.save(os.path.join(HERE, "citation_embeddings.npy"), embeddings)


def evaluate(split):
    """The MRR and hits of ogb.linkproppred.Evaluator, _eval_mrr."""
    z = torch.from_numpy(embeddings)
    source = z[torch.from_numpy(split["source_node"])]
    positive = (source * z[torch.from_numpy(split["target_node"])]).sum(-1, keepdim=True)
    negative = (source[:, None] * z[torch.from_numpy(split["target_node_neg"])]).sum(-1)
    optimistic = (negative > positive).sum(dim=1)
    pessimistic = (negative >= positive).sum(dim=1)
    rank = 0.5 * (optimistic + pessimistic) + 1
    return {"mrr": (1 / rank.double()).mean().item(), "hits@1": (rank <= 1).double().mean().item(),
            "hits@3": (rank <= 3).double().mean().item()}


expected = {name: {k: v.tolist() for k, v in part.items()} for name, part in
            {"test": held, "valid": torch.load(os.path.join(split_dir, "valid.pt"), weights_only=False)}.items()}
expected["train"] = sorted(train.tolist())
expected["metrics"] = evaluate(held)
with open(os.path.join(HERE, "citation_expected.json"), "w") as f:
    json.dump(expected, f)
    f.write("\n")
