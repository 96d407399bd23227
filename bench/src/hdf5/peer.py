"""h5py, as pip installs it, as a contestant.

peer.py TYPE HEIGHT WIDTH FRAMES   FRAMES is a file of frames of this type, which is read once. For each line on stdin, a JSON
                                   object, one thing is done, and a line of JSON says what it took of this process's time and
                                   of the clock in seconds, and of each frame the median and the 99th percentile of the clock.

{"do": "frames", "path": P, "count": N, "filter": F}   N frames, one behind the other, each by `dataset[i] = frame`, into a new
                                                       file; F is null or "bslz4"
{"do": "chunks", "path": P, "count": N}                the same by H5Dwrite_chunk
{"do": "read", "path": P, "dataset": D, "cold": B}     all frames of a file, one behind the other; cold: not from the cache

Files are flushed, closed and synced. The clock begins when the dataset is made: one frame a chunk, of any length.
"""
import json
import os
import sys
import time

import h5py
import hdf5plugin
import numpy

kind, height, width, path = sys.argv[1:]
shape = (int(height), int(width))
prepared = numpy.fromfile(path, kind).reshape(-1, *shape)


class Watch:
    """What was taken since it was made, and by each call."""

    def __init__(self):
        self.calls = []
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def call(self, function, *arguments):
        begin = time.perf_counter()
        function(*arguments)
        self.calls.append(time.perf_counter() - begin)

    def answer(self):
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        median, high = numpy.percentile(self.calls, [50, 99])
        return {"wall": wall, "cpu": cpu, "median": median, "high": high}


def sync(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def write(asked):
    filters = {None: {}, "bslz4": hdf5plugin.Bitshuffle(cname="lz4")}[asked.get("filter")]
    file = h5py.File(asked["path"], "w", libver=("v110", "v110"))
    data = file.create_dataset("data", (asked["count"], *shape), kind, maxshape=(None, *shape), chunks=(1, *shape), **filters)
    put = data.__setitem__
    if asked["do"] == "chunks":
        put = lambda index, frame: data.id.write_direct_chunk((index, 0, 0), frame)
    watch = Watch()
    for index in range(asked["count"]):
        watch.call(put, index, prepared[index % len(prepared)])
    file.flush()
    file.close()
    sync(asked["path"])
    return watch.answer()


def read(asked):
    if asked["cold"]:
        file = os.open(asked["path"], os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
    frame = numpy.empty(shape, kind)
    watch = Watch()
    with h5py.File(asked["path"], "r") as file:
        data = file[asked["dataset"]]
        for index in range(len(data)):
            watch.call(data.read_direct, frame, numpy.s_[index])
    return watch.answer()


for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps(read(asked) if asked["do"] == "read" else write(asked)), flush=True)
