"""The other side of codec.rs: reads what we wrote with the reference libraries, and writes what we are to read.

codec.py bitshuffle DIR   each NAME.SIZE.raw (unsigned integers of SIZE bytes) must be what HDF5 reads from the chunk
                          NAME.SIZE.ours by filter 32008; its own chunk goes to NAME.SIZE.theirs
codec.py filters DIR      for each line of cases.jsonl, {name, compression, level, filter, cd_values, type, shape}: a dataset
                          of such frames with hdf5plugin's compression must store that filter and those values; NAME.raw
                          must be the frame that HDF5 reads from the chunk NAME.ours, bit for bit; its own chunk goes to
                          NAME.theirs
codec.py cbf DIR          each NAME.raw (int32) must be the pixels that fabio reads from NAME.ours.cbf, HEIGHT x WIDTH as
                          there, none of them above the Count_cutoff of the header, whose values it prints; its own file
                          goes to NAME.theirs.cbf
"""
import json
import pathlib
import sys

import numpy


def bitshuffle(directory):
    import h5py

    if not h5py.h5z.filter_avail(32008):
        import bitshuffle.h5  # noqa: F401, registers the filter

    for path in sorted(directory.glob("*.raw")):
        elements = numpy.fromfile(path, f"<u{path.suffixes[0][1:]}")
        with h5py.File("memory", "w", driver="core", backing_store=False) as file:
            def dataset(name):
                return file.create_dataset(name, elements.shape, elements.dtype, chunks=elements.shape,
                                           compression=32008, compression_opts=(0, 2))

            ours = dataset("ours")
            ours.id.write_direct_chunk((0,), path.with_suffix(".ours").read_bytes())
            assert numpy.array_equal(ours[:], elements), f"{path}: the filter reads other elements"
            theirs = dataset("theirs")
            theirs[:] = elements
            path.with_suffix(".theirs").write_bytes(theirs.id.read_direct_chunk((0,))[1])
        print(path.name)


def options(compression, level):
    """What a user of hdf5plugin gives to create_dataset."""
    import hdf5plugin

    return {"none": lambda: {},
            "lz4": hdf5plugin.LZ4,
            "zstd": lambda: hdf5plugin.Zstd(clevel=level),
            "bslz4": hdf5plugin.Bitshuffle,
            "bszstd": lambda: hdf5plugin.Bitshuffle(cname="zstd", clevel=level)}[compression]()


def filters(directory):
    import h5py

    for case in map(json.loads, (directory / "cases.jsonl").read_text().splitlines()):
        path = directory / case["name"]
        shape = tuple(case["shape"])
        frame = numpy.fromfile(f"{path}.raw", "<" + case["type"]).reshape(shape)
        place = (1,) + (0,) * len(shape)
        with h5py.File("memory", "w", driver="core", backing_store=False) as file:
            def dataset(name):
                return file.create_dataset(name, (2,) + shape, frame.dtype, chunks=(1,) + shape,
                                           **options(case["compression"], case["level"]))

            ours = dataset("ours")
            pipeline = ours.id.get_create_plist()
            stored = [pipeline.get_filter(index) for index in range(pipeline.get_nfilters())]
            said = [] if case["filter"] is None else [(case["filter"], tuple(case["cd_values"]))]
            assert [(number, values) for number, _, values, _ in stored] == said, f"{path}: it stores {stored}"
            ours.id.write_direct_chunk(place, pathlib.Path(f"{path}.ours").read_bytes())
            assert ours[1].tobytes() == frame.tobytes(), f"{path}: the filter reads another frame"
            theirs = dataset("theirs")
            theirs[1] = frame
            pathlib.Path(f"{path}.theirs").write_bytes(theirs.id.read_direct_chunk(place)[1])
        print(case["name"])


def cbf(directory):
    import fabio

    for path in sorted(directory.glob("*.raw")):
        image = fabio.open(str(path.with_suffix(".ours.cbf")))
        pixels = numpy.fromfile(path, "<i4").reshape(image.data.shape)
        assert image.data.dtype == numpy.int32 and numpy.array_equal(image.data, pixels), f"{path}: other pixels"
        fabio.cbfimage.CbfImage(data=pixels).write(str(path.with_suffix(".theirs.cbf")))
        said = fabio.cbfimage.PilatusHeader(image.header["_array_data.header_contents"])
        values = [line.removeprefix("# ") for line in str(said).splitlines()]
        assert image.data.max() <= said["Count_cutoff"], f"{path}: pixels above the cutoff"
        print(path.name, *image.data.shape, *values, sep=", ")


{"bitshuffle": bitshuffle, "filters": filters, "cbf": cbf}[sys.argv[1]](pathlib.Path(sys.argv[2]))
