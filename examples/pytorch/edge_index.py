# Exports as ONNX a predictor whose forward takes all embeddings and an edge_index, and its MLP alone.
import numpy as np
import torch
import torch.nn as nn

from common import write_cases


class Predictor(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * dim, hidden), nn.LayerNorm(hidden), nn.GELU(), nn.Dropout(0.2), nn.Linear(hidden, 1))

    def forward(self, z, edge_index):
        source, candidate = edge_index
        return self.mlp(torch.cat([z[source], z[candidate]], dim=-1)).squeeze(-1)


class Pair(nn.Module):                       # the same model for one pair, to score the cases
    def __init__(self, predictor):
        super().__init__()
        self.predictor = predictor

    def forward(self, x, y):
        return self.predictor(torch.cat([x, y]), torch.tensor([[0], [1]]))


torch.manual_seed(1)
embeddings, predictor = torch.randn(1000, 32), Predictor(32, 64).eval()   # yours, trained

np.save("embeddings.npy", embeddings.numpy())
edge_index = torch.randint(1000, (2, 5))
torch.onnx.export(predictor, (embeddings, edge_index), "predictor.onnx", dynamo=False, input_names=["z", "edge_index"],
                  dynamic_axes={"z": {0: "nodes"}, "edge_index": {1: "pairs"}})
torch.onnx.export(predictor.mlp, (torch.cat([embeddings[:4], embeddings[4:8]], -1),), "mlp.onnx", dynamo=False, input_names=["h"],
                  dynamic_axes={"h": {0: "pairs"}})
write_cases("scores.jsonl", Pair(predictor), embeddings)
