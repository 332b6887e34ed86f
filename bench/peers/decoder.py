"""The decoder in PyTorch, float32, bound to one source.

MLP(x * y) begins with W1 (x * y) = (W1 diag(x)) y: binding folds the source into
the first weight once, and the network then runs on candidate rows as they are.
"""

import torch
import torch.nn.functional as F

torch.set_grad_enabled(False)


def linear_relu(x, weight, bias):
    """A layer by PyTorch's public functions; the product is MKL's."""
    return F.linear(x, weight, bias).relu_()


def fused_relu(x, weight, bias):
    """The same as one oneDNN call, as torch.compile emits it for frozen weights.

    Not a public function, but the fastest layer that PyTorch has on many CPUs:
    bias and ReLU cost no pass of their own, and oneDNN uses AVX-512 where MKL
    does not (on AMD).
    """
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu", [], "")


def layers():
    """The layer functions that run here, by name."""
    found = {"linear": linear_relu}
    try:
        fused_relu(torch.zeros(2, 4), torch.zeros(3, 4), torch.zeros(3))
    except (AttributeError, RuntimeError):
        return found
    return {**found, "oneDNN fused": fused_relu}


class Decoder:
    def __init__(self, graph, layer=None):
        """layer computes one ReLU layer; default the last of layers()."""
        self.graph = graph
        self.candidates = torch.from_numpy(graph.candidates)
        self.layer = layer or list(layers().values())[-1]
        self.weights = [torch.from_numpy(weight) for weight in graph.weights]
        self.biases = [torch.from_numpy(bias) for bias in graph.biases]

    def bind(self, source):
        return Bound(self, torch.from_numpy(self.graph.rows[source]))

    def best(self, source, positions, k):
        """The k of positions that score highest against the source."""
        positions = self.graph.without_source(source, positions)
        scores = self.bind(source).score(self.candidates[torch.from_numpy(positions)])
        return positions[torch.topk(scores, min(k, len(positions))).indices.numpy()]


class Bound:
    """A decoder as a function of the candidate alone."""

    def __init__(self, decoder, source):
        self.layer = decoder.layer
        self.weights = [decoder.weights[0] * source, *decoder.weights[1:]]
        self.biases = decoder.biases

    def score(self, rows):
        """The logits of rows, n x d."""
        h = rows
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            h = self.layer(h, weight, bias)
        return torch.mv(h, self.weights[-1][0]).add_(self.biases[-1])

    def gradient(self, rows):
        """The mean over rows of the logit's gradient with respect to the row."""
        active, h = [], rows
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            h = linear_relu(h, weight, bias)
            active.append(h > 0)
        g = self.weights[-1].expand(len(rows), -1)
        for weight, mask in zip(reversed(self.weights[:-1]), reversed(active)):
            g = (g * mask) @ weight
        return g.mean(0)
