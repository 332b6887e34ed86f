# Exports an nn.Bilinear decoder and embeddings with keys, tags and payloads in Parquet.
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from common import write_cases

torch.manual_seed(1)
embeddings, predictor = torch.randn(1000, 32), torch.nn.Bilinear(32, 32, 1, bias=False)   # yours, trained

pq.write_table(pa.table({
    "key": [f"paper {i}" for i in range(1000)],
    "embedding": pa.array(embeddings.tolist(), pa.list_(pa.float32())),
    "tags": pa.array([["even"] if i % 2 == 0 else [] for i in range(1000)], pa.list_(pa.string())),
    "payload": [f"title of paper {i}" for i in range(1000)],
}), "papers.parquet")
torch.save(predictor.state_dict(), "bilinear.pt")
write_cases("scores.jsonl", predictor, embeddings)
