"""What h5py finds in a file, as JSON: tree.py FILE.h5

By path of each object: its attributes, and of a dataset shape, type, how texts are encoded and in how many bytes, and values, if
they are few; null stands for what is no number. `same` lists the paths that are names of one object.
"""
import json
import math
import sys

import h5py
import hdf5plugin  # noqa: F401  the filters
import numpy as np

VALUES_MAX = 2000


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.ravel().tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


objects = {}
names = {}


def walk(group, path):
    for name in group:
        item = group[name]
        at = f"{path}/{name}"
        found = {"attributes": {key: plain(value) for key, value in item.attrs.items()}}
        names.setdefault(h5py.h5o.get_info(item.id).addr, []).append(at)
        objects[at] = found
        if isinstance(item, h5py.Dataset):
            found["shape"] = list(item.shape)
            found["type"] = "text" if item.dtype.kind == "O" else item.dtype.str
            text = h5py.check_string_dtype(item.dtype)
            found["text"] = None if text is None else f"{text.encoding} {text.length}"
            if item.size <= VALUES_MAX:
                found["values"] = plain(item[()])
        else:
            walk(item, at)


with h5py.File(sys.argv[1]) as file:
    walk(file, "")
print(json.dumps({"objects": objects, "same": [paths for paths in names.values() if len(paths) > 1]}))
