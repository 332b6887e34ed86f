"""Makes torch/ and numpy/ beside this file, with the values a reader must find
in each. Needs PyTorch and NumPy; see README.md for the versions used."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import torch
from torch.utils.serialization import config

HERE = os.path.dirname(os.path.abspath(__file__))
TORCH = os.path.join(HERE, "torch")
NUMPY = os.path.join(HERE, "numpy")
expected = {}


def flat(value, path=()):
    """The tensors of nested containers by their dotted path."""
    if isinstance(value, torch.Tensor):
        t = value.detach()
        yield ".".join(path), list(t.shape), t.to(torch.float32).reshape(-1).tolist()
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from flat(v, path + (str(k),))
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from flat(v, path + (str(i),))


def record(file, entries):
    expected[file] = {name: {"shape": shape, "data": data} for name, shape, data in entries}


def save(name, value, **options):
    path = os.path.join(TORCH, name)
    torch.save(value, path, **options)
    record("torch/" + name, flat(value))


def save_npy(name, array):
    np.save(os.path.join(NUMPY, name), array)
    record("numpy/" + name, [("", list(array.shape), array.astype(np.float32).reshape(-1).tolist())])


def save_npz(name, write, **arrays):
    write(os.path.join(NUMPY, name), **arrays)
    record("numpy/" + name, [(k, list(a.shape), a.astype(np.float32).reshape(-1).tolist()) for k, a in arrays.items()])


torch.manual_seed(1)
base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
save("views.pt", {
    "base": base, "transposed": base.t(), "every_other": base[:, ::2], "rows": base[1:3],
    "column": base[:, 4], "corner": base[2:, 3:], "expanded": torch.tensor([5.0]).expand(7),
    "permuted": torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
    "scalar": torch.tensor(2.5), "empty": torch.zeros(0, 3),
})
values = [0, 1, 2, 3, 100, 127]
save("dtypes.pt", {str(t).removeprefix("torch."): torch.tensor(values).to(t) for t in [
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16,
    torch.int32, torch.int64, torch.uint8, torch.bool]})
save("signed.pt", {str(t).removeprefix("torch."): torch.tensor([-1, -128, 64]).to(t) for t in [
    torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int32, torch.int64]})
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1, bias=False))
save("state_dict.pt", net.state_dict())  # an OrderedDict with _metadata
shared = torch.nn.Parameter(torch.randn(2, 3))
save("parameters.pt", {"tied": shared, "again": shared, "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False)})
adam = torch.optim.Adam(net.parameters())
net(torch.randn(8, 3)).sum().backward()
adam.step()
save("checkpoint.pt", {"epoch": 3, "loss": 0.25, "name": "gnn", "big": 1 << 80, "model": net.state_dict(),
                       "optimizer": adam.state_dict(), "history": [torch.ones(2), "x", (torch.zeros(1), None)]})
for protocol in 3, 4, 5:
    save(f"protocol{protocol}.pt", {"w": base[:2], "list": [torch.ones(1)]}, pickle_protocol=protocol)
save("bare.pt", base.half())
config.save.compute_crc32 = False
save("no_checksums.pt", {"w": base})
config.save.compute_crc32 = True

save("legacy.pt", {"w": base}, _use_new_zipfile_serialization=False)
# A split as OGB saves it: NumPy arrays, in the format before torch 1.6, written by pickle alone.
split = {"edge": np.array([[0, 1], [2, 3], [-4, 1 << 40]]),
         "edge_neg": np.asfortranarray(np.array([[5, 6], [7, 8]], dtype=np.int32)), "weight": np.array([0.5, 1.5])}
with open(os.path.join(TORCH, "split.pt"), "wb") as f:
    for value in [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, split, []]:
        pickle.dump(value, f, protocol=2)
record("torch/split.pt", [(k, list(a.shape), a.astype(np.float32).reshape(-1).tolist()) for k, a in split.items()])

# What must be refused.
torch.save(net, os.path.join(TORCH, "module.pt"))
torch.save({"w": torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2))}, os.path.join(TORCH, "sparse.pt"))
torch.save({"w": torch.ones(2, dtype=torch.complex64)}, os.path.join(TORCH, "complex.pt"))


class Evil:
    def __reduce__(self):
        return os.system, ("echo executed > executed.txt",)


evil = io.BytesIO()
pickle.dump({"w": Evil()}, evil, protocol=2)
with zipfile.ZipFile(os.path.join(TORCH, "evil.pt"), "w") as z:
    z.writestr("evil/data.pkl", evil.getvalue())

grid = np.arange(12).reshape(3, 4)
save_npy("c_f4.npy", grid.astype("<f4"))
save_npy("fortran_f8.npy", np.asfortranarray(grid.astype("<f8") / 4))
save_npy("fortran_f2.npy", np.asfortranarray(grid.astype("<f2")))
save_npy("scalar_i8.npy", np.array(-3, dtype="<i8"))
save_npy("empty_f4.npy", np.zeros((0, 4), dtype="<f4"))
save_npy("bool.npy", grid % 2 == 0)
save_npy("cube_fortran_i2.npy", np.asfortranarray(np.arange(24, dtype="<i2").reshape(2, 3, 4)))
types = {t: grid.astype(t) for t in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]}
save_npz("types.npz", np.savez, **types)
save_npz("types_compressed.npz", np.savez_compressed, **types)
with open(os.path.join(NUMPY, "version2.npy"), "wb") as f:
    np.lib.format.write_array(f, grid.astype("<f4"), version=(2, 0))
record("numpy/version2.npy", [("", [3, 4], grid.astype(float).reshape(-1).tolist())])

# What must be refused.
np.save(os.path.join(NUMPY, "big_endian.npy"), grid.astype(">f4"))
np.save(os.path.join(NUMPY, "structured.npy"), np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
np.save(os.path.join(NUMPY, "object.npy"), np.array([{"a": 1}], dtype=object), allow_pickle=True)
np.save(os.path.join(NUMPY, "complex.npy"), np.ones(2, dtype=np.complex64))

with open(os.path.join(HERE, "expected.json"), "w") as f:
    f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in expected.items()) + "\n}\n")
