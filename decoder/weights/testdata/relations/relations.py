"""Makes the decoders with relations beside this file, and for each the logits that PyTorch computes in float64.

Weights are kept as the frameworks keep them that they are named after: PyKEEN's state dict (complex numbers in pairs), the
relation table of DGL-KE (halves), the two tables of PyTorch-BigGraph's complex_diagonal (it conjugates the relation, as it
applies the operator to the tail). A case is a source, a candidate, a relation, and whether the source is the tail.
Needs torch and numpy: python3 relations.py
"""
import json
import os

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
D, CASES = 6, 12
NAMES = ["treats", "causes", "is part of"]
g = torch.Generator().manual_seed(7)


def values(*shape):
    return torch.randn(*shape, generator=g)


def as_pairs(x):
    return torch.view_as_complex(x.double().reshape(-1, D // 2, 2).contiguous())


def as_halves(x):
    real, imaginary = x.double().chunk(2, dim=-1)
    return torch.complex(real, imaginary)


def score_complex(h, r, t):
    return (h * r * t.conj()).real.sum(-1)


def write(name, spec, save, score, names=NAMES):
    out = os.path.join(HERE, name)
    os.makedirs(out, exist_ok=True)
    save(out)
    with open(os.path.join(out, "spec.json"), "w") as f:
        json.dump(spec, f, indent=1)
    with open(os.path.join(out, "cases.jsonl"), "w") as f:
        for i in range(CASES):
            x, y = values(D), values(D)
            reverse = i % 2 == 1
            head, tail = (y, x) if reverse else (x, y)
            logit = score(head[None], i % len(names), tail[None]).item()
            case = {"source": x.tolist(), "candidate": y.tolist(), "relation": names[i % len(names)], "logit": logit}
            if reverse:
                case["reverse"] = True
            f.write(json.dumps(case) + "\n")


def npz(**tensors):
    return lambda out: np.savez(os.path.join(out, "weights.npz"), **{k: t.numpy() for k, t in tensors.items()})


table = values(len(NAMES), D)
write("distmult", {"kind": "distmult", "dim": D, "relation": "relation", "relations": NAMES}, npz(relation=table),
      lambda h, r, t: (h.double() * table[r].double() * t.double()).sum(-1))

halves = values(len(NAMES), D)
write("dglke-complex", {"kind": "complex", "dim": D, "relation": "relation", "relations": NAMES}, npz(relation=halves),
      lambda h, r, t: score_complex(as_halves(h), as_halves(halves[r][None]), as_halves(t)))

real, imaginary = values(len(NAMES), D // 2), values(len(NAMES), D // 2)
write("pbg-complex", {"kind": "complex", "dim": D, "relation": "real", "imaginary": "imag", "conjugate": True, "relations": NAMES},
      npz(real=real, imag=imaginary),
      # dot(head, operator(tail)) over the values as they are: the real part of <head, conj(relation * tail)>
      lambda h, r, t: (as_halves(h) * (torch.complex(real[r].double(), imaginary[r].double()) * as_halves(t)).conj()).real.sum(-1))


def pykeen(relations, entities=5):
    tensors = {
        "entity_representations.0._embeddings.weight": values(entities, D),
        "relation_representations.0._embeddings.weight": relations,
    }
    return lambda out: torch.save(tensors, os.path.join(out, "weights.pt"))


pairs = values(len(NAMES), D)
write("pykeen-complex", {"kind": "complex", "dim": D, "complex": "pairs",
                         "relation": "relation_representations.0._embeddings.weight", "relations": NAMES}, pykeen(pairs),
      lambda h, r, t: score_complex(as_pairs(h), as_pairs(pairs[r][None]), as_pairs(t)))

inverses = values(2 * len(NAMES), D)  # create_inverse_triples: a relation, then its inverse
both = [name + end for name in NAMES for end in ("", "_inverse")]
write("pykeen-inverses", {"kind": "distmult", "dim": D, "relation": "relation_representations.0._embeddings.weight", "relations": both},
      pykeen(inverses), lambda h, r, t: (h.double() * inverses[r].double() * t.double()).sum(-1), both)
