"""What h5py finds in the datasets of a file with frames of typed.py, as JSON: typed_reader.py FILE.h5 [swmr]

By path: the numbers of its frames, in order; -1 for one that is none of them, bit for bit, -2 for one that is blank.
`columns` are those in the group /frames.
"""
import json
import sys

import h5py
import hdf5plugin  # noqa: F401  the filters

from typed_frames import COLUMNS, DATASETS, ROWS, pixels

FRAMES_MAX = 20_000
# A file that grows may have frames of which the columns say nothing yet.
BEHIND = 1000


def numbers(dataset, known):
    frames = dataset[()].reshape(-1, ROWS, COLUMNS)
    return [known.get(frame.tobytes(), -1 if frame.any() else -2) for frame in frames]


with h5py.File(sys.argv[1], swmr="swmr" in sys.argv) as file:
    columns = {name: file["frames"][name][()] for name in ("frame_dataset", "frame_index", "flag", "NDArrayUniqueId")}
    known = {pixels(frame).tobytes(): frame for frame in range(min(len(columns["flag"]), FRAMES_MAX) + BEHIND)}
    found = {path: numbers(file[path], known) for path in DATASETS}
    shapes = {path: list(file[path].shape) for path in DATASETS}
    named = list(file["frames/frame_dataset"].attrs["datasets"])
print(json.dumps({"frames": found, "shapes": shapes, "named": named,
                  "columns": {name: values.tolist() for name, values in columns.items()}}))
