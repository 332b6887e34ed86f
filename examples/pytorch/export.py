# Exports what flashdb needs from a PyTorch link predictor: embeddings, the decoder's state dict, and a few scores by which
# the import proves itself. Run it with PyTorch and NumPy, then the commands at the end.
import json

import numpy as np
import torch
import torch.nn as nn


class LinkPredictor(nn.Module):              # as in the OGB examples
    def __init__(self, dim, hidden, layers=3):
        super().__init__()
        sizes = [dim] + [hidden] * (layers - 1) + [1]
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
    def forward(self, x_i, x_j):
        z = x_i * x_j
        for lin in self.lins[:-1]:
            z = torch.relu(lin(z))
        return self.lins[-1](z)              # the logit; sigmoid comes after

embeddings, predictor = torch.randn(1000, 32), LinkPredictor(32, 64)   # yours, trained

np.save("embeddings.npy", embeddings.numpy())
torch.save(predictor.state_dict(), "predictor.pt")
with open("scores.jsonl", "w") as f, torch.no_grad():
    for i, j in torch.randint(1000, (20, 2)).tolist():
        x, y = embeddings[i], embeddings[j]
        f.write(json.dumps({"source": x.tolist(), "candidate": y.tolist(), "logit": predictor(x, y).item()}) + "\n")
print(f"compare: flashdb score my.flash nodes {i} {j}  ->  {predictor(x, y).item():.4f}")

# flashdb create my.flash nodes --dim 32
# flashdb import my.flash nodes embeddings.npy
# flashdb decoder add my.flash nodes mlp predictor.pt --check scores.jsonl
# flashdb predict my.flash nodes 7
