#!/usr/bin/env python3
"""Sends NumPy arrays with metadata as a DECTRIS stream, version 2: send_frames.py ENDPOINT FILE.npy [KEY=VALUE ...]

ENDPOINT is tcp://*:31001 to wait there for a receiver, as a detector does, or tcp://HOST:PORT to connect to one. FILE holds
images (image, row, column) or (image, channel, row, column). Needs pyzmq, cbor2 and NumPy; with BSLZ4=1 in the environment
images are compressed, by h5py and hdf5plugin.
"""
import os
import sys
import uuid

import cbor2
import numpy as np
import zmq

# RFC 8746: typed arrays, little-endian.
TAGS = {"u1": 64, "u2": 69, "u4": 70, "u8": 71, "i1": 72, "i2": 77, "i4": 78, "i8": 79, "f4": 85, "f8": 86}


def compressed(image):
    import h5py
    import hdf5plugin
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("image", data=image, chunks=image.shape, **hdf5plugin.Bitshuffle(cname="lz4"))
        return cbor2.CBORTag(56500, ["bslz4", image.itemsize, dataset.id.read_direct_chunk((0, 0))[1]])


def encoded(image):
    data = compressed(image) if os.environ.get("BSLZ4") else image.tobytes()
    return cbor2.CBORTag(40, [list(image.shape), cbor2.CBORTag(TAGS[image.dtype.str[1:]], data)])


endpoint, path, *pairs = sys.argv[1:]
images = np.load(path)
images = images.astype(images.dtype.newbyteorder("<")).reshape(len(images), -1, *images.shape[-2:])
channels = [f"threshold_{number + 1}" for number in range(images.shape[1])]
series = {"series_id": 1, "series_unique_id": str(uuid.uuid4())}
context = zmq.Context()
socket = context.socket(zmq.PUSH)
(socket.bind if "*" in endpoint else socket.connect)(endpoint)
print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
start = {"number_of_images": len(images), "image_dtype": images.dtype.name, "channels": channels,
         "image_size_y": images.shape[2], "image_size_x": images.shape[3], "user_data": dict(pair.split("=", 1) for pair in pairs)}
socket.send(cbor2.dumps({"type": "start", **series, **start}))
for number, image in enumerate(images):
    data = dict(zip(channels, map(encoded, image)))
    socket.send(cbor2.dumps({"type": "image", **series, "image_id": number, "data": data}))
socket.send(cbor2.dumps({"type": "end", **series}))
socket.close()
context.term()
