"""What h5py finds different in two files of HDF5, one of which was made of the other, for the tests of such.

same.py ONE OTHER DATASET   prints a line of JSON: how many objects and attributes of ONE were compared with those of OTHER, what
                            differs, which names lead to the same object in OTHER, and how OTHER stores DATASET
"""
import json
import sys

import h5py
import hdf5plugin  # noqa: F401, registers the filters
import numpy


def value(of):
    return of[()] if isinstance(of, h5py.Dataset) else None


def is_same(one, other):
    if isinstance(one, h5py.Empty) or isinstance(other, h5py.Empty):
        return one == other
    one, other = numpy.asarray(one), numpy.asarray(other)
    # What was not stated is not a number, in both.
    is_fraction = one.dtype.kind == "f"
    return one.dtype == other.dtype and numpy.array_equal(one, other, equal_nan=is_fraction)


def names_of(group, path=""):
    """All names, those of links too, each once a path."""
    for name in group:
        link = group.get(name, getlink=True)
        yield f"{path}/{name}", link
        if isinstance(link, h5py.HardLink) and isinstance(group[name], h5py.Group):
            yield from names_of(group[name], f"{path}/{name}")


def compared(one, other):
    count, different = 0, []
    for path, link in [("/", h5py.HardLink())] + list(names_of(one)):
        count += 1
        try:
            if not isinstance(link, h5py.HardLink):
                there = other.get(path, getlink=True)
                if vars(there) != vars(link):
                    different.append(path)
                continue
            left, right = one[path], other[path]
            if type(left) is not type(right) or not is_same(value(left), value(right)):
                different.append(path)
            for name in left.attrs:
                count += 1
                if name not in right.attrs or not is_same(left.attrs[name], right.attrs[name]):
                    different.append(f"{path}@{name}")
        except (KeyError, OSError) as error:
            different.append(f"{path}: {error}")
    return count, different


def aliases(file):
    found = {}
    for path, link in names_of(file):
        if isinstance(link, h5py.HardLink):
            found.setdefault(h5py.h5o.get_info(file[path].id).addr, []).append(path)
    return sorted(paths for paths in found.values() if len(paths) > 1)


with h5py.File(sys.argv[1]) as one, h5py.File(sys.argv[2]) as other:
    count, different = compared(one, other)
    dataset = other[sys.argv[3]]
    pipeline = dataset.id.get_create_plist()
    print(json.dumps({
        "count": count,
        "different": different,
        "aliases": [aliases(one), aliases(other)],
        "chunk": dataset.chunks,
        "maxshape": dataset.maxshape,
        "filters": [pipeline.get_filter(index)[0] for index in range(pipeline.get_nfilters())],
        "stored": dataset.id.get_num_chunks(),
    }))
