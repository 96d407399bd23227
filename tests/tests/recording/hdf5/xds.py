"""The rules of the plug-ins by which XDS reads HDF5, held against a file: every rule is one that their sources state.

xds.py durin FILE   durin: src/file.c, src/plugin.c (DiamondLightSource/durin)
xds.py neggia FILE  neggia: src/dectris/neggia/plugin/H5ToXds.cpp, src/dectris/neggia/user/Dataset.cpp,
                    bin/check_h5_compatibility.py (dectris/neggia)

Prints what the plug-in would tell XDS: columns, rows, bytes of a pixel, the size of a pixel, frames, and gaps in the mask.
"""
import json
import sys

import h5py
import hdf5plugin  # noqa: F401  the filters
import numpy

# scale_from_units of durin, in lower case as strcasecmp compares.
UNITS = {"m": 1, "metres": 1, "meters": 1, "cm": 0.01, "centimetres": 0.01, "centimeters": 0.01, "mm": 0.001,
         "millimetres": 0.001, "millimeters": 0.001, "um": 1e-6, "microns": 1e-6, "micrometres": 1e-6, "micrometers": 1e-6}
BITSHUFFLE = 32008
LZ4 = 32004
LZ4_OF_BITSHUFFLE = 2


def read_as_c(attribute, size):
    """The bytes that H5Aread gives for H5T_C_S1 of this size: ASCII that ends with a zero. It fails for UTF-8."""
    kind = attribute.get_type()
    assert kind.get_class() == h5py.h5t.STRING, attribute.name
    assert not kind.is_variable_str(), f"{attribute.name}: the library converts no UTF-8 of variable length to H5T_C_S1"
    assert attribute.get_space().get_simple_extent_npoints() == 1, attribute.name
    memory = h5py.h5t.C_S1.copy()
    memory.set_size(size(kind.get_size()))
    buffer = numpy.zeros((), dtype=f"S{memory.get_size()}")
    attribute.read(buffer, mtype=memory)
    return bytes(buffer[()]).split(b"\0")[0].decode("ascii")


def durin(path):
    with h5py.File(path) as file:
        last = {}

        # det_visit_callback: of several groups of a class the last one in the order of names counts.
        def visit(name, node):
            if isinstance(node, h5py.Group) and "NX_class" in node.attrs:
                last[read_as_c(h5py.h5a.open(node.id, b"NX_class"), lambda size: size + 1)] = node

        file.visititems(visit)
        detector, data = last["NXdetector"], last["NXdata"]
        assert (detector.name, data.name) == ("/entry/instrument/detector", "/entry/data"), last
        sizes = []
        for name in ("x_pixel_size", "y_pixel_size"):
            size = detector[name]
            assert size.shape == () and size.dtype.kind == "f", name
            # read_pixel_info gives the text as much room as it has in the file: its zero must be in there.
            units = read_as_c(h5py.h5a.open(size.id, b"units"), lambda size: size)
            assert units.lower() in UNITS, f"{name} in {units!r}"
            sizes.append(float(size[()]) * UNITS[units.lower()])
        home = detector if "data_000001" in detector or "data" in detector else data
        frames = blocks(home) if "data_000001" in home else [home["data"]]
        for block in frames:
            assert block.ndim == 3 and block.dtype.itemsize in (1, 2, 4, 8), block
            assert block.shape[1:] == frames[0].shape[1:] and block.dtype == frames[0].dtype, block
        filters = frames[0].id.get_create_plist()
        if "data_000001" in home and filters.get_nfilters() == 1 and filters.get_filter(0)[0] == BITSHUFFLE:
            # filters.h: BS_H5_N_PARAMS
            assert len(filters.get_filter(0)[2]) <= 5, filters.get_filter(0)
        mask = detector["pixel_mask"] if "pixel_mask" in detector else None
        if mask is not None:
            assert mask.shape == frames[0].shape[1:] and mask.dtype.kind in "iu", mask
        told(frames, sizes, sum(len(block) for block in frames), mask)


def blocks(home):
    found = []
    while f"data_{len(found) + 1:06}" in home:
        found.append(home[f"data_{len(found) + 1:06}"])
    return found


def neggia(path):
    with open(path, "rb") as file:
        head = file.read(9)
    assert head[:8] == b"\x89HDF\r\n\x1a\n" and head[8] in (0, 2, 3), head
    with h5py.File(path) as file:
        detector = file["entry/instrument/detector"]
        specific = detector["detectorSpecific"]
        sizes = []
        for name in ("x_pixel_size", "y_pixel_size"):
            assert detector[name].dtype in (numpy.float32, numpy.float64) and detector[name].shape == (), name
            sizes.append(float(detector[name][()]))
        counts = []
        for name in ("nimages", "ntrigger"):
            assert specific[name].dtype.kind in "iu" and specific[name].shape == () and specific[name][()] > 0, name
            counts.append(int(specific[name][()]))
        mask = specific["pixel_mask"]
        assert mask.chunks is None and mask.dtype.kind in "iu" and mask.ndim == 2 and (mask[:] >= 0).all(), mask
        data = file["entry/data"]
        frames = blocks(data) or [data["data"]]
        for number, block in enumerate(frames):
            assert block.dtype.kind == "u" and block.dtype.itemsize in (1, 2, 4), block
            assert block.chunks == (1, *mask.shape) and block.shape[1:] == mask.shape, block
            # getFrameNumberWithinDataset: all files but the last have as many frames as the first.
            assert number == len(frames) - 1 or len(block) == len(frames[0]), block
            filters = block.id.get_create_plist()
            assert filters.get_nfilters() <= 1, block
            if filters.get_nfilters() == 1:
                number, _, values, _ = filters.get_filter(0)
                assert number == LZ4 or number == BITSHUFFLE and values[4] == LZ4_OF_BITSHUFFLE, (number, values)
        # The announced number: images that did not come are an error when XDS asks for them.
        told(frames, sizes, counts[0] * counts[1], mask)


def told(frames, sizes, count, mask):
    rows, columns = frames[0].shape[1:]
    print(json.dumps({
        "columns": columns, "rows": rows, "bytes": frames[0].dtype.itemsize, "pixel": [round(size, 9) for size in sizes],
        "frames": count, "gaps": None if mask is None else int((mask[:] & 1).sum()),
        "sums": [int(frame.sum(dtype="u8")) for block in frames for frame in block],
    }))


if __name__ == "__main__":
    {"durin": durin, "neggia": neggia}[sys.argv[1]](sys.argv[2])
