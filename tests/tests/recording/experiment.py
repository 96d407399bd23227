"""The other side of the experiment: h5py, with hdf5plugin, reads frames of a detector.

experiment.py follow FILE FRAMES   reads FILE with swmr=True while it grows: prints a line "NUMBER CRC32" for each frame that is
                                   said to be whole, when it comes; ends with the frame that makes it so many
experiment.py read FILE            the same of a file as it is, opened as anybody does; then "length NUMBER" of the dataset
"""
import sys
import time
import zlib

import h5py
import hdf5plugin  # noqa: F401, registers the filter
import numpy

# Nobody waits longer for a frame.
PATIENCE = 600


def opened(path):
    """A file that was just begun can be opened a moment later."""
    begun = time.monotonic()
    while True:
        try:
            return h5py.File(path, "r", swmr=True)
        except OSError:
            if time.monotonic() - begun > PATIENCE:
                raise
            time.sleep(0.01)


def tell(frames, numbers):
    for number in numbers:
        print(number, zlib.crc32(frames[number].tobytes()), flush=True)


def follow(path, count):
    with opened(path) as file:
        frames, flags = file["entry/data/data"], file["entry/instrument/nilometer/flag"]
        seen, latest = set(), time.monotonic()
        while len(seen) < int(count):
            flags.refresh()
            said = flags[:]
            frames.refresh()
            new = [number for number in numpy.flatnonzero(said == 0).tolist() if number not in seen]
            tell(frames, new)
            seen.update(new)
            latest = time.monotonic() if new else latest
            assert time.monotonic() - latest < PATIENCE, f"nothing new behind {len(seen)} frames"
            time.sleep(0.01)


def read(path):
    with h5py.File(path) as file:
        frames, flags = file["entry/data/data"], file["entry/instrument/nilometer/flag"][:]
        tell(frames, numpy.flatnonzero(flags == 0).tolist())
        print("length", len(frames), flush=True)


{"follow": follow, "read": read}[sys.argv[1]](*sys.argv[2:])
