"""Sends values of frames as JSON: send.py push|pub COUNT

It waits for a receiver at a port of its own, which it prints. Beside them come a message that is none, a frame that nobody has,
and a list. PUB says all of it again and again, as nobody knows when a subscriber is there.
"""
import json
import sys
import time

import zmq

kind, count = sys.argv[1], int(sys.argv[2])
socket = zmq.Context().socket(zmq.PUSH if kind == "push" else zmq.PUB)
socket.bind("tcp://127.0.0.1:*")
print(socket.getsockopt_string(zmq.LAST_ENDPOINT), flush=True)
others = [b"SampleAngle 5", json.dumps({"frame": 10**6, "SampleAngle": 1}).encode(),
          json.dumps({"frame": 0, "SampleName": ["lysozyme"]}).encode()]


def send(text):
    socket.send_multipart([b"motors", text]) if kind == "pub" else socket.send(text)


if kind == "push":
    for text in others:
        send(text)
while True:
    for frame in range(count):
        send(json.dumps({"frame": frame, "SampleAngle": frame * 0.5, "ImageKey": frame % 3}).encode())
    if kind == "push":
        break
    time.sleep(0.02)
sys.stdin.read()
