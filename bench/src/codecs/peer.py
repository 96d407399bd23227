"""A filter of HDF5 as hdf5plugin has it, called as HDF5 calls it, without the library around it.

peer.py PLUGIN VALUES FRAME_SIZE FRAMES   PLUGIN is the plug-in's name (bshuf); VALUES its cd_values, with commas; FRAMES a
                                          file of frames of so many bytes. For each line on stdin all frames are encoded,
                                          then decoded and compared; a line of JSON says what both took of this process's
                                          time and of the clock in seconds, and how many bytes the chunks have.

The filter takes memory that the caller allocated and gives back memory that it allocated, as its interface wants it; only
its own time counts.
"""
import ctypes
import json
import os
import pathlib
import sys
import time

import hdf5plugin

REVERSE = 0x0100
FILTER = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_uint, ctypes.c_size_t, ctypes.POINTER(ctypes.c_uint), ctypes.c_size_t,
                          ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_void_p))


class Plugin(ctypes.Structure):
    """H5Z_class2_t of H5Zpublic.h."""
    _fields_ = [("version", ctypes.c_int), ("id", ctypes.c_int), ("encodes", ctypes.c_uint), ("decodes", ctypes.c_uint),
                ("name", ctypes.c_char_p), ("can_apply", ctypes.c_void_p), ("set_local", ctypes.c_void_p),
                ("filter", FILTER)]


C = ctypes.CDLL(None)
C.malloc.restype = ctypes.c_void_p
C.malloc.argtypes = [ctypes.c_size_t]
C.free.argtypes = [ctypes.c_void_p]


class Filter:
    def __init__(self, plugin, values):
        path = hdf5plugin.get_config().registered_filters[plugin]
        library = ctypes.CDLL(os.fspath(path))
        library.H5PLget_plugin_info.restype = ctypes.POINTER(Plugin)
        self.filter = library.H5PLget_plugin_info().contents.filter
        self.values = (ctypes.c_uint * len(values))(*values)
        self.cpu = self.wall = 0.0

    def __call__(self, flags, data):
        size = ctypes.c_size_t(len(data))
        buffer = ctypes.c_void_p(C.malloc(len(data)))
        ctypes.memmove(buffer, data, len(data))
        cpu, wall = time.process_time(), time.perf_counter()
        length = self.filter(flags, len(self.values), self.values, len(data), ctypes.byref(size), ctypes.byref(buffer))
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu
        assert length, "the filter refuses"
        result = ctypes.string_at(buffer, length)
        C.free(buffer)
        return result

    def all(self, flags, data):
        self.cpu = self.wall = 0.0
        return [self(flags, each) for each in data]


plugin, values, size, path = sys.argv[1:]
whole = pathlib.Path(path).read_bytes()
frames = [whole[at:at + int(size)] for at in range(0, len(whole), int(size))]
work = Filter(plugin, [int(value) for value in values.split(",")])
for _ in sys.stdin:
    chunks = work.all(0, frames)
    phases = [[work.cpu, work.wall]]
    assert work.all(REVERSE, chunks) == frames, "the filter gives other frames back"
    phases.append([work.cpu, work.wall])
    print(json.dumps({"phases": phases, "bytes": sum(map(len, chunks))}), flush=True)
