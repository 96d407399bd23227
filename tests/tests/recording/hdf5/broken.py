"""Files of HDF5 of which one object is damaged, each another way, for the tests of files without a journal.

Writes into the directory that is named NAME.h5, and NAME.raw with what its frames were, and prints for each, with tabs
between them: its name, the path of the object that can't be read, how many of the ten frames can be.
"""

import os
import sys

import h5py
import numpy as np

FRAMES = (np.arange(10 * 6 * 8, dtype="u2") * 7 % 1000).reshape(10, 6, 8)


def made(path, libver, chunks):
    """A file with frames, and with objects beside them that have nothing to do with them."""
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("entry/data/data", data=FRAMES, chunks=chunks, maxshape=(None, 6, 8) if chunks else None)
        file["entry/sample/map"] = np.ones((4, 5), "f4")
        file["entry/sample/name"] = "lysozyme"
        file["entry/log/pressure/values"] = np.arange(20.0).reshape(4, 5)
        for number in range(40):
            file[f"entry/many/v{number:02}"] = np.full((2, 3), number)


def address(path, name):
    """Where the header of an object is."""
    with h5py.File(path) as file:
        return h5py.h5o.get_info(file[name].id).addr


def overwrite(path, at, with_bytes):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(with_bytes)


def signature(path, name):
    overwrite(path, address(path, name), b"\0" * 4)


def header(path, name):
    overwrite(path, address(path, name) + 12, b"\xff" * 24)


def nothing(path, name):
    overwrite(path, address(path, name), b"\0" * 200)


def block(of_kind, skip=8):
    """Damages the last block of this kind, of which others of the library know where it is."""

    def damage(path, _name):
        with open(path, "rb") as file:
            found = file.read().rfind(of_kind)
        assert found > 0, of_kind
        overwrite(path, found + skip, b"\xff" * 8)

    return damage


CASES = {
    "signature": ("latest", (1, 6, 8), "entry/sample/map", signature, 10),
    "checksum": ("latest", (1, 6, 8), "entry/sample/map", header, 10),
    "group": ("latest", (1, 6, 8), "entry/log/pressure", header, 10),
    "upper_group": ("latest", (1, 6, 8), "entry/log", nothing, 10),
    "text": ("latest", None, "entry/sample/name", header, 10),
    "earliest": ("earliest", (1, 6, 8), "entry/sample/map", header, 10),
    "earliest_group": ("earliest", (3, 6, 8), "entry/log/pressure", nothing, 10),
    "earliest_whole": ("earliest", None, "entry/sample/map", nothing, 10),
    "members": ("earliest", (1, 6, 8), "entry/many", block(b"SNOD", 0), 10),
    "index": ("latest", (1, 6, 8), "entry/data/data", block(b"EAHD"), 0),
    "index_part": ("latest", (1, 6, 8), "entry/data/data", block(b"EADB"), 4),
}

for case, (libver, chunks, name, damage, readable) in CASES.items():
    path = os.path.join(sys.argv[1], f"{case}.h5")
    made(path, libver, chunks)
    damage(path, name)
    FRAMES.tofile(os.path.join(sys.argv[1], f"{case}.raw"))
    print(case, f"/{name}", readable, sep="\t")
