"""The other side of SPEAD: `send PORT HEAPS`, `send-large PORT HEAPS` or `receive PORT HEAPS`, with the package spead2.

Large heaps are sent as spead2 does by default, with most items in their first packet only. The other heaps are those of MeerKAT's digitisers, as katgpucbf's simulator of them sends: three immediate items and 5120 B of samples
in one packet, with pointers to all items.
"""

import sys

import numpy as np
import spead2
import spead2.recv
import spead2.send

TIMESTAMP, DIGITISER, STATUS, SAMPLES = 0x1600, 0x3101, 0x3102, 0x3300
FLAVOUR = spead2.Flavour(4, 64, 48, 0)
IMMEDIATE = [("u", 48)]
BYTES = 5120


def item(identifier: int, value: int) -> spead2.Item:
    return spead2.Item(identifier, "", "", (), format=IMMEDIATE, value=value)


def heap(number: int, size: int) -> spead2.send.Heap:
    made = spead2.send.Heap(FLAVOUR)
    samples = ((np.arange(size) * 7 + number * 13) % 256).astype(np.uint8)
    for one in (item(TIMESTAMP, 1_000_003 + number * 4096), item(DIGITISER, 77), item(STATUS, number)):
        made.add_item(one)
    made.add_item(spead2.Item(SAMPLES, "", "", (size,), dtype=np.uint8, value=samples))
    made.repeat_pointers = size == BYTES
    return made


def send(port: int, count: int, size: int = BYTES, packet: int = BYTES + 72) -> None:
    config = spead2.send.StreamConfig(max_packet_size=packet, rate=20e6, max_heaps=2)
    stream = spead2.send.UdpStream(spead2.ThreadPool(), [("127.0.0.1", port)], config)
    for number in range(count):
        stream.send_heap(heap(number, size))


def send_large(port: int, count: int) -> None:
    send(port, count, 20_000, 1472)


def receive(port: int, count: int) -> None:
    config = spead2.recv.StreamConfig(max_heaps=8)
    stream = spead2.recv.Stream(spead2.ThreadPool(), config, spead2.recv.RingStreamConfig(heaps=2 * count))
    stream.add_udp_reader(port, bind_hostname="127.0.0.1", max_size=9000, buffer_size=8 << 20)
    print("ready", flush=True)
    for _ in range(count):
        came = stream.get()
        items = {one.id: one for one in came.get_items()}
        samples = bytes(memoryview(items[SAMPLES]))
        print(came.cnt, items[TIMESTAMP].immediate_value, len(samples), flush=True)
    stream.stop()


{"send": send, "send-large": send_large, "receive": receive}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
