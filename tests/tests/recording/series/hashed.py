"""A detector that sends version 1 of the DECTRIS stream with an MD5 of each image, and a reader of its recording.

hashed.py send ENCODING    binds, prints its address, and sends 12 images: 3 and 8 with the hash of other pixels, 5 with an
                           empty hash, 6 with one in capitals, 7 with a text that is none
hashed.py found FILE       prints the images that are right, and their flags
"""
import hashlib
import json
import sys

import h5py
import hdf5plugin
import numpy

IMAGES = 12
SHAPE = (40, 64)


def image(number):
    return (numpy.arange(SHAPE[0] * SHAPE[1], dtype="<u2") % 7 + number).reshape(SHAPE)


def chunk(pixels):
    """A chunk of filter 32008, which is the form of bs16-lz4 too."""
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("image", SHAPE, "<u2", chunks=SHAPE, **hdf5plugin.Bitshuffle(cname="lz4"))
        dataset[:] = pixels
        return dataset.id.read_direct_chunk((0, 0))[1]


def hash_of(number, blob):
    wrong = hashlib.md5(b"other pixels").hexdigest()
    right = hashlib.md5(blob).hexdigest()
    return {3: wrong, 8: wrong, 5: "", 6: right.upper(), 7: "none"}.get(number, right)


def send(encoding):
    import zmq
    socket = zmq.Context.instance().socket(zmq.PUSH)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    print(f"tcp://127.0.0.1:{port}", flush=True)
    rows, columns = SHAPE
    configuration = {"nimages": IMAGES, "ntrigger": 1, "bit_depth_image": 16, "x_pixels_in_detector": columns,
                     "y_pixels_in_detector": rows, "sensor_material": "Si", "flatfield_correction_applied": True,
                     "countrate_correction_applied": 1, "pixel_mask_applied": False}
    send_parts(socket, {"htype": "dheader-1.0", "series": 1, "header_detail": "basic"}, configuration)
    for number in range(IMAGES):
        pixels = image(number)
        blob = pixels.tobytes() if encoding == "<" else chunk(pixels)
        send_parts(socket, {"htype": "dimage-1.0", "series": 1, "frame": number, "hash": hash_of(number, blob)},
                   {"htype": "dimage_d-1.0", "shape": [columns, rows], "type": "uint16", "encoding": encoding,
                    "size": len(blob)},
                   blob, {"htype": "dconfig-1.0", "start_time": 0, "stop_time": 1, "real_time": 1})
    send_parts(socket, {"htype": "dseries_end-1.0", "series": 1})
    sys.stdin.read()


def send_parts(socket, *parts):
    socket.send_multipart([part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts])


def found(path):
    with h5py.File(path) as file:
        data = file["entry/data/data"]
        detector = file["entry/instrument/detector"]
        names = [name for name in detector if name.endswith("_applied")]
        assert all(detector[name].dtype == bool for name in names), names
        print(json.dumps({
            "right": [number for number in range(len(data)) if (data[number] == image(number)).all()],
            "flags": file["entry/instrument/nilometer/flag"][()].tolist(),
            "applied": {name: bool(detector[name][()]) for name in names},
        }))


if __name__ == "__main__":
    {"send": send, "found": found}[sys.argv[1]](sys.argv[2])
