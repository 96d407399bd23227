"""What h5py finds of frames that were sent from a file of NumPy.

reader.py ARRAYS.npy FILE.h5  prints a line of JSON: the shape and type of the frames, numbers of those that are right, blank,
                              wrong or, if they can't be read, broken, flags, the names in /entry/metadata, and the definition; and exits with 0
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
    broken = []
    try:
        frames = data[:].reshape(-1, *rows)
    except OSError:
        # One image a chunk: the others can be read.
        frames = np.zeros((len(data), *rows), data.dtype)
        for number in range(len(data)):
            try:
                frames[number] = data[number]
            except OSError:
                broken.append(number)
    sent = truth.reshape(-1, *rows)
    flags = file["/entry/instrument/nilometer/flag"][:].tolist()
    found = {"right": [], "blank": [], "wrong": []}
    for number, frame in enumerate(frames):
        if number in broken:
            continue
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
    omega = "/entry/sample/transformations/omega"
    angles = file[omega][:].tolist() if omega in file else []
    distance = "/entry/instrument/detector/distance"
    distance = file[distance][()].item() if distance in file else None
    print(json.dumps({"shape": data.shape, "omega": angles, "distance": distance, "type": data.dtype.str, "flags": flags, "metadata": metadata,
                      "definition": definition, "broken": broken, **found}))
