"""Writes gradients.json: losses and gradients PyTorch computes in float64, for TestPyTorchGradients.

Inputs follow from formulas that the test repeats, so that the file holds results alone.
Run with PyTorch installed: python3 gradients.py > gradients.json
"""
import json
import math
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
NODES, DIM, HIDDEN, GROUP, LINKS = 24, 6, 10, 4, 20


def values(k, *shape, by=0.4):
    n = math.prod(shape)
    # rounded to float32, as the test has them
    v = [by * math.sin(1.7 * k + 0.9 * i + 0.3 * math.sin(2.1 * i)) for i in range(n)]
    return torch.tensor(v, dtype=torch.float32).double().reshape(shape)


def pairs():
    out = []
    for i in range(LINKS):
        source = (7 * i + 1) % NODES
        out += [(source, (source + 1 + 5 * j + i % 3) % NODES, i % 3) for j in range(GROUP)]
    return out


def adjacency():
    a = torch.zeros(NODES, NODES)
    for i in range(NODES):
        for step in (1, 3):
            a[i, (i + step) % NODES] = a[(i + step) % NODES, i] = 1
    for i in range(0, NODES, 4):
        a[0, i] = a[i, 0] = 1
    a.fill_diagonal_(0)
    return a


class Case:
    def __init__(self, encoder, decoder, loss, norm, hidden, width, features):
        self.__dict__.update(locals())
        self.tensors = []
        self.table = values(99, NODES, HIDDEN if encoder in ("gcn", "sage") else DIM).requires_grad_()

    def param(self, *shape, add=0.0):
        t = (values(len(self.tensors), *shape) + add).float().double().requires_grad_()
        self.tensors.append(t)
        return t

    def layers(self, norm, widths):
        out = []
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            layer = [self.param(b, a), self.param(b)]
            if norm and i + 2 < len(widths):
                layer += [self.param(b, add=1.0), self.param(b)]
            out.append(layer)
        return out

    def mlp(self, layers, x):
        for i, l in enumerate(layers):
            x = F.linear(x, l[0], l[1])
            if len(l) > 2:
                x = F.layer_norm(x, (x.shape[1],), l[2], l[3])
            if i + 1 < len(layers):
                x = F.relu(x)
        return x

    def run(self):
        d = self.decoder
        if d in ("hadamard_mlp", "concat_mlp"):
            net = self.layers(self.norm, [DIM * (2 if d == "concat_mlp" else 1)] + self.hidden + [1])
        elif d == "bilinear":
            w = self.param(DIM, DIM)
        elif d in ("distmult", "complex"):
            w = self.param(3, DIM)
        z = self.embed()
        s, t, r = (torch.tensor(c) for c in zip(*pairs()))
        u, v = z[s], z[t]
        if d == "hadamard_mlp":
            logit = self.mlp(net, u * v)[:, 0]
        elif d == "concat_mlp":
            logit = self.mlp(net, torch.cat([u, v], 1))[:, 0]
        elif d == "bilinear":
            logit = ((u @ w) * v).sum(1)
        elif d == "distmult":
            logit = (u * w[r] * v).sum(1)
        elif d == "complex":
            u, v, q = (torch.complex(*x.chunk(2, dim=1)) for x in (u, v, w[r]))
            logit = (u * q * v.conj()).real.sum(1)
        else:
            logit = (u * v).sum(1)
        logit = logit.reshape(LINKS, GROUP)
        if self.loss == "bce":
            loss = F.binary_cross_entropy_with_logits(logit[:, :1], torch.ones(LINKS, 1))
            loss = loss + F.binary_cross_entropy_with_logits(logit[:, 1:], torch.zeros(LINKS, GROUP - 1))
        else:
            loss = ((1 - (logit[:, :1] - logit[:, 1:])) ** 2).mean()
        loss.backward()
        grads = [p.grad.flatten().tolist() for p in [self.table] + self.tensors]
        return {"encoder": self.encoder, "decoder": self.decoder, "loss": self.loss, "norm": self.norm,
                "hidden": self.hidden, "features": self.features, "value": loss.item(),
                "grads": [[float("%.7g" % x) for x in g] for g in grads]}

    def embed(self):
        if self.encoder == "mf":
            return self.table
        if self.encoder == "hops":
            net = self.layers(False, [self.width, HIDDEN, DIM])
            linear, x = self.param(DIM, 64), values(55, NODES, self.width)
            return self.mlp(net, x) + x[:, 320:384] @ linear.T + self.table
        a = adjacency()
        x = self.table
        if self.features:
            x = x + values(77, NODES, self.features) @ self.param(HIDDEN, self.features).T
        widths = [HIDDEN, HIDDEN, DIM]
        for i in range(2):
            w, b = self.param(widths[i + 1], widths[i]), self.param(widths[i + 1])
            if self.encoder == "gcn":
                loops = a + torch.eye(NODES)
                root = loops.sum(1).rsqrt()
                x = (root[:, None] * loops * root) @ (x @ w.T) + b
            else:
                own = self.param(widths[i + 1], widths[i])
                x = (a / a.sum(1, keepdim=True)) @ x @ w.T + b + x @ own.T
            if i == 0:
                x = F.relu(x)
        return x


cases = [
    Case("mf", "dot", "bce", False, [], 0, 0), Case("mf", "bilinear", "plnlp", False, [], 0, 0),
    Case("mf", "distmult", "bce", False, [], 0, 0), Case("mf", "hadamard_mlp", "bce", False, [9, 7], 0, 0),
    Case("mf", "hadamard_mlp", "plnlp", True, [9, 7], 0, 0), Case("mf", "concat_mlp", "bce", False, [8], 0, 0),
    Case("mf", "concat_mlp", "plnlp", True, [33, 8, 5], 0, 0), Case("hops", "hadamard_mlp", "bce", False, [9, 7], 388, 0),
    Case("gcn", "hadamard_mlp", "bce", False, [9, 7], 0, 0), Case("gcn", "dot", "plnlp", False, [], 0, 5),
    Case("sage", "hadamard_mlp", "bce", False, [9], 0, 0), Case("sage", "bilinear", "bce", False, [], 0, 5),
    Case("mf", "complex", "bce", False, [], 0, 0),
]
print("[" + ",\n".join(json.dumps(c.run()) for c in cases) + "]")
