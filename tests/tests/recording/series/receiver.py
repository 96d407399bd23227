"""A receiver of a detector's frames that no one here wrote the network of: pyzmq, cbor2, json and hashlib.

receiver.py ADDRESS [FILE]  takes a series; with FILE it reads nothing behind the start message before that file is there, and
                            lets libzmq hold one message. Prints a line of JSON: what came, in the order in which it came.
"""
import hashlib
import json
import os
import sys
import time

import cbor2
import zmq

socket = zmq.Context().socket(zmq.PULL)
socket.setsockopt(zmq.RCVHWM, 1)
socket.connect(sys.argv[1])
found = {"start": None, "images": [], "hashes": 0, "ended": False, "times": []}
while not found["ended"]:
    # The end message is lost where the sender gave up.
    if not socket.poll(120_000):
        break
    parts = socket.recv_multipart()
    if parts[0][:1] == b"{":
        first = json.loads(parts[0])
        kind = {"dheader-1.0": "start", "dimage-1.0": "image", "dseries_end-1.0": "end"}[first["htype"]]
        if kind == "start":
            found["start"] = json.loads(parts[1])
        if kind == "image":
            pixels, config = json.loads(parts[1]), json.loads(parts[3])
            assert pixels["htype"] == "dimage_d-1.0" and pixels["size"] == len(parts[2]), pixels
            assert config["htype"] == "dconfig-1.0", config
            found["images"].append(first["frame"])
            found["hashes"] += first["hash"] == hashlib.md5(parts[2]).hexdigest()
            found["times"].append([config["start_time"], config["stop_time"], config["real_time"]])
    else:
        message = cbor2.loads(parts[0])
        kind = message["type"]
        if kind == "start":
            found["start"] = {name: value for name, value in message.items() if isinstance(value, (int, float, str, list))}
        if kind == "image":
            found["images"].append(message["image_id"])
    found["ended"] = kind == "end"
    if kind == "start" and len(sys.argv) > 2:
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
print(json.dumps(found))
