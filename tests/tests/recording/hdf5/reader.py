"""The other side of the tests of HDF5: h5py, with hdf5plugin for what is compressed, reads files that the recorder wrote.

reader.py read TRUTH FILE:FIRST...   opens each FILE as anybody does, and prints a line of JSON for it: shape and type of its
                                     frames; which of them, by their number in the recording, are those of TRUTH (all frames
                                     of the recording from 0 on, one behind the other), which are blank, and which are
                                     neither; the recorder's columns; where chunks are; its totals, once it has some. FIRST
                                     is the number of the FILE's first frame
reader.py scan TRUTH DIMENSIONS FILE  the same of a FILE whose frames stand in a scan of so many dimensions
reader.py follow TRUTH FILE ENDED    reads FILE with swmr=True while it grows: each frame that is said to be whole must be that
                                     of TRUTH when it comes. Prints how many were, at each look that found more; when ENDED
                                     exists, looks a last time and prints "end" and all columns as JSON
reader.py plugins                    prints where hdf5plugin has its plug-ins
"""
import json
import pathlib
import sys
import time

import h5py
import hdf5plugin  # noqa: F401, registers the filters
import numpy

FRAMES = "entry/data/data"
RECORDER = "entry/instrument/nilometer"
COLUMNS = ["flag", "missing", "due", "arrived", "encoded", "durable"]
TOTALS = ["frames_whole", "frames_incomplete", "frames_blank", "missing_total"]


def truth_of(path, frames, dimensions=1):
    size = frames.dtype.itemsize * int(numpy.prod(frames.shape[dimensions:]))
    with open(path, "rb") as file:
        every = file.read()
    return [every[at:at + size] for at in range(0, len(every), size)]


def read(truth, *files):
    for file in files:
        path, first = file.rsplit(":", 1)
        print(json.dumps(said_of(path, int(first), truth)))


def scan(truth, dimensions, *files):
    for file in files:
        print(json.dumps(said_of(file, 0, truth, int(dimensions))))


def said_of(path, first, truth, dimensions=1):
    with h5py.File(path) as file:
        frames, recorder = file[FRAMES], file[RECORDER]
        expected = truth_of(truth, frames, dimensions)
        found = {"right": [], "blank": [], "wrong": []}
        for at, index in enumerate(numpy.ndindex(frames.shape[:dimensions])):
            found[kind(frames[index], expected, first + at)].append(first + at)
        pipeline = frames.id.get_create_plist()
        chunks = []
        # What is over other files has none of its own. To ask for chunks one by one takes their number squared.
        if not frames.is_virtual:
            frames.id.chunk_iter(chunks.append)
        return found | {
            "shape": frames.shape,
            "maxshape": frames.maxshape,
            "chunk": frames.chunks,
            "type": frames.dtype.str,
            "filters": [pipeline.get_filter(index)[0] for index in range(pipeline.get_nfilters())],
            "columns": {name: recorder[name][:].tolist() for name in COLUMNS},
            "totals": {name: int(recorder[name][()]) for name in TOTALS if name in recorder},
            "chunks": {str(first + chunk.chunk_offset[0]): [chunk.byte_offset, chunk.size] for chunk in chunks},
        }


def kind(frame, expected, number):
    if number < len(expected) and frame.tobytes() == expected[number]:
        return "right"
    return "wrong" if frame.any() else "blank"


def opened(path, ended):
    """A file that was just begun can be opened a moment later."""
    while True:
        try:
            return h5py.File(path, "r", swmr=True)
        except OSError:
            if pathlib.Path(ended).exists():
                raise
            time.sleep(0.01)


def follow(truth, path, ended):
    with opened(path, ended) as file:
        frames, flags = file[FRAMES], file[f"{RECORDER}/flag"]
        expected = truth_of(truth, frames)
        verified = set()
        over, latest = False, time.monotonic()
        while not over:
            over = pathlib.Path(ended).exists()
            before = len(verified)
            # What is said of a frame comes with it or behind it: flags first.
            flags.refresh()
            said = flags[:]
            frames.refresh()
            for number in numpy.flatnonzero(said == 0):
                if number not in verified:
                    now = kind(frames[number], expected, number)
                    assert now == "right", f"frame {number} of {len(said)} is {now}, {len(verified)} were right"
                    verified.add(int(number))
            assert time.monotonic() - latest < 60, f"no frame for a minute, {len(verified)} were right"
            if len(verified) > before:
                latest = time.monotonic()
                print(len(verified), flush=True)
    print("end", json.dumps(said.tolist()), flush=True)


COMMANDS = {"read": read, "scan": scan, "follow": follow, "plugins": lambda: print(hdf5plugin.PLUGIN_PATH)}
COMMANDS[sys.argv[1]](*sys.argv[2:])
