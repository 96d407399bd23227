"""A detector: sends a series of stamped images by the DECTRIS stream, version 2, to a recorder that listens.

Pixel (row, column) of image N is N * 10000 + row * 100 + column, so that no two images or places are alike.
"""

import argparse
import os
import time
import uuid

import cbor2
import numpy as np
import zmq

TAGS = {"<u4": 70, "<u2": 69}
"""Tags of typed arrays (RFC 8746)."""


def stamped(number: int, shape: tuple[int, int], dtype: str = "<u4") -> np.ndarray:
    """Return the image with this number."""
    rows, columns = np.indices(shape)
    return (number * 10000 + rows * 100 + columns).astype(dtype)


def main() -> None:
    """Send the series that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("--images", type=int, required=True, help="images to send")
    parser.add_argument("--announce", type=int, help="images to announce, if others than are sent")
    parser.add_argument("--shape", type=int, nargs=2, default=(64, 80))
    parser.add_argument("--dtype", default="<u4", choices=TAGS)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two images")
    parser.add_argument("--mx", action="store_true", help="describe a detector of photons, whose files are NXmx")
    parser.add_argument("--die", action="store_true", help="die behind the last image, without an end message")
    arguments = parser.parse_args()
    shape = tuple(arguments.shape)
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    socket.connect(arguments.endpoint)
    series = {"series_id": 7, "series_unique_id": str(uuid.uuid4())}
    announced = arguments.images if arguments.announce is None else arguments.announce
    dtype = np.dtype(arguments.dtype)
    start = {"number_of_images": announced, "image_dtype": dtype.name, "channels": ["threshold_1"]}
    size = {"image_size_y": shape[0], "image_size_x": shape[1]}
    mx = {"sensor_material": "Si", "sensor_thickness": 45e-5, "pixel_size_x": 75e-6, "pixel_size_y": 75e-6}
    mx |= {"detector_distance": 0.2, "beam_center_x": 40.0, "beam_center_y": 32.0, "incident_wavelength": 0.98}
    socket.send(cbor2.dumps({"type": "start", **series, **start, **size, **(mx if arguments.mx else {})}))
    for number in range(arguments.images):
        pixels = cbor2.CBORTag(TAGS[arguments.dtype], stamped(number, shape, arguments.dtype).tobytes())
        data = {"threshold_1": cbor2.CBORTag(40, [list(shape), pixels])}
        socket.send(cbor2.dumps({"type": "image", **series, "image_id": number, "data": data}))
        time.sleep(arguments.pause)
    if arguments.die:
        # Linger sends the images; the process then ends as if killed, with the series open.
        socket.close(linger=5000)
        context.term()
        os._exit(9)
    socket.send(cbor2.dumps({"type": "end", **series}))
    socket.close()
    context.term()


if __name__ == "__main__":
    main()
