"""Makes layouts/ and onnx/ beside this file: state dicts and ONNX files of small decoders as models in use keep them, and for each
the logits that PyTorch computes in float64. Needs torch, torch_geometric, onnx and onnxscript; made with torch 2.15, PyG 2.8.

The modules below have the keys and the arithmetic of those they are named after; PyG's MLP is PyG's own."""

import json
import os

import onnx as onnxlib
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch_geometric.nn import MLP

HERE = os.path.dirname(os.path.abspath(__file__))
D = 6


class Linears(nn.Module):  # OGB
    def __init__(self, sizes, act=torch.relu, bias=True):
        super().__init__()
        self.lins = nn.ModuleList(nn.Linear(a, b, bias=bias) for a, b in zip(sizes, sizes[1:]))
        self.act = act

    def forward(self, x, y):
        z = x * y
        for lin in self.lins[:-1]:
            z = self.act(lin(z))
        return self.lins[-1](z)


class Product(nn.Module):  # any network on the product
    def __init__(self, net):
        super().__init__()
        self.mlp = net

    def forward(self, x, y):
        return self.mlp(x * y)


class GiGL(nn.Module):
    def __init__(self, channels, **options):
        super().__init__()
        self.mlp_decoder = MLP(channel_list=channels, act=F.relu, bias=False, plain_last=True, norm=None, **options)

    def forward(self, x, y):
        return self.mlp_decoder(x * y)


class NCNLinkPredictor(nn.Module):
    def __init__(self, d, h, layers, ln):
        super().__init__()
        norm = lambda n: nn.LayerNorm(n) if ln else nn.Identity()
        steps = []
        for i in range(layers - 1):
            steps += [nn.Linear(d if i == 0 else h, h), norm(h), nn.Dropout(0.1), nn.ReLU()]
        self.lins = nn.Sequential(*steps, nn.Linear(h, 1))

    def forward(self, x, y):
        return self.lins(x * y)


class DGL(nn.Module):
    def __init__(self, width, h, concat):
        super().__init__()
        self.W1, self.W2, self.concat = nn.Linear(width, h), nn.Linear(h, 1), concat

    def forward(self, x, y):
        z = torch.cat([x, y], -1) if self.concat else x * y
        return self.W2(F.relu(self.W1(z)))


class RefinedGAE(nn.Module):
    def __init__(self, h, layers, res, norm, scale, act):
        super().__init__()
        self.lins = nn.ModuleList([nn.Linear(h, h) for _ in range(layers - 1)] + [nn.Linear(h, 1)])
        if scale:
            self.scale_norm = nn.LayerNorm(h)
        if norm:
            self.norms = nn.ModuleList(nn.LayerNorm(h) for _ in range(layers - 1))
        self.res, self.norm, self.scale, self.act = res, norm, scale, act

    def forward(self, x, y):
        z = x * y
        if self.scale:
            z = self.scale_norm(z)
        h = z
        for i, lin in enumerate(self.lins[:-1]):
            h = lin(h)
            if self.res:
                h = h + z
            if self.norm:
                h = self.norms[i](h)
            h = self.act(h)
        return self.lins[-1](h)


class BilinearPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.bilinear = nn.Bilinear(D, D, 1, bias=False)

    def forward(self, x, y):
        return self.bilinear(x, y)


class Concat(nn.Module):
    def __init__(self, net, last=None):
        super().__init__()
        self.net, self.last = net, last

    def forward(self, x, y):
        s = self.net(torch.cat([x, y], dim=1))
        return s if self.last is None else self.last(s)


class InputResidual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 1)
        self.norm = nn.LayerNorm(D)

    def forward(self, x, y):
        z = x * y
        h = F.gelu(self.norm(self.a(z) + z))
        h = F.leaky_relu(self.b(h) + h, 0.2)
        return torch.sigmoid(self.c(h)).squeeze(-1)


def trained(model):
    """Random running statistics and norms, as training leaves them."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.running_mean.uniform_(-0.5, 0.5)
            m.running_var.uniform_(0.5, 2)
        if isinstance(m, (nn.BatchNorm1d, nn.LayerNorm)):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.uniform_(m.bias, -0.5, 0.5)
    return model.eval()


def cases(path, model, logit=lambda s: s):
    double = model.double()
    with open(path, "w") as f, torch.no_grad():
        for _ in range(8):
            x, y = torch.randn(1, D), torch.randn(1, D)
            s = logit(double(x.double(), y.double())).item()
            f.write(json.dumps({"source": x[0].tolist(), "candidate": y[0].tolist(), "logit": s}) + "\n")
    model.float()


def layout(name, model, wrap=lambda d: d):
    trained(model)
    base = os.path.join(HERE, "layouts", name)
    torch.save(wrap(model.state_dict()), base + ".pt")
    cases(base + ".jsonl", model)


torch.manual_seed(6)
os.makedirs(os.path.join(HERE, "layouts"), exist_ok=True)
layout("ogb", Linears([D, 8, 8, 1]))
layout("pyg-batch-norm", Product(MLP([D, 8, 8, 1], norm="batch_norm")))
layout("pyg-plain", Product(MLP([D, 8, 1], norm=None, act="gelu")))
layout("pyg-layer-norm", Product(MLP([D, 8, 1], norm="layer_norm")))
layout("gigl", GiGL([D, 8, 1]))
layout("ncn", NCNLinkPredictor(D, 8, 3, ln=False))
layout("ncn-layer-norm", NCNLinkPredictor(D, 8, 3, ln=True))
layout("dgl", DGL(2 * D, D, concat=True))
layout("dgl-hadamard", DGL(D, D, concat=False))
layout("refined-gae", RefinedGAE(D, 4, True, True, True, F.silu))
layout("refined-gae-plain", RefinedGAE(D, 3, False, False, False, F.relu))
layout("sequential", Product(nn.Sequential(nn.Linear(D, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1))))
layout("bilinear", BilinearPair())

checkpoint = Linears([D, 8, 1])
optimizer = torch.optim.Adam(checkpoint.parameters())
checkpoint(torch.randn(4, D), torch.randn(4, D)).sum().backward()
optimizer.step()
encoder = nn.Linear(D, D)
layout("checkpoint", checkpoint, lambda d: {
    "epoch": 7, "model_state_dict": {**{"predictor." + k: v for k, v in d.items()}, **{"encoder." + k: v for k, v in encoder.state_dict().items()}},
    "optimizer": optimizer.state_dict(), "loss": 0.5})
layout("two", Linears([D, 8, 1]), lambda d: {**{"model." + k: v for k, v in d.items()}, **{"ema." + k: v + 1 for k, v in d.items()}})


def strip(path):
    """Leaves out what exporters note of the machine: stack traces and paths."""
    m = onnxlib.load(path, load_external_data=False)
    del m.metadata_props[:], m.graph.metadata_props[:]
    m.doc_string = ""
    for part in [*m.graph.node, *m.graph.initializer, *m.graph.value_info, *m.graph.input, *m.graph.output]:
        part.doc_string = ""
        del part.metadata_props[:]
    with open(path, "wb") as f:
        f.write(m.SerializeToString())


def onnx(name, model, logit=lambda s: s, dynamo=True, **options):
    trained(model)
    path = os.path.join(HERE, "onnx", name + ".onnx")
    batch = torch.export.Dim("batch", min=2)
    x, y = torch.randn(3, D), torch.randn(3, D)
    if dynamo:
        options.setdefault("external_data", False)
        torch.onnx.export(model, (x, y), path, input_names=["source", "candidate"], dynamic_shapes=({0: batch}, {0: batch}), dynamo=True,
                          verbose=False, **options)
    else:
        torch.onnx.export(model, (x, y), path, input_names=["source", "candidate"], dynamo=False,
                          dynamic_axes={"source": [0], "candidate": [0]}, **options)
    strip(path)
    cases(os.path.join(HERE, "onnx", name + ".jsonl"), model, logit)


logit = lambda p: torch.logit(p)
os.makedirs(os.path.join(HERE, "onnx"), exist_ok=True)
for suffix, dynamo in (("", True), ("-torchscript", False)):
    onnx("ogb" + suffix, Linears([D, 8, 8, 1]), dynamo=dynamo)
    onnx("pyg-batch-norm" + suffix, Product(MLP([D, 8, 8, 1], norm="batch_norm")), dynamo=dynamo)
    onnx("refined-gae" + suffix, RefinedGAE(D, 4, True, True, True, F.silu), dynamo=dynamo)
    onnx("recommender" + suffix, Concat(nn.Sequential(nn.Linear(2 * D, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU(),
                                                      nn.Linear(4, 1)), nn.Sigmoid()), logit, dynamo=dynamo)
    onnx("gelu-residual" + suffix, InputResidual(), logit, dynamo=dynamo)
    onnx("gelu-tanh" + suffix, Linears([D, 8, 1], act=lambda h: F.gelu(h, approximate="tanh")), dynamo=dynamo)
    onnx("norm-after" + suffix, Product(nn.Sequential(nn.Linear(D, 8, bias=False), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1, bias=False))),
         dynamo=dynamo)
onnx("gelu-opset17", InputResidual(), logit, dynamo=False, opset_version=17)
onnx("gelu-tanh-opset17", Linears([D, 8, 1], act=lambda h: F.gelu(h, approximate="tanh")), dynamo=False, opset_version=17)
onnx("half", Linears([D, 8, 1], act=F.silu).half())
onnx("external", Linears([D, 32, 1]), external_data=True)


class PlainBatchNorm(nn.Module):  # a fork of PyG's MLP: its norms are nn.BatchNorm1d itself
    def __init__(self, sizes):
        super().__init__()
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(b) for b in sizes[1:-1])

    def forward(self, x, y):
        z = x * y
        for lin, norm in zip(self.lins, self.norms):
            z = F.relu(norm(lin(z)))
        return self.lins[-1](z)


class OneLinear(nn.Module):  # DGL's user guide (W), NCN with one layer (lins)
    def __init__(self, name, width, concat):
        super().__init__()
        setattr(self, name, nn.Linear(width, 1))
        self.name, self.concat = name, concat

    def forward(self, x, y):
        return getattr(self, self.name)(torch.cat([x, y], -1) if self.concat else x * y)


class BeforeLast(nn.Module):  # the logit of a PyG MLP with plain_last=False: all but its last activation
    def __init__(self, net):
        super().__init__()
        self.mlp = net

    def forward(self, x, y):
        z = x * y
        for i, (lin, norm) in enumerate(zip(self.mlp.lins, self.mlp.norms)):
            z = norm(lin(F.relu(z) if i > 0 else z))
        return z


torch.manual_seed(7)
layout("pyg-plain-batch-norm", PlainBatchNorm([D, 8, 8, 1]))
layout("pyg-no-plain-last", BeforeLast(MLP([D, 8, 1], norm="batch_norm", plain_last=False)))
layout("pyg-layer-norm-node", Product(MLP([D, 8, 1], norm="layer_norm", norm_kwargs={"mode": "node"})))
layout("dgl-user-guide", OneLinear("W", 2 * D, True))
layout("ncn-one-layer", OneLinear("lins", D, False))
