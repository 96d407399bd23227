"""The other side of detector_stream.rs: libzmq, by pyzmq, and cbor2.

detector_stream.py receive ENDPOINT DIR  takes a series from a PUSH socket there, of either version, up to its end; prints what
                                         the start says; the pixels of each image go to DIR/IMAGE.CHANNEL
detector_stream.py heartbeat ENDPOINT    sends "first" there and, when many heartbeats have passed, "last"
"""
import hashlib
import json
import pathlib
import sys
import time

import cbor2
import zmq

DTYPES = {64: "u1", 69: "<u2", 70: "<u4", 71: "<u8", 72: "i1", 77: "<i2", 78: "<i4", 79: "<i8", 85: "<f4", 86: "<f8"}


def unpacked(chunk, dtype, shape):
    """What HDF5 reads from a chunk of filter 32008."""
    import h5py
    import hdf5plugin
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("image", shape, dtype, chunks=tuple(shape), **hdf5plugin.Bitshuffle(cname="lz4"))
        dataset.id.write_direct_chunk((0, 0), chunk)
        return dataset[:].tobytes()


def pixels(array):
    assert array.tag == 40, array.tag
    shape, typed = array.value
    if not isinstance(typed.value, cbor2.CBORTag):
        return typed.value
    assert typed.value.tag == 56500, typed.value.tag
    algorithm, size, chunk = typed.value.value
    assert algorithm == "bslz4" and DTYPES[typed.tag].endswith(str(size)), (algorithm, size)
    return unpacked(chunk, DTYPES[typed.tag], shape)


def version_1(parts, into):
    first = json.loads(parts[0])
    if first["htype"] == "dheader-1.0":
        configuration = json.loads(parts[1])
        told = ["bit_depth_image", "nimages", "ntrigger", "x_pixels_in_detector", "y_pixels_in_detector", "count_time"]
        print(json.dumps({name: configuration[name] for name in told}, sort_keys=True))
    elif first["htype"] == "dimage-1.0":
        assert first["hash"] == hashlib.md5(parts[2]).hexdigest(), first
        about = json.loads(parts[1])
        assert about["htype"] == "dimage_d-1.0" and about["size"] == len(parts[2]), about
        assert json.loads(parts[3])["htype"] == "dconfig-1.0"
        (into / f"{first['frame']}.image").write_bytes(parts[2])
    return first["htype"] == "dseries_end-1.0"


def version_2(message, into):
    message = cbor2.loads(message)
    kind = message.pop("type")
    if kind == "start":
        print(json.dumps(message, sort_keys=True))
    elif kind == "image":
        for channel, array in message["data"].items():
            (into / f"{message['image_id']}.{channel}").write_bytes(pixels(array))
    return kind == "end"


def receive(endpoint, into):
    socket = zmq.Context.instance().socket(zmq.PULL)
    socket.connect(endpoint)
    over = False
    while not over:
        parts = socket.recv_multipart()
        into = pathlib.Path(into)
        over = version_1(parts, into) if parts[0].startswith(b"{") else version_2(parts[0], into)


def heartbeat(endpoint, interval_ms, timeout_ms, pause_s):
    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.setsockopt(zmq.HEARTBEAT_IVL, int(interval_ms))
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, int(timeout_ms))
    socket.connect(endpoint)
    socket.send(b"first")
    time.sleep(int(pause_s))
    socket.send(b"last")


{"receive": receive, "heartbeat": heartbeat}[sys.argv[1]](*sys.argv[2:])
