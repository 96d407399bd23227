"""A detector of four megapixels whose start message has a mask, and the mask in the files of its recording.

masked.py send IMAGES      sends so many images of a series of 1000 at a free port, whose address it prints, and then waits
masked.py found FILE       prints the number of images, and whether the mask and the first two images are right
"""
import json
import sys

import h5py
import hdf5plugin  # noqa: F401  the filters
import numpy as np

# An EIGER2 X 4M: its gaps are rows and columns, and some pixels are dead or noisy.
ROWS, COLUMNS = 2162, 2068


def mask():
    values = np.zeros((ROWS, COLUMNS), "<u4")
    values[512:550] = values[1062:1100] = values[1612:1650] = 1
    values[:, 1028:1040] = 1
    values.flat[np.random.default_rng(4).integers(0, values.size, 4000)] = 16
    return values


def image(number):
    return np.full((ROWS, COLUMNS), number + 1, "<u2")


def send(images):
    import cbor2
    import zmq
    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.bind("tcp://127.0.0.1:*")
    print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
    name = {"series_id": 7, "series_unique_id": "a series"}

    def array(values):
        tag = {"uint16": 69, "uint32": 70}[values.dtype.name]
        return cbor2.CBORTag(40, [list(values.shape), cbor2.CBORTag(tag, values.tobytes())])

    def message(kind, **fields):
        socket.send(cbor2.dumps({"type": kind, **name, **fields}))

    message("start", channels=["t"], image_dtype="uint16", image_size_x=COLUMNS, image_size_y=ROWS,
            number_of_images=1000, sensor_material="Si", pixel_size_x=75e-6, pixel_size_y=75e-6,
            pixel_mask={"t": array(mask())})
    for number in range(images):
        message("image", image_id=number, data={"t": array(image(number))})
    sys.stdin.read()


def found(path):
    with h5py.File(path) as file:
        data = file["/entry/data/data"]
        detector = file["/entry/instrument/detector"]
        print(json.dumps({
            "images": len(data),
            "mask": bool(np.array_equal(detector["pixel_mask"], mask())),
            "right": all(np.array_equal(data[number], image(number)) for number in range(2)),
        }))


if sys.argv[1] == "send":
    send(int(sys.argv[2]))
else:
    found(sys.argv[2])
