"""What h5py finds of frames that were sent from a file of NumPy.

reader.py ARRAYS.npy FILE.h5  prints a line of JSON: the shape and type of the frames, numbers of those that are right, blank or
                              wrong, flags, the names in /entry/metadata, and the definition; and exits with 0
"""
import json
import sys

import h5py
import hdf5plugin  # noqa: F401  the filters
import numpy as np

truth = np.load(sys.argv[1])
with h5py.File(sys.argv[2]) as file:
    data = file["/entry/data/data"]
    rows = truth.shape[-2:]
    frames = data[:].reshape(-1, *rows)
    sent = truth.reshape(-1, *rows)
    flags = file["/entry/instrument/nilometer/flag"][:].tolist()
    found = {"right": [], "blank": [], "wrong": []}
    for number, frame in enumerate(frames):
        same = number < len(sent) and frame.tobytes() == sent[number].tobytes()
        blank = not frame.any()
        found["right" if same else "blank" if blank else "wrong"].append(number)
    metadata = {}
    file["/entry/metadata"].visititems(
        lambda name, item: metadata.__setitem__(name, np.asarray(item[()]).ravel()[:4].tolist())
        if isinstance(item, h5py.Dataset) and item.size < 5 else None)
    metadata = {name: [value.decode() if isinstance(value, bytes) else value for value in values]
                for name, values in metadata.items()}
    definition = file["/entry/definition"][()].decode() if "definition" in file["/entry"] else None
    print(json.dumps({"shape": data.shape, "type": data.dtype.str, "flags": flags, "metadata": metadata,
                      "definition": definition, **found}))
