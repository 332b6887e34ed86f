"""Writes into this folder what PyTorch's two ONNX exporters make of decoders as they are written in the wild, and for each the logits that
PyTorch computes in float64. NAME.torchscript-OPSET.onnx is of torch.onnx.export(..., dynamo=False), NAME.dynamo-OPSET.onnx of dynamo=True;
NAME.jsonl has the cases of both. Models in refused/ cannot be imported. Needs torch, onnx and onnxscript; made with torch 2.15."""

import copy
import json
import os

import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
D, H, NODES = 4, 5, 9


class Model(nn.Module):
    """A forward written as a function of the module and its inputs."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs):
        return self.function(self, *inputs)


def mlp(inputs=D, outputs=1):
    return nn.Sequential(nn.Linear(inputs, H), nn.ReLU(), nn.Dropout(0.3), nn.Linear(H, outputs))


def unpacked(m, z, edge_index):
    source, candidate = edge_index
    return m.net(z[source] * z[candidate]).squeeze(-1)


def both(m, z, edge_index):
    pair = z[edge_index]
    return m.net(pair[0] * pair[1])


def chunks(m, z, edge_index):
    source, candidate = edge_index.chunk(2, 0)
    return m.net(z[source.squeeze(0)] * z[candidate.squeeze(0)])


def gathered(m, z, edge_index):
    index = lambda i: edge_index[i].unsqueeze(-1).expand(-1, z.size(1))
    return m.net(z.gather(0, index(0)) * z.gather(0, index(1)))


def own_norm(m, x, y):
    h = m.first(x * y)
    mean = h.mean(-1, keepdim=True)
    variance = ((h - mean) ** 2).mean(-1, keepdim=True)
    h = (h - mean) * torch.rsqrt(variance + 1e-6) * m.weight + m.bias
    return m.last(torch.relu(h))


PAIR, EDGES, EDGE_ROWS, NUMBERS, TWO_KINDS, EMBEDDING, ALONE, VECTORS = range(8)
OLD, NEW = ("torchscript", 11), ("dynamo", 18)
net = lambda *layers: dict(net=nn.Sequential(*layers))
product = lambda m, x, y: m.net(x * y)

torch.manual_seed(8)
MODELS = {
    # the product or concatenation of rows that an edge_index picks, as people write it
    "edge-index": (EDGES, lambda m, z, e: m.net(z[e[0]] * z[e[1]]), dict(net=mlp())),
    "edge-unpacked": (EDGES, unpacked, dict(net=mlp())),
    "edge-unbind": (EDGES, lambda m, z, e: (lambda s, t: m.net(z[s] * z[t]))(*e.unbind(0)), dict(net=mlp())),
    "edge-concat": (EDGES, lambda m, z, e: m.net(torch.cat([z[e[0]], z[e[1]]], dim=-1)).view(-1), dict(net=mlp(2 * D))),
    "edge-select": (EDGES, lambda m, z, e: torch.sigmoid(m.net(z.index_select(0, e[0]) * z.index_select(0, e[1]))).squeeze(), dict(net=mlp())),
    "edge-both": (EDGES, both, dict(net=mlp())),
    "edge-product": (EDGES, lambda m, z, e: m.net(z[e].prod(0)), dict(net=mlp())),
    "edge-slice": (EDGES, lambda m, z, e: m.net(z[e[0:1].reshape(-1)] * z[e[1:2].reshape(-1)]), dict(net=mlp())),
    "edge-gather": (EDGES, gathered, dict(net=mlp())),
    "edge-lookup": (EDGES, lambda m, z, e: m.net(F.embedding(e[0], z) * F.embedding(e[1], z)), dict(net=mlp())),
    "edge-columns": (EDGE_ROWS, lambda m, z, e: m.net(z[e[:, 0]] * z[e[:, 1]]), dict(net=mlp())),
    "edge-turned": (EDGE_ROWS, lambda m, z, e: m.net(z[e.t()[0]] * z[e.t()[1]]), dict(net=mlp())),
    "edge-joined": (EDGE_ROWS, lambda m, z, e: m.net(z[e].flatten(1)), dict(net=mlp(2 * D))),
    "edge-chunk": (EDGES, chunks, dict(net=mlp()), NEW),
    "node-numbers": (NUMBERS, lambda m, z, i, j: m.net(z[i] * z[j]), dict(net=mlp())),
    "two-kinds": (TWO_KINDS, lambda m, u, v, e: m.net(torch.cat([u[e[0]], v[e[1]]], -1)), dict(net=mlp(2 * D))),
    "embedding": (EMBEDDING, lambda m, e: m.table(e[0]) * m.table(e[1]) @ m.weight.t() + m.bias,
                  dict(table=nn.Embedding(NODES, D), weight=nn.Parameter(torch.randn(1, D)), bias=nn.Parameter(torch.randn(1)))),
    # z alone
    "alone": (ALONE, lambda m, h: m.net(h), dict(net=mlp())),
    "alone-view": (ALONE, lambda m, h: m.net(h.view(h.size(0), -1)).view(-1), dict(net=mlp())),
    # norms and activations spelled out
    "layer-norm": (PAIR, product, net(nn.Linear(D, H), nn.LayerNorm(H), nn.ReLU(), nn.Linear(H, H), nn.GELU(), nn.LayerNorm(H), nn.Linear(H, 1))),
    "layer-norm-plain": (PAIR, product, net(nn.LayerNorm(D, elementwise_affine=False), nn.Linear(D, H), nn.LayerNorm(H, bias=False), nn.SiLU(),
                                            nn.Linear(H, 1))),
    "layer-norm-own": (PAIR, own_norm, dict(first=nn.Linear(D, H), last=nn.Linear(H, 1), weight=nn.Parameter(torch.rand(H) + 0.5),
                                            bias=nn.Parameter(torch.rand(H)))),
    "gelu-tanh": (PAIR, product, net(nn.Linear(D, H), nn.GELU(approximate="tanh"), nn.Linear(H, 1))),
    "prelu": (PAIR, product, net(nn.Linear(D, H), nn.PReLU(), nn.Linear(H, 1))),
    "batch-norm": (PAIR, product, net(nn.BatchNorm1d(D), nn.Linear(D, H), nn.BatchNorm1d(H), nn.ReLU(), nn.Linear(H, H), nn.ReLU(), nn.BatchNorm1d(H),
                                      nn.Linear(H, 1))),
    # types, scales, shapes
    "double": (PAIR, product, dict(net=mlp().double())),
    "half": (PAIR, product, dict(net=nn.Sequential(nn.Linear(D, H), nn.LayerNorm(H), nn.ReLU(), nn.Linear(H, 1)).half())),
    "bfloat16": (PAIR, product, dict(net=mlp().bfloat16())),
    "cast": (PAIR, lambda m, x, y: m.net((x * y).to(m.net[0].weight.dtype)), dict(net=mlp())),
    "temperature": (PAIR, lambda m, x, y: m.net(x * y) / 0.07, dict(net=mlp())),
    "two-classes": (PAIR, lambda m, x, y: m.net(x * y)[:, 1], dict(net=mlp(outputs=2))),
    "addmm": (PAIR, lambda m, x, y: torch.addmm(m.bias, x * y, m.weight, beta=0.5, alpha=2.0),
              dict(weight=nn.Parameter(torch.rand(D, 1)), bias=nn.Parameter(torch.rand(1)))),
    "vectors": (VECTORS, lambda m, x, y: m.net(torch.cat([x, y], 0)), dict(net=mlp(2 * D))),
    # not to be imported
    "refused/difference": (PAIR, lambda m, x, y: m.net((x - y).abs()), dict(net=mlp())),
    "refused/elu": (PAIR, product, net(nn.Linear(D, H), nn.ELU(), nn.Linear(H, 1))),
    "refused/normalised": (EDGES, lambda m, z, e: m.net(F.normalize(z[e[0]], dim=-1) * F.normalize(z[e[1]], dim=-1)), dict(net=mlp())),
    "refused/encoder": (EDGES, lambda m, z, e: (lambda h: m.net(h[e[0]] * h[e[1]]))(torch.relu(m.encoder(z))), dict(net=mlp(), encoder=nn.Linear(D, D))),
    "refused/bilinear": (PAIR, lambda m, x, y: (m.w(x) * y).sum(-1), dict(w=nn.Linear(D, D, bias=False))),
    "refused/dot": (EDGES, lambda m, z, e: (z[e[0]] * z[e[1]]).sum(-1), dict()),
    "refused/chunk": (EDGES, chunks, dict(net=mlp()), OLD),
    "refused/symmetric": (PAIR, lambda m, x, y: m.net(torch.cat([x, y], -1)) + m.net(torch.cat([y, x], -1)), dict(net=mlp(2 * D))),
}


def inputs_of(kind, x, y):
    """Inputs of that kind for rows x and y, one row per pair."""
    n = len(x)
    i, j = torch.arange(n), torch.arange(n, 2 * n)
    return {
        PAIR: (x, y), VECTORS: (x[0], y[0]), ALONE: (x * y,), EDGES: (torch.cat([x, y]), torch.stack([i, j])),
        EDGE_ROWS: (torch.cat([x, y]), torch.stack([i, j], 1)), NUMBERS: (torch.cat([x, y]), i, j),
        TWO_KINDS: (x, y, torch.stack([i, i])), EMBEDDING: (torch.stack([i, j]),),
    }[kind]


def trained(model):
    """Random running statistics and norms, as training leaves them."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.running_mean.uniform_(-0.5, 0.5)
            m.running_var.uniform_(0.5, 2)
        if isinstance(m, (nn.BatchNorm1d, nn.LayerNorm)) and m.weight is not None:
            nn.init.uniform_(m.weight, 0.5, 1.5)
            if m.bias is not None:
                nn.init.uniform_(m.bias, -0.5, 0.5)
    return model.eval()


def cases(path, kind, model):
    double = copy.deepcopy(model).double()
    with open(path, "w") as f, torch.no_grad():
        for _ in range(6):
            x, y = torch.randn(1, D), torch.randn(1, D)
            if kind == EMBEDDING:  # the pair of nodes 0 and 1
                x, y = model.table.weight[0:1], model.table.weight[1:2]
            s = double(*inputs_of(kind, x.double(), y.double()))
            s = torch.logit(s) if path.endswith("edge-select.jsonl") else s
            f.write(json.dumps({"source": x[0].tolist(), "candidate": y[0].tolist(), "logit": s.item()}) + "\n")


def export(path, kind, model, exporter, opset):
    x, y = torch.randn(4, D), torch.randn(4, D)
    dtype = next((p.dtype for p in model.parameters()), torch.float32)
    args = inputs_of(kind, x, y)
    if path.rsplit("/", 1)[1].split(".")[0] != "cast":
        args = tuple(a.to(dtype) if a.is_floating_point() else a for a in args)
    free = lambda a: {1 if not a.is_floating_point() and a.shape[0] == 2 else 0: None}  # the dimension of the pairs, or nodes
    if exporter == "dynamo":
        shapes = (tuple({d: torch.export.Dim.AUTO for d in free(a)} for a in args),) if kind != VECTORS else None
        torch.onnx.export(model, args, path, dynamo=True, opset_version=opset, external_data=False, verbose=False, dynamic_shapes=shapes)
    else:
        names = [f"in{i}" for i in range(len(args))]
        axes = {name: {d: f"{name}_{d}" for d in free(a)} for name, a in zip(names, args)} if kind != VECTORS else None
        torch.onnx.export(model, args, path, dynamo=False, opset_version=opset, input_names=names, dynamic_axes=axes)


def strip(path):
    """Leaves out what exporters note of the machine: stack traces and paths."""
    m = onnx.load(path)
    del m.metadata_props[:], m.graph.metadata_props[:], m.graph.value_info[:]
    m.doc_string = ""
    for part in [*m.graph.node, *m.graph.initializer, *m.graph.input, *m.graph.output]:
        part.doc_string = ""
        del part.metadata_props[:]
    with open(path, "wb") as f:
        f.write(m.SerializeToString())


os.makedirs(os.path.join(HERE, "refused"), exist_ok=True)
for name, (kind, forward, parts, *only) in MODELS.items():
    model = trained(Model(forward, **parts))
    base = os.path.join(HERE, name)
    if not name.startswith("refused/"):
        cases(base + ".jsonl", kind, model)
    for exporter, opset in only or [OLD, NEW]:
        path = f"{base}.{exporter}-{opset}.onnx"
        export(path, kind, model, exporter, opset)
        strip(path)
