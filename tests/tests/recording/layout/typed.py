"""Sends a series of images, many of which say in which dataset they belong: typed.py with|without|endless|channels COUNT

By version 2 of the DECTRIS stream; it waits for a receiver at a port of its own, which it prints. Of ten images, those with the
numbers 3 and 4 are flat fields, 8 is a dark field. Of the first ten, image 6 names a dataset that is not there, and 7 none.
`without` says it of none. `endless` goes on until it is ended. Each image of `channels` has two channels.
"""
import itertools
import sys
import time

import cbor2
import zmq

from typed_frames import COLUMNS, ROWS, dataset_of, pixels

kind, count = sys.argv[1], int(sys.argv[2])
socket = zmq.Context().socket(zmq.PUSH)
socket.bind("tcp://127.0.0.1:*")
print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
channels = ["low", "high"] if kind == "channels" else ["one"]


def said(image):
    if kind == "without" or image == 7:
        return {}
    return {"user_data": {"FrameType": "/exchange/data_grey" if image == 6 else dataset_of(image), "SampleAngle": image * 0.5}}


def array(frame):
    return cbor2.CBORTag(40, [[ROWS, COLUMNS], cbor2.CBORTag(69, pixels(frame).tobytes())])


series = {"series_id": 1, "series_unique_id": "a"}
images = 10**6 if kind == "endless" else count
socket.send(cbor2.dumps({"type": "start", **series, "number_of_images": images, "image_dtype": "uint16", "channels": channels,
                         "image_size_y": ROWS, "image_size_x": COLUMNS}))
for image in itertools.count() if kind == "endless" else range(images):
    first = image * len(channels)
    data = {channel: array(first + at) for at, channel in enumerate(channels)}
    socket.send(cbor2.dumps({"type": "image", **series, "image_id": image, "data": data, **said(image)}))
    if kind == "endless":
        time.sleep(0.001)
socket.send(cbor2.dumps({"type": "end", **series}))
sys.stdin.read()
