"""A graph, its decoder's weights and its exact answers, as the peers use them.

DATA/GRAPH holds embeddings.npy (float16, one row per node), decoder.npz (an MLP over
the element-wise product of two rows; keys as in OGB, lins.L.weight and .bias),
decoder.json (its kind and activations), info.json (the first candidate row) and
oracle.jsonl.zst: the best nodes of each source with their logits, in float64.
"""

import io
import json
import pathlib

import numpy as np
import zstandard

K = 100  # what every peer is asked for

# A hit whose exact score is below the true k-th one by less than this, relative,
# counts as found: nodes that tie there are equally right. SCORE_FLOOR is what it
# is taken of at least.
TIE_TOLERANCE = 1e-5
SCORE_FLOOR = 0.1


class Graph:
    """Rows are float32. A candidate's position is its row number less first."""

    def __init__(self, data, name):
        folder = pathlib.Path(data) / name
        self.name = name
        self.first = json.loads((folder / "info.json").read_text())["candidates_from"]
        self.rows = np.load(folder / "embeddings.npy").astype(np.float32)
        self.candidates = np.ascontiguousarray(self.rows[self.first :])
        self.dim = self.rows.shape[1]
        self.weights, self.biases = _read_decoder(folder)
        self.oracle = _read_oracle(folder / "oracle.jsonl.zst")
        # The linear map left of the network when every neuron is taken active.
        self._all_active = self.weights[0].T
        for weight in self.weights[1:]:
            self._all_active = self._all_active @ weight.T
        self._all_active = self._all_active[:, 0]

    def sources(self, count=None):
        """The rows that have exact answers, the first count of them."""
        return list(self.oracle)[:count]

    def seed(self, source):
        """Flashlight's first query: source * (W1^T W2^T ... w_L)."""
        return self.rows[source] * self._all_active

    def without_source(self, source, positions):
        """Positions that a search returned, less the source's own and fillers."""
        return positions[(positions >= 0) & (positions != source - self.first)]

    def recall(self, source, positions):
        """The share of the true top K among positions, by their exact scores."""
        positions = np.unique(self.without_source(source, np.asarray(positions)))
        kth = self.oracle[source]
        least = kth - TIE_TOLERANCE * max(abs(kth), SCORE_FLOOR)
        return min(int((self._scores(source, positions) >= least).sum()), K) / K

    def _scores(self, source, positions):
        h = self.candidates[positions].astype(np.float64) * self.rows[source].astype(np.float64)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            h = np.maximum(h @ weight.T.astype(np.float64) + bias, 0)
        return h @ self.weights[-1][0].astype(np.float64) + float(self.biases[-1][0])


def _read_decoder(folder):
    spec = json.loads((folder / "decoder.json").read_text())
    activations = [layer["activation"] for layer in spec["layers"]]
    plain = ["relu"] * (len(activations) - 1) + ["identity"]
    if spec["kind"] != "hadamard_mlp" or activations != plain:
        raise SystemExit(f"{folder}: peers know only a HadamardMLP of ReLU layers, not {spec['kind']} {activations}")
    arrays = np.load(folder / "decoder.npz")
    weights = [arrays[layer["weight"]].astype(np.float32) for layer in spec["layers"]]
    biases = [arrays[layer["bias"]].astype(np.float32) for layer in spec["layers"]]
    return weights, biases


def _read_oracle(path):
    """The true K-th score of each source, by row, in the file's order."""
    kth = {}
    with open(path, "rb") as compressed:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(compressed)):
            answer = json.loads(line)
            kth[answer["source"]] = answer["logit"][K - 1]
    return kth
