"""Sends images to a recorder as series, by the stream of DECTRIS, version 2, over ZeroMQ. Needs pyzmq and cbor2."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import cbor2
import zmq

from .ntndarray import SIZES, Image

ELEMENTS = {
    "uint8": 64,
    "uint16": 69,
    "uint32": 70,
    "uint64": 71,
    "int8": 72,
    "int16": 77,
    "int32": 78,
    "int64": 79,
    "float32": 85,
    "float64": 86,
}
"""Tags of typed arrays, little-endian (RFC 8746)."""
ARRAY = 40
"""Tag of an array with dimensions (RFC 8746)."""
COMPRESSED = 56500
"""Tag of compressed bytes (DECTRIS, "Stream V2")."""
QUEUE = 4
"""Messages that wait for the network at most."""
LOOK_MS = 100
"""Time between two looks at whether to stop."""


class GivenUp(Exception):
    """The recorder did not take a message, and the program is to end."""


class ImageSender:
    """A connection to a recorder, and the series that it is in."""

    def __init__(self, address: str, channel: str, gives_up: Callable[[], bool]) -> None:
        """Connect to `tcp://HOST:PORT`, or listen at `tcp://*:PORT`. Waits for the recorder until `gives_up`."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUSH)
        self._socket.sndhwm = QUEUE
        self._socket.immediate = True
        self._channel = channel
        self._gives_up = gives_up
        self._series: dict[str, Any] = {}
        self._number = 0
        self._began = 0
        if address.startswith("tcp://*:"):
            self._socket.bind(address)
        else:
            self._socket.connect(address)

    def begin(self, first: Image) -> None:
        """Begin a series of images like this one."""
        self._number += 1
        self._began = first.time
        self._series = {"series_id": self._number, "series_unique_id": str(uuid.uuid4())}
        rows, columns = first.shape
        form = {"image_dtype": first.dtype, "image_size_y": rows, "image_size_x": columns}
        self._send({"type": "start", **self._series, "channels": [self._channel], **form})

    def send(self, image: Image, number: int) -> None:
        """Send an image with this number in the series, from 0."""
        pixels: Any = image.data
        if image.packing:
            pixels = cbor2.CBORTag(COMPRESSED, [image.packing, SIZES[image.dtype], image.data])
        array = cbor2.CBORTag(ARRAY, [list(image.shape), cbor2.CBORTag(ELEMENTS[image.dtype], pixels)])
        message = {"type": "image", **self._series, "image_id": number}
        if self._began and image.time >= self._began:
            message["start_time"] = [image.time - self._began, 10**9]
        self._send({**message, "data": {self._channel: array}})

    def end(self) -> None:
        """End the series."""
        self._send({"type": "end", **self._series})

    def close(self, wait_ms: int) -> None:
        """Close the connection. Waits for the recorder to take everything, at most for this time."""
        self._socket.close(linger=wait_ms)
        self._context.term()

    def _send(self, message: dict[str, Any]) -> None:
        packed = cbor2.dumps(message)
        while not self._socket.poll(LOOK_MS, zmq.POLLOUT):
            if self._gives_up():
                raise GivenUp
        self._socket.send(packed, zmq.NOBLOCK)
