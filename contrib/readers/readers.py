#!/usr/bin/env python3
"""Which programs of this machine read a recording in HDF5: tries each that is installed, and prints a table.

    readers.py FILE

FILE is the only file of a recording or its master file. The table is Markdown. A program that is not installed has no
version and is not tried. The exit code is 1 if a program that is installed fails.
"""
import argparse
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FRAMES = "/entry/data/data"
LIMIT = 600
"""Seconds for a program that is started."""


class Failed(Exception):
    """A program read something else than is there."""


def expect(found, wanted, what):
    if found != wanted:
        raise Failed(f"{what} is {found}, not {wanted}")


def with_h5py(path, truth):
    import h5py
    import hdf5plugin  # noqa: F401  the filters
    with h5py.File(path) as file:
        frames = file[FRAMES]
        for number in {0, len(frames) - 1}:
            frames[number]
        return f"first and last of {len(frames)} frames"


def with_swmr(path, truth):
    import h5py
    import hdf5plugin  # noqa: F401
    with h5py.File(path, swmr=True) as file:
        frames = file[FRAMES]
        frames.refresh()
        frames[0]
        return "first frame"


def with_silx(path, truth):
    import silx.io
    import silx.io.nxdata
    with silx.io.open(path) as file:
        plot = silx.io.nxdata.get_default(file)
        if plot is None or not plot.is_valid:
            raise Failed("it finds no default plot")
        expect(tuple(plot.signal.shape), truth, "the shape of the default plot")
    return "the default plot"


def with_fabio(path, truth):
    import fabio
    with fabio.open(f"{path}::{FRAMES}") as image:
        expect(image.nframes, truth[0], "the number of frames")
        expect(tuple(image.getframe(truth[0] - 1).data.shape), truth[-2:], "the shape of the last frame")
    return "number and last of the frames"


def with_nxmx(path, truth):
    import h5py
    import nxmx
    with h5py.File(path) as file:
        entry = nxmx.NXmx(file).entries[0]
        detector = entry.instruments[0].detectors[0]
        expect(tuple(entry.data[0]["data"].shape), truth, "the shape of the frames")
        return f"frames, and a detector with {len(detector.modules)} module"


def with_tiled(path, truth):
    from tiled.adapters.hdf5 import HDF5Adapter
    adapter = HDF5Adapter.from_uris(pathlib.Path(path).resolve().as_uri())
    array = adapter["entry"]["data"]["data"]
    expect(tuple(array.structure().shape), truth, "the shape")
    return "the shape of the frames"


def started(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise Failed(said[-1] if said else f"exit code {done.returncode}")
    return done.stdout


def with_h5ls(path, truth):
    if FRAMES.lstrip("/") not in started("h5ls", "-r", path):
        raise Failed("it lists no frames")
    return "the list of all objects"


def with_h5dump(path, truth):
    started("h5dump", "-H", path)
    return "all headers"


def with_dials(path, truth):
    with tempfile.TemporaryDirectory() as home:
        started("dials.import", path, f"output.experiments={home}/imported.expt", f"output.log={home}/dials.log")
    return "import"


PACKAGES = {
    "h5py": with_h5py,
    "h5py, SWMR": with_swmr,
    "silx": with_silx,
    "fabio": with_fabio,
    "nxmx": with_nxmx,
    "tiled": with_tiled,
}
"""Packages of Python."""
PROGRAMS = {
    "h5ls": (with_h5ls, "--version"),
    "h5dump": (with_h5dump, "--version"),
    "dials.import": (with_dials, "--version"),
}
"""Programs, each with the option that makes it print its version."""


def version_of_package(name):
    try:
        return importlib.metadata.version(name.split(",")[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def version_of_program(name, option):
    if not shutil.which(name):
        return None
    done = subprocess.run([name, option], capture_output=True, text=True, timeout=LIMIT)
    words = (done.stdout + done.stderr).split()
    return next((word for word in words if re.fullmatch(r"\d+(\.\d+)+\S*", word)), "unknown")


def clients():
    """Name, version and check of each program."""
    for name, check in PACKAGES.items():
        yield name, version_of_package(name), check
    for name, (check, option) in PROGRAMS.items():
        yield name, version_of_program(name, option), check


def tried(check, path, truth):
    try:
        return True, check(path, truth)
    except Exception as error:  # Whatever goes wrong in a program belongs into its row.
        return False, f"{type(error).__name__}: {error}".splitlines()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    path = str(parser.parse_args().file)
    try:
        import h5py
        with h5py.File(path) as file:
            truth = tuple(file[FRAMES].shape)
    except (ImportError, OSError, KeyError) as error:
        parser.error(f"{path}: {error}")
    fails = False
    print("| program | version | reads it | what it read, or why not |\n|---|---|---|---|")
    for name, version, check in clients():
        if version is None:
            print(f"| {name} | | not installed | |")
            continue
        works, said = tried(check, path, truth)
        fails |= not works
        print(f"| {name} | {version} | {'yes' if works else 'no'} | {said} |", flush=True)
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
