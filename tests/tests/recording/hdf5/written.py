"""Writes files of HDF5 as users of h5py write them, and the bytes of their frames: written.py DIRECTORY

For each a file NAME.h5 and NAME.raw; standard output has a name a line.
"""
import pathlib
import sys

import h5py
import hdf5plugin
import numpy as np

home = pathlib.Path(sys.argv[1])
random = np.random.default_rng(7)


def frames(kind, *shape):
    return random.poisson(3, shape).astype(kind)


def write(name, data, path="images", **how):
    with h5py.File(home / f"{name}.h5", "w", userblock_size=how.pop("userblock", 0)) as file:
        file.create_dataset(path, data=data, **how)
    data.tofile(home / f"{name}.raw")
    print(name)


write("contiguous", frames("<u2", 5, 30, 40))
write("big-endian", frames(">u2", 5, 30, 40), chunks=(1, 30, 40))
write("plain", frames("<u4", 7, 30, 40), chunks=(2, 16, 40))
write("userblock", frames("<u4", 7, 30, 40), chunks=(2, 16, 40), userblock=512)
write("gzip", frames("<i4", 7, 30, 40), chunks=(3, 30, 40), compression="gzip", shuffle=True, fletcher32=True)
write("bslz4", frames("<u2", 9, 30, 40), chunks=(4, 16, 16), **hdf5plugin.Bitshuffle(cname="lz4"))
write("bszstd", frames("<u2", 9, 30, 40), chunks=(4, 30, 40), **hdf5plugin.Bitshuffle(cname="zstd"))
write("lz4", frames("<u4", 9, 30, 40), chunks=(1, 30, 40), **hdf5plugin.LZ4())
write("zstd", frames("<u4", 9, 30, 40), chunks=(9, 8, 8), **hdf5plugin.Zstd())
write("scan", frames("<f4", 3, 5, 30, 40), chunks=(1, 2, 30, 40), compression="gzip")
write("lines", frames("<u1", 50, 33), chunks=(8, 8))
