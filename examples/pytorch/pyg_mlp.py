# Exports a PyG MLP on the product of two embeddings, as a checkpoint of the whole training and as ONNX.
import numpy as np
import torch
from torch_geometric.nn import MLP

from common import write_cases


class LinkPredictor(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.mlp = MLP([dim, hidden, hidden, 1], norm="batch_norm", act="relu", dropout=0.2)

    def forward(self, x, y):
        return self.mlp(x * y)


torch.manual_seed(1)
embeddings, predictor = torch.randn(1000, 32), LinkPredictor(32, 64)   # yours, trained
optimizer = torch.optim.Adam(predictor.parameters())
for _ in range(20):  # so that the batch norms have seen something
    optimizer.zero_grad()
    x, y = embeddings[torch.randint(1000, (256,))], embeddings[torch.randint(1000, (256,))]
    torch.nn.functional.binary_cross_entropy_with_logits(predictor(x, y), (x[:, :1] * y[:, :1] > 0).float()).backward()
    optimizer.step()
predictor.eval()

np.save("embeddings.npy", embeddings.numpy())
torch.save({"epoch": 20, "model_state_dict": {"predictor." + k: v for k, v in predictor.state_dict().items()},
            "optimizer": optimizer.state_dict()}, "checkpoint.pt")
batch = torch.export.Dim("batch", min=2)
torch.onnx.export(predictor, (embeddings[:4], embeddings[4:8]), "predictor.onnx", dynamic_shapes=({0: batch}, {0: batch}), verbose=False)
write_cases("scores.jsonl", predictor, embeddings)
