"""A receiver of the DECTRIS stream, version 2, as sites write it: received.py ENDPOINT FILE.h5

Takes a series with pyzmq and cbor2, and puts its images into a dataset as they came, by H5Dwrite_chunk; then the file is synced.
"""
import os
import sys

import cbor2
import h5py
import hdf5plugin
import zmq

endpoint, path = sys.argv[1:]
socket = zmq.Context().socket(zmq.PULL)
socket.connect(endpoint)
start = cbor2.loads(socket.recv())
count, shape = start["number_of_images"], (start["image_size_y"], start["image_size_x"])
file = h5py.File(path, "w", libver=("v110", "v110"))
filters = hdf5plugin.Bitshuffle(cname="lz4")
data = file.create_dataset(
    "entry/data/data", (count, *shape), start["image_dtype"], maxshape=(None, *shape), chunks=(1, *shape), **filters)
for _ in range(count):
    image = cbor2.loads(socket.recv(copy=False).buffer)
    [array] = image["data"].values()
    # A multi-dimensional array (tag 40) of a typed array, whose bytes are compressed (tag 56500).
    _, _, pixels = array.value[1].value.value
    data.id.write_direct_chunk((image["image_id"], 0, 0), pixels)
cbor2.loads(socket.recv())  # the end of the series
file.close()
written = os.open(path, os.O_RDONLY)
os.fsync(written)
