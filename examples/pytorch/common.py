# What the scripts here share: a self-check file, as `flashdb decoder add --check` reads it.
import json

import torch


def write_cases(path, model, embeddings, n=20):
    """Scores n random pairs in float64, a line {"source", "candidate", "logit"} each."""
    model = model.double().eval()
    with open(path, "w") as f, torch.no_grad():
        for i, j in torch.randint(len(embeddings), (n, 2)).tolist():
            x, y = embeddings[i : i + 1], embeddings[j : j + 1]
            case = {"source": x[0].tolist(), "candidate": y[0].tolist(), "logit": model(x.double(), y.double()).item()}
            f.write(json.dumps(case) + "\n")
    model.float()
