"""Sends a series of images that say something beside their pixels: images.py 1|2 COUNT

By this version of the DECTRIS stream; it waits for a receiver at a port of its own, which it prints.
"""
import json
import sys

import cbor2
import numpy as np
import zmq

version, count = sys.argv[1], int(sys.argv[2])
socket = zmq.Context().socket(zmq.PUSH)
socket.bind("tcp://127.0.0.1:*")
print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
rows, columns = 30, 40


def pixels(number):
    return np.full((rows, columns), number + 1, "<u2").tobytes()


def said(number):
    return {"angle": number * 0.25, "step": number, "sample": "lysozyme"}


def second():
    series = {"series_id": 1, "series_unique_id": "a"}
    yield [cbor2.dumps({"type": "start", **series, "number_of_images": count, "image_dtype": "uint16", "channels": ["one"],
                        "image_size_y": rows, "image_size_x": columns})]
    for number in range(count):
        times = {"start_time": [number * 10, 1000], "stop_time": [number * 10 + 9, 1000], "real_time": [9, 1000]}
        array = cbor2.CBORTag(40, [[rows, columns], cbor2.CBORTag(69, pixels(number))])
        yield [cbor2.dumps({"type": "image", **series, "image_id": number, "data": {"one": array}, **times,
                            "series_date": "2026-11-25T10:00:00Z", "user_data": said(number)})]
    yield [cbor2.dumps({"type": "end", **series})]


def first():
    config = {"nimages": count, "ntrigger": 1, "x_pixels_in_detector": columns, "y_pixels_in_detector": rows,
              "bit_depth_image": 16}
    yield [json.dumps({"htype": "dheader-1.0", "series": 1, "header_detail": "basic"}).encode(), json.dumps(config).encode()]
    for number in range(count):
        times = {"start_time": number * 10_000_000, "stop_time": number * 10_000_000 + 9_000_000, "real_time": 9_000_000}
        yield [json.dumps({"htype": "dimage-1.0", "series": 1, "frame": number}).encode(),
               json.dumps({"htype": "dimage_d-1.0", "shape": [columns, rows], "type": "uint16", "encoding": "<",
                           "size": rows * columns * 2}).encode(),
               pixels(number), json.dumps({"htype": "dconfig-1.0", **times}).encode(), json.dumps(said(number)).encode()]
    yield [json.dumps({"htype": "dseries_end-1.0", "series": 1}).encode()]


for parts in second() if version == "2" else first():
    socket.send_multipart(parts)
sys.stdin.read()
