"""The preview of a recorder, by real viewers of pyzmq, and by some that never read."""

import json
import socket
import struct
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import zmq
from loopback import PATIENCE, Service, awaited, free_port
from sender import stamped

from nilometer_control import Recorder

MakeService = Callable[..., Service]
Send = Callable[..., Any]
View = Callable[[str], "zmq.Socket[bytes]"]


@pytest.fixture
def view() -> Iterator[View]:
    """Connect viewers."""
    context = zmq.Context()

    def connect(address: str) -> "zmq.Socket[bytes]":
        viewer = context.socket(zmq.SUB)
        viewer.rcvtimeo = int(PATIENCE * 1000)
        viewer.subscribe(b"")
        viewer.connect(f"tcp://{address}")
        return viewer

    yield connect
    context.destroy(linger=0)


def seen(viewer: "zmq.Socket[bytes]") -> tuple[dict[str, Any], np.ndarray]:
    """Return the next header and frame that a viewer gets."""
    head, pixels = viewer.recv_multipart()
    header: dict[str, Any] = json.loads(head)
    return header, np.frombuffer(pixels, header["type"]).reshape(header["shape"])


def asked(service: Service, path: str) -> str:
    """Return an answer of the recorder."""
    with urllib.request.urlopen(service.url + path, timeout=PATIENCE) as answer:
        text: str = answer.read().decode()
        return text


def previewed(service: Service) -> dict[str, Any]:
    """Return the counts of the preview."""
    report: dict[str, Any] = json.loads(asked(service, "/status"))["preview"]
    return report


def armed(make_service: MakeService, *options: str) -> tuple[Service, Recorder, str]:
    """Return an armed recorder, and the address of its preview."""
    address = f"127.0.0.1:{free_port()}"
    service = make_service("--preview", address, *options)
    recorder = Recorder(service.url)
    recorder.arm("scan-1")
    return service, recorder, address


def test_a_viewer_sees_frames_as_they_were_sent(make_service: MakeService, send: Send, view: View) -> None:
    service, recorder, address = armed(make_service, "--preview-rate", "20 Hz")
    viewer = view(address)
    awaited(lambda: previewed(service)["viewers"] == 1, "the viewer is connected")
    sender = send(service.stream, "--images", 100_000, "--announce", 0, "--pause", 0.02)
    numbers = []
    for _ in range(5):
        header, frame = seen(viewer)
        assert header["htype"] == "array-1.0" and header["recording"] == "scan-1"
        assert (frame == stamped(header["frame"], (64, 80))).all()
        numbers.append(header["frame"])
    assert numbers == sorted(set(numbers))
    # The recorder counts a frame behind sending it.
    awaited(lambda: min(previewed(service)[count] for count in ("frames", "sent")) >= 5, "the frames are counted")
    assert previewed(service)["none"] is None
    sender.kill()
    recorder.stop()
    assert recorder.status().recording is not None
    page = asked(service, "/metrics")
    assert "nilometer_preview_viewers 1\n" in page and "nilometer_preview_read_total " in page


def stalled(address: str) -> socket.socket:
    """Return a viewer that subscribes and never reads (RFC 23: greeting, READY, subscription as a message)."""
    host, port = address.split(":")
    viewer = socket.socket()
    viewer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    viewer.connect((host, int(port)))
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
    body = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 3) + b"SUB"
    viewer.sendall(greeting + bytes([4, len(body)]) + body + b"\x00\x01\x01")
    return viewer


def test_viewers_that_never_read_cost_others_nothing(make_service: MakeService, send: Send, view: View) -> None:
    service, recorder, address = armed(make_service, "--preview-rate", "50 Hz")
    viewer = view(address)
    awaited(lambda: previewed(service)["viewers"] == 1, "the viewer is connected")
    images = ["--images", 100_000, "--announce", 0, "--shape", 1000, 1000]
    sender = send(service.stream, *images, "--pause", 0.1)
    asleep = []

    def is_cut_off() -> bool:
        # Each holds another frame: it connects after the one before it has begun to take its own.
        before = previewed(service)["viewers"]
        asleep.append(stalled(address))
        awaited(lambda: previewed(service)["viewers"] != before, "it is connected")
        seen(viewer)
        header, frame = seen(viewer)
        assert (frame == stamped(header["frame"], (1000, 1000))).all()
        return bool(previewed(service)["closed"])

    awaited(is_cut_off, "the memory for frames is needed again")
    counts = previewed(service)
    assert counts["dropped"] > 0 and len(asleep) <= 6
    parts = {part["part"]: part for part in json.loads(asked(service, "/status"))["recording"]["memory"]["parts"]}
    assert 0 < parts["preview"]["held_bytes"] <= parts["preview"]["bound_bytes"]
    sender.kill()
    status = recorder.stop()
    assert status.last is not None and status.last.missing == 0
