"""Makes decoders/mol-*/ beside this file: small mixtures of logits with random weights, and for some pairs of rows the logit
and its gradient with respect to the candidate that PyTorch computes in float64. Needs torch, numpy and safetensors; made with torch 2.15."""

import json
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
D = 12


class Mixture(nn.Module):
    def __init__(self, sides, projections, cosine, temperature, gate, combine):
        super().__init__()
        self.sides, self.cosine, self.temperature, self.combine = sides, cosine, temperature, combine
        self.source, self.candidate = projections
        self.gate = nn.ModuleDict(gate)

    def components(self, proj, row, count):
        parts = (row if proj is None else proj(row)).view(count, -1)
        return F.normalize(parts, dim=-1, eps=1e-6) if self.cosine else parts

    def forward(self, x, y):
        f, g = self.components(self.source, x, self.sides[0]), self.components(self.candidate, y, self.sides[1])
        logits = (f @ g.T).flatten() / self.temperature
        rows = {"source": x, "candidate": y, "logits": logits}
        parts = {name: net(rows[name]) for name, net in self.gate.items()}
        if self.combine == "glu_silu":
            u = F.silu(parts["source"] * parts["candidate"] + parts.get("logits", 0))
        else:
            u = sum(parts.values())
        return (torch.softmax(u, -1) * logits).sum()


class Residual(nn.Module):
    """A linear layer, its input added, a layer norm and GELU."""

    def __init__(self, width):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, h):
        return F.gelu(self.norm(self.linear(h) + h))


def linear(at, activation=None, bias=True):
    layer = {"weight": at + ".weight"}
    if bias:
        layer["bias"] = at + ".bias"
    if activation:
        layer["activation"] = activation
    return layer


def hidden(inputs, width, outputs, act, bias=True):
    return nn.Sequential(nn.Linear(inputs, width), act, nn.Linear(width, outputs, bias=bias))


def hidden_spec(at, activation, bias=True):
    return [linear(at + ".0", activation), linear(at + ".2", bias=bias)]


def write(name, model, mixture):
    folder = os.path.join(HERE, "decoders", name)
    os.makedirs(folder, exist_ok=True)
    for m in model.modules():
        if isinstance(m, nn.LayerNorm):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.uniform_(m.bias, -0.5, 0.5)
    weights = {key: p.detach().clone() for key, p in model.state_dict().items()}
    save_file(weights, os.path.join(folder, "weights.safetensors"))
    torch.save(weights, os.path.join(folder, "weights.pt"))
    torch.save({"epoch": 3, "predictor": {"module." + key: p for key, p in weights.items()}}, os.path.join(folder, "nested.pt"))
    np.savez(os.path.join(folder, "weights.npz"), **{key: p.numpy() for key, p in weights.items()})
    with open(os.path.join(folder, "spec.json"), "w") as f:
        json.dump({"kind": "mol", "dim": D, "mixture": mixture}, f, indent=1)
    double = model.double()
    with open(os.path.join(folder, "cases.jsonl"), "w") as f:
        for _ in range(12):
            x, y = torch.randn(D), torch.randn(D)
            at = y.double().requires_grad_()
            score = double(x.double(), at)
            (gradient,) = torch.autograd.grad(score, at)
            line = {"source": x.tolist(), "candidate": y.tolist(), "logit": score.item(), "gradient": gradient.tolist()}
            f.write(json.dumps(line) + "\n")


torch.manual_seed(15)

# As the papers train it: linear projections, cosines, a low temperature, the gate glu_silu.
write(
    "mol",
    Mixture((4, 2), (nn.Linear(D, 4 * 5), nn.Linear(D, 2 * 5)), True, 0.05, {
        "source": hidden(D, 7, 8, nn.SiLU(), bias=False), "candidate": hidden(D, 7, 8, nn.SiLU(), bias=False),
        "logits": hidden(8, 7, 8, nn.SiLU())}, "glu_silu"),
    {"source": {"components": 4, "layers": [linear("source")]}, "candidate": {"components": 2, "layers": [linear("candidate")]},
     "cosine": True, "temperature": 0.05,
     "gate": {"source": hidden_spec("gate.source", "silu", False), "candidate": hidden_spec("gate.candidate", "silu", False),
              "logits": hidden_spec("gate.logits", "silu"), "combine": "glu_silu"}})  # fmt: skip

# Components are slices of the rows; the gate reads the logits alone.
write(
    "mol-slices",
    Mixture((3, 3), (None, None), False, 1.0, {"logits": nn.Linear(9, 9)}, "sum"),
    {"source": {"components": 3}, "candidate": {"components": 3}, "gate": {"logits": [linear("gate.logits")], "combine": "sum"}})

# Deep projections, of one component and of three, and every part of the gate.
write(
    "mol-deep",
    Mixture((1, 3), (hidden(D, 9, 6, nn.ReLU()), nn.Sequential(Residual(D), nn.Linear(D, 9), nn.Tanh(), nn.Linear(9, 18))), False, 0.5, {
        "source": nn.Linear(D, 3), "candidate": nn.Sequential(nn.Linear(D, 5), nn.ReLU(), nn.Linear(5, 3), nn.LayerNorm(3)),
        "logits": hidden(3, 4, 3, nn.GELU())}, "sum"),
    {"source": {"components": 1, "layers": hidden_spec("source", "relu")},
     "candidate": {"components": 3, "layers": [
         {**linear("candidate.0.linear", "gelu"), "residual": "input",
          "norm": {"kind": "layer_norm", "weight": "candidate.0.norm.weight", "bias": "candidate.0.norm.bias"}},
         linear("candidate.1", "tanh"), linear("candidate.3")]},
     "temperature": 0.5,
     "gate": {"source": [linear("gate.source")],
              "candidate": [linear("gate.candidate.0", "relu"),
                            {**linear("gate.candidate.2"), "norm": {"kind": "layer_norm", "weight": "gate.candidate.3.weight", "bias": "gate.candidate.3.bias"}}],
              "logits": hidden_spec("gate.logits", "gelu"), "combine": "sum"}})  # fmt: skip
