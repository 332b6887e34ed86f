"""Trains a decoder that flashdb serves but does not train, on the embeddings of
a graph, and writes the folder that bench reads: the same rows, and the decoder.

    train_decoder.py --data DATA --graph go-stdlib --kind mol  --out OUT/mol
    train_decoder.py --data DATA --graph go-stdlib --kind deep --layers 8 --width 1024 --out OUT/deep-8x1024

mol   mixture of logits (Zhai et al., "Revisiting Neural Retrieval on Accelerators",
      KDD 2023; Ding and Zhai, "Retrieval with Learned Similarities", 2024) with the
      cosine of components, a temperature and the gate "glu_silu" of those papers,
      by a softmax over sampled candidates, as they train it.
deep  a network on source * candidate: layers with a layer norm, ReLU and a residual,
      by binary cross-entropy against sampled candidates.

The embeddings are not changed. Needs torch, numpy, zstandard and safetensors.
"""

import argparse
import io
import json
import os
import pathlib
import shutil
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import zstandard
from safetensors.torch import save_file


class Mixture(nn.Module):
    """Scores every source of a batch against candidates that all of them share, or
    each against its own."""

    def __init__(self, dim, components, width, temperature, hidden):
        super().__init__()
        self.sides, self.width, self.temperature = components, width, temperature
        logits = components[0] * components[1]
        self.source_proj = nn.Linear(dim, components[0] * width)
        self.candidate_proj = nn.Linear(dim, components[1] * width)

        def gate(inputs, bias):
            return nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, logits, bias=bias))

        self.gate_source = gate(dim, False)
        self.gate_candidate = gate(dim, False)
        self.gate_logits = gate(logits, True)

    def components(self, proj, x, side):
        return F.normalize(proj(x).view(*x.shape[:-1], self.sides[side], self.width), dim=-1, eps=1e-6)

    def forward(self, x, y):
        """x is b x dim, y is c x dim (shared) or b x c x dim; the scores are b x c."""
        f, g = self.components(self.source_proj, x, 0), self.components(self.candidate_proj, y, 1)
        pattern = "bid,cjd->bcij" if y.dim() == 2 else "bid,bcjd->bcij"
        logits = torch.einsum(pattern, f, g).flatten(2) / self.temperature
        own = self.gate_candidate(y)
        mixed = self.gate_source(x).unsqueeze(1) * (own if y.dim() == 3 else own.unsqueeze(0)) + self.gate_logits(logits)
        return (torch.softmax(F.silu(mixed), -1) * logits).sum(-1)

    def spec(self, dim):
        def gate(name, bias):
            last = {"weight": f"{name}.2.weight"}
            if bias:
                last["bias"] = f"{name}.2.bias"
            return [{"weight": f"{name}.0.weight", "bias": f"{name}.0.bias", "activation": "silu"}, last]

        def side(name, i):
            return {"components": self.sides[i], "layers": [{"weight": f"{name}.weight", "bias": f"{name}.bias"}]}

        return {
            "kind": "mol", "dim": dim,
            "mixture": {
                "source": side("source_proj", 0), "candidate": side("candidate_proj", 1),
                "cosine": True, "temperature": self.temperature,
                "gate": {"source": gate("gate_source", False), "candidate": gate("gate_candidate", False),
                         "logits": gate("gate_logits", True), "combine": "glu_silu"},
            },
        }  # fmt: skip


class Deep(nn.Module):
    def __init__(self, dim, layers, width):
        super().__init__()
        self.lins = nn.ModuleList([nn.Linear(dim if i == 0 else width, width) for i in range(layers - 1)] + [nn.Linear(width, 1)])
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers - 1))

    def forward(self, x, y):
        h = x.unsqueeze(1) * y
        for i, (lin, norm) in enumerate(zip(self.lins, self.norms)):
            linear = lin(h)
            h = F.relu(norm(linear + h if i > 0 else linear))
        return self.lins[-1](h).squeeze(-1)

    def spec(self, dim):
        layers = []
        for i in range(len(self.norms)):
            layer = {"weight": f"lins.{i}.weight", "bias": f"lins.{i}.bias", "activation": "relu",
                     "norm": {"kind": "layer_norm", "weight": f"norms.{i}.weight", "bias": f"norms.{i}.bias"}}  # fmt: skip
            if i > 0:
                layer["residual"] = "input"
            layers.append(layer)
        last = len(self.norms)
        layers.append({"weight": f"lins.{last}.weight", "bias": f"lins.{last}.bias", "activation": "identity"})
        return {"kind": "hadamard_mlp", "dim": dim, "layers": layers}


def edges(path):
    with open(path, "rb") as f:
        text = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(f))
        return np.array([[int(field) for field in line.split("\t")[:2]] for line in text])


def train(model, kind, rows, links, args):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, weight_decay=1e-4)
    links, n, began, step = torch.from_numpy(links), len(rows), time.monotonic(), 0
    while time.monotonic() - began < args.seconds:
        order, total = torch.randperm(len(links)), 0.0
        for at in range(0, len(order), args.batch):
            batch = links[order[at : at + args.batch]]
            x, y = rows[batch[:, 0]], rows[batch[:, 1]]
            negatives = torch.randint(n, (args.negatives,)) if kind == "mol" else torch.randint(n, (len(x), args.negatives))
            if kind == "mol":
                scores = torch.cat([model(x, y.unsqueeze(1)), model(x, rows[negatives])], 1)
                loss = F.cross_entropy(scores, torch.zeros(len(x), dtype=torch.long))
            else:
                scores = model(x, torch.cat([y.unsqueeze(1), rows[negatives]], 1))
                loss = F.binary_cross_entropy_with_logits(scores, torch.cat([torch.ones(len(x), 1), torch.zeros(len(x), args.negatives)], 1))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            left = 1 - (time.monotonic() - began) / args.seconds
            for group in optimizer.param_groups:
                group["lr"] = args.rate * max(0.02, min(1, (step + 1) / 100, 2 * left))
            optimizer.step()
            total, step = total + loss.item(), step + 1
            if left <= 0:
                break
        print(f"step {step}: loss {total / max(1, at // args.batch + 1):.4f}, {time.monotonic() - began:.0f} s", flush=True)


@torch.no_grad()
def mrr(model, rows, links, count=1000, negatives=100):
    """Mean reciprocal rank of held-out links among random candidates."""
    generator = torch.Generator().manual_seed(3)
    links = torch.from_numpy(links[:count])
    ranks = []
    for batch in links.split(50):
        others = torch.randint(len(rows), (len(batch), negatives), generator=generator)
        scores = model(rows[batch[:, 0]], torch.cat([rows[batch[:, 1]].unsqueeze(1), rows[others]], 1))
        ranks.append(1 + (scores[:, 1:] > scores[:, :1]).sum(1))
    return (1 / torch.cat(ranks).double()).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder that holds one folder per graph")
    parser.add_argument("--graph", default="go-stdlib")
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument("--kind", choices=["mol", "deep"], required=True)
    parser.add_argument("--components", default="4x4", help="mol: components of source and candidate")
    parser.add_argument("--component-width", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--gate", type=int, default=64, help="mol: hidden neurons of each part of the gate")
    parser.add_argument("--layers", type=int, default=5, help="deep: linear layers, the last included")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--negatives", type=int, default=0, help="default 128 shared (mol) or 3 for each link (deep)")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=240, help="of training")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.negatives = args.negatives or (128 if args.kind == "mol" else 3)
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)

    folder, out = pathlib.Path(args.data) / args.graph, pathlib.Path(args.out)
    rows = torch.from_numpy(np.load(folder / "embeddings.npy").astype(np.float32))
    dim = rows.shape[1]
    if args.kind == "mol":
        sides = [int(n) for n in args.components.split("x")]
        model = Mixture(dim, sides, args.component_width, args.temperature, args.gate)
    else:
        model = Deep(dim, args.layers, args.width)
    print(f"{args.kind}: {sum(p.numel() for p in model.parameters()):,} weights", flush=True)
    train(model, args.kind, rows, edges(folder / "train.tsv.zst"), args)
    model.eval()
    print(f"MRR among 100 random candidates: {mrr(model, rows, edges(folder / 'test.tsv.zst')):.3f}", flush=True)

    out.mkdir(parents=True, exist_ok=True)
    save_file({name: p.detach().contiguous() for name, p in model.state_dict().items()}, out / "decoder.safetensors")
    (out / "decoder.json").write_text(json.dumps(model.spec(dim), indent=1) + "\n")
    for name in ("embeddings.npy", "info.json"):
        if not (out / name).exists():
            shutil.copyfile(folder / name, out / name)
            os.chmod(out / name, 0o644)


if __name__ == "__main__":
    main()
