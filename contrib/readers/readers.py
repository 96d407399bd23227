#!/usr/bin/env python3
"""Which programs of this machine read a recording in HDF5, or a CBF file: tries each that is installed, and prints a table.

    readers.py FILE

FILE is the only file of a recording or its master file, or a file that ends in .cbf. The table is Markdown. A program that is
not installed has no version and is not tried. The exit code is 1 if a program that is installed fails.
"""
import argparse
import importlib.metadata
import os
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


def with_nexusformat(path, truth):
    from nexusformat.nexus import nxload
    expect(tuple(nxload(path)["entry/data/data"].shape), truth, "the shape of the frames")
    return "the shape of the frames"


def with_scippnexus(path, truth):
    import scippnexus
    with scippnexus.File(path) as file:
        expect(tuple(file["entry/data/data"].shape), truth, "the shape of the frames")
        return f"the shape of the frames, and {len(file['entry/instrument/detector'])} fields of the detector"


def with_h5grove(path, truth):
    from h5grove.content import get_content_from_file

    def error(code, why):
        return Failed(f"{code}: {why}")

    with get_content_from_file(path, FRAMES, error) as content:
        expect(tuple(content.metadata()["shape"]), truth, "the shape of the frames")
        expect(tuple(content.data("0").shape), truth[1:], "the shape of the first frame")
    return "the shape of the frames, and the first frame"


def with_pyfai(path, truth):
    import fabio
    import h5py
    import hdf5plugin  # noqa: F401
    from pyFAI.integrator.azimuthal import AzimuthalIntegrator
    if truth is None:
        frame, sizes = fabio.open(path).data, [172e-6, 172e-6]
    else:
        with h5py.File(path) as file:
            frame = file[FRAMES][(0,) * (len(truth) - 2)]
            sizes = [float(file[f"entry/instrument/detector/{axis}_pixel_size"][()]) for axis in "yx"]
    rows, columns = (count * size / 2 for count, size in zip(frame.shape, sizes))
    integrator = AzimuthalIntegrator(0.2, rows, columns, pixel1=sizes[0], pixel2=sizes[1], wavelength=1e-10)
    curve = integrator.integrate1d(frame, 100, mask=masked(frame))
    if not (curve.sum_signal > 0).any():
        raise Failed("it integrates nothing")
    return "azimuthal integration of the first frame"


def masked(frame):
    """Gaps and bad pixels are negative, or have the highest value."""
    import numpy
    return (frame < 0) if frame.dtype.kind == "i" else (frame == numpy.iinfo(frame.dtype).max)


def with_pymca(path, truth):
    from PyMca5.PyMcaIO.HDF5Stack1D import HDF5Stack1D
    stack = HDF5Stack1D([path], {"x": [], "y": ["/data/data"], "m": []}, scanlist=["/entry"])
    expect(tuple(stack.data.shape), truth, "the shape of the stack")
    return "the frames as a stack"


def with_imaged11(path, truth):
    import numpy
    from ImageD11 import sparseframe
    import h5py
    import hdf5plugin  # noqa: F401
    with h5py.File(path) as file:
        frame = file[FRAMES][(0,) * (len(truth) - 2)]
    frame = numpy.where(masked(frame), 0, frame).astype(numpy.uint16)
    spots = sparseframe.from_data_cut(frame, 1)
    expect(spots.nnz, int((frame > 1).sum()), "the number of pixels above 1")
    return "pixels of the first frame above a threshold"


def with_fabio_cbf(path, truth):
    import fabio
    image = fabio.open(path)
    return f"{image.data.shape[0]} x {image.data.shape[1]} pixels, and a header of {len(image.header)} entries"


def environment():
    """With the filters of hdf5plugin, for programs that look for them."""
    try:
        import hdf5plugin
    except ImportError:
        return dict(os.environ)
    return {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH, **os.environ}


def started(*words, **variables):
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=LIMIT, env=environment() | variables)
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


def with_h5stat(path, truth):
    started("h5stat", path)
    return "statistics of all objects"


def with_h5copy(path, truth):
    with tempfile.TemporaryDirectory() as home:
        started("h5copy", "-p", "-i", path, "-o", f"{home}/copy.h5", "-s", "/entry/instrument", "-d", "/entry/instrument")
    return "a copy of the instrument"


def with_h5diff(path, truth):
    with tempfile.TemporaryDirectory() as home:
        started("h5copy", "-p", "-i", path, "-o", f"{home}/copy.h5", "-s", FRAMES, "-d", FRAMES)
        # The files of a virtual dataset stay beside the original.
        beside = os.path.dirname(os.path.abspath(path))
        started("h5diff", path, f"{home}/copy.h5", FRAMES, FRAMES, HDF5_VDS_PREFIX=beside)
    return "every pixel, compared with a copy"


def with_h5repack(path, truth):
    with tempfile.TemporaryDirectory() as home:
        started("h5repack", path, f"{home}/repacked.h5")
    return "the whole file, written anew"


def with_h5clear(path, truth):
    with tempfile.TemporaryDirectory() as home:
        shutil.copy(path, f"{home}/copy.h5")
        started("h5clear", "--status", f"{home}/copy.h5")
    return "the status of a copy, cleared"


def with_dials(path, truth):
    with tempfile.TemporaryDirectory() as home:
        imported = f"{home}/imported.expt"
        started("dials.import", path, f"output.experiments={imported}", f"output.log={home}/dials.log")
        started("dials.show", imported)
        spots = ["nproc=1", f"output.reflections={home}/spots.refl", f"output.log={home}/spots.log"]
        said = started("dials.find_spots", imported, *spots)
    found = re.search(r"Saved (\d+) reflections", said)
    return f"the geometry, and {found[1] if found else 'no'} spots"


def with_cif2cbf(path, truth):
    with tempfile.TemporaryDirectory() as home:
        started("cif2cbf", "-i", path, "-o", f"{home}/copy.cif")
    return "the picture and its header"


PACKAGES = {
    "h5py": with_h5py,
    "h5py, SWMR": with_swmr,
    "silx": with_silx,
    "fabio": with_fabio,
    "nxmx": with_nxmx,
    "tiled": with_tiled,
    "nexusformat": with_nexusformat,
    "scippnexus": with_scippnexus,
    "h5grove": with_h5grove,
    "pyFAI": with_pyfai,
    "PyMca5": with_pymca,
    "ImageD11": with_imaged11,
}
"""Packages of Python."""
PROGRAMS = {
    "h5ls": (with_h5ls, "h5ls", None),
    "h5dump": (with_h5dump, "h5dump", None),
    "h5stat": (with_h5stat, "h5stat", None),
    "h5copy": (with_h5copy, "h5copy", None),
    "h5diff": (with_h5diff, "h5diff", None),
    "h5repack": (with_h5repack, "h5repack", None),
    "h5clear": (with_h5clear, "h5clear", None),
    "dials": (with_dials, "dials.import", None),
}
"""Check, name of the program, and the package with its version. Without a package, the program prints its version."""
CBF_PACKAGES = {"fabio": with_fabio_cbf, "pyFAI": with_pyfai}
"""Packages of Python that read CBF files."""
CBF_PROGRAMS = {"cif2cbf": (with_cif2cbf, "cif2cbf", "cbflib-bin"), "dials": (with_dials, "dials.import", None)}
"""Programs that read CBF files."""


def version_of_package(name):
    try:
        return importlib.metadata.version(name.split(",")[0])
    except importlib.metadata.PackageNotFoundError:
        return None


def version_of_program(name, package):
    if not shutil.which(name):
        return None
    if package:
        return version_of_package(package) or version_in_debian(package)
    # Some write a log into the directory in which they run.
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=LIMIT, cwd=home)
    words = (done.stdout + done.stderr).split()
    return next((word for word in words if re.fullmatch(r"\d+(\.\d+)+\S*", word)), "unknown")


def version_in_debian(package):
    if not shutil.which("dpkg-query"):
        return "unknown"
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout or "unknown"


def clients(packages, programs):
    """Name, version and check of each program."""
    for name, check in packages.items():
        yield name, version_of_package(name), check
    for name, (check, program, package) in programs.items():
        yield name, version_of_program(program, package), check


def tried(check, path, truth):
    try:
        return True, check(path, truth)
    except Exception as error:  # Whatever goes wrong in a program belongs into its row.
        return False, f"{type(error).__name__}: {error}".splitlines()[0].replace("|", "/")


def shape_of(parser, path):
    """The shape of the frames of an HDF5 file."""
    try:
        import h5py
        with h5py.File(path) as file:
            return tuple(file[FRAMES].shape)
    except (ImportError, OSError, KeyError) as error:
        parser.error(f"{path}: {error}")


def main():
    # Programs of the same environment of Python are found too.
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    path = str(parser.parse_args().file)
    is_cbf = path.endswith(".cbf")
    if is_cbf and not os.path.isfile(path):
        parser.error(f"{path}: no such file")
    truth = None if is_cbf else shape_of(parser, path)
    chosen = (CBF_PACKAGES, CBF_PROGRAMS) if is_cbf else (PACKAGES, PROGRAMS)
    fails = False
    print("| program | version | reads it | what it read, or why not |\n|---|---|---|---|")
    for name, version, check in clients(*chosen):
        if version is None:
            print(f"| {name} | | not installed | |")
            continue
        works, said = tried(check, path, truth)
        fails |= not works
        print(f"| {name} | {version} | {'yes' if works else 'no'} | {said} |", flush=True)
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
