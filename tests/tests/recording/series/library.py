"""Uses the library from Python: library.py ADDRESS ARRAYS.npy [bslz4]

Sends the images in ARRAYS (image, row, column) or (image, channel, row, column), compressed by h5py if that is asked for. Every image
leaves from an array that is not contiguous.
"""
import sys

import h5py
import hdf5plugin
import numpy as np

sys.path.insert(0, "contrib/libnilometer_send")
import nilometer_send


def chunk(image):
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("image", data=image, chunks=image.shape, **hdf5plugin.Bitshuffle(cname="lz4"))
        return dataset.id.read_direct_chunk((0, 0))[1]


address, path, *packing = sys.argv[1:]
images = np.load(path)
channels = [f"channel {number}" for number in range(images.shape[1])] if images.ndim == 4 else []
with nilometer_send.Sender(address, 20000) as sender:
    sender.begin(images.dtype, images.shape[1:], len(images), channels, {"sample": "lysozyme"})
    for number, image in enumerate(images):
        if packing:
            parts = image.reshape(-1, *image.shape[-2:])
            sender.send_packed(number, nilometer_send.BSLZ4, *map(chunk, parts))
        else:
            sender.send(number, np.repeat(image, 2, axis=-1)[..., ::2])
    sender.end()
try:
    nilometer_send.Sender("udp://wrong", 0)
except nilometer_send.SendError as error:
    assert error.code == 1 and "tcp://HOST:PORT" in str(error), error
else:
    raise AssertionError("a wrong address was taken")
