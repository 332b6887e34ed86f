# Exports an OGB LinkPredictor: embeddings, state dict and self-check file.
import numpy as np
import torch
import torch.nn as nn

from common import write_cases


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


torch.manual_seed(1)
embeddings, predictor = torch.randn(1000, 32), LinkPredictor(32, 64)   # yours, trained

np.save("embeddings.npy", embeddings.numpy())
torch.save(predictor.state_dict(), "predictor.pt")
write_cases("scores.jsonl", predictor, embeddings)
with torch.no_grad():
    print(f"compare: flashdb score my.flash nodes 3 14  ->  {predictor(embeddings[3], embeddings[14]).item():.4f}")
